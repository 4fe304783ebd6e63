"""An end to what takes too long."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TooSlow", "within"]


class TooSlow(BaseException):
    """An input took longer than it may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise if the work takes longer."""

    def end(*_: object) -> None:
        raise TooSlow(f"longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
