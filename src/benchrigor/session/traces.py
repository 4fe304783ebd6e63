"""The readings of a running session by metric, checked, with their analyses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.errors import DetectorFailed, InvalidInput
from benchrigor.model import Analysis, Code, Metric, Notice, Options, Round, quantile_named
from benchrigor.model.analysis import Kind
from benchrigor.model.checks import refuse
from benchrigor.model.metric import A_DURATION
from benchrigor.model.readings import WARM_UP
from benchrigor.model.series import LARGEST, Floats
from benchrigor.protocols import Detector
from benchrigor.session.analysis_chain import (
    Material,
    cut,
    leave_out_disturbed,
    look,
    observed_of,
    report,
)
from benchrigor.session.schedule.metric_trace import (
    Trace,
    by_piece,
    first_pieces,
    in_pieces,
    references_along,
    timed_round,
)
from benchrigor.session.schedule.work_schedule import WorkSchedule
from benchrigor.session.stop_rules import EARLY_LOOKS, agrees, min_evidence, next_check
from benchrigor.stats.changepoints.ruptures_adapter import Estimator, as_detector, detector_named
from benchrigor.stats.estimators.rough_figure import latest, rough_figure
from benchrigor.stats.phases.stability_rules import may_move
from benchrigor.stats.series.level import MIN_FOR_VARIANCE
from benchrigor.stats.series.undisturbed import Groups, choose_undisturbed, groups_of, join_groups
from benchrigor.stats.statistics.variance_components import MIN_PIECES
from benchrigor.units import Direction, Quantity

_ROUNDS_SHOWN = 100  # of restarted rounds, in the figure that is shown before there is an estimate
SPEED = Metric(name="speed", unit="/s")  # by rounds of various work


class Traces:
    """Adds the readings of rounds to the traces of their metrics, and analyses them."""

    def __init__(
        self,
        options: Options,
        metrics: Sequence[Metric] | None,
        detector: Detector | Estimator | None,
        *,
        recorded: bool = False,
        seed: int = 0,
    ) -> None:
        self.metrics = tuple(metrics or ())
        self.by_name: dict[str, Trace] = {}
        self.schedule: WorkSchedule | None = None
        if options.work_range is not None:
            self.schedule = WorkSchedule(
                *options.work_range,
                order=options.work_order,
                shortest_s=options.short_round_s,
                quick_s=min(options.quick_s, options.budget_s),
                quick_rounds=options.quick_rounds,
                seed=seed,
            )
        self.rejected = 0  # latest rounds in a row that allow no estimate
        self.options = options
        given = as_detector(detector)
        self._detector = given or detector_named(options.detector)
        if given is not None and options.trim != "auto":
            raise InvalidInput(
                f"detector is given, expected None: trim is {options.trim!r}, and nothing is "
                "looked for"
            )
        self._has_ended = recorded  # by itself, and no reading can follow
        self._named = metrics is not None
        if self._named:
            self._check_metrics()

    def _check_metrics(self) -> None:
        names = [metric.name for metric in self.metrics]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise InvalidInput(f"metric {min(repeated)!r} is given twice, expected each name once")
        speed = next((metric for metric in self.metrics if metric.name == SPEED.name), None)
        by_work = self.schedule is not None
        if by_work and speed is not None and speed.direction is not Direction.HIGHER:
            raise InvalidInput(f"metric 'speed' is better {speed.direction}, expected 'higher'")
        if by_work and speed is None:  # the speed is added, and must be satisfied
            return
        if not any(metric.must_satisfy for metric in self.metrics):
            raise InvalidInput("no metric must be satisfied, expected at least one that must")

    def end_pieces(self, stop: int) -> None:
        """Take all pieces before this one for over."""
        for trace in self.by_name.values():
            trace.pieces_over = len({one for one in trace.pieces if one < stop})

    def end(self) -> None:
        """Take the workload for over: analyse anew, since the last readings may be a cool-down."""
        self._has_ended = True
        for trace in self.by_name.values():
            trace.analysis = trace.report = None

    def check(self, finished: Round) -> None:
        """Collect all problems of a round, and raise InvalidInput once."""
        where = f"round {finished.plan.index}"
        both = finished.unit_readings.keys() & finished.readings.keys()
        problems = [f"{where}: {name!r} is given both ways, expected one" for name in both]
        metrics = {metric.name: metric for metric in self._metrics_for(finished)}
        if self.schedule is not None:
            problems += _bad_pair(finished, where)
            statistic = self.options.statistic
            must_satisfy = self.schedule.sample and metrics[SPEED.name].must_satisfy
            if must_satisfy and statistic != "mean":
                problems.append(
                    f"statistic is {statistic!r}, expected 'mean': a speed has no other"
                )
        for name, kind, values in self._readings(finished):
            trace = self.by_name.get(name)
            if name not in metrics:
                known = ", ".join(map(repr, metrics))
                problems.append(f"{where}: metric {name!r} is unknown, expected one of {known}")
            elif kind is Kind.READINGS and self.options.pieces > 1:
                one = f"{where}: {name!r} is one reading of the whole round, and pieces is"
                problems.append(f"{one} {self.options.pieces}: expected unit readings")
            elif trace is not None and trace.kind != kind:
                problems.append(f"{where}: {name!r} came as {kind}, before as {trace.kind}")
            else:
                problems += _bad_values(metrics[name], values, where)
        refuse(problems)

    def take(self, finished: Round) -> None:
        """Add the readings of a checked round."""
        self.metrics = self._metrics_for(finished)
        for metric in self.metrics:
            if metric.name in self.by_name:
                self.by_name[metric.name].metric = metric
        usable = False
        for name, kind, values in self._readings(finished):
            trace = self.by_name.get(name) or self._open(name, kind)
            groups = reading_groups(finished, values, trace.metric, kind)
            if trace.schedule is not None:
                trace.schedule.tell(*values)
                usable = True
            elif kind == Kind.INVOCATIONS and self._detector is not None:
                # Before the readings are added, because a detector may fail. Rounds of one reading
                # each so far are taken for single readings, and a longer one ends that.
                policy = replace(self.material(trace).policy, kind=kind)
                trace.phases += cut(
                    self._readings_that_count(values, groups), policy, self._detector
                )
                usable |= trace.phases[-1].n >= MIN_FOR_VARIANCE
            else:
                usable |= kind != Kind.INVOCATIONS or values.size >= MIN_FOR_VARIANCE
            trace.chunks.append(values)
            trace.groups.append(groups)
            trace.timed.append(
                timed_round(values, finished.references, calls_per_reading(finished))
            )
            trace.pieces.append(finished.plan.piece)
            trace.busy_s += float(values.sum()) * calls_per_reading(finished)
            usable |= trace.is_single
            trace.weights += weights_of(finished, trace.metric)
            trace.n += 1 if kind is Kind.WORK else values.size
            trace.last_units = values.size if kind is Kind.UNIT_READINGS else 1
            trace.batch = max(trace.batch, calls_per_reading(finished))
        if usable or not finished.cut:  # one that was cut may have had no time to give anything
            self.rejected = 0 if usable else self.rejected + 1

    def spend(self, finished: Round, elapsed_s: float) -> None:
        """Note for which metrics the rest of the budgets is too small for two full looks.

        The pace is that of the last round, or of all so far if that is faster: a first call may
        take longer than many others.
        """
        readings = max((trace.n for trace in self.by_name.values()), default=0)
        for trace in self.by_name.values():
            left = max(next_check(trace.first_check) - trace.units, 0)
            spent: tuple[tuple[float | None, float, float], ...] = (
                (self.options.budget_s, elapsed_s, finished.elapsed_ns / 1e9),
                (self.options.budget_readings, readings, finished.n_readings),
                (self.options.max_rounds, len(trace.pieces), 1),
            )
            trace.is_forced = any(
                used + left * min(used / max(trace.units, 1), last / trace.last_units) > most
                for most, used, last in spent
                if most is not None
            )

    def _readings_that_count(self, values: Floats, groups: Groups) -> Floats:
        """Return the readings of a restarted round that count."""
        chosen = None if self.options.disturbed == "keep" else choose_undisturbed(groups)[0]
        return values if chosen is None else values[chosen.indices]

    def _readings(self, finished: Round) -> list[tuple[str, Kind, Floats]]:
        """Return name, kind and values of all readings of a round."""
        kind = Kind.PIECES if self.options.pieces > 1 else Kind.UNIT_READINGS
        kind = Kind.INVOCATIONS if self.options.rounds == "restarted" else kind
        units = [
            (name, kind, values)
            for name, values in finished.unit_readings.items()
            if not name.startswith(WARM_UP)
        ]
        single = [
            (name, Kind.READINGS, np.array([value]))
            for name, value in finished.readings.items()
            if name not in self._durations
        ]
        if self.schedule is None or finished.cut:
            return [*units, *single]
        pair = np.array([finished.plan.work or 0.0, finished.duration_s])
        return [(SPEED.name, Kind.WORK, pair), *units, *single]

    @property
    def _durations(self) -> set[str]:
        """Names of readings that are only the durations of rounds of various work."""
        named = {metric.name for metric in self.metrics} if self._named else set()
        return set() if self.schedule is None else {"time"} - named

    def _metrics_for(self, finished: Round) -> tuple[Metric, ...]:
        """Return the metrics; without names, the first round with readings names them."""
        if self._named or set(self.metrics) - {SPEED}:
            metrics = self.metrics
        else:
            single = [name for name in finished.readings if name not in self._durations]
            units = [name for name in finished.unit_readings if not name.startswith(WARM_UP)]
            names = dict.fromkeys([*units, *single])
            metrics = tuple(Metric(name=name, unit="s" if name == "time" else "") for name in names)
        if self.schedule is None or any(metric.name == SPEED.name for metric in metrics):
            return metrics
        if self.options.analysis == "auto" and finished.unit_readings:
            return (*metrics, replace(SPEED, must_satisfy=False))
        if self._named:
            return (SPEED, *metrics)
        return (SPEED, *(replace(metric, must_satisfy=False) for metric in metrics))

    def _open(self, name: str, kind: Kind) -> Trace:
        metric = next(metric for metric in self.metrics if metric.name == name)
        least = min_evidence(self.options, kind)
        first = least.first_check
        look = EARLY_LOOKS.get(kind, first)
        if kind is Kind.PIECES:
            first, look = min(MIN_PIECES, self.options.pieces), first_pieces(self.options)
        self.by_name[name] = Trace(
            metric=metric,
            kind=kind,
            first_check=first,
            next_check=look,
            fewest=min(least.fewest, first),
            schedule=self.schedule if kind is Kind.WORK else None,
        )
        return self.by_name[name]

    def look(self, *, fully: bool) -> None:
        """Analyse all traces with new readings, and choose when to analyse them again.

        Not ``fully``, only the line through work and duration, which is shown after each round.
        """
        for trace in self.by_name.values():
            if fully or trace.kind is Kind.WORK:
                self._analyse(trace)
            if fully and trace.units >= trace.next_check:
                trace.next_check = trace.check_after
            if fully and trace.analysis is not trace.looked:
                # A full look agrees with a full one only.
                agree = _agree(trace.analysis, trace.looked)
                trace.agreed = agree and self._are_alike(trace)
                trace.looked, trace.looked_at = trace.analysis, trace.units

    def _analyse(self, trace: Trace) -> None:
        """Analyse a trace, once for the same readings."""
        if trace.analysis is None or trace.analysed < trace.n:
            trace.analysis, trace.analysed = look(self.material(trace)), trace.n
            stable = any(phase.n >= MIN_FOR_VARIANCE for phase in trace.analysis.phases)
            are_enough = len(trace.chunks) >= trace.first_check
            if trace.analysis.kind is Kind.INVOCATIONS and are_enough and not stable:
                self.rejected = max(self.rejected, len(trace.chunks))

    def _are_alike(self, trace: Trace) -> bool:
        """Whether the last two looks were both full, or both early at what does not move."""
        if trace.kind not in EARLY_LOOKS or trace.looked_at >= trace.first_check:
            return True
        known = None if trace.analysis is None else trace.analysis.estimate
        if trace.is_full or known is None:
            return False
        if trace.kind is Kind.INVOCATIONS:
            return True
        return not may_move(self.material(trace).series[0], known.n_effective)

    def reports(self) -> dict[str, Analysis]:
        """Return the full analyses by metric, made once for the same readings."""
        return {name: self._report(trace) for name, trace in self.by_name.items() if trace.n}

    def _report(self, trace: Trace) -> Analysis:
        """Analyse for the record, even if the detector fails."""
        if trace.report is None or trace.reported < trace.n:
            fresh, trace.reported = trace.analysed == trace.n, trace.n
            try:
                trace.report = report(self.material(trace), trace.analysis if fresh else None)
            except DetectorFailed as error:
                notice = Notice.refusal(Code.DETECTOR_FAILED, f"No phases: {error}.")
                trace.report = self._describe(trace, notice)
        return trace.report

    def _describe(self, trace: Trace, why: Notice) -> Analysis:
        """Describe the readings of a trace that cannot be analysed."""
        observed = observed_of(self.material(trace))
        return Analysis(
            metric=trace.metric, kind=trace.kind, n=trace.n, notices=(why,), observed=observed
        )

    def describe_refusal(self, rounds: Sequence[Round], why: Notice) -> tuple[Analysis, ...]:
        """Describe rounds if none counts."""
        for round_ in rounds:
            self.take(round_)
        analyses = (self._describe(trace, why) for trace in self.by_name.values())
        return tuple(replace(analysis, n=0) for analysis in analyses)

    @property
    def agreed(self) -> bool:
        """Whether the last two looks agree on all metrics that must be satisfied."""
        return all(trace.agreed for trace in self.by_name.values() if trace.metric.must_satisfy)

    def rough_figure(self, most: int) -> Analysis | None:
        """Return a rough figure of the first metric that must be satisfied, of its last readings.

        For restarted rounds it is a figure of their figures. Various work has none: a line through
        few rounds is fitted after every round.
        """
        required = (metric.name for metric in self.metrics if metric.must_satisfy)
        trace = self.by_name.get(next(required, ""))
        if trace is None or not trace.n or trace.kind is Kind.WORK:
            return None
        q, confidence = quantile_named(self.options.statistic), self.options.confidence
        values = latest(trace.chunks, most)
        if trace.kind is Kind.INVOCATIONS and not trace.is_single:
            rounds = (chunk[-most:] for chunk in trace.chunks[-_ROUNDS_SHOWN:])
            values = np.array(
                [round_.mean() if q is None else np.quantile(round_, q) for round_ in rounds]
            )
            q = None
        return Analysis(
            metric=trace.metric,
            kind=trace.kind,
            n=trace.n,
            estimate=rough_figure(values, q=q, confidence=confidence),
        )

    @property
    def is_due(self) -> bool:
        """Whether some trace has enough new readings for the next analysis."""
        return any(trace.is_due for trace in self.by_name.values())

    @property
    def is_early(self) -> bool:
        """Whether a metric that must be satisfied has too few readings for a full look."""
        required = (trace for trace in self.by_name.values() if trace.metric.must_satisfy)
        return any(trace.is_early for trace in required)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the metrics that must be satisfied and have too few readings for an analysis."""
        enough = {name for name, trace in self.by_name.items() if not trace.is_missing}
        return tuple(
            metric.name
            for metric in self.metrics
            if metric.must_satisfy and metric.name not in enough
        )

    def material(self, trace: Trace) -> Material:
        """Return a trace as the chain of analysis takes it."""
        kind, notices = trace.kind, tuple[Notice, ...]()
        weights = np.array(trace.weights) if len(trace.weights) == trace.n else None
        if trace.schedule is not None:
            series = tuple(np.array(trace.chunks).T)
            notices = trace.schedule.notices
            groups = [join_groups(trace.groups)]
        elif trace.is_single:
            series, groups = (np.concatenate(trace.chunks),), [join_groups(trace.groups)]
        elif trace.kind == Kind.INVOCATIONS:
            series, groups = tuple(trace.chunks), trace.groups
        elif trace.kind is Kind.PIECES:
            trace.chunks = by_piece(trace.pieces, trace.chunks, np.concatenate)
            trace.groups = by_piece(trace.pieces, trace.groups, join_groups)
            trace.pieces = [*dict.fromkeys(trace.pieces)]
            kind, series, notices = in_pieces(trace.chunks, self.options)
            groups = trace.groups if kind is Kind.PIECES else [join_groups(trace.groups)]
        else:
            if len(trace.chunks) > 1:
                trace.chunks, trace.groups = (
                    [np.concatenate(trace.chunks)],
                    [join_groups(trace.groups)],
                )
            series, groups = (trace.chunks[0],), trace.groups
        is_one = len(series) == 1 and not trace.is_single and trace.metric.is_duration
        material = Material(
            metric=trace.metric,
            options=self.options,
            kind=Kind.READINGS if trace.is_single else kind,
            series=series,
            phases=() if trace.is_single else tuple(trace.phases),
            weights=weights,
            detector=self._detector,
            batch=trace.batch,
            busy_s=trace.busy_s if trace.metric.is_duration else 0.0,
            recorded=self._has_ended,
            references=references_along(trace.timed) if is_one else None,
            is_forced=trace.is_forced,
            reasons=None if trace.schedule is None else trace.schedule.reasons,
            beyond=() if trace.schedule is None else trace.schedule.beyond,
            notices=notices,
        )
        return leave_out_disturbed(material, groups)


