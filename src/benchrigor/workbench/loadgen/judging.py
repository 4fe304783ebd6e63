"""What a trial's responses come to: warm-up is left out, and a backlog that grows is no mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Estimate, Floats, PhaseReason
from benchrigor.stats import (
    estimate_mean,
    estimate_proportion,
    estimate_quantile,
    find_stable_phase,
)
from benchrigor.workbench.data import Limit, LoadResult
from benchrigor.workbench.loadgen.sending import Sent

_BLOCKS = 500  # of requests, in whose means phases are looked for
_LATE = 1.01  # of the duration: what is sent later was not sent in time
_GROWN = 2.0  # the last quarter's mean over the first's
_LOST = 5.0  # times the limit: no curve leads there from where requests are good


def judge(
    sent: Sent, *, duration_s: float, limits: Sequence[Limit], spent_s: Mapping[str, float]
) -> LoadResult:
    """Return the result of a trial: mean, the values that are limited, counts and lag.

    Beside a share of good requests that is limited stand the quantiles at that share of the times
    that a good request keeps.
    """
    in_time = sent.at_s + sent.lag_s <= duration_s * _LATE
    failed = int(sent.failed[in_time].sum())
    start, is_growing = _steady(sent.response_s)
    counted = sent.response_s[start:]
    quantiles = {limit.metric: limit.quantile for limit in limits if limit.quantile is not None}
    shares = {limit.metric: _GoodShare(sent, limit, start) for limit in limits if limit.conditions}
    metrics = {name: float(np.quantile(counted, q)) for name, q in quantiles.items()}
    for share in shares.values():
        metrics |= share.metrics
    slowest_s = max(
        (limit.at_most for limit in limits if limit.quantile is not None), default=np.inf
    )
    warm_up_s = float(sent.at_s[start] - sent.at_s[0])
    is_good = in_time & ~sent.failed & (sent.response_s <= slowest_s)
    for share in shares.values():
        is_good &= share.worst < 1.0
    cpu_share = sent.cpu_s / sent.elapsed_s if sent.elapsed_s > 0.0 else None
    return LoadResult(
        mean_response_s=float(counted.mean()),
        p95_response_s=float(np.quantile(counted, 0.95)),
        scheduled=sent.at_s.size,
        sent=int(in_time.sum()),
        failed=failed,
        lag_p99_s=float(np.quantile(sent.lag_s, 0.99)),
        growing=is_growing or sent.gave_up,
        metrics=metrics,
        response=_binding(counted, shares, limits),
        within_limits=int(is_good.sum()),
        cpu_share=cpu_share,
        failures=dict(sent.failures),
        spent_s={"warm-up": warm_up_s, **spent_s, "run": spent_s["run"] - warm_up_s},
    )


class _GoodShare:
    """What a trial says of a limit on the share of good requests.

    A request is not good where the greatest of its times over their limits is 1 or more. Some are
    lost: they failed, or took five times as long. With f their share, and a that which may be not
    good, the limit is kept where f < a, and the quantile at 1 - (a - f) / (1 - f) of the others'
    times is below 1. The greater of f / a and that quantile is as near to 1 as the server is to its
    limit, whether it is slow or sheds load: of shares alone those of rare requests are few or none.
    """

    def __init__(self, sent: Sent, limit: Limit, start: int) -> None:
        times = [sent.times[of] / below_s for of, below_s in limit.conditions.items()]
        self.worst = np.where(sent.failed, np.inf, np.max(times, axis=0))
        counted, allowed = self.worst[start:], limit.at_most
        self._lost = counted >= _LOST
        self._others, share = counted[~self._lost], float(self._lost.mean())
        self._q = 1.0 - (allowed - share) / (1.0 - share) if share < allowed else 1.0
        quantile = float(np.quantile(self._others, self._q)) if self._others.size else 0.0
        self._is_slow = share < allowed and quantile >= share / allowed
        self.nearness = quantile if self._is_slow else share / allowed
        self.metrics = {
            limit.metric: float((counted >= 1.0).mean()),
            limit.nearness: self.nearness,
        }
        for name, of in zip(limit.times, limit.conditions, strict=True):
            self.metrics[name] = float(np.quantile(sent.times[of][start:], 1.0 - allowed))

    def estimate(self) -> Estimate:
        """Return what its nearness rests on, with its interval within the trial."""
        if not self._is_slow:
            return estimate_proportion(self._lost)
        return _of_quantile(self._others, self._q)


def _binding(
    counted: Floats, shares: Mapping[str, _GoodShare], limits: Sequence[Limit]
) -> Estimate | None:
    """Return the mean, quantile or share that is nearest to its limit, with its interval."""
    if counted.size < 2:
        return None
    found = [
        (float(counted.mean() if q is None else np.quantile(counted, q)) / limit.at_most, q)
        for limit in limits
        if limit.is_of_time
        for q in [limit.quantile]
    ]
    ratio, q = max(found, key=lambda pair: pair[0], default=(0.0, None))
    share = max(shares.values(), key=lambda share: share.nearness, default=None)
    if share is not None and share.nearness >= ratio:
        return share.estimate()
    return estimate_mean(counted) if q is None else _of_quantile(counted, q)


def _of_quantile(readings: Floats, q: float) -> Estimate:
    try:
        return estimate_quantile(readings, q)
    except NotEstimable:  # too few are that slow: the mean is known no worse than the quantile
        return estimate_mean(readings)


def _steady(response_s: Floats) -> tuple[int, bool]:
    """Return where the responses behind the warm-up begin, and whether they grow all along.

    No more than half is warm-up. What is slow at times, as a queue near saturation, is neither.
    """
    size = max(response_s.size // _BLOCKS, 1)
    blocks = response_s[: response_s.size // size * size].reshape(-1, size).mean(axis=1)
    if blocks.size < 4:
        return 0, False
    phase = find_stable_phase(blocks)
    quarter = blocks.size // 4
    has_grown = blocks[-quarter:].mean() > _GROWN * blocks[:quarter].mean()
    if phase.reason in (PhaseReason.TREND, PhaseReason.STILL_MOVING) and has_grown:
        return 0, True
    start = (phase.start or 0) * size
    return start if start <= response_s.size // 2 else 0, False
