"""A function that is given work amounts as a workload: one call of an amount per round."""

from __future__ import annotations

import gc as collector
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from benchrigor.errors import ClockFailed, InvalidInput
from benchrigor.model import RoundPlan
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.protocols import Recorder
from benchrigor.workloads.callable import CallableWorkload
from benchrigor.workloads.timing import awaits, collector_kept, in_seconds


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
        call = f"{self.name}({amount})"
        elapsed_ns: int | None = None
        with self._limit_calls(plan, recorder), collector_kept(self._gc):
            stopwatch = self._stopwatch  # measured before the call
            if self._delays is not None:
                taken = self._delays.begin([], done=0, readings=1)
            is_first = self._before is None
            with self._refuse_coroutine() if is_first else nullcontext():
                elapsed_ns = self._time_alone(1, (), plan.index, self._delays, amount)
            recorder.fact("gc", "on" if collector.isenabled() else "off")
        if elapsed_ns is None:  # it hung and was left
            return
        if elapsed_ns == 0 and stopwatch.resolution_ns == 1:  # no call takes less than a nanosecond
            raise ClockFailed(
                f"the clock stood still while {call} ran, "
                "expected it to move by 1 ns at least; use another clock"
            )
        recorder.reading(self._metric, float(in_seconds([elapsed_ns], done=plan.index)[0]))
        if self._delays is not None:
            taken(elapsed_ns)
            self._delays.report(recorder)
        # A first short round only tries out which amounts are enough.
        stopwatch.report(recorder, [elapsed_ns] if amount == self._before else [])
        self._before = amount


def takes_amount(func: Callable[..., object]) -> bool:
    """Return whether exactly one argument must be given to a function.

    Built-in functions without a signature count as taking no argument.
    """
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return False
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in various]
    return len(needed) == 1 and needed[0].kind is not inspect.Parameter.KEYWORD_ONLY


def amount_of(plan: RoundPlan, name: str) -> float:
    """Return the work amount of a plan; InvalidInput if it has none."""
    if plan.work is None:
        raise InvalidInput(
            f"{name} takes a work amount, and the plan of round {plan.index} has none: give a "
            "range, Options(work=(low, high))"
        )
    return plan.work
