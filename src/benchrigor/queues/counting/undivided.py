"""Keeps other threads out of a few lines."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

__all__ = ["undivided"]

_P = ParamSpec("_P")
_S = TypeVar("_S")
_T = TypeVar("_T")

_BY_TURNS = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one lock lets only one thread run at a time, as it does in all usual builds."""


def undivided(
    method: Callable[Concatenate[_S, _P], _T], *, by_turns: bool = _BY_TURNS
) -> Callable[Concatenate[_S, _P], _T]:
    """Decorate a method that no other thread may run into.

    Its body must neither call nor loop: only there does the interpreter let another thread run, so
    that nothing need be done, and nothing is. Where threads run at once, the object's ``lock`` is
    taken.

    Parameters
    ----------
    method
        That stores a few numbers.
    by_turns
        Whether threads run by turns.

    Examples
    --------
    >>> import threading
    >>> class Tally:
    ...     def __init__(self):
    ...         self.items, self.lock = 0, threading.RLock()
    ...     @undivided
    ...     def count(self):
    ...         self.items += 1
    >>> tally = Tally()
    >>> tally.count()
    >>> tally.items
    1
    """
    if by_turns:
        return method

    @functools.wraps(method)
    def alone(self: Any, *args: _P.args, **options: _P.kwargs) -> _T:
        with self.lock:
            return method(self, *args, **options)

    return cast("Callable[Concatenate[_S, _P], _T]", alone)
