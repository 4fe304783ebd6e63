"""The half-width that a running session can still reach within its budget."""

from __future__ import annotations

import math

import scipy

from benchrigor.model import Analysis, Options
from benchrigor.session.stop_rules import min_evidence, wanted_half_width
from benchrigor.stats.statistics.proportion import whole_of

# Before it the pace of the readings is known too badly; one reading alone may be a cold one.
SINCE_S, FIRST_S = 1.0, 2.5
# Chance that the noise is this much less than it looks; small, since a session looks often.
_CHANCE = 0.01


def out_of_reach(
    analysis: Analysis, options: Options, *, units: int, looked_at: int, elapsed_s: float
) -> float | None:
    """Return the relative half-width that the budget allows if the target cannot be reached.

    Half-widths shrink with the root of the time. The target is out of reach if even the least noise
    that the readings are compatible with leaves the interval too wide for the number of readings,
    or rounds, that the budget holds. It is infinite without an estimate, and None if the target can
    be reached, or if that is not known yet.

    Parameters
    ----------
    analysis
        The latest; of the first ``looked_at`` units.
    units
        Readings, or rounds in processes of their own, so far.
    elapsed_s
        The time that they took.
    """
    is_soon = elapsed_s < (SINCE_S if units > 1 else FIRST_S)
    if is_soon or not units or not math.isfinite(options.budget_s):
        return None
    growth = max(options.budget_s / elapsed_s, 1.0)
    # The first ones may have been slow.
    most, evidence = math.ceil((units + 1) * growth), min_evidence(options, analysis.kind)
    if most < evidence.second_check:  # from the first full look on only the second finds enough
        most = min(most, evidence.first_check - 1)
    share = evidence.share(most)
    known = analysis.estimate
    if known is None or not math.isfinite(known.half_width) or not whole_of(known)[0]:
        return math.inf if share == 0.0 else None
    wanted = wanted_half_width(known, analysis.metric, options)
    freedom = known.degrees_of_freedom or known.n - 1.0
    least = (
        math.sqrt(freedom / scipy.special.chdtri(freedom, _CHANCE))
        if math.isfinite(freedom)
        else 1.0
    )
    if known.n_effective < known.n / 2.0:  # the long-run variance of few is often too large
        least *= max(1.0 - 2.0 / math.sqrt(known.n_effective), 0.2)
    at_end = known.half_width * math.sqrt(looked_at / (units * growth))
    if math.isinf(wanted) or least * at_end <= share * wanted:
        return None
    return at_end / whole_of(known)[0]