def _agree(later: Analysis | None, earlier: Analysis | None) -> bool:
    if later is None or earlier is None:
        return False
    return agrees(later.estimate, earlier.estimate)


def _bad_pair(finished: Round, where: str) -> list[str]:
    """Name the problem with the work amount or the duration of a round."""
    problems = []
    if SPEED.name in finished.readings or SPEED.name in finished.unit_readings:
        problems.append(
            f"{where}: a reading is called {SPEED.name!r}, which work and duration give: give it "
            "another name"
        )
    if finished.plan.work is None:
        problems.append(f"{where}: the plan has no work amount, expected one above 0")
    if finished.duration_s < 0.0:
        problems.append(f"{where}: the duration is {finished.duration_s!r} s, expected 0 or more")
    return problems


def _bad_values(metric: Metric, values: Floats, where: str) -> list[str]:
    """Say which reading the metric cannot have, if any."""
    least = float(values.min())
    if metric.kind is Quantity.SHARE and not 0.0 <= least <= float(values.max()) <= 1.0:
        return [f"{where}: {metric.name} is {least!r} to {float(values.max())!r}, expected 0 to 1"]
    reading = f"{where}: {metric.name}[{int(values.argmin())}] is {least!r}"
    if metric.averaging == "harmonic" and least < 1.0 / LARGEST:
        return [f"{reading}, expected more than 0 for a harmonic mean"]
    if metric.kind is Quantity.TIME and least < 0.0:
        return [f"{reading} {metric.unit}, expected {A_DURATION}"]
    return []


def weights_of(finished: Round, metric: Metric) -> list[float]:
    """Return the weight of a round's single reading in the mean; empty if all are equal."""
    if metric.name not in finished.readings or metric.averaging != "auto":
        return []
    weight = finished.weights.get(metric.name)
    if weight is None and metric.kind is Quantity.RATE:
        weight = finished.duration_s
    return [weight] if weight else []


def calls_per_reading(finished: Round) -> int:
    """Return the calls per reading of a round."""
    calls = finished.facts.get("inner_loop", 1)
    return calls if isinstance(calls, int) else 1


def reading_groups(finished: Round, values: Floats, metric: Metric, kind: Kind) -> Groups:
    """Return the groups of a round's readings of a metric; of various work it is one group."""
    if kind is Kind.WORK:
        return groups_of(finished.delays, np.array([finished.duration_s]))
    if metric.is_duration:
        return groups_of(finished.delays, values * calls_per_reading(finished))
    return groups_of(finished.delays, np.full(values.size, finished.duration_s / values.size))
