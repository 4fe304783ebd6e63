"""What comes into a stage and goes out of it, remembered in few stretches of time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Estimate
from benchrigor.queues.watching.period_block import PeriodBlock
from benchrigor.queues.watching.stretches import Stretches
from benchrigor.stats.estimators.rate import estimate_rate
from benchrigor.stats.service.rate_arithmetic import filter_ratio

__all__ = ["StageFlows"]

_ROUNDING_S = 1e-9
"""Times of rates are sums of periods."""
_START, _WALL, _TAKEN, _GIVEN, _ARRIVED = range(5)


class StageFlows:
    """Adds up periods, and estimates rates of what was added.

    Parameters
    ----------
    queues
        How many the stage reads.
    confidence
        Nominal coverage, in (0, 1).

    Examples
    --------
    >>> flows = StageFlows(1, 0.95)
    >>> counts = {"items": [10.0] * 40, "given": 5.0, "arrived": [12.0]}
    >>> flows.add(PeriodBlock.of(start_s=np.arange(40) / 10, period_s=0.1, **counts))
    >>> round(flows.arrivals(0, since_s=2.0).value, 6), flows.ratio().value
    (120.0, 2.0)
    """

    def __init__(self, queues: int, confidence: float) -> None:
        self._confidence = confidence
        self._stretches = Stretches(_ARRIVED + queues)

    def add(self, block: PeriodBlock) -> None:
        """Add periods; what is not known of one stays unknown of its stretch."""
        columns = (block.start_s, block.period_s, block.items, block.given, block.arrived)
        self._stretches.add(np.column_stack(columns))

    def arrivals(self, number: int, *, since_s: float = -math.inf) -> Estimate | None:
        """Estimate items per second that enter one of the queues; None where it is not known.

        Parameters
        ----------
        number
            Of the queue.
        since_s
            From when on, in seconds since watching began.
        """
        rows = self._stretches.rows
        rows = rows[rows[:, _START] >= since_s - _ROUNDING_S]
        rates = rows[:, _ARRIVED + number] / rows[:, _WALL]
        if not rates.size or np.isnan(rates).any():
            return None
        try:
            found = estimate_rate(rates, weights=rows[:, _WALL], confidence=self._confidence)
        except NotEstimable:
            return None
        return replace(found, low=max(0.0, found.low))

    def ratio(self) -> Estimate | None:
        """Estimate items in over items out; None where it is not known."""
        taken, given = (self._stretches.rows[:, place] for place in (_TAKEN, _GIVEN))
        if not given.size or np.isnan(given).any():
            return None
        try:
            return filter_ratio(taken, given, confidence=self._confidence)
        except NotEstimable:
            return None
