"""Common parts of the timing workloads: a clock with known limits, and named failures."""

from __future__ import annotations

import functools
import gc as collector
import inspect
import math
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchrigor.clocks import WallClock, clock_cost_ns, cpu_ns_with_children
from benchrigor.errors import ClockFailed, InvalidInput, failed
from benchrigor.model import Code, Notice, RoundPlan
from benchrigor.model.checks import is_number, wrong_values
from benchrigor.model.options import LATEST
from benchrigor.model.series import Floats
from benchrigor.protocols import Clock, DelayMeter, Recorder
from benchrigor.units import counted, show_value
from benchrigor.workloads.named_functions import hash_of_function, name_of
from benchrigor.workloads.processes.own_signals import end_copy
from benchrigor.workloads.processes.time_limits import CallLimit, CallOverran, place_of
from benchrigor.workloads.processes.worker import NEVER, Calls, Reference, SegmentTimer
from benchrigor.workloads.recorder import Segments

if TYPE_CHECKING:
    from benchrigor.workloads.processes.worker import Timing

_RESOLUTIONS = 1_000
_FUNCTION = "a function without arguments"
_SHORTEST_NS = 20_000
_COST_ALLOWED = 0.01  # share of a reading that reading the clock may take without a Notice
_TYPICAL = 1_000  # last readings of a round, after any warm-up: their median is typical


@dataclass(frozen=True, slots=True)
class What:
    """What is timed, and how the first call is looked at.

    ``taking`` returns what takes readings of that many calls, see `Timing`, and ``look`` a context
    for a first reading of that many, or None. What is taken ``apart``, with untimed parts around
    each reading, names its failures and watches its calls.
    """

    taking: Callable[[int], Callable[[Timing], object]]
    look: Callable[[int], AbstractContextManager[object] | None] = lambda _: None
    apart: bool = False
    unit: str = "call"


class TimedWorkload:
    """Times something in this process; its name and source belong to a function."""

    takes_amount = False  # whether rounds must have a work amount
    _latest_ns: Sequence[int] = ()  # readings

    def __init__(
        self,
        func: Callable[..., object],
        what: What,
        *,
        clock: Clock,
        meter: DelayMeter | None,
        timeout_s: float | None = None,
    ) -> None:
        self._func, self._what, self._is_new = func, what, True
        self._finished = 0  # calls before the readings under way
        self._limit = CallLimit(timeout_s)
        self._clock, self._now_ns = clock, clock.now_ns
        self._meter = meter
        # Simulated time has no processor time.
        self._busy_ns = time.thread_time_ns if isinstance(clock, WallClock) else None
        self._calls = Calls(self._take, self._now_ns)
        if meter is not None:
            self._measure_between()

    @property
    def inner(self) -> int:
        """Calls per reading; 0 until chosen."""
        return self._calls.inner

    def take_turns(self) -> None:
        """Time a reference in turn with the readings."""
        self._measure_between(Reference(self._now_ns))

    def _measure_between(self, reference: Reference | None = None) -> None:
        delay_ns = None if self._meter is None else self._meter.delay_ns
        self._calls.timer = SegmentTimer(
            delay_ns, self._now_ns, reference, self._busy_ns, cpu_ns=cpu_ns_with_children
        )

    @functools.cached_property
    def name(self) -> str:
        """The function's module and name."""
        return name_of(self._func)

    @property
    def source_files(self) -> tuple[Path | str, ...]:
        """The file that holds the function, and its line: one file may hold two of a name.

        Empty if a file does not show the computation, as for closures and methods.
        """
        func = inspect.unwrap(self._func)
        if not inspect.isfunction(func) or func.__closure__:
            return ()
        file = inspect.getsourcefile(func)
        line = f"line {func.__code__.co_firstlineno}, {func.__defaults__!r}"
        return () if file is None else (Path(file), line)

    @functools.cached_property
    def function_hash(self) -> str | None:
        """Hash of the function's source, see `Provenance`."""
        return hash_of_function(self._func)

    @functools.cached_property
    def _stopwatch(self) -> Stopwatch:
        return Stopwatch(self._clock)

    @contextmanager
    def _limit_calls(self, plan: RoundPlan, recorder: Recorder) -> Iterator[None]:
        """Keep to the time limit of calls inside; without one, end a call that hangs.

        The readings before it count: the round is cut.
        """
        is_real = isinstance(self._clock, WallClock)
        with self._limit.kept(plan.seconds if is_real else None, self.name):
            yield
        if self._limit.is_over:
            recorder.cut()
            recorder.notice(self._limit.notice(self.name))

    def _take(self, timing: Timing) -> None:
        """Take readings, and look at the first one."""
        now_ns, append, _, until_ns, loop = timing
        inner, elapsed_ns, done = length_hint(loop[0]), self._calls.elapsed_ns, self._calls.done
        if self._is_new:
            self._is_new = False
            if (looking := self._what.look(inner)) is not None:
                with looking:
                    self._take((now_ns, append, 1, until_ns, loop))
                return

        def call() -> str:
            begun = 1 if inner == 1 else inner - length_hint(loop[0])
            number = self._finished + len(elapsed_ns) * inner + begun
            return f"{self._what.unit} {counted(number)}"

        take = self._what.taking(inner)
        try:  # no further context, which would take a tenth of a short reading
            if self._what.apart:
                take(timing)
            else:
                with (
                    failures_of(self.name, elapsed_ns, done, call),
                    self._limit.watching(self._calls),
                ):
                    take(timing)
        except CallOverran:
            if not (self._limit.is_over and elapsed_ns):  # readings before a hanging call count
                raise
        self._finished += len(elapsed_ns) * inner

    def _record(
        self, recorder: Recorder, metric: str, wanted: int, *, deadline: tuple[int, int]
    ) -> int:
        """Record readings in chunks; return how many there were."""
        lasting_s: list[Floats] = []
        taken, self._latest_ns = 0, ()

        def keep(elapsed_ns: list[int]) -> None:
            nonlocal taken
            self._latest_ns, inner = elapsed_ns[-_TYPICAL:], self.inner or 1
            lasting_s.append(in_seconds(elapsed_ns, done=taken))
            readings_s = self._stopwatch.without_cost(lasting_s[-1] / inner, inner)
            recorder.unit_readings(metric, readings_s)
            taken += len(elapsed_ns)

        try:
            self._calls.take_round(wanted, keep, *deadline)
        except CallOverran:
            if not (self._limit.is_over and lasting_s):
                raise
        if self._calls.is_cut:
            recorder.cut()
        self._limit.end()
        if taken:
            if self._calls.timer is not None:
                segments = Segments(**self._calls.timer.measured())
                segments.report(recorder, np.concatenate(lasting_s))
            self._stopwatch.report(recorder, self._latest_ns)
        return taken

    def _deadline(self, plan: RoundPlan) -> tuple[int, int]:
        """Return when the time of a round that begins now is up, and when it must have ended."""
        if plan.seconds is None:
            return NEVER, 2 * NEVER
        now_ns, left_ns = self._now_ns(), plan.seconds * 1e9
        return now_ns + int(left_ns), now_ns + int(LATEST * left_ns)


