"""What readings show by themselves, where they allow no number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchrigor.model.analysis import Mode, Observed, StablePhase
from benchrigor.model.series import Floats, as_series
from benchrigor.stats.estimators.multimodality import find_modes, join_modes, merge_near_modes

_MOST = 5  # levels that a reader can take in
_SEVERAL = 0.01  # chance of taking one mode for several


def observe(
    values: npt.ArrayLike, phases: Sequence[StablePhase] = (), *, batch: int = 1
) -> Observed:
    """Describe readings without a claim about what lies behind them; one is enough.

    Parameters
    ----------
    values
        Readings, shape (n,), of several rounds one after the other.
    phases
        Of the series that they make up, one after the other, as `find_stable_phase` finds them.
    batch
        Calls that each reading averages.

    Raises
    ------
    InvalidInput
        When there is no reading, or one is not finite.

    Examples
    --------
    >>> observed = observe([1.2, 3.4, 1.4])
    >>> observed.n, observed.least, observed.median, observed.greatest
    (3, 1.2, 1.4, 3.4)
    """
    series = as_series(values)
    least, p10, median, greatest = np.quantile(series, [0.0, 0.1, 0.5, 1.0]).tolist()
    return Observed(
        n=series.size,
        calls=series.size * batch,
        least=least,
        p10=p10,
        median=median,
        mean=min(max(float(series.mean()), least), greatest),  # a sum is rounded
        greatest=greatest,
        levels=_levels(series, phases),
    )


def _levels(series: Floats, phases: Sequence[StablePhase]) -> tuple[Mode, ...]:
    """Return the levels of the phases, like ones joined; of a single level, its modes."""
    cut = [phase for stable in phases for phase in stable.phases]
    levels = [Mode(value=part.median, share=part.n / series.size) for part in cut]
    found = merge_near_modes(tuple(sorted(levels, key=lambda level: level.value)))
    if len(found) < 2 or sum(part.n for part in cut) != series.size:
        found = merge_near_modes(find_modes(series, _SEVERAL))
    joined = list(found)
    while len(joined) > _MOST:
        gaps = np.diff([level.value for level in joined])
        nearest = int(gaps.argmin())
        joined[nearest : nearest + 2] = [join_modes(joined[nearest], joined[nearest + 1])]
    return tuple(joined)
