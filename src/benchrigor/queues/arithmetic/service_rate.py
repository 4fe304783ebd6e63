"""From sums over periods to a `ServiceRate`, by busy time or by the quantile of counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.model.text import percent
from benchrigor.queues.arithmetic.moments import (
    BORDERS,
    RIPE,
    Row,
    dispersion,
    ripen,
    service_moments,
)
from benchrigor.queues.arithmetic.published_method import QUANTILE_COUNTS, QuantileMean
from benchrigor.queues.data.service import RateReason, ServiceMoments, ServiceRate
from benchrigor.stats.series.interval import scale, student_t
from benchrigor.stats.statistics.rate import estimate_rate

METHODS = BUSY_TIME, QUANTILE = "busy-time", "quantile"

_FEWEST = 10  # batches below which an interval is too rough to stop by
# Share of its busy time that a stage may wait for a processor before its rate is doubtful.
DISTURBED = 0.05
_APART = 0.25
# Relative change, and standard errors, by which a rate that has not converged is another one.
_MOVED, _ERRORS = 0.2, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an estimator is asked for; see `ServiceRateEstimator`."""

    method: str = BUSY_TIME
    period_s: float | None = 0.05  # sampling period wanted, in seconds; None to find one out
    guards: bool = True
    servers: int = 1
    target: float = 0.05
    confidence: float = 0.95


def busy_rate(batches: Floats, *, began_s: float, asked: Asked) -> ServiceRate:
    """Return the service rate of a phase from its batches, shape (rows, n), n >= 1.

    Total items over total busy time, with the interval of a ratio of sums and the long-run variance
    of its residuals (`estimate_rate`): in busy time services follow one another without gaps, for
    any arrivals. Busy time is the sum over all servers.
    """
    total = batches.sum(axis=1)
    busy = batches[:, batches[Row.BUSY] > 0.0]
    ripe = ripen(busy)[0] if busy.shape[1] else busy
    estimate = _per_time(ripe, Row.ITEMS, Row.BUSY, asked)
    is_narrow = estimate is not None and estimate.relative_half_width <= asked.target
    converged = is_narrow and ripe.shape[1] >= _FEWEST
    rate = _service_rate(
        total,
        total,
        estimate=estimate,
        reason=None if converged else _reason(total),
        method=BUSY_TIME,
        began_s=began_s,
        servers=asked.servers,
        moments=service_moments(ripen(busy, items=RIPE)[0]) if busy.shape[1] else None,
    )
    return replace(
        rate,
        cpu_rate=_per_time(ripe, Row.CPU_ITEMS, Row.CPU, asked),
        notices=(*rate.notices, *_warn_of_dropped(total)),
    )


def quantile_rate(
    quantiles: QuantileMean,
    seen: Floats,
    kept: Floats,
    *,
    began_s: float,
    reason: RateReason | None,
    asked: Asked,
) -> ServiceRate:
    """Return the service rate by the quantile of unblocked periods.

    ``seen`` are the sums over all periods of the window, shape (Row.COUNT,), ``kept`` the moments
    of those that count, shape (rows, 1); ``reason`` says why it has not converged.
    """
    counted = kept[:, 0]
    return _service_rate(
        seen,
        counted,
        estimate=_of_quantiles(quantiles, counted, asked) if quantiles.n else None,
        reason=reason,
        method=QUANTILE,
        began_s=began_s,
        servers=asked.servers,
        moments=service_moments(kept) if counted[Row.USED] else None,
    )


def apart(quantiles: QuantileMean, mean: float) -> bool:
    """Return whether the quantile lies so far above the mean that neither is reliable."""
    return quantiles.mean > (1.0 + _APART) * mean


def has_moved(former: ServiceRate, latter: ServiceRate) -> bool:
    """Return whether a rate differs from a former one by a fifth, and by three standard errors."""
    if former.estimate is None or latter.estimate is None:
        return False
    gap = abs(latter.estimate.value - former.estimate.value)
    errors = math.hypot(former.estimate.half_width, latter.estimate.half_width) / 2.0
    return gap > max(_MOVED * former.estimate.value, _ERRORS * errors)


