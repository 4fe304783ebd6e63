"""What a trial's responses come to: warm-up is left out, and a backlog that grows is no mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Estimate, Floats, PhaseReason
from benchrigor.stats import estimate_mean, estimate_quantile, find_stable_phase
from benchrigor.workbench.data import Limit, LoadResult
from benchrigor.workbench.loadgen.sending import Sent

_BLOCKS = 500  # of requests, in whose means phases are looked for
_LATE = 1.01  # of the duration: what is sent later was not sent in time
_GROWN = 2.0  # the last quarter's mean over the first's


def judged(
    sent: Sent, *, duration_s: float, limits: Sequence[Limit], spent_s: Mapping[str, float]
) -> LoadResult:
    """Return the result of a trial: mean, the quantiles that are limited, counts and lag."""
    in_time = sent.at_s + sent.lag_s <= duration_s * _LATE
    failed = int(sent.failed[in_time].sum())
    start, is_growing = _steady(sent.response_s)
    counted = sent.response_s[start:]
    quantiles = {each.metric: each.quantile for each in limits if each.quantile is not None}
    slowest_s = max((each.at_most for each in limits if each.quantile is not None), default=np.inf)
    warm_up_s = float(sent.at_s[start] - sent.at_s[0])
    cpu_share = sent.cpu_s / sent.elapsed_s if sent.elapsed_s > 0.0 else None
    return LoadResult(
        mean_response_s=float(counted.mean()),
        p95_response_s=float(np.quantile(counted, 0.95)),
        scheduled=sent.at_s.size,
        sent=int(in_time.sum()),
        failed=failed,
        lag_p99_s=float(np.quantile(sent.lag_s, 0.99)),
        growing=is_growing or sent.gave_up,
        metrics={name: float(np.quantile(counted, q)) for name, q in quantiles.items()},
        response=_binding(counted, limits),
        within_limits=int(np.sum(in_time & ~sent.failed & (sent.response_s <= slowest_s))),
        cpu_share=cpu_share,
        failures=dict(sent.failures),
        spent_s={"warm-up": warm_up_s, **spent_s, "run": spent_s["run"] - warm_up_s},
    )


def _binding(counted: Floats, limits: Sequence[Limit]) -> Estimate | None:
    """Return the mean or quantile that is nearest to its limit, with its interval."""
    if counted.size < 2:
        return None
    found = [
        (float(counted.mean() if q is None else np.quantile(counted, q)) / each.at_most, q)
        for each in limits
        if each.is_of_time
        for q in [each.quantile]
    ]
    _, q = max(found, key=lambda each: each[0], default=(0.0, None))
    try:
        return estimate_mean(counted) if q is None else estimate_quantile(counted, q)
    except NotEstimable:  # too few are that slow: the mean is known no worse than the quantile
        return estimate_mean(counted)


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
