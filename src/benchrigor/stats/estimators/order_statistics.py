"""Quantiles and their intervals from order statistics, which assume no distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Floats, LevelFit, Notice
from benchrigor.stats.estimators.proportion import FEWEST_IN_TAIL, fit_indicators
from benchrigor.stats.series.interval import estimate_level, student_t
from benchrigor.stats.series.level import FEW, FEWEST, fit_level
from benchrigor.stats.series.transients import transient_basis

__all__ = [
    "ORDER_STATISTICS",
    "level_weights",
    "quantile_of",
    "quantile_value",
    "weighted_distribution",
]

ORDER_STATISTICS = "order statistics"

_POINTS = 4096
_ROUNDING = 1e-9
"""Shares of readings closer than this are the same: 0.9 * 50 must count as 45."""


def quantile_of(
    series: Floats, q: float, confidence: float, *, transients: tuple[float, ...] = ()
) -> Estimate:
    """Estimate a quantile of readings that were checked and trimmed.

    Notes
    -----
    The distribution function is F(x) = sum w_i 1{x_i <= x}, with w_i = 1/n, or the weights of
    the level beside transients. The value is the midpoint of the least x with F(x) >= q and the
    greatest x with F(x-) <= q: numpy's ``averaged_inverted_cdf`` and, for q = 1/2, its median.
    Where negative weights make F turn back, the outermost crossings count.

    The interval holds every x at which the rank test does not reject F(x) = q: its ends are the
    order statistics at the shares q -/+ t sqrt(q (1 - q) / m) (Conover 1999, section 3.2; David &
    Nagaraja 2003, section 7.1). For autocorrelation m is n_effective = n / tau over n sum w_i^2;
    tau, at least 1, is the long-run over the marginal variance of the indicators 1{x_i <= value},
    and t has the degrees of freedom of that variance. Below 30 readings the ends are those of the
    binomial distribution, and autocorrelation is taken for none.

    ``standard_error`` is half the width of the interval over t.
    """
    n = series.size
    if n < FEWEST or float(series.min()) == float(series.max()):
        return replace(estimate_level(fit_level(series), confidence), method=ORDER_STATISTICS)
    weights = level_weights(n, transients) if transients and n >= FEW else None
    readings = (
        _Even(readings=np.sort(series))
        if weights is None
        else weighted_distribution(series, weights)
    )
    lower, upper = readings.between(q, q)
    value = (lower + upper) / 2.0
    # A reading at the value counts half on either side, so that mirrored readings tell the same.
    indicators = np.add(series < value, series <= value, dtype=np.float64)
    fit = fit_indicators(indicators, transients=transients)
    _check_tail(fit, q, confidence)
    t = student_t(fit.degrees_of_freedom, confidence)
    if n < FEW:
        shares = _binomial_shares(n, q, confidence)
    else:
        spread = 1.0 if weights is None else n * float(weights @ weights)
        reach = t * math.sqrt(q * (1.0 - q) * spread / fit.n_effective)
        shares = (q - reach, q + reach)
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
    """Return the quantile alone, see `quantile_of`, of readings however few."""
    weights = level_weights(series.size, transients) if transients and series.size >= FEW else None
    return _distribution(series, weights).quantile(q)


def _distribution(series: Floats, weights: Floats | None) -> _Even | _Weighted:
    return (
        _Even(readings=np.sort(series))
        if weights is None
        else weighted_distribution(series, weights)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Even:
    """The distribution function of readings that count alike: sorted, a step of 1/n at each."""

    readings: Floats

    def between(self, low: float, high: float) -> tuple[float, float]:
        """Return the least reading with F(x) >= low and the greatest with F(x-) <= high."""
        n = self.readings.size
        first = max(math.ceil(n * (low - _ROUNDING)), 1) - 1
        last = min(math.floor(n * (high + _ROUNDING)), n - 1)
        return float(self.readings[first]), float(self.readings[last])

    def quantile(self, q: float) -> float:
        """Return the midpoint of what is left of F(x) = q."""
        return sum(self.between(q, q)) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Weighted:
    """The distribution function of weighted readings: distinct ones, ascending, and F around them.

    ``upto`` is the running maximum of F(x) from below, ``below`` the running minimum of F(x-)
    from above, so that both ascend.
    """

    readings: Floats
    below: Floats
    upto: Floats

    def between(self, low: float, high: float) -> tuple[float, float]:
        """Return the least reading with F(x) >= low and the greatest with F(x-) <= high."""
        first = np.searchsorted(self.upto, low - _ROUNDING)
        last = np.searchsorted(self.below, high + _ROUNDING, side="right") - 1
        return float(self.readings[first]), float(self.readings[last])

    def quantile(self, q: float) -> float:
        """Return the midpoint of what is left of F(x) = q."""
        return sum(self.between(q, q)) / 2.0


def weighted_distribution(series: Floats, weights: Floats) -> _Weighted:
    order = np.argsort(series)
    readings = series[order]
    # Equal readings are one step: how they follow each other must not matter.
    ends = np.flatnonzero(np.append(readings[1:] != readings[:-1], True))
    upto = np.cumsum(weights[order])[ends]
    below = np.concatenate([[0.0], upto[:-1]])
    return _Weighted(
        readings=readings[ends],
        below=np.minimum.accumulate(below[::-1])[::-1],
        upto=np.maximum.accumulate(upto),
    )


def level_weights(n: int, transients: tuple[float, ...]) -> Floats:
    """Return what each reading contributes to the level beside transients, n weights of sum 1."""
    m = min(n, _POINTS)
    columns = np.vstack([np.ones(m), transient_basis(m, transients)]).T
    level = np.linalg.pinv(columns)[0]
    weights: Floats = np.repeat(level, np.diff(np.arange(m + 1) * n // m))
    return weights / float(weights.sum())


def _binomial_shares(n: int, q: float, confidence: float) -> tuple[float, float]:
    """Return the shares of independent readings between which the quantile's interval lies.

    The ends are x_(r) and x_(s), with r the largest rank for which P(B <= r - 1) and s the least
    for which P(B >= s) is at most half the error, where B is binomial (n, q).
    """
    tail = (1.0 - confidence) / 2.0
    upto = special.bdtr(np.arange(n), n, q)
    beyond = special.bdtrc(np.arange(n), n, q)
    r = int(np.searchsorted(upto, tail, side="right"))
    s = n - int(np.searchsorted(beyond[::-1], tail, side="right")) + 1
    return r / n, (s - 1) / n


def _check_tail(fit: LevelFit, q: float, confidence: float) -> None:
    """Refuse a quantile when fewer effective readings lie in its tail than must.

    Five, or as many as make the chance that none lies there less than half the error, so that
    the extreme reading may be an end of the interval. The number of effective readings is itself
    estimated: it is given its own standard error, sqrt(2 / degrees of freedom) of it, but there
    are never more than readings.
    """
    tail = min(q, 1.0 - q)
    unseen = tail * math.log((1.0 - confidence) / 2.0) / math.log1p(-tail)
    wanted = max(float(FEWEST_IN_TAIL), unseen)
    allowance = 1.0 + math.sqrt(2.0 / fit.degrees_of_freedom)
    if tail * min(fit.n_effective * allowance, fit.n) >= wanted - _ROUNDING * fit.n:
        return
    in_tail = tail * fit.n_effective
    required = math.ceil(fit.n * wanted / in_tail)
    side = "below" if q <= 0.5 else "above"
    notice = Notice.refusal(
        Code.FEW_IN_TAIL,
        f"Only {math.floor(in_tail * 10.0) / 10.0:g} effective readings lie {side} the "
        f"{q * 100.0:g}% quantile, {wanted:.3g} wanted: "
        f"it would take about {required:,} readings.",
        n=fit.n,
        n_effective=fit.n_effective,
        in_tail=in_tail,
        wanted=wanted,
        required=required,
    )
    raise NotEstimable(notice)
