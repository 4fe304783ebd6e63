"""What a session has taken in so far: the readings of each metric, checked, and their analyses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import Analysis, Floats, Kind, Metric, Options, Round, StablePhase
from benchrigor.protocols import Detector
from benchrigor.session.chain import (
    Material,
    Step,
    analyse,
    cut,
)
from benchrigor.session.rules import GROWTH, floor_for
from benchrigor.stats import RupturesDetector
from benchrigor.stats.adapters import Estimator
from benchrigor.stats.levels import FEWEST

__all__ = ["Intake", "Trace", "as_detector"]


@dataclass(slots=True, kw_only=True)
class Trace:
    """The readings of one metric as they come in, and the latest look at them."""

    metric: Metric
    kind: Kind
    first_check: int
    next_check: int
    chunks: list[Floats] = field(default_factory=list)
    phases: list[StablePhase] = field(default_factory=list)
    n: int = 0
    batch: int = 1
    analysis: Analysis | None = None
    analysed_at: int = 0

    @property
    def units(self) -> int:
        """Units of inference so far: readings, or usable rounds where each is an invocation."""
        if self.kind != Kind.INVOCATIONS:
            return self.n
        if self.phases:
            return sum(phase.n >= FEWEST for phase in self.phases)
        return sum(chunk.size >= FEWEST for chunk in self.chunks)


class Intake:
    """Takes rounds in and looks at what they gave.

    Parameters
    ----------
    options
        As given to the session.
    metrics
        None: the first round that gives any defines them.
    detector
        Finds change points; see `as_detector`.
    complete
        Whether readings were recorded before, and have come to their end.
    """

    def __init__(
        self,
        options: Options,
        metrics: Sequence[Metric] | None,
        detector: Detector | Estimator | None,
        *,
        complete: bool = False,
    ) -> None:
        self.metrics = tuple(metrics or ())
        self.traces: dict[str, Trace] = {}
        self.rejected = 0
        """Rounds in a row, up to the last one, that gave nothing to work with."""
        self._options = options
        self._detector = as_detector(detector)
        self._complete = complete
        self._named = metrics is not None
        if self._named:
            self._check_metrics()

    def _check_metrics(self) -> None:
        names = [metric.name for metric in self.metrics]
        double = {name for name in names if names.count(name) > 1}
        if double:
            raise InvalidInput(f"metric {min(double)!r} is given twice, expected each name once")
        if not any(metric.must_satisfy for metric in self.metrics):
            raise InvalidInput("no metric must be satisfied, expected at least one that must")

    def check(self, finished: Round) -> None:
        """Collect all that is wrong with a round, and raise InvalidInput once."""
        where = f"round {finished.plan.index}"
        both = finished.unit_readings.keys() & finished.readings.keys()
        problems = [f"{where}: {name!r} is given both ways, expected one" for name in both]
        metrics = {metric.name: metric for metric in self._metrics_for(finished)}
        for name, kind, values in self._given(finished):
            trace = self.traces.get(name)
            if name not in metrics:
                known = ", ".join(map(repr, metrics))
                problems.append(f"{where}: metric {name!r} is unknown, expected one of {known}")
            elif trace is not None and trace.kind != kind:
                problems.append(f"{where}: {name!r} came as {kind}, before as {trace.kind}")
            elif metrics[name].averaging == "harmonic" and float(values.min()) <= 0.0:
                worst = int(values.argmin())
                problems.append(
                    f"{where}: {name}[{worst}] is {float(values[worst])!r}, "
                    "expected more than 0 for a harmonic mean"
                )
            elif metrics[name].is_duration and float(values.min()) < 0.0:
                worst = int(values.argmin())
                problems.append(
                    f"{where}: {name}[{worst}] is {float(values[worst])!r} s, "
                    "expected a duration of 0 or more"
                )
        if problems:
            raise InvalidInput(problems)

    def take(self, finished: Round) -> None:
        """Add a checked round's readings."""
        self.metrics = self._metrics_for(finished)
        usable = False
        calls = finished.facts.get("inner_loop", 1)
        calls = calls if isinstance(calls, int) else 1
        for name, kind, values in self._given(finished):
            trace = self.traces.get(name) or self._open(name, kind)
            if kind == Kind.INVOCATIONS and self._detector is not None:
                # Before the readings are added: a detector may fail.
                trace.phases.append(cut(values, self._options, self._detector))
                usable |= trace.phases[-1].n >= FEWEST
            else:
                usable |= kind != Kind.INVOCATIONS or values.size >= FEWEST
            trace.chunks.append(values)
            trace.n += values.size
            trace.batch = max(trace.batch, calls)
        self.rejected = 0 if usable else self.rejected + 1

    def _given(self, finished: Round) -> list[tuple[str, Kind, Floats]]:
        """Return name, kind and values of all that a round gave."""
        kind = Kind.INVOCATIONS if self._options.rounds == "restarted" else Kind.UNIT_READINGS
        units = [(name, kind, values) for name, values in finished.unit_readings.items()]
        single = [
            (name, Kind.READINGS, np.array([value])) for name, value in finished.readings.items()
        ]
        return [*units, *single]

    def _metrics_for(self, finished: Round) -> tuple[Metric, ...]:
        """Return the metrics; unnamed sessions learn them from the first round that gives any."""
        if self._named or self.metrics:
            return self.metrics
        names = dict.fromkeys([*finished.unit_readings, *finished.readings])
        return tuple(Metric(name=name, unit="s" if name == "time" else "") for name in names)

    def _open(self, name: str, kind: Kind) -> Trace:
        metric = next(each for each in self.metrics if each.name == name)
        first = floor_for(self._options, by_round=kind != Kind.UNIT_READINGS).first_check
        self.traces[name] = Trace(metric=metric, kind=kind, first_check=first, next_check=first)
        return self.traces[name]

    def look(self, steps: Iterable[Step]) -> None:
        """Analyse all traces that have grown since the last look, and set their next one."""
        for trace in self.traces.values():
            if trace.analysed_at != trace.n:
                trace.analysis = analyse(self.material(trace), steps)
                trace.analysed_at = trace.n
                if not _usable(trace.analysis):
                    self.rejected = max(self.rejected, len(trace.chunks))
            if trace.units >= trace.next_check:
                trace.next_check = math.ceil(trace.units * GROWTH)

    @property
    def is_due(self) -> bool:
        """Whether some trace has grown enough for another look."""
        return any(trace.units >= trace.next_check for trace in self.traces.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the metrics that must be satisfied and lack readings for a first look."""
        enough = {name for name, trace in self.traces.items() if trace.units >= trace.first_check}
        return tuple(
            metric.name
            for metric in self.metrics
            if metric.must_satisfy and metric.name not in enough
        )

    def material(self, trace: Trace) -> Material:
        """Return a trace as the chain of analysis wants it."""
        if trace.kind == Kind.INVOCATIONS:
            series = tuple(trace.chunks)
        else:
            if len(trace.chunks) > 1:
                trace.chunks = [np.concatenate(trace.chunks)]
            series = (trace.chunks[0],)
        return Material(
            metric=trace.metric,
            options=self._options,
            kind=trace.kind,
            series=series,
            phases=tuple(trace.phases),
            detector=self._detector,
            batch=trace.batch,
            complete=self._complete,
        )


def _usable(analysis: Analysis) -> bool:
    """Whether rounds that are invocations have a steady state in common."""
    by_round = analysis.kind is Kind.INVOCATIONS
    return not by_round or any(phase.n >= FEWEST for phase in analysis.phases)


def as_detector(detector: object) -> Detector | None:
    """Adapt a ruptures estimator; a Detector, or None for the built-in one, stays what it is.

    Raises
    ------
    InvalidInput
        For anything else, and for an estimator that needs more than a penalty.
    """
    if detector is None:
        return None
    if not isinstance(detector, type):
        if isinstance(detector, Detector):
            return detector
        if isinstance(detector, Estimator):
            return RupturesDetector(detector)
    raise InvalidInput(
        f"detector is {detector!r}, expected a function that returns the ChangePoints of readings, "
        "or a ruptures estimator such as ruptures.Pelt()"
    )
