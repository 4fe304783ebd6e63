"""Starts and stops the watching of queues; `arithmetic.service_rate` decides on convergence."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Self

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import attempt, is_number, refuse, wrong_choice, wrong_values
from benchrigor.model.codec import is_there
from benchrigor.model.estimate import Quantity
from benchrigor.model.series import short
from benchrigor.queues.arithmetic.service_rate import Asked
from benchrigor.queues.data.pipeline import PipelineAdvice
from benchrigor.queues.data.service import ServiceRate
from benchrigor.queues.rates import estimator_of
from benchrigor.queues.stages.monitor_report import MonitorReport
from benchrigor.queues.stages.stage import Stage, stages_of
from benchrigor.queues.tap import Tap
from benchrigor.queues.watching.process_watch import ProcessWatch
from benchrigor.queues.watching.threads import GrowthWatch, ThreadWatch

# Shortest period for a thread, which has to wait for the interpreter for 5 ms and more.
_THREAD_FROM_S = 0.02
_SHORTEST_S = 1e-4  # taking a sample takes some ten microseconds
_WHERE = ("thread", "process")


class Monitor:
    """Samples the counters of tapped queues, and estimates how fast each stage could go.

    It only reads the counters, unless it is to ``grow`` queues, and the program never waits for
    it. If it fails, or the program ends, it keeps its results so far.

    Parameters
    ----------
    *what
        Stages, in the order of the stream; or taps: both ends of a tap are watched as stages.
    period_s
        Sampling period, in seconds. None for the widest from 50 to 200 ms that the machine can
        keep to and the stage goes through without waiting, so that sampling takes 1% of a processor
        or less. During the search for it the rates are provisional.
    method, guards, confidence, target
        As of `ServiceRateEstimator`.
    where
        "thread" or "process"; by default a thread for periods of 20 ms and more.
    record
        Path of a recording to be written, as ``benchrigor rate`` reads it.
    grow
        Double the bound of a queue, up to 64 times the program's own, whenever its producers have
        waited for room for 80% of three periods in a row: a full queue hides how fast they are.
        Queues of `queue` and `asyncio` that this process has tapped can grow; the report names the
        others. A grown queue keeps its bound until its tap is closed.

    Raises
    ------
    InvalidInput
        Naming every option that makes no sense.

    Notes
    -----
    Sampling follows Beard & Chamberlain (2015), section IV. `start` waits until a process has begun
    to sample, about as long as importing numpy takes. Watch a program that forks from a process.

    Examples
    --------
    >>> import queue, time
    >>> with Tap(queue.Queue(), name="work") as tap, Monitor(tap, period_s=0.02) as monitor:
    ...     for item in range(200):
    ...         tap.queue.put(item)
    ...         time.sleep(0.001)
    >>> monitor.failure, monitor.rates()["work.tail"][0].estimate.value < 1000.0
    (None, True)
    """

    def __init__(
        self,
        *what: Stage | Tap,
        period_s: float | None = 0.05,
        method: str = "busy-time",
        guards: bool = True,
        where: str | None = None,
        record: str | os.PathLike[str] | None = None,
        confidence: float = 0.95,
        target: float = 0.05,
        grow: bool = False,
    ) -> None:
        stages = stages_of(what)
        asked = Asked(
            period_s=period_s, method=method, guards=guards, confidence=confidence, target=target
        )
        _check(asked, where, record)
        path = None if record is None else Path(record)
        if where is None:
            where = "thread" if period_s is None or period_s >= _THREAD_FROM_S else "process"
        self.where = where
        self._watch = (ThreadWatch if where == "thread" else ProcessWatch)(stages, asked, path)
        self._growth: GrowthWatch | None = None
        if grow:
            period_s = max(period_s or 0.0, _THREAD_FROM_S)
            self._growth = GrowthWatch(stages, period_s=period_s)
        self._started = self._stopped = False

    @property
    def failure(self) -> str | None:
        """Why it watches no more although it was not stopped; None if it has not failed."""
        return self.report().failure

    @property
    def cost_s(self) -> float:
        """Processor time that watching took, in seconds; the start of a process counts as well."""
        return self.report().cost_s

    @property
    def cost_share(self) -> float:
        """Share of one processor that watching took."""
        return self.report().cost_share

    def start(self) -> Self:
        """Begin to watch; once."""
        if self._started:
            raise InvalidInput("the monitor has been started already, expected a new one")
        self._started = True
        self._watch.start()
        if self._growth is not None:
            self._growth.start()
        return self

    def stop(self) -> None:
        """End watching; the results can still be read."""
        if self._started and not self._stopped:
            self._stopped = True
            if self._growth is not None:
                self._growth.stop()
            self._watch.stop()

    def rates(self) -> dict[str, list[ServiceRate]]:
        """Return the rates of all stages so far, phase by phase."""
        return {stage.name: list(stage.rates) for stage in self.report().stages}

    def report(self) -> MonitorReport:
        """Return the results so far; of a process that watches, the last report it published."""
        report = self._watch.report()
        growth = self._growth
        if growth is None:
            return report
        failure = report.failure or growth.failure
        return replace(report, growths=growth.growths, fixed=growth.fixed, failure=failure)

    def advice(
        self,
        *,
        source_rate: Quantity | None = None,
        utilisation: float = 0.8,
        blocked_share: float = 0.01,
        processors: int | None = None,
    ) -> PipelineAdvice:
        """Suggest replicas and queue sizes, as `MonitorReport.advice` does."""
        return self.report().advice(
            source_rate=source_rate,
            utilisation=utilisation,
            blocked_share=blocked_share,
            processors=processors,
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __str__(self) -> str:
        return str(self.report())


def _check(asked: Asked, where: object, record: object) -> None:
    period_s = asked.period_s
    fits = period_s is None or (is_number(period_s) and _SHORTEST_S <= period_s < math.inf)
    expected = f"seconds from {_SHORTEST_S:g} on, or None"
    problems = wrong_values([("period_s", period_s, fits, expected)])
    problems += [] if where is None else wrong_choice("where", where, _WHERE)
    if record is not None and not isinstance(record, str | os.PathLike):
        problems.append(f"record is {short(record)}, expected a path")
    elif record is not None and is_there(Path(record), Path.is_dir):
        problems.append(f"record is {str(record)!r}, a folder, expected the path of a file")
    elif record is not None and not is_there(Path(record).absolute().parent, Path.is_dir):
        problems.append(f"record is {str(record)!r}, expected a path in a folder that exists")
    attempt(problems, estimator_of, replace(asked, period_s=None))
    refuse(problems)
