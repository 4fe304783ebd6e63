"""What comes into a stage and goes out of it, remembered in few stretches of time."""

from __future__ import annotations

import math
from dataclasses import replace

from benchrigor.errors import NotEstimable
from benchrigor.model import Estimate
from benchrigor.queues.stage_reader import Period
from benchrigor.queues.stretches import Stretches
from benchrigor.stats.rates import estimate_rate
from benchrigor.stats.routing import filter_ratio

__all__ = ["StageFlows"]

_ROUNDING_S = 1e-9
"""Times of rates are sums of periods."""
_START, _WALL, _TAKEN, _GIVEN, _ARRIVED = range(5)


class StageFlows:
    """Adds up periods, and estimates rates of what was added.

    Parameters
    ----------
    confidence
        Nominal coverage, in (0, 1).

    Examples
    --------
    >>> flows = StageFlows(0.95)
    >>> for number in range(40):
    ...     flows.add(Period(start_s=number / 10, period_s=0.1, items=10, given=5, arrived=(12,)))
    >>> round(flows.arrivals(0, since_s=2.0).value, 6), flows.ratio().value
    (120.0, 2.0)
    """

    def __init__(self, confidence: float) -> None:
        self._confidence = confidence
        self._stretches = Stretches()

    def add(self, period: Period) -> None:
        """Add a period; what is not known of it stays unknown of its stretch."""
        counts = (period.period_s, period.items, period.given, *period.arrived)
        self._stretches.add(
            period.start_s, [math.nan if each is None else float(each) for each in counts]
        )

    def arrivals(self, number: int, *, since_s: float = -math.inf) -> Estimate | None:
        """Estimate items per second that enter one of the queues; None where it is not known.

        Parameters
        ----------
        number
            Of the queue.
        since_s
            From when on, in seconds since watching began.
        """
        start_s = since_s - _ROUNDING_S
        rows = [each for each in self._stretches.rows if each[_START] >= start_s]
        rates = [each[_ARRIVED + number] / each[_WALL] for each in rows]
        if not rates or any(map(math.isnan, rates)):
            return None
        widths = [each[_WALL] for each in rows]
        try:
            found = estimate_rate(rates, weights=widths, confidence=self._confidence)
        except NotEstimable:
            return None
        return replace(found, low=max(0.0, found.low))

    def ratio(self) -> Estimate | None:
        """Estimate items in over items out; None where it is not known."""
        taken, given = (
            [each[place] for each in self._stretches.rows] for place in (_TAKEN, _GIVEN)
        )
        if not given or any(map(math.isnan, given)):
            return None
        try:
            return filter_ratio(taken, given, confidence=self._confidence)
        except NotEstimable:
            return None
