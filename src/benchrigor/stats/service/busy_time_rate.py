"""From what a stage did and how long it was busy to the rate at which it could serve."""

from __future__ import annotations

import math
from dataclasses import replace

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    Code,
    Estimate,
    Floats,
    Notice,
    RateReason,
    ServiceMoments,
    ServiceRate,
)
from benchrigor.model.text import percent
from benchrigor.stats.estimators.rate import estimate_rate
from benchrigor.stats.series.interval import student_t
from benchrigor.stats.service.moments import (
    BORDERS,
    RIPE,
    Row,
    dispersion,
    matured,
    service_moments,
)
from benchrigor.stats.service.published_method import WINDOW, Settling

__all__ = ["BUSY_TIME", "QUANTILE", "apart", "busy_rate", "moved", "quantile_rate"]

BUSY_TIME = "busy-time"
QUANTILE = "quantile"

_FEWEST = 10
"""Stretches below which an interval is too rough to stop by."""
_DISTURBED = 0.05
"""Share of its busy time that a stage may wait for a processor before its rate is doubtful."""
_APART = 0.25
_MOVED, _ERRORS = 0.2, 3.0
"""Relative change, and standard errors, by which a rate that has not converged is another one."""


def busy_rate(
    tallies: Floats, *, began_s: float, servers: int, target: float, confidence: float
) -> ServiceRate:
    """Return the service rate of a phase, from stretches of it.

    Parameters
    ----------
    tallies
        Of its stretches, shape (rows, n), n >= 1.
    began_s
        When the phase began, in seconds.
    servers
        Threads that serve side by side; busy time is of all of them.
    target
        Relative half-width at which the rate has converged.
    confidence
        Nominal coverage, in (0, 1).

    Notes
    -----
    Total items over total busy time, with the interval of a ratio of sums and the long-run
    variance of its residuals (`estimate_rate`): in busy time a stage's services follow each other
    without gaps, whatever the arrivals do.
    """
    total = tallies.sum(axis=1)
    busy = tallies[:, tallies[Row.BUSY] > 0.0]
    ripe = matured(busy)[0] if busy.shape[1] else busy
    estimate = _per_time(ripe, Row.ITEMS, Row.BUSY, servers, confidence)
    converged = (
        estimate is not None and ripe.shape[1] >= _FEWEST and estimate.relative_half_width <= target
    )
    delay_share = _delay_share(total)
    return ServiceRate(
        estimate=estimate,
        converged=converged,
        reason=None if converged else _reason(total),
        method=BUSY_TIME,
        start_s=began_s,
        stop_s=began_s + float(total[Row.WALL]),
        periods=int(total[Row.PERIODS]),
        unblocked=int(total[Row.UNBLOCKED]),
        used=int(total[Row.USED]),
        period_s=float(total[Row.WALL] / total[Row.PERIODS]),
        items=int(total[Row.ITEMS]),
        servers=servers,
        cpu_rate=_per_time(ripe, Row.CPU_ITEMS, Row.CPU, servers, confidence),
        delay_share=delay_share,
        moments=_moments(busy),
        notices=(*_disturbed(delay_share), *_chosen(total)),
    )


def _per_time(
    tallies: Floats, served: Row, spent: Row, servers: int, confidence: float
) -> Estimate | None:
    """Estimate items per second spent, by so many servers; None where none is known."""
    known = tallies[:, tallies[spent] > 0.0]
    items, seconds = known[served], known[spent]
    if not items.any():
        return None
    try:
        found = estimate_rate(items / seconds, weights=seconds, confidence=confidence)
    except NotEstimable:
        return None
    error = found.standard_error
    return replace(
        found,
        value=servers * found.value,
        low=max(0.0, servers * found.low),
        high=servers * found.high,
        standard_error=None if error is None else servers * error,
        method=BUSY_TIME,
    )


def _moments(busy: Floats) -> ServiceMoments | None:
    """Tell moments of the service time of one server."""
    return service_moments(matured(busy, items=RIPE)[0]) if busy.shape[1] else None


def _reason(total: Floats) -> RateReason:
    if not total[Row.USED]:
        return RateReason.NO_NONBLOCKING
    if total[Row.BUSY] <= 0.0:
        return RateReason.NEVER_BUSY
    return RateReason.NOT_CONVERGED if total[Row.ITEMS] else RateReason.NO_ITEMS


