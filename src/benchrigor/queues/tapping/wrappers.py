"""What taps give to a program in place of a source."""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from benchrigor.queues.counting.cells import Cell
from benchrigor.queues.counting.writers import Writer

_T = TypeVar("_T")

# Called with a queue's bound, returns the one that it shall have; may refuse by raising.
Move = Callable[[int], int]

# Moves the bound of a queue; no other caller can move it meanwhile.
Resize = Callable[[Move], None]


def _do_nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tapped:
    """A source that is being counted."""

    queue: Any  # the program uses it
    release: Callable[[], None] = _do_nothing  # gives the source back as it was
    # Moves the bound of the queue, and wakes waiters for room; None if it cannot be moved.
    resize: Resize | None = None
    local: bool = False  # whether it belongs to this process, and cannot be sent to another


class Wrapper:
    """Stands in for a source, which provides all other methods, uncounted."""

    def __init__(self, source: Any, head: Writer, tail: Writer) -> None:
        self._source = source
        self._head = head
        self._tail = tail

    def __getattr__(self, name: str) -> Any:
        # Protocols that go by special names are of the class; asking the source would mislead.
        if name.startswith("__") or name == "_source":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._source, name)

    def __setattr__(self, name: str, value: object) -> None:
        # What belongs to the source is set there; our own names begin with an underscore.
        own = name.startswith("_") or hasattr(type(self), name)
        (super().__setattr__ if own else partial(setattr, self._source))(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._source, self._head, self._tail)

    def __repr__(self) -> str:
        return f"<tapped {self._source!r}>"


@types.coroutine
def time_wait(work: Awaitable[_T], writer: Writer) -> Generator[Any, Any, _T]:
    """Await something; the time from its first suspension to its end is a wait."""
    begun: Cell | None = None
    steps: Any = work.__await__()
    step: Any = steps.send
    given: Any = None
    try:
        while True:
            wanted = step(given)
            begun = begun or writer.begin_wait()
            try:
                given = yield wanted
                step = steps.send
            except BaseException as error:  # noqa: BLE001  # the coroutine gets any error
                given, step = error, steps.throw
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        if begun is not None:
            writer.end_wait(begun)
        given = None  # a thrown error holds this frame: breaks the cycle between them
