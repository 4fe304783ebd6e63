"""A first figure of a few readings, for people who wait: nothing is decided by it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from benchrigor.model import Estimate
from benchrigor.model.series import Floats
from benchrigor.stats.series.interval import StandardError, t_interval
from benchrigor.stats.statistics.statistic import Statistic

_BATCHES = 20


def rough_figure(
    values: Floats, baseline: Floats | None = None, *, statistic: Statistic, confidence: float
) -> Estimate | None:
    """Return the statistic, with Student's t interval over batches of readings.

    With a ``baseline`` as long, the ratio to its own. The interval of a single reading is
    infinite; if the ratio has no value there is None. No warm-up is looked for.
    """

    def level(start: int, stop: int) -> float:
        sides = [readings[start:stop] for readings in (values, baseline) if readings is not None]
        own, *other = map(statistic.value_of, sides)
        return own / other[0] if other else own

    n = values.size
    edges = np.linspace(0, n, min(n, _BATCHES) + 1).astype(int).tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = level(0, n)
        levels = [level(*ends) for ends in pairwise(edges)]
    if not all(map(math.isfinite, (value, *levels))):
        return None
    error, freedom = math.inf, max(len(levels) - 1.0, 1.0)
    if len(levels) > 1:
        error = float(np.std(levels, ddof=1)) / math.sqrt(len(levels))
    below = StandardError(error, freedom)
    positive = all(float(side.min()) >= 0.0 for side in (values, baseline) if side is not None)
    positive &= len(levels) > 1
    return t_interval(
        value,
        below,
        confidence,
        n=n,
        n_effective=float(n),
        method="provisional",
        positive=positive,
    )


def latest(chunks: list[Floats], most: int) -> Floats:
    """Return the last ``most`` readings of chunks, fewer if there are no more."""
    taken: list[Floats] = []
    for chunk in reversed(chunks):
        taken.append(chunk[-most:])
        most -= chunk.size
        if most <= 0:
            break
    return np.concatenate([np.empty(0), *reversed(taken)])
