"""Blocks of processes, one of each side: their pace, copies of the old code, means.

Two copies run in the same blocks as old and new. If the rule of the family tells them apart, or if
they differ more over all benchmarks than copies do by chance, no other verdict can be believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import scipy

from benchrigor.model import Comparison, Estimate, Verdict
from benchrigor.model.comparison import Family, NullArm
from benchrigor.model.series import Floats
from benchrigor.stats.comparison.two_sample import error_beside
from benchrigor.stats.series.interval import (
    MIN_FOR_VARIANCE,
    estimate_level,
    exponential,
    fit_level,
)

_LEAST_STEPS = 1e-12  # squared, for a reference that never changes
_STEEPEST = 1.5  # benchmarks of pytest followed the reference by 1.2 to 1.4 on a shared machine
_POWER = 0.9  # average, of the visible change
_MOST_VISIBLE = 1e6
_FAR = 10.0  # standard errors beyond the critical t: always seen
_ALL_SIGNS = 12  # blocks of which all signs are tried
_DRAWN = 4_000  # signs of more blocks


def to_one_pace(levels: Floats, references: Floats) -> Floats:
    """Return factors that bring pairs of processes to one pace of the machine.

    The machine changes its pace from one process to the next, and code follows it less or more than
    the reference does. The reference is a control variate of logarithms (Lavenberg & Welch 1981).
    Its slope comes from the product of both sides, from one pair to the next. With normal noise the
    product is independent of the ratio; a slope of the ratio would make intervals too narrow.

    Parameters
    ----------
    levels, references
        Levels of both processes, and times of the reference in them, in order, shape (pairs, 2).

    Returns
    -------
    numpy.ndarray
        Factors of the levels, of the same shape.
    """
    paces = np.log(references)
    steps, paced = (np.diff(logs.sum(axis=1)) for logs in (np.log(levels), paces))
    slope = np.clip(steps @ paced / max(paced @ paced, _LEAST_STEPS), 0.0, _STEEPEST)
    factors: Floats = np.exp(slope * (np.median(paces) - paces))
    return factors


def judge_null(
    family: Family, logs: Mapping[str, Floats], *, visible_change: float | None, seed: int = 0
) -> NullArm:
    """Judge the comparisons of two copies, ``family``.

    ``logs`` are logarithms of the ratios of both copies by benchmark, shape (blocks,), nan where a
    block did not hold the benchmark.
    """
    called = [name for name, verdict in family.verdicts.items() if verdict in _CALLS]
    ratios = [each.ratio for each in family.comparisons.values() if each.ratio is not None]
    spread = max((abs(ratio.value - 1.0) for ratio in ratios), default=None)
    blocks = np.array([*logs.values()])
    return NullArm(
        blocks=int(np.isfinite(blocks).any(axis=0).sum()),
        ratio_spread=spread,
        visible_change=visible_change,
        called=tuple(called),
        p_value=chance_of_signs(blocks, seed),
    )


_CALLS = (Verdict.BETTER, Verdict.WORSE, Verdict.DIFFERENT)


def chance_of_signs(logs: Floats, seed: int) -> float | None:
    """Return how often exchanged copies differ as much as these: of the sum of squared t.

    Between copies the sign of a block, the same for all benchmarks in it, is arbitrary (Fisher
    1935). ``logs`` has shape (benchmarks, blocks). None if no benchmark has two different blocks.
    """
    known = np.isfinite(logs)
    counts = known.sum(axis=1)
    values = np.where(known, logs, 0.0)
    squares = (values**2).sum(axis=1)
    told = (counts >= MIN_FOR_VARIANCE) & (squares > 0.0)
    if not told.any():
        return None
    values, counts, squares = values[told], counts[told], squares[told]
    signs = _signs(logs.shape[1], seed)
    sums = signs @ values.T  # (signs, benchmarks)
    between = sums**2 / counts
    within = np.maximum(squares - between, squares * 1e-12)
    totals = (between * (counts - 1.0) / within).sum(axis=1)
    return float((totals >= totals[0] * (1.0 - 1e-9)).mean())


def _signs(blocks: int, seed: int) -> Floats:
    """Return signs of blocks, first those that are found; the sign of all together is nothing."""
    if blocks <= _ALL_SIGNS:
        return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=blocks - 1)])
    rng = np.random.default_rng(np.random.SeedSequence([seed, blocks]))
    drawn = rng.choice((1.0, -1.0), size=(_DRAWN, blocks))
    drawn[0] = 1.0
    return drawn


def visible_change(comparisons: Sequence[Comparison], *, rate: float) -> float | None:
    """Return the smallest change that gets a verdict in 90 % of cases, averaged over comparisons.

    By the noncentral t distribution; ``rate`` is the share of false discoveries that is allowed.
    None without an interval.
    """
    found = [error_beside(each, rate / len(comparisons)) for each in comparisons]
    known = [(each, *told) for each, told in zip(comparisons, found, strict=True) if told]
    if not known:
        return None
    margins = np.array([each.margin for each, *_ in known])
    errors, freedoms, criticals = np.array([told for _, *told in known]).T
    errors = np.maximum(errors, np.finfo(float).tiny)

    def lacking(change: float) -> float:
        with np.errstate(over="ignore"):
            excess = np.minimum(np.maximum(change - margins, 0.0) / errors, criticals + _FAR)
        return float(scipy.special.nctdtr(freedoms, excess, criticals).mean()) - (1.0 - _POWER)

    most = float(margins.max())
    while lacking(most) > 0.0:
        most = 2.0 * most + 0.01
        if most > _MOST_VISIBLE:
            return None
    least = float(margins.min())
    return float(scipy.optimize.brentq(lacking, least, most, rtol=1e-4))


def mean_over_blocks(logs: Mapping[str, Floats], confidence: float) -> Estimate | None:
    """Return the geometric mean of ratios with an interval over blocks that hold all benchmarks.

    Effects common to a block, as the pace of the machine, are in the interval. ``logs`` are as of
    `judge_null`. None with fewer than two such blocks.
    """
    means = np.array([*logs.values()]).mean(axis=0) if logs else np.empty(0)
    means = means[np.isfinite(means)]
    if means.size < MIN_FOR_VARIANCE:
        return None
    return exponential(estimate_level(fit_level(means), confidence))
