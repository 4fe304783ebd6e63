"""Steps of a generator as a workload, and a call with an amount of work, one per round."""

from __future__ import annotations

import gc as collector
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from benchrigor.errors import ClockFailed
from benchrigor.model import Code, Notice, RoundPlan
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.protocols import Clock, DelayMeter, Recorder
from benchrigor.workloads.callable import CallableWorkload
from benchrigor.workloads.named_functions import awaits, takes_amount
from benchrigor.workloads.processes.worker import time_steps
from benchrigor.workloads.recorder import Segments
from benchrigor.workloads.timing import (
    TimedWorkload,
    What,
    amount_of,
    collector_kept,
    failures_of,
    in_seconds,
    wrong_time_limit,
)


class StepwiseWorkload(TimedWorkload):
    """Times the steps of a generator that yields once per unit of work, in seconds.

    The values are ignored, and so is the time after the last yield.

    Parameters
    ----------
    make
        A generator function, or another that returns an iterable. Without arguments it gives the
        wanted number of readings. With one it is called with the work amount of the round, and does
        all of it, with any number of readings.
    clock, metric, meter, timeout_s
        As of `CallableWorkload`.
    fresh
        Whether every round starts a new generator, for sessions with restarted rounds; otherwise
        one generator goes on through all rounds.

    Raises
    ------
    InvalidInput
        When ``make`` cannot be called.

    Examples
    --------
    >>> from benchrigor.model import RoundPlan
    >>> from benchrigor.testing import FakeClock
    >>> from benchrigor.workloads.recorder import RoundRecorder
    >>> clock, plan = FakeClock(), RoundPlan(index=0, readings=3)
    >>> def warming_up():
    ...     for duration_ns in (900_000, 400_000, 300_000, 300_000):
    ...         clock.advance(duration_ns)
    ...         yield
    >>> recorder = RoundRecorder()
    >>> StepwiseWorkload(warming_up, clock=clock).run(plan, recorder)
    >>> recorder.finish(plan, elapsed_ns=clock.now_ns()).unit_readings["time"]
    array([0.0009, 0.0004, 0.0003])
    """

    def __init__(
        self,
        make: Callable[..., Iterable[object]],
        *,
        clock: Clock,
        metric: str = "time",
        fresh: bool = False,
        meter: DelayMeter | None = None,
        timeout_s: float | None = None,
    ) -> None:
        refuse(
            wrong_values([("make", make, callable(make), "a generator function")]),
            wrong_time_limit(timeout_s),
        )
        timing: dict[str, Any] = {"clock": clock, "meter": meter, "timeout_s": timeout_s}
        steps = What(lambda _: partial(time_steps, self._steps), unit="step")
        super().__init__(make, steps, **timing)
        self.takes_amount = takes_amount(make)
        self._make = make
        self._metric = metric
        self._fresh = fresh or self.takes_amount
        self._steps: Iterator[object] = iter(())
        self._is_begun = False

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Take up to ``plan.readings`` readings, or all readings of a work amount.

        Raises StopIteration when the generator has ended before the first one.
        """
        amount = (amount_of(plan, self.name),) if self.takes_amount else ()
        _ = self._stopwatch  # measured before the first step
        deadline = self._deadline(plan)
        if self._fresh or not self._is_begun:
            with failures_of(self.name, (), None):
                self._steps, self._is_begun = iter(self._make(*amount)), True
        try:
            wanted = sys.maxsize if self.takes_amount else plan.readings
            taken, cut = 0, True
            with self._limit_calls(plan, recorder):
                taken = self._record(recorder, self._metric, wanted, deadline=deadline)
                cut = self._calls.is_cut
            if not (taken or cut or self.takes_amount):  # an amount may be too small for one step
                raise StopIteration
        finally:
            if self._fresh:
                self._close(self._steps)
        if taken < plan.readings and not (self.takes_amount or cut):
            figures = {"taken": taken, "wanted": plan.readings}
            recorder.notice(Notice.of(Code.EXHAUSTED, name_=self.name, **figures))

    def _close(self, steps: Iterator[object]) -> None:
        """Let a generator that is left before its end clean up."""
        if hasattr(steps, "close"):
            with failures_of(f"closing {self.name}", (), None):
                steps.close()


class AmountWorkload(CallableWorkload):
    """Times one call of a function per round, with the round's work amount, in seconds.

    The call is the round's reading of "time", including all work that the function does once:
    the line through work amounts and durations separates it from the speed. Rounds have the facts
    ``clock_resolution_s``, ``clock_cost_s`` and ``gc``.

    Parameters
    ----------
    func
        Called with the work amount, whole if the plan's amount is; its result is dropped.
    clock, setup, teardown, gc, metric, meter, timeout_s
        As of `CallableWorkload`; ``inner`` must be None.

    Examples
    --------
    >>> from benchrigor.model import RoundPlan
    >>> from benchrigor.testing import FakeClock
    >>> from benchrigor.workloads.recorder import RoundRecorder
    >>> clock, plan, recorder = FakeClock(), RoundPlan(index=0, work=3), RoundRecorder()
    >>> job = AmountWorkload(lambda n: clock.advance(n * 10**9 + 500_000_000), clock=clock)
    >>> job.run(plan, recorder)
    >>> recorder.finish(plan, elapsed_ns=clock.now_ns()).readings
    {'time': 3.5}
    """

    takes_amount = True

    def __init__(self, func: Callable[..., object], **options: Any) -> None:
        inner, plain = options.get("inner"), not awaits(func)
        refuse(
            wrong_values(
                [
                    ("inner", inner, inner is None, "None"),
                    ("func", func, plain, "a plain function: what takes an amount is not awaited"),
                ]
            )
        )
        super().__init__(func, **options)

    _before: float | None = None

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Call the function once, with ``plan.work``; WorkloadFailed names a call that failed."""
        amount = amount_of(plan, self.name)
        self._amount, self._calls.earlier, taken = (amount,), plan.index, list[int]()
        with self._limit_calls(plan, recorder), collector_kept(self._gc):
            stopwatch = self._stopwatch  # measured before the call
            taken = self._calls.time(1, 0)
            recorder.fact("gc", "on" if collector.isenabled() else "off")
        if not taken:  # it hung and was left
            return
        if taken == [0] and stopwatch.resolution_ns == 1:  # no call takes less than a nanosecond
            raise ClockFailed(
                f"the clock stood still while {self.name}({amount}) ran, "
                "expected it to move by 1 ns at least; use another clock"
            )
        recorder.reading(self._metric, float(in_seconds(taken, done=plan.index)[0]))
        if self._calls.timer is not None:
            Segments(**self._calls.timer.measured()).report(recorder)
        # A first short round only tries out which amounts are enough.
        stopwatch.report(recorder, taken if amount == self._before else [])
        self._before = amount
