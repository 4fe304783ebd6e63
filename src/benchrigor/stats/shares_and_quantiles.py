"""Shares of trials or outcomes, and quantiles, below which a share of the readings lies.

Order statistics give the interval of a quantile without a distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.analysis import LevelFit
from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.series import Floats, Ints, as_series, check_items
from benchrigor.stats.series.interval import (
    MIN_FOR_AUTOCORRELATION,
    MIN_FOR_VARIANCE,
    check_confidence,
    estimate_level,
    fit_blocks,
    fit_level,
    student_t,
    transient_basis,
)
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
        Number of independent trials, 1 or more; None for a series, which may be autocorrelated.
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
        When the counts are not counts, an outcome is neither 0 nor 1 (its index is named), or the
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
    return _of_share(share, trials, float(trials), quantile, confidence)


def are_outcomes(values: Floats) -> bool:
    """Return whether all values are 0 or 1, looking at the first few before all of them."""
    return all(bool(((part == 0.0) | (part == 1.0)).all()) for part in (values[:100], values))


def are_shares(values: Floats) -> bool:
    """Return whether all values lie between 0 and 1."""
    return 0.0 <= float(values.min()) <= float(values.max()) <= 1.0


def whole_of(estimate: Estimate) -> tuple[float, str]:
    """Return the whole of a relative half-width, and its name.

    The whole of a share is the rarer outcome: 0.999 is as far from 1 as 0.001 is from 0.
    """
    if estimate.method.startswith(WILSON):
        return min(estimate.value, 1.0 - estimate.value), "rarer outcome"
    return abs(estimate.value), "value"


def combine_shares(shares: Floats, trials: Floats | None, confidence: float) -> Estimate:
    """Estimate a share from shares of rounds, each of that many trials (None: it is unknown).

    All successes over all trials. Trials of one round may resemble each other, so the variance is
    of a ratio of two means over the rounds (Cochran 1977, section 6.3) if that is larger
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
    found = _of_share(share, shares.size, effective, student_t(freedom, confidence), confidence)
    return replace(found, degrees_of_freedom=None if math.isinf(freedom) else freedom)


