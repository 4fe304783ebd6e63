"""What estimators are asked for, and rates from the sums over periods."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.periods import Row
from benchrigor.queues.data.service import RateReason, ServiceMoments, ServiceRate

METHODS = BUSY_TIME, QUANTILE = "busy-time", "quantile"

# Share of its busy time that a stage may wait for a processor before its rate is doubtful.
DISTURBED = 0.05
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


def has_moved(former: ServiceRate, latter: ServiceRate) -> bool:
    """Return whether a rate differs from a former one by a fifth, and by three standard errors."""
    if former.estimate is None or latter.estimate is None:
        return False
    gap = abs(latter.estimate.value - former.estimate.value)
    errors = math.hypot(former.estimate.half_width, latter.estimate.half_width) / 2.0
    return gap > max(_MOVED * former.estimate.value, _ERRORS * errors)


def service_rate(
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
    notices = []
    if delay_share is not None and delay_share > DISTURBED:
        notices.append(Notice.of(Code.DISTURBED_RATE, delay_share=delay_share))
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
        notices=tuple(notices),
    )
