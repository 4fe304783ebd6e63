"""What is watched: the stages of a program, by the ends of queues that they use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.series import short
from benchrigor.queues.tap import End, Tap

__all__ = ["HEAD", "TAIL", "Stage", "stages_of"]

HEAD, TAIL = ".head", ".tail"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a program that takes items from queues, and gives items to others.

    Parameters
    ----------
    name
        What people call it.
    reads
        Heads of the queues that it takes from; none for a source.
    writes
        Tails of the queues that it gives to; none for a sink.
    servers
        How many threads of each of its processes serve side by side, if more than its ends say.

    Raises
    ------
    InvalidInput
        Naming every part that makes no sense.

    Notes
    -----
    It serves what passes its heads (a source: its tails), and waits where it waits at any of its
    ends. Of a tail that it shares with other stages only what its own processes do there counts.
    Within one process an end has one count, whatever thread uses it: stages that share an end are
    told apart only if they run in processes of their own.

    Examples
    --------
    >>> import queue
    >>> with Tap(queue.Queue(), name="work") as work, Tap(queue.Queue(), name="done") as done:
    ...     stage = Stage("hash", reads=[work.head], writes=[done.tail])
    >>> [end.name for end in stage.reads]
    ['work.head']
    """

    name: str
    _: KW_ONLY
    reads: Sequence[End] = ()
    writes: Sequence[End] = ()
    servers: int = 1

    def __post_init__(self) -> None:
        problems = []
        if not isinstance(self.name, str) or not self.name:
            problems.append(f"name is {short(self.name)}, expected a text")
        if (
            isinstance(self.servers, bool)
            or not isinstance(self.servers, int)
            or not self.servers >= 1
        ):
            problems.append(f"servers is {short(self.servers)}, expected a whole number from 1 on")
        for what, wrong in (("reads", TAIL), ("writes", HEAD)):
            ends = getattr(self, what)
            problems += _no_ends(ends, what, wrong)
            object.__setattr__(self, what, tuple(ends) if isinstance(ends, Iterable) else ())
        if not problems and not self.reads and not self.writes:
            problems.append(f"stage {self.name!r} has no ends, expected heads or tails of queues")
        if problems:
            raise InvalidInput(problems)


def stages_of(what: Iterable[Any]) -> tuple[Stage, ...]:
    """Return what is to be watched as stages.

    Parameters
    ----------
    what
        Stages; and taps, whose two ends are a stage each: "work.tail" is who fills the queue
        "work", "work.head" who takes from it.

    Raises
    ------
    InvalidInput
        When there is nothing, something else, or a name twice.
    """
    found: list[Stage] = []
    for number, each in enumerate(what):
        if isinstance(each, Tap):
            found.append(Stage(each.tail.name, writes=[each.tail]))
            found.append(Stage(each.head.name, reads=[each.head]))
        elif isinstance(each, Stage):
            found.append(each)
        else:
            raise InvalidInput(f"what[{number}] is {short(each)}, expected a Stage or a Tap")
    names = [stage.name for stage in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInput(f"several stages are called {twice[0]!r}, expected names of their own")
    if not found:
        raise InvalidInput("there is nothing to watch, expected a Stage or a Tap")
    return tuple(found)


def _no_ends(ends: object, what: str, wrong: str) -> list[str]:
    """Say what is wrong with the ends of a stage."""
    if isinstance(ends, str) or not isinstance(ends, Iterable):
        return [f"{what} is {short(ends)}, expected ends of queues"]
    side = HEAD if wrong == TAIL else TAIL
    problems = []
    for number, end in enumerate(ends):
        if not isinstance(end, End):
            problems.append(f"{what}[{number}] is {short(end)}, expected the {side[1:]} of a tap")
        elif end.name.endswith(wrong):
            problems.append(f"{what}[{number}] is {end.name!r}, expected a {side[1:]}")
    names = [end.name for end in ends if isinstance(end, End)]
    if len(set(names)) < len(names):
        problems.append(f"{what} is {', '.join(names)}, expected queues with names of their own")
    return problems