def _of_share(
    share: float, n: int, effective: float, quantile: float, confidence: float
) -> Estimate:
    low, high = _wilson(share, effective, quantile)
    return Estimate(
        value=share,
        low=low,
        high=high,
        confidence=confidence,
        n=n,
        n_effective=effective,
        method=WILSON,
        standard_error=(high - low) / 2.0 / quantile,
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

    Few rare outcomes say little of their bursts. So the chance c that one
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


ORDER_STATISTICS = "order statistics"

_POINTS = 4096
_PER_BIN = 4096  # readings in a bin of many, about
_INNER = (0.005, 0.995)  # quantiles of readings between which bins are equally wide
_ROUNDING = 1e-9  # shares of readings this close are equal: 0.9 * 50 must count as 45
_LEAST_IN_TAIL = 1e-12  # of readings: with fewer, the number required would be no finite float


def quantile_of(
    series: Floats,
    q: float,
    confidence: float,
    *,
    transients: tuple[float, ...] = (),
    blocks: Ints | None = None,
) -> Estimate:
    """Estimate a quantile of trimmed readings; the caller has checked them.

    The distribution function is F(x) = sum w_i 1{x_i <= x}, with w_i = 1/n, or the weights of the
    level along with transients. The value is the midpoint of the least x with F(x) >= q and the
    greatest x with F(x-) <= q (numpy's ``averaged_inverted_cdf``; for q = 1/2 the median). Where
    negative weights make F turn back, the outermost crossings count.

    The interval holds every x at which the rank test does not reject F(x) = q. Its ends are the
    order statistics at q -/+ t sqrt(q (1 - q) / m) (Conover 1999, section 3.2; David & Nagaraja
    2003, section 7.1), with m = n / (tau n sum w_i^2), tau >= 1 the long-run over the marginal
    variance of the indicators 1{x_i <= value}, and t with the degrees of freedom of that variance.
    With ``blocks``, the first index of each, that variance is the one between them.

    Below 30 readings the ends are by the binomial distribution of independent readings.
    """
    n = series.size
    if n < MIN_FOR_VARIANCE or float(series.min()) == float(series.max()):
        return replace(estimate_level(fit_level(series), confidence), method=ORDER_STATISTICS)
    weights = level_weights(n, transients)
    readings = distribution_of(series, weights)
    value = _midpoint(readings, q)
    # A reading at the value counts half on either side, so mirrored readings give the same.
    indicators = np.add(series < value, series <= value, dtype=np.float64)
    if blocks is None:
        fit = fit_indicators(indicators, transients=transients)
    else:
        fit = fit_blocks(indicators, blocks)
    # Blocks make the interval as wide as it must be; the tail must have readings at all.
    counted = fit if blocks is None else replace(fit, long_run_variance=fit.variance)
    _check_tail(counted, q, confidence)
    t = student_t(fit.degrees_of_freedom, confidence)
    if n < MIN_FOR_AUTOCORRELATION:
        shares = _binomial_shares(n, q, confidence)
    else:
        spread = 1.0 if weights is None else n * float(weights @ weights)
        offset = t * math.sqrt(q * (1.0 - q) * spread / fit.n_effective)
        shares = (q - offset, q + offset)
    low, high = readings.between(*shares)
    return replace(
        estimate_level(fit, confidence),
        value=value,
        low=low,
        high=high,
        method=ORDER_STATISTICS,
        standard_error=(high - low) / 2.0 / t,
    )


def quantile_value(series: Floats, q: float, *, transients: tuple[float, ...] = ()) -> float:
    """Return the value of `quantile_of`, for any number of readings."""
    return _midpoint(distribution_of(series, level_weights(series.size, transients)), q)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """The distribution function F of readings in ascending order."""

    readings: Floats
    below: Floats  # F(x-), as running minimum from above
    upto: Floats  # F(x), as running maximum from below

    def between(self, low: float, high: float) -> tuple[float, float]:
        """Return the least reading with F(x) >= low and the greatest with F(x-) <= high."""
        first = np.searchsorted(self.upto, low - _ROUNDING)
        last = np.searchsorted(self.below, high + _ROUNDING, side="right") - 1
        return float(self.readings[first]), float(self.readings[last])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinnedDistribution:
    """The distribution function F of many readings in bins, which sorts only those near a share.

    It is at ``ends`` behind each bin, after ``steps``, in which negative weights took ``falls``.
    """

    readings: Floats
    weights: Floats
    bins: Ints  # of each reading, ascending with it; neither the first nor the last is empty
    ends: Floats
    steps: Floats
    falls: Floats

    def between(self, low: float, high: float) -> tuple[float, float]:
        """Return the least reading with F(x) >= low and the greatest with F(x-) <= high."""
        starts, last = self.ends - self.steps, self.ends.size - 1
        # F reaches low between the first bin where it may and the first at whose end it has.
        bounds = (
            np.argmax(self.ends - self.falls >= low - 2.0 * _ROUNDING),
            np.argmax(np.append(self.ends[:-1] >= low, True)),
            last - np.argmax(starts[::-1] <= high),
            last - np.argmax((starts + self.falls)[::-1] <= high + 2.0 * _ROUNDING),
        )
        near = (self.bins >= min(bounds)) & (self.bins <= max(bounds))
        base = float(starts[min(bounds)])
        return _sorted(self.readings[near], self.weights[near], base).between(low, high)


def distribution_of(series: Floats, weights: Floats | None) -> Distribution | BinnedDistribution:
    """Return the distribution function of readings with these weights; None weighs all equally."""
    if weights is None:
        shares = np.arange(series.size + 1) / series.size
        return Distribution(readings=np.sort(series), below=shares[:-1], upto=shares[1:])
    count = series.size // _PER_BIN
    low, high = np.quantile(series[::count], _INNER) if count > 1 else (0.0, 0.0)
    if low == high:
        return _sorted(series, weights)
    places = series - low
    with np.errstate(over="ignore"):  # of readings that are far out
        places /= high - low
        places *= count
    bins = np.clip(places, 0, count - 1, out=places).astype(np.int64)
    negative = weights < 0.0
    steps = np.bincount(bins, weights, count).astype(np.float64)
    falls = np.bincount(bins[negative], weights[negative], count).astype(np.float64)
    return BinnedDistribution(
        readings=series,
        weights=weights,
        bins=bins,
        ends=np.cumsum(steps),
        steps=steps,
        falls=falls,
    )


def _sorted(series: Floats, weights: Floats, base: float = 0.0) -> Distribution:
    """Return the distribution function of readings, from its value before the first of them."""
    order = np.argsort(series)
    readings = series[order]
    # Equal readings are one step, regardless of their order.
    ends = np.flatnonzero(np.append(readings[1:] != readings[:-1], True))
    upto = base + np.cumsum(weights[order])[ends]
    below = np.append(base, upto[:-1])
    return Distribution(
        readings=readings[ends],
        below=np.minimum.accumulate(below[::-1])[::-1],
        upto=np.maximum.accumulate(upto),
    )


def _midpoint(readings: Distribution | BinnedDistribution, q: float) -> float:
    """Return the midpoint of the readings with F(x) = q."""
    return sum(readings.between(q, q)) / 2.0


def level_weights(n: int, transients: tuple[float, ...]) -> Floats | None:
    """Return the weights, of sum 1, of readings in the level next to transients; None if equal."""
    if not transients or n < MIN_FOR_AUTOCORRELATION:
        return None
    m = min(n, _POINTS)
    columns = np.vstack([np.ones(m), transient_basis(m, transients)]).T
    level = np.linalg.pinv(columns)[0]
    weights: Floats = np.repeat(level, np.diff(np.arange(m + 1) * n // m))
    weights /= float(weights.sum())
    return weights


def _binomial_shares(n: int, q: float, confidence: float) -> tuple[float, float]:
    """Return the shares of independent readings between which the quantile's interval lies.

    The ends are x_(r) and x_(s): r is the largest rank with P(B <= r - 1), and s the least with
    P(B >= s), up to half the error, where B is binomial (n, q).
    """
    tail = (1.0 - confidence) / 2.0
    upto = scipy.special.bdtr(np.arange(n), n, q)
    beyond = scipy.special.bdtrc(np.arange(n), n, q)
    r = int(np.searchsorted(upto, tail, side="right"))
    s = n - int(np.searchsorted(beyond[::-1], tail, side="right")) + 1
    return r / n, (s - 1) / n


def _check_tail(fit: LevelFit, q: float, confidence: float) -> None:
    """Refuse a quantile with too few effective readings in its tail.

    Wanted are five, or as many as make the chance that none lies there less than half the error.
    The effective sample size is granted its own standard error, sqrt(2 / degrees of freedom).
    """
    tail = min(q, 1.0 - q)
    unseen = tail * math.log((1.0 - confidence) / 2.0) / math.log1p(-tail)
    wanted = max(float(MIN_IN_TAIL), unseen)
    allowance = 1.0 + math.sqrt(2.0 / fit.degrees_of_freedom)
    if tail * min(fit.n_effective * allowance, fit.n) >= wanted - _ROUNDING * fit.n:
        return
    in_tail = tail * fit.n_effective
    required = math.ceil(fit.n * wanted / max(in_tail, _LEAST_IN_TAIL))
    side = "below" if q <= 0.5 else "above"
    shown = math.floor(in_tail * 10.0) / 10.0
    raise NotEstimable(
        Notice.of(
            Code.FEW_IN_TAIL,
            shown_=shown,
            side_=side,
            q_=q * 100.0,
            n=fit.n,
            n_effective=fit.n_effective,
            in_tail=in_tail,
            wanted=wanted,
            required=required,
        )
    )
