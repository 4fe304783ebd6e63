"""Brackets a peak without a curve, between two loads that are confirmed by two trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchrigor.model import Code, Estimate, Notice
from benchrigor.workbench.data import PeakStatus, Trial
from benchrigor.workbench.planning.steps import Ending, Goal, Step

_ALIKE = 1.01  # loads that differ by less are one
_CONFIRMED = 2  # trials at either end
_LONGER = 2.0  # times the shortest trial, as no curve averages their noise


def halve_bracket(trials: Sequence[Trial], goal: Goal, shortest_s: float) -> Step | Ending:
    """Halve the bracket of the peak until it reaches the target, and both ends are confirmed.

    A load is saturated if the median response of its trials is over the limit. The lower end is the
    greatest load below all saturated ones.
    """
    duration_s = _LONGER * shortest_s
    by_load: dict[float, list[float]] = {}
    for trial in sorted(trials, key=lambda trial: trial.asked.load):
        load = next((x for x in by_load if trial.asked.load < x * _ALIKE), trial.asked.load)
        by_load.setdefault(load, []).append(trial.ratio or 0.0)
    saturated = [load for load, ratios in by_load.items() if float(np.median(ratios)) >= 1.0]
    high = goal.within(min(saturated, default=max(by_load) * 2.0))
    low = goal.within(max((load for load in by_load if load < high), default=high / 2.0))
    for end in (low, high):
        if len(by_load.get(end, ())) < _CONFIRMED:
            return Step(goal.within(end), duration_s, "to confirm an end of the bracket")
    if low == high:  # a bound; the peak is beyond it
        is_saturated = high in saturated
        return Ending(PeakStatus.SATURATED_AT_LOWEST if is_saturated else PeakStatus.NOT_SATURATED)
    middle = math.sqrt(low * high)
    if high > low * (1.0 + goal.accuracy) ** 2 and goal.within(middle) not in (low, high):
        return Step(goal.within(middle), duration_s, "to halve the bracket")
    sentence = (
        "Responses follow no curve that is known: the interval is that between the nearest loads "
        "that kept the limits and that did not, each by two trials or more."
    )
    estimate = Estimate(
        value=goal.within(middle),
        low=low,
        high=high,
        confidence=goal.confidence,
        n=len(trials),
        n_effective=float(len(trials)),
        method="bracket",
    )
    return Ending(PeakStatus.FOUND, estimate, (Notice.warning(Code.BRACKET, sentence),))
