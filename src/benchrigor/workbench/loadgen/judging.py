"""What a trial's responses come to: warm-up is left out, and a backlog that grows is no mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

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

Flags = npt.NDArray[np.bool_]


def judged(
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
    quantiles = {each.metric: each.quantile for each in limits if each.quantile is not None}
    bad = {each.metric: _bad(sent, each) for each in limits if each.conditions}
    metrics = {name: float(np.quantile(counted, q)) for name, q in quantiles.items()}
    metrics |= {name: float(those[start:].mean()) for name, those in bad.items()}
    metrics |= {
        name: float(np.quantile(sent.times[of][start:], 1.0 - each.at_most))
        for each in limits
        if each.conditions
        for name, of in zip(each.times, each.conditions, strict=True)
    }
    slowest_s = max((each.at_most for each in limits if each.quantile is not None), default=np.inf)
    warm_up_s = float(sent.at_s[start] - sent.at_s[0])
    is_good = in_time & ~sent.failed & (sent.response_s <= slowest_s)
    for those in bad.values():
        is_good &= ~those
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
        response=_binding(counted, {name: each[start:] for name, each in bad.items()}, limits),
        within_limits=int(is_good.sum()),
        cpu_share=cpu_share,
        failures=dict(sent.failures),
        spent_s={"warm-up": warm_up_s, **spent_s, "run": spent_s["run"] - warm_up_s},
    )


def _bad(sent: Sent, limit: Limit) -> Flags:
    """Return whether each request failed, or keeps not all conditions of a good one."""
    is_bad = sent.failed.copy()
    for of, below_s in limit.conditions.items():
        is_bad |= ~(sent.times[of] < below_s)
    return is_bad


def _binding(counted: Floats, bad: Mapping[str, Flags], limits: Sequence[Limit]) -> Estimate | None:
    """Return the mean, quantile or share that is nearest to its limit, with its interval."""
    if counted.size < 2:
        return None
    values = {
        each: bad[each.metric].mean()
        if each.metric in bad
        else counted.mean()
        if each.quantile is None
        else np.quantile(counted, each.quantile)
        for each in limits
        if each.times
    }
    nearest = max(values, key=lambda each: float(values[each]) / each.at_most, default=None)
    if nearest is not None and nearest.metric in bad:
        return estimate_proportion(bad[nearest.metric])
    q = None if nearest is None else nearest.quantile
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
