"""The metrics of a session: their readings, checked, and the looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.errors import DetectorFailed, InvalidInput
from benchrigor.model import Analysis, Code, Metric, Notice, Options, Round, Width
from benchrigor.model.checks import refuse
from benchrigor.model.metric import A_DURATION
from benchrigor.model.readings import WARM_UP
from benchrigor.model.series import LARGEST, Floats
from benchrigor.protocols import Detector
from benchrigor.session.metric_readings import MetricReadings
from benchrigor.session.stop_rules import agrees
from benchrigor.stats.changepoints.ruptures_adapter import Estimator, as_detector, detector_named
from benchrigor.stats.readings.analysis import look, observed_of, report
from benchrigor.stats.readings.asked_readings import Readings, Unit, next_check
from benchrigor.stats.readings.inference_units import SINGLE, unit_of, unit_of_rounds
from benchrigor.stats.readings.work_rounds import ByWork
from benchrigor.stats.statistics.statistic import rough_figure, statistic_for
from benchrigor.stats.wps.work_schedule import schedule_for
from benchrigor.units import Direction, Quantity

SPEED = Metric(name="speed", unit="/s")  # by rounds of various work


class MeasuredMetrics:
    """Adds the readings of rounds to their metrics, and analyses them."""

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
        self.by_name: dict[str, MetricReadings] = {}
        self.schedule = schedule_for(options, seed)
        self._by_work = ByWork(schedule=self.schedule)  # the unit of a speed
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
        for so_far in self.by_name.values():
            so_far.pieces_over = len({piece for piece in so_far.series if piece < stop})

    def end(self) -> None:
        """Take the workload for over: analyse again, since the last readings may be a cool-down."""
        if self._has_ended:
            return
        self._has_ended = True
        for so_far in self.by_name.values():
            so_far.analysis = so_far.report = None

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
        for name, unit, values in self._readings(finished):
            so_far = self.by_name.get(name)
            if name not in metrics:
                known = ", ".join(map(repr, metrics))
                problems.append(f"{where}: metric {name!r} is unknown, expected one of {known}")
            elif unit is SINGLE and self.options.pieces > 1:
                one = f"{where}: {name!r} is one reading of the whole round, and pieces is"
                problems.append(f"{one} {self.options.pieces}: expected unit readings")
            elif so_far is not None and so_far.unit is not unit:
                problems.append(
                    f"{where}: {name!r} came as {unit.kind}, before as {so_far.unit.kind}"
                )
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
        for name, unit, values in self._readings(finished):
            so_far = self.by_name.get(name) or self._open(name, unit)
            usable |= so_far.add(finished, values, self.options, self._detector)
        if usable or not finished.cut:  # one that was cut may have had no time to give anything
            self.rejected = 0 if usable else self.rejected + 1

    def spend(self, finished: Round, elapsed_s: float) -> None:
        """Note for which metrics the rest of the budgets is too small for two full looks.

        The pace is taken from the last round, or from all so far if that is faster: a first call
        may take longer than many others.
        """
        readings = max((so_far.n for so_far in self.by_name.values()), default=0)
        for so_far in self.by_name.values():
            left = max(next_check(so_far.first_check) - so_far.units, 0)
            spent: tuple[tuple[float | None, float, float], ...] = (
                (self.options.budget_s, elapsed_s, finished.elapsed_ns / 1e9),
                (self.options.budget_readings, readings, finished.n_readings),
                (self.options.max_rounds, len(so_far.timed), 1),
            )
            so_far.is_forced = any(
                used + left * min(used / max(so_far.units, 1), last / so_far.last_units) > most
                for most, used, last in spent
                if most is not None
            )

    def _readings(self, finished: Round) -> list[tuple[str, Unit, Floats]]:
        """Return name, unit and values of all readings of a round."""
        many = unit_of_rounds(self.options)
        units = [
            (name, many, values)
            for name, values in finished.unit_readings.items()
            if not name.startswith(WARM_UP)
        ]
        single = [
            (name, SINGLE, np.array([value]))
            for name, value in finished.readings.items()
            if name not in self._durations
        ]
        if self.schedule is None or finished.cut:
            return [*units, *single]
        pair = np.array([finished.plan.work or 0.0, finished.duration_s])
        return [(SPEED.name, self._by_work, pair), *units, *single]

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

    def _open(self, name: str, unit: Unit) -> MetricReadings:
        metric = next(metric for metric in self.metrics if metric.name == name)
        first, look = unit.first_looks(self.options)
        self.by_name[name] = MetricReadings(
            metric=metric,
            unit=unit,
            first_check=first,
            next_check=look,
            fewest=min(unit.evidence(self.options.preset).fewest, first),
        )
        return self.by_name[name]

    def look(self, *, fully: bool) -> None:
        """Analyse all metrics with new readings, and choose when to analyse them again.

        Not ``fully``, only the line through work and duration, which is shown after each round.
        """
        for so_far in self.by_name.values():
            is_new = so_far.analysis is None or so_far.analysed < so_far.n
            if is_new and (fully or so_far.unit.is_line):
                found = so_far.analysis = look(self.arranged(so_far))
                so_far.analysed, rounds = so_far.n, len(so_far.chunks)
                if rounds >= so_far.first_check and unit_of(found).has_no_phase(found):
                    self.rejected = max(self.rejected, rounds)
            if fully:
                self._compare_looks(so_far)

    def _compare_looks(self, so_far: MetricReadings) -> None:
        """Note whether a look agrees with the one before, and when the next is due."""
        if so_far.units >= so_far.next_check:
            so_far.next_check = so_far.check_after
        later, earlier = so_far.analysis, so_far.looked
        if later is not earlier:
            # A full look agrees with a full one only.
            so_far.agreed = (
                later is not None
                and earlier is not None
                and agrees(later.estimate, earlier.estimate)
                and self._are_alike(so_far)
            )
            so_far.looked, so_far.looked_at = later, so_far.units

    def _are_alike(self, so_far: MetricReadings) -> bool:
        """Whether the last two looks were both full, or both early at what does not move."""
        if so_far.unit.early_look is None or so_far.looked_at >= so_far.first_check:
            return True
        known = None if so_far.analysis is None else so_far.analysis.estimate
        if so_far.is_full or known is None:
            return False
        return not so_far.unit.may_move(self.arranged(so_far), known.n_effective)

    def arranged(self, so_far: MetricReadings) -> Readings:
        """Return the readings of a metric so far, as they are analysed."""
        return so_far.arranged(self.options, self._detector, ended=self._has_ended)

    def reports(self) -> dict[str, Analysis]:
        """Return the full analyses by metric, made once for the same readings."""
        return {name: self._report(so_far) for name, so_far in self.by_name.items() if so_far.n}

    def _report(self, so_far: MetricReadings) -> Analysis:
        """Analyse for the record, even if the detector fails."""
        if so_far.report is None or so_far.reported < so_far.n:
            fresh, so_far.reported = so_far.analysed == so_far.n, so_far.n
            try:
                so_far.report = report(self.arranged(so_far), so_far.analysis if fresh else None)
            except DetectorFailed as error:
                notice = Notice.of(Code.DETECTOR_FAILED, why_=str(error))
                so_far.report = self._describe(so_far, notice)
        return so_far.report

    def _describe(self, so_far: MetricReadings, why: Notice) -> Analysis:
        """Describe readings that cannot be analysed."""
        observed = observed_of(self.arranged(so_far))
        return Analysis(
            metric=so_far.metric,
            kind=so_far.unit.kind,
            n=so_far.n,
            notices=(why,),
            observed=observed,
        )

    def describe_refusal(self, rounds: Sequence[Round], why: Notice) -> tuple[Analysis, ...]:
        """Describe rounds if none counts."""
        for round_ in rounds:
            self.take(round_)
        analyses = (self._describe(so_far, why) for so_far in self.by_name.values())
        return tuple(replace(analysis, n=0) for analysis in analyses)

    @property
    def agreed(self) -> bool:
        """Whether the last two looks agree on all metrics that must be satisfied."""
        return all(so_far.agreed for so_far in self.by_name.values() if so_far.metric.must_satisfy)

    def rough_figure(self, most: int) -> Width | None:
        """Return a rough figure of the first metric that must be satisfied, of its last readings.

        For restarted rounds it is a figure of their figures. Various work has none.
        """
        required = (metric.name for metric in self.metrics if metric.must_satisfy)
        so_far = self.by_name.get(next(required, ""))
        if so_far is None or not so_far.n:
            return None
        asked = statistic_for(self.options.statistic)
        if (latest := so_far.unit.latest(so_far.chunks, most, asked)) is None:
            return None
        values, statistic = latest
        figure = rough_figure(values, statistic=statistic, confidence=self.options.confidence)
        return Width(metric=so_far.metric, estimate=figure)

    @property
    def is_due(self) -> bool:
        """Whether some metric has enough new readings for the next analysis."""
        return any(so_far.is_due for so_far in self.by_name.values())

    @property
    def is_early(self) -> bool:
        """Whether a metric that must be satisfied has too few readings for a full look."""
        required = (so_far for so_far in self.by_name.values() if so_far.metric.must_satisfy)
        return any(so_far.is_early for so_far in required)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the metrics that must be satisfied and have too few readings for an analysis."""
        enough = {name for name, so_far in self.by_name.items() if not so_far.is_missing}
        return tuple(
            metric.name
            for metric in self.metrics
            if metric.must_satisfy and metric.name not in enough
        )


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