def _service_rate(
    seen: Floats,
    kept: Floats,
    *,
    estimate: Estimate | None,
    reason: RateReason | None,
    method: str,
    began_s: float,
    servers: int,
    moments: ServiceMoments | None,
) -> ServiceRate:
    """Make a rate from the sums over all periods, and over the periods that count."""
    busy_s = float(kept[Row.DELAY_BUSY])
    delay_share = float(kept[Row.DELAY]) / busy_s if busy_s > 0.0 else None
    return ServiceRate(
        estimate=estimate,
        converged=reason is None,
        reason=reason,
        method=method,
        start_s=began_s,
        stop_s=began_s + float(seen[Row.WALL]),
        periods=int(seen[Row.PERIODS]),
        unblocked=int(seen[Row.UNBLOCKED]),
        used=int(kept[Row.USED]),
        period_s=float(seen[Row.WALL] / seen[Row.PERIODS]),
        items=int(kept[Row.ITEMS]),
        servers=servers,
        delay_share=delay_share,
        moments=moments,
        notices=tuple(_warn_of_delay(delay_share)),
    )


def _per_time(batches: Floats, served: Row, spent: Row, asked: Asked) -> Estimate | None:
    """Estimate items per second spent, by all servers together; None if unknown."""
    known = batches[:, batches[spent] > 0.0]
    items, seconds = known[served], known[spent]
    if not items.any():
        return None
    try:
        rate = estimate_rate(items / seconds, weights=seconds, confidence=asked.confidence)
    except NotEstimable:
        return None
    rate = scale(rate, asked.servers)
    return replace(rate, low=max(0.0, rate.low), method=BUSY_TIME)


def _reason(total: Floats) -> RateReason:
    if not total[Row.USED]:
        return RateReason.NO_NONBLOCKING
    if total[Row.BUSY] <= 0.0:
        return RateReason.NEVER_BUSY
    return RateReason.NOT_CONVERGED if total[Row.ITEMS] else RateReason.NO_ITEMS


def _of_quantiles(quantiles: QuantileMean, kept: Floats, asked: Asked) -> Estimate:
    """Turn the mean quantile into a rate; with guards, the middle between it and the plain mean.

    The mean of unblocked counts errs low, since slow service chose these periods; the quantile errs
    high, the more the fewer items a period holds. The interval reaches from the one to the other
    and beyond either by its error, which includes the places of period borders between items.
    """
    period_s = float(kept[Row.WALL] / kept[Row.USED])
    freedom = max(quantiles.n / QUANTILE_COUNTS, 1.0)  # windows overlap
    reach = student_t(freedom, asked.confidence)
    high = quantiles.mean / period_s
    borders = BORDERS / float(kept[Row.USED])
    above = reach * math.sqrt(quantiles.deviation**2 / freedom + borders) / period_s
    low, below = high, above
    if asked.guards:
        low = float(kept[Row.ITEMS] / kept[Row.WALL])
        spread = dispersion(kept) * float(kept[Row.BUSY]) / float(kept[Row.USED]) ** 2
        below = reach * math.sqrt(spread + borders) / period_s
    return Estimate(
        value=(low + high) / 2.0,
        low=max(0.0, min(low - below, high - above)),
        high=max(low + below, high + above),
        confidence=asked.confidence,
        n=int(kept[Row.USED]),
        n_effective=freedom,
        method=QUANTILE,
    )


def _warn_of_delay(delay_share: float | None) -> Iterator[Notice]:
    if delay_share is not None and delay_share > DISTURBED:
        yield Notice.warning(
            Code.DISTURBED_RATE,
            f"The stage waited {percent(delay_share)} of its busy time for a processor: it serves "
            "more slowly than undisturbed, and more replicas do not help. See its rate per "
            "processor time.",
            delay_share=delay_share,
        )


def _warn_of_dropped(total: Floats) -> Iterator[Notice]:
    """Warn if periods do not count because their blocked time is not known."""
    dropped = 1.0 - float(total[Row.USED] / total[Row.PERIODS])
    if dropped:
        yield Notice.warning(
            Code.DROPPED_PERIODS,
            f"{percent(dropped)} of the periods have a blocked time that is not known and do not "
            "count. Slow service chose those that are left, and the rate errs low: record blocked "
            "time, or use the quantile method.",
            dropped=dropped,
        )