def misfits(
    *,
    inner: object,
    gc: object,
    setup: object = None,
    teardown: object = None,
    timeout_s: object = None,
    loop_factory: object = None,
    sync: object = None,
    inner_name: str = "inner",
) -> list[str]:
    """Return the problems with parameters of a `CallableWorkload` other than its function.

    ``inner_name`` is the caller's name of ``inner``.
    """
    is_count = inner is None or (type(inner) is int and inner >= 1)
    alone = teardown is None or not is_count or inner in {None, 1}
    makes_loops = loop_factory is None or callable(loop_factory)
    wrong = wrong_values(
        [
            ("setup", setup, setup is None or callable(setup), _FUNCTION),
            ("teardown", teardown, teardown is None or callable(teardown), _FUNCTION),
            ("sync", sync, sync is None or callable(sync), _FUNCTION),
            (inner_name, inner, is_count, "a whole number from 1 on, or None"),
            (inner_name, inner, alone, "1 since a teardown goes with a call"),
            ("loop_factory", loop_factory, makes_loops, "a function that makes an event loop"),
            ("gc", gc, gc in ("on", "off"), "'on' or 'off'"),
        ]
    )
    return [*wrong, *wrong_time_limit(timeout_s)]


@contextmanager
def collector_kept(policy: str) -> Iterator[None]:
    """Keep the garbage collector off inside if the policy is "off", and restore it."""
    was_on = collector.isenabled()
    if policy == "off":
        collector.disable()
    try:
        yield
    finally:
        if was_on:
            collector.enable()


def wrong_time_limit(timeout_s: object) -> list[str]:
    """Return the problems with a time limit for calls of a function, or why none can be kept."""
    if timeout_s is None:
        return []
    if not is_number(timeout_s) or not 0.0 < timeout_s <= threading.TIMEOUT_MAX:
        return [f"timeout_s is {timeout_s!r}, expected seconds, more than 0, or None for no limit"]
    if not hasattr(signal, "setitimer"):
        return [f"timeout_s is {timeout_s!r}, expected None: this system has no timer to keep it"]
    if threading.current_thread() is not threading.main_thread():
        return [
            f"timeout_s is {timeout_s!r}, expected None: only calls in the main thread can be "
            f"ended, and this is {threading.current_thread().name!r}"
        ]
    return []


