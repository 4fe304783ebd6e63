"""The stages of a program, by the ends of queues that they use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.queues.counting.ends import End
from benchrigor.queues.tap import Tap

HEAD, TAIL = ".head", ".tail"


@dataclass(frozen=True, slots=True, init=False)
class Stage(OneLine):
    """A part of a program that takes items from queues, and gives items to others.

    Parameters
    ----------
    name
        For people.
    reads, writes
        The queues that it takes from, as taps or their heads, and gives to, as taps or their tails.
    servers
        How many threads of each of its processes serve side by side, if more than its ends have.

    Raises
    ------
    InvalidInput
        Naming everything that makes no sense.

    Notes
    -----
    A stage serves what passes its heads (a source: its tails), and waits where it waits at any of
    its ends. Of a tail that it shares with other stages only what its own processes do there
    counts. Within one process an end has one count, whatever thread uses it: stages can share an
    end only if they run in processes of their own.

    Examples
    --------
    >>> import queue
    >>> with Tap(queue.Queue(), name="work") as work, Tap(queue.Queue(), name="done") as done:
    ...     stage = Stage("hash", reads=[work], writes=[done])
    >>> [end.name for end in stage.reads]
    ['work.head']
    """

    name: str
    reads: tuple[End, ...]
    writes: tuple[End, ...]
    servers: int

    def __init__(
        self,
        name: str,
        *,
        reads: Iterable[End | Tap] = (),
        writes: Iterable[End | Tap] = (),
        servers: int = 1,
    ) -> None:
        problems = []
        if not isinstance(name, str) or not name:
            problems.append(f"name is {short(name)}, expected a text")
        problems += wrong_whole("servers", servers)
        heads, tails = _ends(reads, "reads", problems), _ends(writes, "writes", problems)
        if not problems and not heads and not tails:
            problems.append(f"stage {name!r} has no ends, expected heads or tails of queues")
        refuse(problems)
        fields = {"name": name, "reads": heads, "writes": tails, "servers": servers}
        for field, value in fields.items():
            object.__setattr__(self, field, value)


def stages_of(what: Iterable[Any]) -> tuple[Stage, ...]:
    """Return what is to be watched as stages; of a tap each end is one, of the end's name."""
    stages: list[Stage] = []
    for number, each in enumerate(what):
        if isinstance(each, Tap):
            stages.append(Stage(each.tail.name, writes=[each.tail]))
            stages.append(Stage(each.head.name, reads=[each.head]))
        elif isinstance(each, Stage):
            stages.append(each)
        else:
            raise InvalidInput(f"what[{number}] is {short(each)}, expected a Stage or a Tap")
    names = [stage.name for stage in stages]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"several stages are called {twice[0]!r}, expected names of their own")
    if not stages:
        raise InvalidInput("there is nothing to watch, expected a Stage or a Tap")
    return tuple(stages)


_SIDES = {"reads": (HEAD, TAIL), "writes": (TAIL, HEAD)}


def _ends(given: object, what: str, problems: list[str]) -> tuple[End, ...]:
    """Return the ends of a stage; add the problem with them."""
    if isinstance(given, str | Tap) or not isinstance(given, Iterable):
        problems.append(f"{what} is {short(given)}, expected a list of taps, or of their ends")
        return ()
    side, other = _SIDES[what]
    ends = []
    for number, each in enumerate(given):
        end = getattr(each, side[1:]) if isinstance(each, Tap) else each
        if not isinstance(end, End):
            problems.append(f"{what}[{number}] is {short(end)}, expected the {side[1:]} of a tap")
        elif end.name.endswith(other):
            problems.append(f"{what}[{number}] is {end.name!r}, expected a {side[1:]}")
        else:
            ends.append(end)
    names = [end.name for end in ends]
    if len(set(names)) < len(names):
        problems.append(f"{what} is {', '.join(names)}, expected queues with names of their own")
    return tuple(ends)
