"""Ends calls that last too long, by the timer of this process."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from benchrigor.errors import AT_FIRST, WorkloadFailed
from benchrigor.model import Code, Notice
from benchrigor.model.options import LATEST
from benchrigor.workloads.processes import own_signals
from benchrigor.workloads.processes.own_signals import handle, left_calls

_SHORTEST_TICK_S = 0.001
# A call hangs if it goes on for this long after its round's time is up: seconds, or multiples of a
# typical call and, for a first call, of the round's time; the longer of the two.
_GRACE_S, _FIRST_GRACE_S = 2.0, 5.0
_TIMES_TYPICAL, _TIMES_FIRST = 10.0, 3.0


class CallOverran(BaseException):
    """Raised inside a call that lasts too long; not an Exception, since functions catch those."""


class _Alarm:
    """Ends a hanging call by the timer of this process, which every tick sets again.

    ``is_late`` says whether the current call should end. A SIGALRM while the timer runs came from
    elsewhere, and is handled as usual.
    """

    def __init__(self, is_late: Callable[[], bool]) -> None:
        self._is_late = is_late
        self._is_set, self._tick_s = False, 0.0
        self._raised_s: float | None = None  # when a call under way was asked to end first

    @contextmanager
    def set(self, first_s: float, tick_s: float) -> Iterator[tuple[float, float]]:
        """Run the timer inside; give the rest and the interval of a timer that ran before."""
        self._is_set, self._tick_s, self._raised_s = True, tick_s, None
        trace = sys.gettrace()
        with handle({signal.SIGALRM: self._tick}):
            try:
                yield signal.setitimer(signal.ITIMER_REAL, first_s)
            finally:
                self.end()
                if self._raised_s and sys.gettrace() is not trace:
                    sys.settrace(trace)

    def forget(self) -> None:
        """Start over with the next call, which was not asked to end."""
        self._raised_s = None

    def end(self) -> None:
        """Stop the timer."""
        if self._is_set:
            self._is_set = False  # a tick that is still to be handled must not set it again
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if not self._is_set:
            return
        if signal.getitimer(signal.ITIMER_REAL)[0] > 0.0:
            own_signals.end_if_asked(number, frame)
            return
        signal.setitimer(signal.ITIMER_REAL, self._tick_s)
        if not self._is_late():
            return
        now = time.monotonic()
        self._raised_s = self._raised_s or now
        if now - self._raised_s > _GRACE_S:
            _raise_on_next_line(frame)
        raise CallOverran


def _raise_on_next_line(frame: FrameType | None) -> None:
    """Raise once more, on the next line of the measured code, which swallowed the first error."""

    def trace(_frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            raise CallOverran
        return trace

    while frame is not None and not frame.f_globals.get("__name__", "").startswith("benchrigor."):
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(_trace_no_more)


def _trace_no_more(_frame: FrameType, _event: str, _arg: object) -> None:
    """Trace no new functions."""


class TimeLimit:
    """Ends calls that last too long.

    A timer checks whether the current reading is still the same, which costs calls no time. They
    end up to a fifth after the limit, and calls that swallow BaseException two seconds later. Code
    outside of Python is ended when it returns.
    """

    def __init__(self, seconds: float) -> None:
        self._alarm = _Alarm(self._is_late)
        self.seconds = seconds
        self.calls = 1  # per reading; every call may last that long
        self._taken: Sequence[int] | None = None
        self._seen, self._since = 0, 0.0
        self._done: int | None = None

    @contextmanager
    def kept(self, name: str) -> Iterator[None]:
        """Set the timer; WorkloadFailed if a call of ``name`` that is watched lasts too long."""
        tick_s, began = max(self.seconds / 10.0, _SHORTEST_TICK_S), time.monotonic()
        left_s, interval_s = 0.0, 0.0
        try:
            with self._alarm.set(tick_s, tick_s) as (left_s, interval_s):
                yield
        except CallOverran as error:
            limit = f"{self.seconds:g} s"
            if self.calls > 1:
                limit = f"{self.calls} times {limit}"
            call = "a call" if self.calls == 1 else "a reading"
            where = place_of(self._seen, self._done)
            raise WorkloadFailed(f"{call} of {name} took longer than {limit} ({where})") from error
        finally:
            if left_s > 0.0:
                left_s = max(left_s - (time.monotonic() - began), _SHORTEST_TICK_S)
                signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)

    @contextmanager
    def watching(self, elapsed_ns: Sequence[int], done: int | None) -> Iterator[None]:
        """Look after the calls inside; arguments as of `failures_of`."""
        self._seen, self._since, self._done = len(elapsed_ns), time.monotonic(), done
        self._taken = elapsed_ns
        try:
            yield
        finally:
            self._taken = None

    def _is_late(self) -> bool:
        if self._taken is None:
            return False
        n, now = len(self._taken), time.monotonic()
        if n != self._seen:
            self._seen, self._since = n, now
            self._alarm.forget()
        return now - self._since >= self.seconds * self.calls


class Patience:
    """Ends a call that hangs: one that goes on long after the time of its round.

    The timer does not go off before that time. From then on a call has ten times the duration of
    earlier calls, or two seconds if that is longer. A first call has three times the time of the
    round, or five seconds if that is longer. So slow calls may finish. Calls are ended in the main
    thread only, and only if the timer is free.
    """

    def __init__(self) -> None:
        self._alarm = _Alarm(self._is_late)
        self.taken: Sequence[int] = ()  # readings so far
        self.typical_s = 0.0  # duration of earlier calls, 0 before the first
        self.is_over = False
        self._seconds = self._until = self._waited_s = 0.0

    @contextmanager
    def kept(self, seconds: float | None) -> Iterator[None]:
        """Leave the code inside when a call hangs, in a round that should take ``seconds``."""
        self.taken, self.is_over = (), False
        if seconds is None or not _is_timer_free():
            yield
            return
        self._seconds, time_s = seconds, LATEST * seconds
        self._until = time.monotonic() + time_s
        try:
            with self._alarm.set(time_s + _GRACE_S, _GRACE_S / 4.0):
                yield
        except CallOverran:
            if not self.is_over:
                raise

    def _is_late(self) -> bool:
        typical_s = max(self.typical_s, max(self.taken, default=0) / 1e9)
        enough_s = max(_FIRST_GRACE_S, _TIMES_FIRST * self._seconds)
        if typical_s:
            enough_s = max(_GRACE_S, _TIMES_TYPICAL * typical_s)
        self._waited_s = time.monotonic() - self._until
        self.is_over |= self._waited_s > enough_s
        return self.is_over

    def end(self) -> None:
        """Set no further limit."""
        self._alarm.end()

    def notice(self, name: str) -> Notice:
        """Say that a call was left."""
        left_calls.append(name)
        return Notice.of(Code.CUT_ROUND, "call", name_=name, seconds=self._waited_s)


def _is_timer_free() -> bool:
    """Return whether the timer of this process can end a call, and is not used by another."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
        and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, own_signals.end)
    )


def place_of(taken: int, done: int | None) -> str:
    """Say the place of a call in a round, after ``taken`` readings; None for the first call."""
    return AT_FIRST if done is None else f"at reading {done + taken}"
