"""The stages of a program, by the ends of queues that they use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.queues.counting.writers import HEAD, TAIL, End
from benchrigor.queues.tap import Tap


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
        How many threads of a process serve side by side, if more than at its ends.

    Raises
    ------
    InvalidInput
        Naming everything that makes no sense.

    Notes
    -----
    A stage serves the items that pass its heads (a source: its tails); its waits are the waits at
    all of its ends. At a tail that it shares with other stages, only the counts of its own
    processes belong to it. All threads of a process share the counts of an end: stages can share an
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
    """Return the stages to watch; a tap gives two, one for an end, with the names of the ends."""
    stages: list[Stage] = []
    for number, part in enumerate(what):
        if isinstance(part, Tap):
            stages.append(Stage(part.tail.name, writes=[part.tail]))
            stages.append(Stage(part.head.name, reads=[part.head]))
        elif isinstance(part, Stage):
            stages.append(part)
        else:
            raise InvalidInput(f"what[{number}] is {short(part)}, expected a Stage or a Tap")
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
    for number, queue in enumerate(given):
        end = getattr(queue, side[1:]) if isinstance(queue, Tap) else queue
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
