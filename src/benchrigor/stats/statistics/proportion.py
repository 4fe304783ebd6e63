"""Proportions: of independent trials, or of a series of outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.analysis import LevelFit
from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.series import Floats, as_series, check_items
from benchrigor.stats.series.interval import check_confidence, estimate_level, student_t
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION, fit_level
from benchrigor.stats.series.long_run_variance import MIN_BATCHES, batch_means

WILSON = "Wilson"
MIN_IN_TAIL = 5  # effective readings in the tail, or outcomes of the rarer kind

_BATCH = 10
_MANY = 50  # rare outcomes that show their bursts


def estimate_proportion(
    successes: int | npt.ArrayLike, n: int | None = None, *, confidence: float = 0.95
) -> Estimate:
    """Estimate a proportion, with an interval that stays within 0 and 1.

    Parameters
    ----------
    successes
        With ``n``: how many of n independent trials succeeded, a whole number from 0 to n.
        Without: the outcomes in the order in which they came, shape (n,), n >= 2, each True or
        False, 1 or 0.
    n
        Number of independent trials, at least 1; None for a series, which may be autocorrelated.
    confidence
        Nominal coverage, in (0, 1).

    Returns
    -------
    Estimate
        A share in [0, 1]. The interval has a width also when all trials, or none, succeeded.
        ``standard_error`` is its half-width over the quantile used.

    Raises
    ------
    InvalidInput
        When the counts are no counts, an outcome is neither 0 nor 1 (its index is named), or the
        confidence is out of range.
    NotEstimable
        For a series of a single outcome.

    Notes
    -----
    Score interval of Wilson (1927) with the normal quantile. Of a series, n / max(tau, 1) trials
    are effective, with tau the long-run over the marginal variance of the outcomes, and the
    quantile is Student's with the degrees of freedom of that variance. If fewer than 50 are of
    the rarer kind, tau is at least what bursts of them may be. Below 30 outcomes they are taken for
    independent.

    Examples
    --------
    >>> estimate = estimate_proportion(8, 10)
    >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
    (0.8, 0.49, 0.943)
    >>> estimate_proportion([True, False, True, True]).value
    0.75
    """
    check_confidence(confidence)
    if n is None:
        return estimate_outcomes(_as_outcomes(successes), confidence)
    succeeded: Any = successes
    refuse(wrong_whole("n", n), wrong_whole("successes", succeeded, least=0))
    if succeeded > n:
        raise InvalidInput(f"successes is {succeeded!r}, expected at most n, which is {n!r}")
    trials, share = int(n), int(succeeded) / int(n)
    quantile = -float(scipy.special.ndtri((1.0 - confidence) / 2.0))
    low, high = _wilson(share, float(trials), quantile)
    return Estimate(
        value=share,
        low=low,
        high=high,
        confidence=confidence,
        n=trials,
        n_effective=float(trials),
        method=WILSON,
        standard_error=(high - low) / 2.0 / quantile,
    )


def are_outcomes(values: Floats) -> bool:
    """Return whether all values are 0 or 1, looking at the first few before all of them."""
    return all(bool(((part == 0.0) | (part == 1.0)).all()) for part in (values[:100], values))


def are_shares(values: Floats) -> bool:
    """Return whether all values lie between 0 and 1."""
    return 0.0 <= float(values.min()) <= float(values.max()) <= 1.0


def whole_of(estimate: Estimate) -> tuple[float, str]:
    """Return what a half-width is relative to, and its name.

    That of a share is the rarer outcome: 0.999 is as far from 1 as 0.001 is from 0.
    """
    if estimate.method.startswith(WILSON):
        return min(estimate.value, 1.0 - estimate.value), "rarer outcome"
    return abs(estimate.value), "value"


def combine_shares(shares: Floats, trials: Floats | None, confidence: float) -> Estimate:
    """Estimate a share from those of rounds, each of that many trials (None: it is unknown).

    All successes over all trials. Trials of one round may resemble each other, so the variance is
    that of a ratio of two means over the rounds (Cochran 1977, section 6.3) if that is larger
    than the variance of independent trials; the interval is Wilson's with as many effective trials.
    """
    weights = np.ones(shares.size) if trials is None else trials
    most = float(weights.sum())
    share = float(weights @ shares) / most
    variance, freedom = share * (1.0 - share), math.inf
    effective = most
    if shares.size > 1:
        fit = fit_level(share + weights / weights.mean() * (shares - share))
        known = math.inf if trials is None else most
        clustered = variance / fit.standard_error**2 if fit.standard_error > 0.0 else most
        if 0.0 < clustered < known:
            effective, freedom = clustered, fit.degrees_of_freedom
    t = student_t(freedom, confidence)
    low, high = _wilson(share, effective, t)
    return Estimate(
        value=share,
        low=low,
        high=high,
        confidence=confidence,
        n=shares.size,
        n_effective=effective,
        method=WILSON,
        standard_error=(high - low) / 2.0 / t,
        degrees_of_freedom=None if math.isinf(freedom) else freedom,
    )


def fit_indicators(indicators: Floats, *, transients: tuple[float, ...] = ()) -> LevelFit:
    """Fit the level of a series of two values, with the long-run variance of slow changes.

    Single outcomes are so noisy that their model misses a slow change. So means of ten successive
    outcomes are fitted as well, and the larger long-run variance counts.
    """
    # The share of two values determines their skewness.
    fit = replace(fit_level(indicators, transients=transients), skewness=0.0)
    size = min(_BATCH, fit.n // MIN_BATCHES)
    if size <= fit.batch or fit.variance == 0.0:
        return fit
    slow = fit_level(batch_means(indicators, size), transients=transients)
    total = slow.long_run_variance * size
    if total <= fit.long_run_variance:
        return fit
    return replace(
        fit,
        long_run_variance=total,
        order=slow.order,
        batch=slow.batch * size,
        degrees_of_freedom=slow.degrees_of_freedom,
        standard_error=slow.standard_error,
    )


def estimate_outcomes(outcomes: Floats, confidence: float) -> Estimate:
    """Estimate the share of ones in a series of zeros and ones, which may be autocorrelated."""
    fit = fit_indicators(outcomes)
    effective = min(fit.n_effective, fit.n / _burst_inflation(outcomes))
    t = student_t(fit.degrees_of_freedom, confidence)
    low, high = _wilson(fit.level, effective, t)
    estimate = estimate_level(fit, confidence)
    return replace(
        estimate,
        n_effective=effective,
        low=low,
        high=high,
        method=WILSON,
        standard_error=(high - low) / 2.0 / t,
        # Outcomes that are all equal still leave a width.
        notices=(
            *(notice for notice in estimate.notices if notice.code is not Code.CONSTANT),
            *_few_of_a_kind(fit, effective),
        ),
    )


def _burst_inflation(outcomes: Floats) -> float:
    """Return the variance inflation by bursts of a rare outcome; 1 if there are enough of it.

    Few rare outcomes tell little of their bursts, and none tell nothing. So the chance c that one
    follows another is estimated by Laplace's rule of succession; in a two-state Markov chain it
    means an autocorrelation of (c - q) / (1 - q), q the rare share. Without it, 10,000 outcomes
    with a truth of 0.999 and autocorrelation 0.5 cover in 0.88 of cases.
    """
    n = outcomes.size
    rare = outcomes == (1.0 if 2.0 * outcomes.sum() < n else 0.0)
    count = int(rare.sum())
    if count >= _MANY or n < MIN_FOR_AUTOCORRELATION:
        return 1.0
    follows = (int((rare[1:] & rare[:-1]).sum()) + 1.0) / (count + 2.0)
    correlation = max((follows - count / n) / (1.0 - count / n), 0.0)
    return (1.0 + correlation) / (1.0 - correlation)


def _few_of_a_kind(fit: LevelFit, effective: float) -> Iterator[Notice]:
    rare = min(fit.level, 1.0 - fit.level) * effective
    if rare < MIN_IN_TAIL:
        figures = {"n": fit.n, "n_effective": effective, "in_tail": rare}
        shown = math.floor(rare * 10.0) / 10.0
        yield Notice.of(Code.FEW_IN_TAIL, "outcomes", shown_=shown, wanted_=MIN_IN_TAIL, **figures)


def _wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return every p that a score test on n trials does not reject (Wilson 1927).

    The ends are (s + z^2/2n -/+ z sqrt(s (1 - s)/n + z^2/4n^2)) / (1 + z^2/n).
    """
    square = quantile * quantile / n
    centre = share + square / 2.0
    offset = math.sqrt(square * (share * (1.0 - share) + square / 4.0))
    low, high = (centre - offset) / (1.0 + square), (centre + offset) / (1.0 + square)
    # Rounding must not put the ends beyond 0, 1, or the share itself.
    return min(max(low, 0.0), share), max(min(high, 1.0), share)


def _as_outcomes(successes: object) -> Floats:
    series = as_series(successes, name="successes")
    fits = (series == 0.0) | (series == 1.0)
    check_items(series, fits, "0 or 1 (counts need n)", name="successes")
    return series
