"""How a tap takes its place in a program: instead of a source, or inside of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchrigor.queues.counting.writers import Writer
from benchrigor.queues.tapping.bounds import Resize

__all__ = ["Patches", "Tapped", "Wrapper", "is_own"]


def _do_nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tapped:
    """A source that is being counted.

    Parameters
    ----------
    queue
        What the program uses.
    release
        Gives the source back as it was.
    resize
        Moves the bound of the queue, and wakes who waits for room; None where it cannot be moved.
    local
        Whether it is of this process alone, and cannot be sent to another.
    """

    queue: Any
    release: Callable[[], None] = _do_nothing
    resize: Resize | None = None
    local: bool = False


class Wrapper:
    """Stands in for a source; what it does not know itself, the source does, uncounted.

    Parameters
    ----------
    source
        What is wrapped.
    head, tail
        Count what leaves and what enters.
    """

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


class Patches:
    """Attributes set on one object, until they are taken back.

    Parameters
    ----------
    target
        The object; its class stays as it is.

    Examples
    --------
    >>> class Stage:
    ...     def name(self):
    ...         return "reduce"
    >>> stage = Stage()
    >>> patches = Patches(stage)
    >>> patches.set("name", lambda: "map")
    >>> stage.name()
    'map'
    >>> patches.undo()
    >>> stage.name()
    'reduce'
    """

    def __init__(self, target: Any) -> None:
        self.target = target
        self._own: dict[str, Any] = {}
        self._names: set[str] = set()

    def set(self, name: str, value: object) -> None:
        """Set an attribute."""
        if name not in self._names:
            self._names.add(name)
            if is_own(self.target, name):
                self._own[name] = getattr(self.target, name)
        setattr(self.target, name, value)

    def undo(self) -> None:
        """Give the object its attributes back."""
        for name in self._names:
            if name in self._own:
                setattr(self.target, name, self._own[name])
            else:
                delattr(self.target, name)
        self._names.clear()
        self._own.clear()


def is_own(target: Any, name: str) -> bool:
    """Whether a method is the object's, not its class's.

    Asked without ``__dict__``: once that has been looked at, each access to an attribute of the
    object takes longer.

    Examples
    --------
    >>> is_own([], "append")
    False
    """
    method = getattr(target, name)
    return getattr(method, "__self__", None) is not target or method.__name__ != name
