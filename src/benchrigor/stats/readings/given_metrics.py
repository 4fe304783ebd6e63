"""The metrics that rounds give, named before or by the first round, and how each comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, Options, Round
from benchrigor.model.metric import A_DURATION
from benchrigor.model.readings import WARM_UP
from benchrigor.model.series import LARGEST, Floats
from benchrigor.stats.readings.asked_readings import Unit
from benchrigor.stats.readings.inference_units import SINGLE, unit_of_rounds
from benchrigor.stats.readings.work_rounds import ByWork
from benchrigor.stats.work_schedule import WorkSchedule, schedule_for
from benchrigor.units import Direction, Quantity

SPEED = Metric(name="speed", unit="/s")  # by rounds of various work


def given_metrics(
    options: Options, metrics: Sequence[Metric] | None, seed: int, *, tries_further: bool
) -> GivenMetrics:
    """Return the metrics that rounds of a session give; ``tries_further`` larger work amounts."""
    schedule = schedule_for(options, seed)
    if schedule is None:
        return GivenMetrics(options, metrics)
    schedule.tries_further = tries_further
    return MetricsByWork(options, metrics, schedule)


class GivenMetrics:
    """The metrics of rounds that all do the same work."""

    varies = False  # whether the work amount does

    def __init__(self, options: Options, metrics: Sequence[Metric] | None) -> None:
        self.options = options
        self.metrics = tuple(metrics or ())
        self._named = metrics is not None
        self._durations = set[str]()  # names of readings that are no metrics by themselves
        names = [metric.name for metric in self.metrics]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise InvalidInput(f"metric {min(repeated)!r} is given twice, expected each name once")
        if self._named and self._lacks_required():
            raise InvalidInput("no metric must be satisfied, expected at least one that must")

    def _lacks_required(self) -> bool:
        return not any(metric.must_satisfy for metric in self.metrics)

    @property
    def unit(self) -> Unit:
        """How many readings of a round come."""
        return unit_of_rounds(self.options)

    def amount(self, _left_s: float) -> float | None:
        """Return the work amount of the next round, in the time that is left."""
        return None if isinstance(self.options.work, tuple) else self.options.work

    def least_s(self, last: Round, units: Sequence[Unit]) -> float:
        """Return the minimum time of the next call of a function, after the last round."""
        is_known = last.n_readings and (last.cut or any(unit.one_process for unit in units))
        return last.elapsed_ns / 1e9 / last.n_readings if is_known else 0.0

    def after(self, finished: Round) -> tuple[Metric, ...]:
        """Return the metrics; without names, the first round with readings names them."""
        if self._named or set(self.metrics) - {SPEED}:
            return self.metrics
        names = dict.fromkeys(name for name, _, _ in GivenMetrics.readings_of(self, finished))
        return tuple(Metric(name=name, unit="s" if name == "time" else "") for name in names)

    def readings_of(self, finished: Round) -> Iterator[tuple[str, Unit, Floats]]:
        """Return name, unit and values of all readings of a round."""
        many = self.unit
        for name, values in finished.unit_readings.items():
            if not name.startswith(WARM_UP):
                yield name, many, values
        for name, value in finished.readings.items():
            if name not in self._durations:
                yield name, SINGLE, np.array([value])

    def problems_of(self, finished: Round, known: Mapping[str, Unit]) -> list[str]:
        """Return all problems of a round; ``known`` is how each metric came before."""
        where = f"round {finished.plan.index}"
        both = finished.unit_readings.keys() & finished.readings.keys()
        problems = [f"{where}: {name!r} is given both ways, expected one" for name in both]
        metrics = {metric.name: metric for metric in self.after(finished)}
        for name, unit, values in self.readings_of(finished):
            before = known.get(name, unit)
            if name not in metrics:
                expected = ", ".join(map(repr, metrics))
                problems.append(f"{where}: metric {name!r} is unknown, expected one of {expected}")
            elif unit is SINGLE and self.options.pieces > 1:
                one = f"{where}: {name!r} is one reading of the whole round, and pieces is"
                problems.append(f"{one} {self.options.pieces}: expected unit readings")
            elif before is not unit:
                problems.append(f"{where}: {name!r} came as {unit.kind}, before as {before.kind}")
            else:
                problems += _bad_values(metrics[name], values, where)
        return problems


class MetricsByWork(GivenMetrics):
    """The metrics of rounds of various work: a speed, and what else they give."""

    varies = True

    def __init__(
        self, options: Options, metrics: Sequence[Metric] | None, schedule: WorkSchedule
    ) -> None:
        super().__init__(options, metrics)
        self._schedule, self._unit = schedule, ByWork(schedule=schedule)
        named = {metric.name: metric for metric in self.metrics}
        self._durations = {"time"} - named.keys()
        direction = named.get(SPEED.name, SPEED).direction
        if direction is not Direction.HIGHER:
            raise InvalidInput(f"metric 'speed' is better {direction}, expected 'higher'")

    def _lacks_required(self) -> bool:
        """Whether a speed is named, and nothing must be satisfied; one that is added must be."""
        is_named = any(metric.name == SPEED.name for metric in self.metrics)
        return is_named and super()._lacks_required()

    def amount(self, left_s: float) -> float:
        """Return the amount that the schedule chooses."""
        return self._schedule.next(left_s)

    def least_s(self, _last: Round, _units: Sequence[Unit]) -> float:
        """Return the time of the shortest round that counts."""
        return self._schedule.shortest_round_s

    def after(self, finished: Round) -> tuple[Metric, ...]:
        """Return the metrics with the speed, which must be satisfied unless readings are."""
        metrics = super().after(finished)
        if any(metric.name == SPEED.name for metric in metrics):
            return metrics
        if self.options.analysis == "auto" and finished.unit_readings:
            return (*metrics, replace(SPEED, must_satisfy=False))
        if self._named:
            return (SPEED, *metrics)
        return (SPEED, *(replace(metric, must_satisfy=False) for metric in metrics))

    def readings_of(self, finished: Round) -> Iterator[tuple[str, Unit, Floats]]:
        """Return work amount and duration of a round that was not cut, and its own readings."""
        if not finished.cut:
            pair = np.array([finished.plan.work or 0.0, finished.duration_s])
            yield SPEED.name, self._unit, pair
        yield from super().readings_of(finished)

    def problems_of(self, finished: Round, known: Mapping[str, Unit]) -> list[str]:
        """Return all problems, also with the work amount or the duration of a round."""
        where, statistic = f"round {finished.plan.index}", self.options.statistic
        problems = super().problems_of(finished, known)
        if SPEED.name in finished.readings or SPEED.name in finished.unit_readings:
            problems.append(
                f"{where}: a reading is called {SPEED.name!r}, which work and duration give: "
                "give it another name"
            )
        if finished.plan.work is None:
            problems.append(f"{where}: the plan has no work amount, expected one above 0")
        if finished.duration_s < 0.0:
            problems.append(
                f"{where}: the duration is {finished.duration_s!r} s, expected 0 or more"
            )
        speed = next(one for one in self.after(finished) if one.name == SPEED.name)
        if self._schedule.sample and speed.must_satisfy and statistic != "mean":
            problems.append(f"statistic is {statistic!r}, expected 'mean': a speed has no other")
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
