"""Ends calls that last too long, by the timer of this process."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from benchrigor.errors import AT_FIRST, WorkloadFailed
from benchrigor.model import Code, Notice
from benchrigor.model.options import LATEST
from benchrigor.workloads.processes import own_signals
from benchrigor.workloads.processes.own_signals import handle, left_calls

if TYPE_CHECKING:
    from benchrigor.workloads.processes.worker import Calls

_SHORTEST_TICK_S = 0.001
# A call hangs if it goes on for this long after its round's time is up: seconds, or multiples of a
# typical call and, for a first call, of the round's time; the longer of the two.
_GRACE_S, _FIRST_GRACE_S = 2.0, 5.0
_TIMES_TYPICAL, _TIMES_FIRST = 10.0, 3.0


class CallOverran(BaseException):
    """Raised inside a call that lasts too long; not an Exception, since functions catch those."""


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


class CallLimit:
    """Ends calls that last too long: longer than a limit, or one that hangs beyond its round.

    With a limit, a timer checks whether the current reading is still the same, which costs calls no
    time. They end up to a fifth after the limit, and calls that swallow BaseException two seconds
    later. Code outside of Python is ended when it returns.

    Without one, the timer does not go off before the time of the round. From then on a call has ten
    times the duration of earlier calls, or two seconds if that is longer. A first call has three
    times the time of the round, or five seconds if that is longer. So slow calls may finish. Calls
    are ended in the main thread only, and only if the timer is free.

    Every tick sets the timer again. A SIGALRM while it runs came from elsewhere, and is handled as
    usual.
    """

    def __init__(self, timeout_s: float | None = None) -> None:
        self._timeout_s = timeout_s
        self.calls = 1  # per reading; every call may last that long
        self.taken: Sequence[int] = ()  # readings so far
        self.typical_s = 0.0  # duration of earlier calls, 0 before the first
        self.is_over = False  # whether a call hung beyond its round
        self._is_watching = False
        self._seen, self._since = 0, 0.0
        self._done: int | None = None
        self._seconds = self._until = self._waited_s = self._tick_s = 0.0
        self._is_set = False
        self._raised_s: float | None = None  # when a call under way was asked to end first

    @contextmanager
    def kept(self, seconds: float | None, name: str = "") -> Iterator[None]:
        """Leave the code inside when a call hangs, in a round that should take ``seconds``.

        With a limit, WorkloadFailed if a call of ``name`` that is watched lasts too long.
        """
        self.taken, self.is_over = (), False
        if self._timeout_s is not None:
            first_s = tick_s = max(self._timeout_s / 10.0, _SHORTEST_TICK_S)
        elif seconds is None or not _is_timer_free():
            yield
            return
        else:
            self._seconds, self._until = seconds, time.monotonic() + LATEST * seconds
            first_s, tick_s = LATEST * seconds + _GRACE_S, _GRACE_S / 4.0
        try:
            with self._alarmed(first_s, tick_s):
                yield
        except CallOverran as error:
            if self._timeout_s is not None:
                raise self._failure(name, self._timeout_s) from error
            if not self.is_over:
                raise

    def _failure(self, name: str, timeout_s: float) -> WorkloadFailed:
        call, limit = "a call", f"{timeout_s:g} s"
        if self.calls > 1:
            call, limit = "a reading", f"{self.calls} times {limit}"
        where = place_of(self._seen, self._done)
        return WorkloadFailed(f"{call} of {name} took longer than {limit} ({where})")

    def watching(self, calls: Calls) -> Self:
        """Look after the calls inside, of the readings under way.

        It is its own context, since a generator would take a tenth of a short reading.
        """
        elapsed_ns, self._done = calls.elapsed_ns, calls.done
        if calls.pace_ns:
            self.typical_s = calls.pace_ns / 1e9
        self._seen, self._since = len(elapsed_ns), time.monotonic()
        self.taken, self._is_watching = elapsed_ns, True
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_watching = False

    def _is_late(self) -> bool:
        now = time.monotonic()
        if self._timeout_s is not None:
            if self._is_watching and len(self.taken) != self._seen:
                self._seen, self._since = len(self.taken), now
                self._raised_s = None
            return self._is_watching and now - self._since >= self._timeout_s * self.calls
        typical_s = max(self.typical_s, max(self.taken, default=0) / 1e9)
        enough_s = max(_FIRST_GRACE_S, _TIMES_FIRST * self._seconds)
        if typical_s:
            enough_s = max(_GRACE_S, _TIMES_TYPICAL * typical_s)
        self._waited_s = now - self._until
        self.is_over |= self._waited_s > enough_s
        return self.is_over

    def end(self) -> None:
        """Wait for hanging calls no more."""
        if self._timeout_s is None:
            self._stop()

    def notice(self, name: str) -> Notice:
        """Say that a call was left."""
        left_calls.append(name)
        return Notice.of(Code.CUT_ROUND, "call", name_=name, seconds=self._waited_s)

    @contextmanager
    def _alarmed(self, first_s: float, tick_s: float) -> Iterator[None]:
        """Run the timer inside; a timer that ran before goes on afterwards."""
        self._is_set, self._tick_s, self._raised_s = True, tick_s, None
        trace, began, left_s, interval_s = sys.gettrace(), time.monotonic(), 0.0, 0.0
        try:
            with handle({signal.SIGALRM: self._tick}):
                try:
                    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, first_s)
                    yield
                finally:
                    self._stop()
                    if self._raised_s and sys.gettrace() is not trace:
                        sys.settrace(trace)
        finally:
            if left_s > 0.0:
                left_s = max(left_s - (time.monotonic() - began), _SHORTEST_TICK_S)
                signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)

    def _stop(self) -> None:
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
