"""A function of a work amount as a workload: the duration of one call."""

from __future__ import annotations

import gc as collector
import inspect
from collections.abc import Callable

from benchrigor.errors import ClockFailed, InvalidInput
from benchrigor.model import RoundPlan
from benchrigor.protocols import Clock, DelayMeter, Recorder
from benchrigor.workloads.callable import collector_kept, misfits
from benchrigor.workloads.reading_delays import ReadingDelays
from benchrigor.workloads.timing import Stopwatch, failures_of, in_seconds, name_of


class AmountWorkload:
    """Times one call of a function per round, with the round's work amount, in seconds.

    The call is the round's reading of "time", with all that the function does once: the line
    through work amounts and durations tells that from its speed.

    Parameters
    ----------
    func
        Called with the work amount, whole where the plan's is; what it returns is dropped.
    clock
        The only source of time.
    setup, teardown
        Called without arguments before and after each call, never timed; ``teardown`` also when
        ``func`` failed.
    gc
        "on" leaves the garbage collector as it is, since its pauses are paid for in production
        too; "off" keeps it from running within a round.
    meter
        Measures what the thread loses to others during each call; None measures nothing.

    Raises
    ------
    InvalidInput
        Naming every parameter that cannot be worked with.

    Notes
    -----
    Each round states the facts ``clock_resolution_s``, ``clock_cost_s`` and ``gc``.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> from benchrigor.workloads.recorder import RoundRecorder
    >>> clock, plan, recorder = FakeClock(), RoundPlan(index=0, work=3), RoundRecorder()
    >>> job = AmountWorkload(lambda n: clock.advance(n * 10**9 + 500_000_000), clock=clock)
    >>> job.run(plan, recorder)
    >>> recorder.finish(plan, elapsed_ns=clock.now_ns()).readings
    {'time': 3.5}
    """

    takes_amount = True
    """Whether rounds must have a work amount."""

    def __init__(
        self,
        func: Callable[..., object],
        *,
        clock: Clock,
        setup: Callable[[], object] | None = None,
        teardown: Callable[[], object] | None = None,
        gc: str = "on",
        meter: DelayMeter | None = None,
    ) -> None:
        problems = [] if callable(func) else [f"func is {func!r}, expected a function of an amount"]
        problems += misfits(setup=setup, teardown=teardown, inner=None, gc=gc)
        if problems:
            raise InvalidInput(problems)
        self._func = func
        self._setup = setup
        self._teardown = teardown
        self._clock = clock
        self._gc = gc
        self._stretches = None if meter is None else ReadingDelays(meter)
        self._stopwatch: Stopwatch | None = None
        self._before: float | None = None

    @property
    def name(self) -> str:
        """The function's module and name."""
        return name_of(self._func)

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Call the function once, with ``plan.work``.

        Raises
        ------
        InvalidInput
            When the plan has no work amount.
        WorkloadFailed
            From whatever ``func``, ``setup`` or ``teardown`` raised, naming it and the amount.
        ClockFailed
            When the clock goes backwards or stands still.
        """
        amount = amount_of(plan, self.name)
        with collector_kept(self._gc):
            stopwatch = self._stopwatch = self._stopwatch or Stopwatch(self._clock)
            elapsed_ns = self._timed(amount, plan.index)
            recorder.fact("gc", "on" if collector.isenabled() else "off")
        if elapsed_ns == 0 and stopwatch.resolution_ns == 1:  # no call takes less than a nanosecond
            raise ClockFailed(
                f"the clock stood still while {self.name}({amount}) ran, "
                "expected it to move by 1 ns at least; use another clock"
            )
        recorder.reading("time", float(in_seconds([elapsed_ns], done=plan.index)[0]))
        if self._stretches is not None:
            self._stretches.report(recorder, readings=1)
        recorder.fact("clock_resolution_s", stopwatch.resolution_ns / 1e9)
        recorder.fact("clock_cost_s", stopwatch.cost_ns / 1e9)
        if amount == self._before:  # a first short round only tries out which amounts are enough
            stopwatch.report(recorder, [elapsed_ns])
        self._before = amount

    def _timed(self, amount: float, index: int) -> int:
        """Return the nanoseconds of one call, between setup and teardown."""
        call, func, now = f"{self.name}({amount})", self._func, self._clock.now_ns
        if self._setup is not None:
            with failures_of(f"setup of {call}", (), index):
                self._setup()
        try:
            if self._stretches is not None:
                self._stretches.resume()
            with failures_of(call, (), index):
                start = now()
                func(amount)
                elapsed_ns = now() - start
            if self._stretches is not None:
                self._stretches.pause()
            return elapsed_ns
        finally:
            if self._teardown is not None:
                with failures_of(f"teardown of {call}", (), index):
                    self._teardown()


def takes_amount(func: Callable[..., object]) -> bool:
    """Tell whether one argument, and no more, must be given to a function.

    Built-in functions that do not say what they take count as taking nothing.

    Examples
    --------
    >>> takes_amount(lambda n: n), takes_amount(lambda n=1: n), takes_amount(print)
    (True, False, False)
    """
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return False
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        each for each in parameters if each.default is each.empty and each.kind not in various
    ]
    return len(needed) == 1 and needed[0].kind is not inspect.Parameter.KEYWORD_ONLY


def amount_of(plan: RoundPlan, name: str) -> float:
    """Return the work amount of a plan, for those who cannot do without.

    Raises
    ------
    InvalidInput
        When the plan has none.
    """
    if plan.work is None:
        raise InvalidInput(
            f"{name} takes a work amount, and the plan of round {plan.index} has none: give a "
            "range, Options(work=(low, high))"
        )
    return plan.work
