"""Samples to compare: the arguments for a baseline or a candidate, and their estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Comparison, Estimate, Metric, Options
from benchrigor.model.checks import as_share, refuse, wrong_choice, wrong_number
from benchrigor.model.series import Floats, as_invocations, as_series
from benchrigor.stats.estimators.pace import AT_FULL_SPEED
from benchrigor.stats.phases.phase_search import FindChanges, Search
from benchrigor.stats.readings.analysis import Estimation, estimate, rejected_notices
from benchrigor.stats.readings.asked_readings import Readings, Unit
from benchrigor.stats.readings.inference_units import INVOCATIONS, SUCCESSIVE
from benchrigor.stats.series.interval import PIECE_MEANS
from benchrigor.stats.series.level import MIN_FOR_VARIANCE, all_zero
from benchrigor.stats.statistics.proportion import are_outcomes
from benchrigor.stats.statistics.statistic import Statistic, statistic_for
from benchrigor.stats.statistics.variance_components import INVOCATION_MEANS
from benchrigor.stats.wps.work_line import WPS
from benchrigor.units import Direction

# One series, one per invocation, or an Estimate
Values = npt.ArrayLike | Sequence[npt.ArrayLike] | Estimate

# Checked `Values`; a sequence of one series is that series
Sample = Floats | tuple[Floats, ...] | Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to compare: the statistic, how it is estimated, and which change matters.

    ``statistic`` is None for that of stored runs, and the mean of bare readings.
    """

    statistic: str | None = None
    confidence: float = 0.95
    trim: bool = False
    detector: FindChanges | None = None
    margin: float = 0.01
    direction: str | None = None
    paired: bool = False
    are_shares: bool = False  # readings are outcomes
    goes_on: bool = False  # more readings could follow: the last ones are no cool-down

    @property
    def asked(self) -> Statistic:
        """The statistic that is compared."""
        return statistic_for(self.statistic or "mean", share=self.are_shares)

    @property
    def search(self) -> Search:
        """How a stable phase is searched for."""
        return Search(
            confidence=self.confidence,
            rates=self.direction == Direction.HIGHER,
            goes_on=self.goes_on,
            detector=self.detector,
        )

    def readings(self, series: tuple[Floats, ...], unit: Unit) -> Readings:
        """Return series of one side as readings of which this is asked."""
        way = None if self.direction is None else Direction(self.direction)
        return Readings(
            series=series,
            unit=unit,
            metric=Metric(name="readings", direction=way),
            options=Options(confidence=self.confidence),
            statistic=self.asked,
            searched=self.trim,
            detector=self.detector,
            ended=not self.goes_on,
        )

    def answer(self, **found: Any) -> Comparison:
        """Return the comparison that was asked for, with what was found: as yet nothing."""
        asked: dict[str, Any] = {
            "statistic": self.statistic or "mean",
            "direction": self.direction,
            "margin": self.margin,
            "confidence": self.confidence,
            "paired": self.paired,
            "p_beyond": 1.0,
            **dict.fromkeys(("baseline", "candidate", "ratio", "difference", "p_value")),
        }
        return Comparison(**asked | found)


def read_sample(values: Values, name: str) -> Sample:
    """Check a baseline or a candidate; raise InvalidInput with a sentence for each bad series."""
    if isinstance(values, Estimate):
        if not (math.isfinite(values.value) and -math.inf < values.low <= values.high < math.inf):
            raise InvalidInput(
                f"{name} is an estimate of {values.value!r} [{values.low!r}, {values.high!r}], "
                "expected finite numbers, the lower end first"
            )
        return values
    several = _several(values)
    if several is None:
        return as_series(values, name=name)
    series = as_invocations(several, name=name)
    return series[0] if len(series) == 1 else series


def direction_named(direction: object) -> Direction | None:
    """Return which way is better; raise InvalidInput unless it is "lower", "higher" or None."""
    if direction is None:
        return None
    refuse(wrong_choice("direction", direction, tuple(map(str, Direction))))
    return Direction(str(direction))


def comparable_statistic(name: str) -> Statistic:
    """Return a statistic that has an interval; raise InvalidInput if it is unknown or has none."""
    try:
        statistic = statistic_for(name)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    if statistic.refusal is not None:
        raise InvalidInput(
            f"statistic is {name!r}, which has no interval to compare, expected another, such as "
            "'p10'"
        )
    return statistic


def check_margin(margin: Any) -> float:
    """Return a margin, or raise InvalidInput unless it is a number of at least 0."""
    share = as_share(margin)
    refuse(wrong_number("margin", share, zero=True))
    return float(share)


def are_shares(*samples: Sample) -> bool:
    """Return whether all readings are outcomes, 0 or 1, and both occur; estimates hold none."""
    series = _series_of(samples)
    extremes = {float(end(values)) for values in series for end in (np.min, np.max)}
    return extremes == {0.0, 1.0} and all(map(are_outcomes, series))


def are_positive(*samples: Sample) -> bool:
    """Return whether no reading, and no value of an estimate, is below 0."""
    values = [sample.value for sample in samples if isinstance(sample, Estimate)]
    return min([*values, *(float(series.min()) for series in _series_of(samples))]) >= 0.0


def refuse_zeros(*samples: tuple[str, Sample]) -> None:
    """Raise NotEstimable, by the name of the sample, if all its readings are 0.

    Bare readings are taken for times; outcomes may all be failures.
    """
    if are_shares(*(sample for _, sample in samples)):
        return
    for name, sample in samples:
        series = _series_of((sample,))
        if series and not any(values.any() for values in series):
            refusal = all_zero(sum(values.size for values in series))
            raise NotEstimable(refusal.about(name))


def _series_of(samples: Iterable[Sample]) -> list[Floats]:
    """Return the series of all samples; estimates hold none."""
    return [
        series
        for sample in samples
        if not isinstance(sample, Estimate)
        for series in (sample if isinstance(sample, tuple) else (sample,))
        if series.size
    ]


def unit_of(sample: Sample) -> str:
    """Name the unit of inference.

    "invocation", "piece", "reading", "round" of various work, or "run" at full speed.
    """
    if isinstance(sample, Estimate):
        if sample.method == AT_FULL_SPEED:
            return "run"
        if sample.method.startswith(WPS):
            return "round"
        units = {INVOCATION_MEANS: "invocation", PIECE_MEANS: "piece"}
        return next((unit for name, unit in units.items() if name in sample.method), "reading")
    return "invocation" if isinstance(sample, tuple) else "reading"


def estimate_sample(sample: Sample, question: Question) -> Estimation:
    """Estimate the statistic of a sample; an Estimate counts as it is."""
    if isinstance(sample, Estimate):
        return Estimation(estimate=sample, notices=sample.notices)
    if not isinstance(sample, tuple):
        estimation = estimate(question.readings((sample,), SUCCESSIVE))
        estimation.estimate_or_raise()
        return estimation
    estimation = estimate(question.readings(sample, INVOCATIONS))
    counted = sum(value is not None for value in estimation.values)
    if counted == 0:
        estimation.estimate_or_raise()
    if counted < MIN_FOR_VARIANCE:
        raise NotEstimable(rejected_notices(len(sample) - counted, len(sample))[0])
    return estimation


def _several(values: object) -> Sequence[object] | None:
    """Return the values if they are several series rather than one, by the first item."""
    if isinstance(values, np.ndarray):
        return list(values) if values.ndim == 2 and values.size else None
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        return None
    first = values[0]
    return values if hasattr(first, "__len__") and not isinstance(first, str | bytes) else None
