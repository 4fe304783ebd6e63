"""The result of a trial's responses: it excludes warm-up, and detects a growing backlog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Estimate
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.series import Floats
from benchrigor.stats import (
    estimate_mean,
    estimate_proportion,
    estimate_quantile,
    find_stable_phase,
)
from benchrigor.workbench.data import Limit, LoadResult
from benchrigor.workbench.loadgen.sending import Sent

_BLOCKS = 500  # of requests; phases are found in their means
_LATE = 1.01  # of the duration: requests after that were not sent in time
_GROWN = 2.0  # the last quarter's mean over the first's
_LOST = 5.0  # times the limit, which good requests do not approach gradually


def judge(
    sent: Sent, *, duration_s: float, limits: Sequence[Limit], spent_s: Mapping[str, float]
) -> LoadResult:
    """Return the result of a trial: mean, limited values, counts and lag.

    A limit of the share of good requests adds the quantiles of its times at that share.
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
    """The result of a trial for a limit on the share of good requests.

    A request is not good if the greatest ratio of its times to their limits is 1 or more. Requests
    are lost if they failed, or took five times as long. Let f be the share of lost requests, and a
    the allowed share of requests that are not good. The limit is kept if f < a, and the quantile at
    1 - (a - f) / (1 - f) of the others' ratios is below 1. The greater of f / a and that quantile
    shows the nearness to the limit, whether the server is slow or sheds load: the plain share of
    rare bad requests rests on few or none.
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
        """Return the share or quantile behind its nearness, with its interval in the trial."""
        if not self._is_slow:
            return estimate_proportion(self._lost)
        return _of_quantile(self._others, self._q)


def _binding(
    counted: Floats, shares: Mapping[str, _GoodShare], limits: Sequence[Limit]
) -> Estimate | None:
    """Return the mean, quantile or share nearest to its limit, with its interval."""
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
    except NotEstimable:  # too few are that slow: use the mean, which is known as well
        return estimate_mean(readings)


def _steady(response_s: Floats) -> tuple[int, bool]:
    """Return the index of the first response after the warm-up, and whether responses keep growing.

    The warm-up is limited to half. Slow periods, as of a queue near saturation, are neither.
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