class Stopwatch:
    """A clock with its resolution and cost, measured here with about two thousand reads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now_ns = clock.now_ns
        self.resolution_ns = clock.resolution_ns
        self.cost_ns = clock_cost_ns(clock)
        self._reported: set[Code] = set()

    @property
    def shortest_ns(self) -> int:
        """How long a reading must last for the clock to resolve a thousandth of it."""
        return max(_RESOLUTIONS * self.resolution_ns, _SHORTEST_NS)

    def without_cost(self, readings_s: Floats, inner: int) -> Floats:
        """Subtract the cost of the clock from readings of ``inner`` calls.

        Every reading includes the cost of two reads of the clock around an empty body. After short
        readings this cost is measured again, since the pace of the machine may have changed. A
        reading below the cost becomes 0.
        """
        if self.cost_ns > _COST_ALLOWED * 1e9 * inner * float(np.median(readings_s)):
            self.cost_ns = clock_cost_ns(self._clock)
        return np.maximum(readings_s - self.cost_ns / (1e9 * inner), 0.0)

    def report(self, recorder: Recorder, elapsed_ns: Sequence[int]) -> None:
        """State resolution and cost; if the last readings are too short for them, warn once."""
        recorder.fact("clock_resolution_s", self.resolution_ns / 1e9)
        recorder.fact("clock_cost_s", self.cost_ns / 1e9)
        for notice in self.new_warnings(elapsed_ns):
            recorder.notice(notice)

    def new_warnings(self, elapsed_ns: Sequence[int]) -> list[Notice]:
        """Warn if the last readings are too short for the clock, once per reason."""
        typical_ns = statistics.median(elapsed_ns[-_TYPICAL:]) if elapsed_ns else math.inf
        new = [notice for notice in self._warnings(typical_ns) if notice.code not in self._reported]
        self._reported.update(notice.code for notice in new)
        return new

    def _warnings(self, typical_ns: float) -> Iterator[Notice]:
        if typical_ns < self.shortest_ns:
            yield Notice.of(
                Code.COARSE_CLOCK,
                resolution_s=self.resolution_ns / 1e9,
                typical_s=typical_ns / 1e9,
                wanted_s=self.shortest_ns / 1e9,
            )
        elif self.cost_ns > _COST_ALLOWED * typical_ns and Code.COARSE_CLOCK not in self._reported:
            figures = {"cost_s": self.cost_ns / 1e9, "typical_s": typical_ns / 1e9}
            yield Notice.of(Code.CLOCK_COST, **figures)


def in_seconds(elapsed_ns: Sequence[int], *, done: int = 0, inner: int = 1) -> Floats:
    """Turn readings of ``inner`` calls, after ``done`` others, into seconds per call.

    Raises ClockFailed for the first negative reading.
    """
    # From a list of integers a third faster than np.array (measured, docs/evidence/costs.py).
    whole = np.fromiter(elapsed_ns, dtype=np.int64, count=len(elapsed_ns))
    if whole.min(initial=0) < 0:
        index = int(np.argmax(whole < 0))
        raise ClockFailed(
            f"the clock went backwards by {-whole[index]} ns at reading {done + index}, "
            "expected one that never goes back; use a monotonic clock"
        )
    return whole / (1e9 * inner)


@contextmanager
def failures_of(
    part: str, elapsed_ns: Sequence[int], done: int | None, call: Callable[[], str] | None = None
) -> Iterator[None]:
    """Raise `WorkloadFailed` from any error of the part of a workload that runs inside.

    ``elapsed_ns`` grows by one with every finished reading, after ``done`` others of the round;
    ``done`` is None while nothing is recorded yet. ``call`` names the call that
    failed, with its number.
    """
    pid = os.getpid()
    try:
        yield
    except (KeyboardInterrupt, CallOverran):
        raise
    # Code under test that exits, or raises what only ends programs, must not take the session with
    # it; and a process that it forked has no part in the session.
    except BaseException as error:
        end_copy(pid)
        where = place_of(len(elapsed_ns), done)
        where = where if call is None else f"{call()}, {where}"
        raise failed(part, error, f" ({where})") from error


def _show(duration_ns: float) -> str:
    return show_value(duration_ns / 1e9, "s")


def amount_of(plan: RoundPlan, name: str) -> float:
    """Return the work amount of a plan; InvalidInput if it has none."""
    if plan.work is None:
        raise InvalidInput(
            f"{name} takes a work amount, and the plan of round {plan.index} has none: give a "
            "range, Options(work=(low, high))"
        )
    return plan.work
