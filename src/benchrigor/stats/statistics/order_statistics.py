"""Quantiles and their intervals from order statistics, which assume no distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.analysis import LevelFit
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.series.interval import estimate_level, student_t
from benchrigor.stats.series.level import (
    MIN_FOR_AUTOCORRELATION,
    MIN_FOR_VARIANCE,
    fit_blocks,
    fit_level,
    transient_basis,
)
from benchrigor.stats.statistics.proportion import MIN_IN_TAIL, fit_indicators

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

    Below 30 readings the ends are those of the binomial distribution of independent readings.
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
    """Return the distribution function of readings with these weights; None weighs all alike."""
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
    """Return the weights, of sum 1, of n readings in the level beside transients; None if alike."""
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
    P(B >= s), at most half the error, where B is binomial (n, q).
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
