"""Pairs a few of which carry the interval of a ratio of means, and the median of their ratios."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.sentence import show_change
from benchrigor.model.series import Floats
from benchrigor.model.text import counted, percent
from benchrigor.stats.series.interval import exponential
from benchrigor.stats.statistics.order_statistics import quantile_of

_TIMES = 5.0  # as wide as the interval of the median
_ROUNDING = 1e-9  # an interval this narrow has no width


def median_ratio(baseline: Floats, candidate: Floats, confidence: float) -> Estimate | None:
    """Estimate the median of the ratios of pairs; None if they are too few or not above 0.

    The median of logarithms is that of exchanged pairs with the other sign.
    """
    if not float(np.minimum(baseline, candidate).min()) > 0.0:
        return None
    try:
        log = quantile_of(np.log(candidate / baseline), 0.5, confidence)
    except NotEstimable:
        return None
    return replace(exponential(log), notices=())


def carried_by_few(ratio: Estimate, median: Estimate | None) -> tuple[Notice, ...]:
    """Say if the interval of a ratio of means is unbounded, or five times that of the median."""
    if ratio.low < 0.0 or ratio.value <= 0.0:
        return ()  # not a ratio of positive quantities
    width = _log_width(ratio)
    of_median = math.inf if median is None else _log_width(median)
    if width <= _ROUNDING or (math.isfinite(width) and width <= _TIMES * of_median):
        return ()
    times = width / max(of_median, _ROUNDING)
    how = "is unbounded"
    if math.isfinite(width):
        how = f"is {counted(times)} times as wide as that of the median"
    instead = ""
    if median is not None:
        instead = (
            f" The median ratio of the pairs is {show_change(median)} "
            f"{percent(median.confidence, digits=10)}."
        )
    sentence = (
        f"A few pairs carry the interval of the ratio of means, which {how}.{instead} "
        "Measure more pairs, or compare medians (statistic median) if slow readings do not matter."
    )
    return (
        Notice.warning(
            Code.FEW_PAIRS_CARRY,
            sentence,
            times=times if math.isfinite(times) else None,
            median=None if median is None else median.value,
            low=None if median is None else median.low,
            high=None if median is None else median.high,
        ),
    )


def _log_width(ratio: Estimate) -> float:
    if ratio.low <= 0.0 or math.isinf(ratio.high):
        return math.inf
    return math.log(ratio.high / ratio.low)
