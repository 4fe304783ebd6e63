"""The arithmetic of other tools, written from its descriptions; not the tools themselves.

Plain Student t; the merging rule of Pilot (Li et al. 2016), without its removal of phases; the
percentile bootstrap of criterion-like tools; the stop rule of pytest-benchmark 5.3; the comparison
of pyperf 2.10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

import benchrigor as br
from benchrigor.stats import estimate_mean, merge_subsessions

__all__ = ["bootstrap", "merging", "merging_stop", "plain_t", "pooled_test", "z_stop"]

Floats = npt.NDArray[np.float64]
Ends = tuple[float, float]

LIMIT = 0.1
"""Largest autocorrelation of merged readings."""
FEWEST_MERGED = 200
"""Merged readings that a session of Pilot asks for, by its defaults."""
RESAMPLES = 1_000


def _t(degrees_of_freedom: float, confidence: float) -> float:
    return float(-special.stdtrit(degrees_of_freedom, (1.0 - confidence) / 2.0))


def plain_t(values: Floats, confidence: float = 0.95) -> Ends:
    """Return Student's interval of the mean of readings taken for independent."""
    mean, n = float(values.mean()), values.size
    reach = _t(n - 1.0, confidence) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean - reach, mean + reach


def merging(values: Floats, confidence: float = 0.95) -> Ends | None:
    """Return Student's interval of merged readings; None where none are uncorrelated enough."""
    try:
        found = estimate_mean(values, confidence=confidence, method="subsessions")
    except br.NotEstimable:
        return None
    return found.low, found.high


def bootstrap(rng: np.random.Generator, values: Floats, confidence: float = 0.95) -> Ends:
    """Return the percentile interval of the means of readings drawn with replacement."""
    picks = rng.integers(0, values.size, (RESAMPLES, values.size), dtype=np.uint16)
    means = values[picks].mean(axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)


def z_stop(series: Floats, target: float, confidence: float = 0.95) -> tuple[Ends, int]:
    """Stop at the first normal interval that is narrow enough, from the fifth reading on.

    Returns the interval and the readings that it took.
    """
    n = np.arange(1.0, series.size + 1.0)
    shifted = series - series[0]
    means = np.cumsum(shifted) / n
    squares = np.maximum(np.cumsum(shifted**2) - n * means**2, 0.0)
    means = means + series[0]
    quantile = -float(special.ndtri((1.0 - confidence) / 2.0))
    reach = quantile * np.sqrt(squares / np.maximum(n - 1.0, 1.0) / n)
    narrow = reach <= target * np.abs(means)
    narrow[:4] = False
    at = int(np.argmax(narrow)) if bool(narrow.any()) else series.size - 1
    return (float(means[at] - reach[at]), float(means[at] + reach[at])), at + 1


def merging_stop(
    series: Floats, looks: Sequence[int], target: float
) -> tuple[Ends | None, int, bool]:
    """Stop at the first look at which 200 merged readings or more have a narrow interval.

    Returns the interval, the readings that it took, and whether it is as narrow as wanted.
    """
    found: Ends | None = None
    for n in looks:
        merged = merge_subsessions(series[:n], limit=LIMIT).means
        found = plain_t(merged) if merged.size else None
        if found is None or merged.size < FEWEST_MERGED:
            continue
        low, high = found
        if (high - low) / 2.0 <= target * abs((high + low) / 2.0):
            return found, n, True
    return found, looks[-1], False


def pooled_test(
    baseline: Sequence[Floats], candidate: Sequence[Floats], level: float = 0.05
) -> bool:
    """Whether pyperf calls two sets of processes significantly different.

    A t test with pooled variance takes all values of all processes for independent. It cannot do
    different numbers of values; those count as significant.
    """
    one, two = np.concatenate(baseline), np.concatenate(candidate)
    if one.size != two.size:
        return True
    error = math.sqrt((float(one.var(ddof=1)) + float(two.var(ddof=1))) / one.size)
    statistic = abs(float(one.mean() - two.mean())) / error
    return statistic >= _t(2.0 * one.size - 2.0, 1.0 - level)
