"""The mean of readings taken while the machine changed its pace: blocks of equal wall time."""

from __future__ import annotations

import math

import numpy as np

from benchrigor.model.analysis import LevelFit
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.series.level import exact_fit

BLOCKS = "blocks in wall time"

_BLOCKS = 8  # few, since neighbouring seconds have similar levels
_READINGS = 3  # in each block at least, on average


def block_starts(durations: Floats, *, blocks: int = _BLOCKS) -> Ints:
    """Return the first index of each block of equal wall time, without those that would be empty.

    What may be 0 or less is no duration: it is taken for one reading in equal times.
    """
    n = durations.size
    count = max(2, min(blocks, n // _READINGS))
    steps = durations if float(durations.min()) > 0.0 else np.ones(n)
    before = np.cumsum(steps) - steps  # when each reading began
    edges = float(before[-1] + steps[-1]) * np.arange(count) / count
    return np.unique(np.minimum(np.searchsorted(before, edges * (1.0 - 1e-12)), n - 1))


def fit_blocks(values: Floats, starts: Ints) -> LevelFit:
    """Fit the mean of all values, with the variance between blocks as its only source of error.

    A ratio estimator, total over number: with e_k the sum of the deviations in block k, the
    variance of the mean is K/(K - 1) sum e_k^2 / n^2 (Cochran 1977, section 6.3: clusters of
    unequal size), with K - 1 degrees of freedom. Whatever the pace did within blocks is inside e_k.
    """
    n, count = values.size, starts.size
    if float(values.min()) == float(values.max()) or count < 2:
        return exact_fit(float(values[0]), n)
    level = float(values.mean())
    deviations = values - level
    sums = np.add.reduceat(deviations, starts)
    error = math.sqrt(count / (count - 1.0) * float(sums @ sums)) / n
    return LevelFit(
        level=level,
        n=n,
        transients=(),
        variance=float(deviations @ deviations) / (n - 1),
        long_run_variance=n * error * error,
        order=0,
        batch=max(1, n // count),
        degrees_of_freedom=count - 1.0,
        skewness=0.0,
        standard_error=error,
        method=BLOCKS,
    )
