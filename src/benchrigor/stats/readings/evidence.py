"""How much evidence a number needs: at which readings to look, and how many a width takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchrigor.model import Estimate, Metric, Options
from benchrigor.stats.phases.phase_search import STABLE_SHARE
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.statistics.proportion import whole_of

# Factor from one look to the next. A session that looked after every reading would stop when the
# variance is small by chance, and its intervals would not cover.
GROWTH = 1.5
HOPELESS = 1e6  # an interval this many times too wide takes "very many" readings
EFFECTIVE_ROUNDS = 20.0  # needed when there are enough to see autocorrelation
_EARLY_SHARE = 0.1  # of the wanted half-width: an interval this narrow needs few readings


@dataclass(frozen=True, slots=True, kw_only=True)
class MinEvidence:
    """Evidence needed before a metric may be satisfied."""

    first_check: int  # readings, or rounds with one value, at the first full look
    effective: float  # effective sample size
    fewest: int  # of them that suffice for an interval a tenth as wide as wanted

    @property
    def second_check(self) -> int:
        """Readings or rounds at the second look, the first that may agree with one before."""
        return next_check(self.first_check)

    def share(self, units: int) -> float:
        """Return the share of the wanted half-width that an interval of that many may have.

        It grows with a power of their number, from a tenth at the fewest to 1 at the second full
        look, and is 1 from the first one on.
        """
        return self._between(units, _EARLY_SHARE, 1.0) if units >= self.fewest else 0.0

    def effective_of(self, readings: int) -> float:
        """Return the effective sample size needed of unit readings, the same from 20 on."""
        return self._between(readings, EFFECTIVE_ROUNDS, self.effective)

    def _between(self, units: int, at_fewest: float, in_full: float) -> float:
        """Interpolate between the values at the fewest and at the second full look."""
        if units >= self.first_check:
            return in_full
        way = math.log(units / self.fewest) / math.log(self.second_check / self.fewest)
        return at_fewest * math.exp(way * math.log(in_full / at_fewest))


def next_check(units: int) -> int:
    """Return the number of readings, or rounds, at the look after one at ``units``."""
    return math.ceil(units * GROWTH)


def asked_half_width(estimate: Estimate, metric: Metric, options: Options) -> float:
    """Return the `wanted_half_width` without the default target, which is nobody's wish."""
    return _narrower(estimate, metric, options.asked)


def wanted_half_width(estimate: Estimate, metric: Metric, options: Options) -> float:
    """Return the narrower of both targets, in the metric's unit; infinite if none is set."""
    return _narrower(estimate, metric, options.target)


def _narrower(estimate: Estimate, metric: Metric, target: float | None) -> float:
    relative, absolute = metric.relative_half_width, metric.absolute_half_width
    if relative is None:
        relative = target
    known = relative is not None and relative < math.inf
    widths = (relative * whole_of(estimate)[0] if known and relative else None, absolute)
    return min((width for width in widths if width is not None), default=math.inf)


def needed_for_width(known: Estimate, excess: float, units: int, least: MinEvidence) -> float:
    """Return how many units in all make an interval narrower by the factor ``excess``."""
    factor = max(min(excess, HOPELESS) ** 2, least.effective / known.n_effective)
    return max(units * factor, least.second_check)


def early_size(excess: float, units: int, least: MinEvidence) -> float:
    """Return the units in all that suffice before the first full look; infinite if none do.

    ``excess`` is the half-width of the units so far over the wanted one.
    """
    power = -math.log(_EARLY_SHARE) / math.log(least.second_check / least.fewest)
    reached = excess / _EARLY_SHARE * math.sqrt(units / least.fewest)
    size = least.fewest * max(1.0, reached ** (1.0 / (power + 0.5)))
    return size if max(size, units) < least.first_check else math.inf


def needed_for_share(before: int) -> float:
    """Return the readings in all with which the phase after ``before`` holds its required share."""
    return before / (1.0 - STABLE_SHARE)


def few_rounds(known: Estimate | None) -> float:
    """Return the factor for the degrees of freedom of an interval."""
    if known is None or known.degrees_of_freedom is None:
        return 1.0
    freedom, confidence = known.degrees_of_freedom, known.confidence
    return student_t(freedom / 2.0, confidence) / student_t(freedom, confidence)
