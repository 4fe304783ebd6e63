"""measure: time a function until its mean, or quantile, or speed is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchrigor.clocks import WallClock
from benchrigor.model import Metric, Options, Progress, RunRecord
from benchrigor.model.checks import attempt, refuse, wrong_values
from benchrigor.protocols import Clock, Store
from benchrigor.session.session import Session, meter_for
from benchrigor.session.traces import SPEED
from benchrigor.workloads import AmountWorkload, CallableWorkload
from benchrigor.workloads.callable import misfits, takes_amount, wrong_function

TIME = Metric(name="time", unit="s")
_LIMITS = (  # of Options
    *("target", "confidence", "statistic", "budget_s", "work", "pieces", "disturbed", "reference"),
)
_TIMING = ("setup", "teardown", "timeout_s", "gc")  # of the workload


def measure(
    func: Callable[..., object],
    *,
    work: tuple[float, float | None] | None = None,
    name: str | None = None,
    target: float | None = 0.02,
    confidence: float = 0.95,
    statistic: str = "mean",
    budget_s: float = 10.0,
    setup: Callable[[], object] | None = None,
    teardown: Callable[[], object] | None = None,
    store: str | Path | Store | None = None,
    progress: Callable[[Progress], object] | None = None,
    seed: int | None = None,
    batch: int | None = None,
    gc: str = "on",
    metric: Metric = TIME,
    timeout_s: float | None = None,
    clock: Clock | None = None,
    pieces: int = 1,
    over_s: float | None = None,
    disturbed: str = "leave-out",
    reference: bool = True,
) -> RunRecord:
    """Time ``func()`` until its time per call, or its speed, is known well enough.

    Parameters
    ----------
    func
        Called without arguments; with ``work``, with a work amount.
    work
        Range ``(low, high)`` of work amounts, whole numbers if both ends are; ``high`` may be
        None. The estimate is then the work per second, without the overhead of each call.
    name
        Name in the record; None for the function's own.
    target
        Half-width wanted, relative to the value.
    confidence
        Nominal coverage of the interval, in (0, 1).
    statistic
        "mean", "median", or a percentile such as "p10" or "p99". Quantiles are those of single
        readings: see ``batch``. A speed has none.
    budget_s
        Seconds of measuring at most.
    setup, teardown
        Called without arguments around each reading, never timed; teardown also after a failure.
    store
        A path or a `protocols.Store` that keeps each round; None keeps nothing.
    progress
        Called with the session's `Progress` after each round.
    seed
        Kept in the record; None draws one.
    batch
        Calls that each reading averages; None for as many as the clock needs, and a Notice says so
        where a quantile is wanted. 1 times single calls. Not with ``work``.
    gc
        "on" leaves the garbage collector as it is, "off" holds it back while the clock runs.
    metric
        What is known of the time, such as the width wanted of it; in seconds. Not with ``work``.
    timeout_s
        Seconds that a call may last, with ``batch`` on average; one that lasts longer is ended, and
        the workload has failed. Needs the main thread, and a system with timer signals. Code
        outside of Python is ended when it returns; a function that catches BaseException goes on.
    clock
        Times the calls; None for the wall clock.
    pieces
        Parts of equal time in which it measures; the interval comes from their levels.
    over_s
        Seconds over which the pieces are spread, with pauses between them; at least the budget.
        None for no pauses.

    disturbed, reference
        What becomes of readings during which delay was measured, and whether the pace of the
        machine is measured in turn; see `Options`.

    Returns
    -------
    RunRecord
        ``print(record)`` shows the result in one line.

    Raises
    ------
    InvalidInput
        When an argument is out of range.
    WorkloadFailed
        When ``func`` raises, or lasts longer than ``timeout_s``; the error's ``record`` holds the
        rounds finished before.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> clock = FakeClock(resolution_ns=1)
    >>> record = measure(lambda: clock.advance(2_000_000), name="nap", seed=1, clock=clock)
    >>> round(record.estimate().value, 6)
    0.002

    A job of 100 units a second, with a setup of half a second:

    >>> job = lambda n: clock.advance(n * 10**7 + 500_000_000)
    >>> record = measure(job, work=(0, 10_000), budget_s=3600, seed=1, clock=clock)
    >>> round(record.estimate().value, 3)
    100.0
    """
    session, workload = prepared(dict(locals()))
    return session.run(workload, over_s=over_s)


def prepared(given: Mapping[str, Any]) -> tuple[Session, CallableWorkload | AmountWorkload]:
    """Return a session for a function, and its workload, from all arguments of `measure`."""
    func, work, batch, metric = (given[name] for name in ("func", "work", "batch", "metric"))
    problems = wrong_function("func", func, "something that can be called")
    options = attempt(problems, lambda: Options(**{name: given[name] for name in _LIMITS}))
    timing: dict[str, Any] = {name: given[name] for name in _TIMING} | {"inner": batch}
    problems += misfits(**timing, inner_name="batch")
    in_seconds = isinstance(metric, Metric) and metric.is_duration
    problems += wrong_values([("metric", metric, in_seconds, "a Metric in seconds")])
    problems += _wrong_for_work(options, batch) if work is not None and options else []
    refuse(problems)
    clock, adapted = given["clock"] or WallClock(), CallableWorkload
    if takes_amount(func):
        adapted, timing = AmountWorkload, {**timing, "inner": None}
    workload = adapted(func, clock=clock, meter=meter_for(clock), **timing)
    session = Session(
        options,
        (metric,) if work is None else (SPEED,),
        name=given["name"] or workload.name,
        subject={"kind": "function", "name": workload.name, "gc": given["gc"], "batch": batch},
        seed=given["seed"],
        store=given["store"],
        clock=clock,
        progress=given["progress"],
    )
    return session, workload


def _wrong_for_work(options: Options, batch: int | None) -> list[str]:
    """Return which arguments do not go together with a range of work amounts."""
    statistic, is_range = options.statistic, options.work_range is not None
    return wrong_values(
        [
            ("work", options.work, is_range, "a range (low, high), or None"),
            ("statistic", statistic, statistic == "mean", "'mean': a speed has no other"),
            ("batch", batch, batch is None, "None: a round of given work is one call"),
        ]
    )