def quantile_rate(
    settling: Settling,
    seen: Floats,
    kept: Floats,
    *,
    began_s: float,
    servers: int,
    guards: bool,
    reason: RateReason | None,
    confidence: float,
) -> ServiceRate:
    """Return the service rate by the quantile of unblocked periods.

    Parameters
    ----------
    settling
        The running mean of quantiles.
    seen
        All periods of the window, the first rows of a tally, shape (Row.COUNT,).
    kept
        Those that count, one tally, shape (rows, 1).
    began_s
        When the window began, in seconds.
    servers, guards, confidence
        As `ServiceRateEstimator` has them.
    reason
        Why it has not converged; None where it has.
    """
    used = float(kept[Row.USED, 0])
    delay_share = _delay_share(kept[:, 0])
    return ServiceRate(
        estimate=_of_quantiles(settling, kept[:, 0], guards, confidence) if settling.n else None,
        converged=reason is None,
        reason=reason,
        method=QUANTILE,
        start_s=began_s,
        stop_s=began_s + float(seen[Row.WALL]),
        periods=int(seen[Row.PERIODS]),
        unblocked=int(seen[Row.UNBLOCKED]),
        used=int(used),
        period_s=float(seen[Row.WALL] / seen[Row.PERIODS]),
        items=int(kept[Row.ITEMS, 0]),
        servers=servers,
        cpu_rate=None,
        delay_share=delay_share,
        moments=service_moments(kept) if used else None,
        notices=_disturbed(delay_share),
    )


def apart(settling: Settling, mean: float) -> bool:
    """Tell whether the quantile lies so far above the mean that neither is to be relied on."""
    return settling.mean > (1.0 + _APART) * mean


def moved(former: ServiceRate, latter: ServiceRate) -> bool:
    """Tell whether a rate differs from a former one by a fifth, and by three standard errors."""
    if former.estimate is None or latter.estimate is None:
        return False
    gap = abs(latter.estimate.value - former.estimate.value)
    errors = (each.estimate.half_width / 2.0 for each in (former, latter) if each.estimate)
    return gap > max(_MOVED * former.estimate.value, _ERRORS * math.hypot(*errors))


def _of_quantiles(settling: Settling, kept: Floats, guards: bool, confidence: float) -> Estimate:
    """Turn the mean quantile into a rate; with guards, the middle between it and the plain mean.

    A period that stays free of waiting is one in which service was slow, so that the mean of such
    counts errs low; the quantile lies above the mean, the more the fewer items a period holds.
    The interval reaches from the one to the other, and beyond each by its own error, to which it
    adds where the borders of periods fall between two items.
    """
    period_s = float(kept[Row.WALL] / kept[Row.USED])
    freedom = max(settling.n / WINDOW, 1.0)  # windows overlap
    reach = student_t(freedom, confidence)
    high = settling.mean / period_s
    borders = BORDERS / float(kept[Row.USED])
    above = reach * math.sqrt(settling.deviation**2 / freedom + borders) / period_s
    low, below = high, above
    if guards:
        low = float(kept[Row.ITEMS] / kept[Row.WALL])
        spread = dispersion(kept) * float(kept[Row.BUSY]) / float(kept[Row.USED]) ** 2
        below = reach * math.sqrt(spread + borders) / period_s
    return Estimate(
        value=(low + high) / 2.0,
        low=max(0.0, min(low - below, high - above)),
        high=max(low + below, high + above),
        confidence=confidence,
        n=int(kept[Row.USED]),
        n_effective=freedom,
        method=QUANTILE,
    )


def _delay_share(total: Floats) -> float | None:
    """Return the share of the busy time waited for a processor, where it is known; else None."""
    busy_s = float(total[Row.DELAY_BUSY])
    return float(total[Row.DELAY]) / busy_s if busy_s > 0.0 else None


def _disturbed(delay_share: float | None) -> tuple[Notice, ...]:
    if delay_share is None or delay_share <= _DISTURBED:
        return ()
    return (
        Notice.warning(
            Code.DISTURBED_RATE,
            f"Of the time in which the stage was busy, it waited {percent(delay_share)} "
            "for a processor: undisturbed it would serve faster, which more replicas would not. "
            "Look at its rate per processor time.",
            delay_share=delay_share,
        ),
    )


def _chosen(total: Floats) -> tuple[Notice, ...]:
    """Warn where periods were dropped because nobody knows how long the stage waited in them."""
    dropped = 1.0 - float(total[Row.USED] / total[Row.PERIODS])
    if not dropped:
        return ()
    return (
        Notice.warning(
            Code.DROPPED_PERIODS,
            f"{percent(dropped)} of the periods held waiting of unknown length and do not "
            "count: those that are left are the ones in which service was slow. Record blocked "
            "time, or use the quantile method.",
            dropped=dropped,
        ),
    )
