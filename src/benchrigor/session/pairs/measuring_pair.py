"""measure_pair: time two functions in turn, the shortest way to a verdict."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, ClockFailed, InvalidInput, WorkloadFailed
from benchrigor.model import (
    Comparison,
    Notice,
    Progress,
    RoundPlan,
    StopReason,
)
from benchrigor.model.checks import attempt
from benchrigor.protocols import Clock
from benchrigor.session.controller import draw_seed
from benchrigor.session.loop import Hooks, drive
from benchrigor.session.outcomes import failed_workload
from benchrigor.session.pairs.pair_engine import (
    BASELINE,
    CANDIDATE,
    PairEngine,
    PairPlan,
    PairRound,
)
from benchrigor.stats.estimators.estimation import batched
from benchrigor.workloads import CallableWorkload, RoundRecorder
from benchrigor.workloads.callable import collector_kept, misfits
from benchrigor.workloads.timing import Stopwatch, in_seconds

Call = Callable[[], object]


def measure_pair(
    baseline: Call,
    candidate: Call,
    *,
    margin: float = 0.01,
    target: float | None = None,
    confidence: float = 0.95,
    statistic: str = "mean",
    budget_s: float = 60.0,
    setup: Call | None = None,
    teardown: Call | None = None,
    progress: Callable[[Progress], object] | None = None,
    seed: int | None = None,
    batch: int | None = None,
    gc: str = "on",
    preset: str | None = None,
    clock: Clock | None = None,
) -> Comparison:
    """Time ``baseline()`` and ``candidate()`` in turn until the ratio of their times is known.

    Parameters
    ----------
    baseline, candidate
        Called without arguments; the same function twice shows what chance does.
    margin
        Relative change that does not matter, at least 0; 0 for the classical test.
    target
        Half-width of the ratio wanted; None for half the margin, or 0.005 without a margin. From
        a ratio of 2 on, which is told in times, it grows in proportion.
    confidence
        Nominal coverage of the interval, in (0, 1).
    statistic
        "mean", "median", or a percentile such as "p10". Quantiles are those of single readings:
        see ``batch``.
    budget_s
        Seconds of measuring at most; a block of two pairs is the least that is measured.
    setup, teardown
        Called without arguments around each reading of either, never timed; teardown also after
        a failure.
    progress
        Called with the standing after each round: its metric is the ratio, its readings are
        pairs.
    seed
        Of the order; None draws one.
    batch
        Calls of which each reading is the average, for both; None for as many as the clock
        needs, which a Notice tells where a quantile is wanted. 1 times single calls.
    gc
        "on" leaves the garbage collector as it is, "off" holds it back while readings are taken.
    preset
        Evidence asked for, see `benchrigor.model.Options`: "quick", "normal", "strict".
    clock
        Times the calls; None for the wall clock.

    Returns
    -------
    Comparison
        ``print(comparison)`` shows it in one line. Its ``reason`` says why the measuring ended;
        where that is not SATISFIED, it carries the Notice "not-converged". Without a stable phase
        it holds no number, its verdict is UNDECIDED, and a Notice says why.

    Raises
    ------
    InvalidInput
        Naming every argument that cannot be worked with, in one go.
    WorkloadFailed
        When a function raises, naming the side; the error's ``record`` is the Comparison of the
        rounds finished before.
    ClockFailed
        When the clock goes backwards or stands still; likewise.
    KeyboardInterrupt
        As it came, with the attribute ``record``.

    Notes
    -----
    Readings come in blocks, baseline-candidate-candidate-baseline or the reverse, shuffled, so
    that what drifts alike for both cancels. Each function has its own number of calls per
    reading: enough for the clock, and for means so many that a reading of either lasts about as
    long. See `session.pairs.pair_engine.PairEngine` for when it stops; a difference, however
    clear, does not end it.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> clock = FakeClock(resolution_ns=1)
    >>> old, new = (lambda: clock.advance(100_000)), (lambda: clock.advance(103_000))
    >>> found = measure_pair(old, new, clock=clock, seed=1)
    >>> round(found.ratio.value, 3), str(found.verdict), str(found.reason)
    (1.03, 'worse', 'satisfied')
    """
    how = {
        "margin": margin,
        "target": target,
        "confidence": confidence,
        "statistic": statistic,
        "budget_s": budget_s,
        "preset": preset,
    }
    timing = {"setup": setup, "teardown": teardown, "inner": batch, "gc": gc}
    sides = {BASELINE: baseline, CANDIDATE: candidate}
    engine, pair = _checked(sides, how, seed, timing, clock or WallClock())
    try:
        drive(engine, pair, pair.clock, Hooks(progress=progress))
    except KeyboardInterrupt as stop:
        engine.end(StopReason.INTERRUPTED)
        stop.record = engine.result()  # type: ignore[attr-defined]  # what was finished is kept
        raise
    except BenchrigorError as error:
        engine.end(StopReason.WORKLOAD_FAILED, failed_workload(error))
        error.record = engine.result()
        raise
    return engine.result()


class _PairRunner:
    """Carries out the plans of a comparison: both functions, timed by one clock."""

    def __init__(
        self, functions: Mapping[str, Call], timing: Mapping[str, Any], statistic: str
    ) -> None:
        self.clock: Clock = timing["clock"]
        self._functions = functions
        self._timing = timing
        self._of_means = statistic == "mean"
        plain = all(timing[each] is None for each in ("inner", "setup", "teardown"))
        self._alike = self._of_means and plain  # readings of either then last about as long
        self._workloads = {
            side: CallableWorkload(each, **timing) for side, each in functions.items()
        }
        self._calls: dict[str, int] = {}
        self._taken = 0
        self._stopwatch = Stopwatch(self.clock)

    def _settle(self) -> None:
        """Choose the calls per reading of both."""
        for side, each in self._workloads.items():
            with _naming(side):
                self._calls[side] = each.settle()
        if self._alike:
            with collector_kept(self._timing["gc"]):
                self._lengthen()

    def _lengthen(self) -> None:
        """Give the side with the shorter readings more calls, as many times as they fit."""
        lasting = {}
        for side, each in self._workloads.items():
            with _naming(side):
                lasting[side] = each.time_once(0)
        shorter, longer = sorted(lasting, key=lambda side: lasting[side])
        calls = self._calls[shorter] * lasting[longer] // max(lasting[shorter], 1)
        if calls > self._calls[shorter]:
            timing = {**self._timing, "inner": calls}
            self._workloads[shorter] = CallableWorkload(self._functions[shorter], **timing)
            self._calls[shorter] = calls

    def __call__(self, plan: PairPlan) -> Callable[[int], PairRound]:
        """Take the readings of a plan, in seconds per call."""
        if not self._calls:
            self._settle()
        elapsed_ns: dict[str, list[int]] = {side: [] for side in self._workloads}
        time_once = {side: each.time_once for side, each in self._workloads.items()}
        side = BASELINE
        with collector_kept(self._timing["gc"]):
            try:
                for side in plan.order:
                    taken = elapsed_ns[side]
                    taken.append(time_once[side](self._taken + len(taken)))
            except WorkloadFailed as error:
                raise WorkloadFailed(f"{side}: {error}") from error
        readings = {}
        for side, taken in elapsed_ns.items():
            with _naming(side):
                readings[side] = in_seconds(taken, done=self._taken, inner=self._calls[side])
        notices = tuple(self._objections(elapsed_ns))
        calls = max(self._calls.values())
        if self._taken == 0 and not self._of_means and calls > 1:
            notices = (batched(calls), *notices)
        self._taken += plan.pairs

        def finish(elapsed_ns: int) -> PairRound:
            return PairRound(plan=plan, elapsed_ns=elapsed_ns, notices=notices, **readings)

        return finish

    def _objections(self, elapsed_ns: Mapping[str, list[int]]) -> list[Notice]:
        """Return what is wrong with the clock, each thing once."""
        objections: list[Notice] = []
        for side, taken in elapsed_ns.items():
            recorder = RoundRecorder()
            self._stopwatch.report(recorder, taken)
            found = recorder.finish(RoundPlan(index=0), elapsed_ns=0).notices
            objections += (_of_side(side, each) for each in found)
        return objections


@contextmanager
def _naming(side: str) -> Iterator[None]:
    """Name the side in what is raised."""
    try:
        yield
    except (WorkloadFailed, ClockFailed) as error:
        raise type(error)(f"{side}: {error}") from error


def _of_side(side: str, notice: Notice) -> Notice:
    return replace(notice, sentence=f"{side.capitalize()}: {notice.sentence}")


def _checked(
    functions: Mapping[str, Call],
    how: Mapping[str, Any],
    seed: int | None,
    timing: Mapping[str, Any],
    clock: Clock,
) -> tuple[PairEngine, _PairRunner]:
    """Check all arguments of `measure_pair`, and raise once for all problems."""
    problems = [each for side, func in functions.items() for each in _unfit(side, func)]
    drawn = draw_seed() if seed is None else seed
    engine = attempt(problems, lambda: PairEngine(seed=drawn, **how))
    problems += misfits(**timing, inner_name="batch")
    if problems or engine is None:
        raise InvalidInput(problems)
    return engine, _PairRunner(functions, {**timing, "clock": clock}, how["statistic"])


def _unfit(side: str, func: object) -> list[str]:
    if not callable(func):
        return [f"{side} is {func!r}, expected a function without arguments"]
    if inspect.isgeneratorfunction(func) or inspect.iscoroutinefunction(func):
        return [
            f"{side} is {func!r}: calling it only makes an object; "
            "wrap it in a function that runs it to its end"
        ]
    return []
