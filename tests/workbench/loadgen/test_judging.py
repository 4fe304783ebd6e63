"""What a trial's responses come to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from benchrigor import Limit, LoadResult
from benchrigor.workbench.loadgen.judging import judge
from benchrigor.workbench.loadgen.sending import Sent

LIMITS = [Limit(metric="mean", at_most=1.0), Limit(metric="p99", at_most=1.0)]


def sent_of(
    response_s: np.ndarray,
    *,
    first_byte_s: np.ndarray | None = None,
    chunk_gap_s: np.ndarray | None = None,
    late_s: float = 0.0,
    failed: int = 0,
) -> Sent:
    n = response_s.size
    untold = np.full(n, np.nan)
    return Sent(
        at_s=np.linspace(0.0, 10.0, n, endpoint=False),
        lag_s=np.full(n, late_s),
        response_s=response_s,
        first_byte_s=untold if first_byte_s is None else first_byte_s,
        chunk_gap_s=untold if chunk_gap_s is None else chunk_gap_s,
        failed=np.arange(n) < failed,
        failures=Counter({"status 500": failed} if failed else {}),
        cpu_s=1.0,
        elapsed_s=10.0,
        gave_up=False,
    )


def judged(limits: list[Limit], response_s: np.ndarray, **options: Any) -> LoadResult:
    sent = sent_of(response_s, **options)
    return judge(sent, duration_s=10.0, limits=limits, spent_s={"run": 10.0})


def test_mean_and_quantiles_are_those_of_the_responses():
    response_s = np.random.default_rng(1).exponential(0.02, 5000)
    found = judged(LIMITS, response_s, failed=50)
    assert found.mean_response_s == pytest.approx(response_s.mean())
    assert found.p95_response_s == pytest.approx(np.quantile(response_s, 0.95))
    assert found.value("p99") == pytest.approx(np.quantile(response_s, 0.99))
    assert found.value("failed") == 0.01
    p99_s = -np.log(0.01) * 0.02  # of the exponential distribution; it is nearer to its limit
    assert found.response.low < p99_s < found.response.high
    assert (found.scheduled, found.sent, found.completed) == (5000, 5000, 4950)
    assert (found.cpu_share, found.growing) == (0.1, False)


def test_warm_up_is_left_out():
    rng = np.random.default_rng(1)
    response_s = rng.gamma(20.0, 0.001, 4000)
    response_s[:400] += 0.5
    found = judged(LIMITS, response_s)
    assert found.mean_response_s == pytest.approx(0.02, rel=0.02)
    assert found.spent_s["warm-up"] == pytest.approx(1.0, rel=0.1)
    assert sum(found.spent_s.values()) == pytest.approx(10.0)


def test_the_response_is_that_nearest_to_its_limit():
    response_s = np.random.default_rng(1).exponential(0.02, 5000)
    loose = [Limit(metric="mean", at_most=0.03), Limit(metric="p95", at_most=0.5)]
    found = judged(loose, response_s)
    assert found.response.low < 0.02 < found.response.high


def test_a_quantile_of_few_requests_is_known_no_better_than_the_mean():
    response_s = np.random.default_rng(1).exponential(0.02, 40)
    found = judged(LIMITS[1:], response_s)
    assert found.response.standard_error > 0.0


def test_answers_within_the_limit_are_counted():
    response_s = np.repeat([0.1, 2.0], [900, 100])
    found = judged(LIMITS, response_s, failed=50)
    assert found.within_limits == 850


def test_a_backlog_that_grows_all_along_is_no_mean():
    rng = np.random.default_rng(1)
    between = rng.exponential(1 / 240.0, 4000) - rng.exponential(1 / 200.0, 4000)
    response_s = np.maximum(-np.cumsum(between), 0.0) + rng.exponential(1 / 240.0, 4000)
    assert response_s[-500:].mean() > 2.0 * response_s[:500].mean()
    assert judged(LIMITS, response_s).growing


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_a_queue_that_is_slow_at_times_does_not_grow(load: float):
    """Of 40 queues with spare capacity at most one is taken for a backlog that grows."""
    growing = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        service = rng.exponential(1.0 / 200.0, 4000)
        steps = np.append(0.0, np.cumsum(service[:-1] - rng.exponential(1 / 200.0 / load, 3999)))
        response_s = steps - np.minimum.accumulate(steps) + service
        found = judge(sent_of(response_s), duration_s=20.0, limits=LIMITS, spent_s={"run": 10.0})
        growing += found.growing
    assert growing <= 1


def test_what_is_sent_after_the_end_was_not_sent_in_time():
    response_s = np.full(1000, 0.5)
    found = judged(LIMITS, response_s, late_s=1.0)
    assert found.scheduled == 1000
    assert found.sent == pytest.approx(910, abs=2)
    assert found.lag_p99_s == 1.0


SHARE = Limit(metric="response<100ms and first-byte<50ms and chunk-gap<20ms", at_most=0.05)


def test_a_good_request_keeps_all_conditions():
    """Each tenth misses another one, and one of ten fails."""
    n = 1000
    kinds = np.arange(n) % 10
    found = judged(
        [SHARE],
        np.where(kinds == 9, 0.1, 0.06),  # 0.1 is not below 0.1
        first_byte_s=np.where(kinds == 8, 0.055, 0.03),
        chunk_gap_s=np.where(kinds == 7, 0.03, 0.01),
        failed=7,  # of which none is of these kinds
    )
    assert found.metrics[SHARE.metric] == pytest.approx(0.307)
    assert found.within_limits == 693
    assert found.metrics["chunk-gap-p95"] == 0.03
    assert found.metrics["first-byte-p95"] == 0.055
    assert SHARE.ratio_of(found) == pytest.approx(1.5)  # the worst gap over its limit


@pytest.mark.parametrize("slow", [0.03, 0.07])
@pytest.mark.parametrize("failed", [0, 10, 200, 400])
def test_the_limit_is_kept_where_the_share_is(slow: float, failed: int):
    """Whatever part of the requests that are not good failed."""
    rng = np.random.default_rng(5)
    n, n_slow = 5000, round(5000 * slow)
    response_s = rng.uniform(0.01, 0.09, n)
    response_s[failed:][rng.choice(n - failed, n_slow, replace=False)] = 0.15
    response_s[:failed] = 10.0
    rest = {"first_byte_s": np.full(n, 0.01), "chunk_gap_s": np.zeros(n)}
    found = judged([SHARE], response_s, failed=failed, **rest)
    share = found.metrics[SHARE.metric]
    ratio = SHARE.ratio_of(found)
    assert ratio is not None
    assert found.spent_s["warm-up"] == 0.0 or failed
    assert (share >= 0.05) == (ratio >= 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_the_interval_within_a_trial_respects_autocorrelation(correlation: float):
    """Of 80 trials at the limit 95% hold it: of lost requests, and of times that move slowly."""
    for is_lost in (False, True):
        holding = 0
        for seed in range(80):
            rng = np.random.default_rng([seed, 4])
            noise = rng.normal(0.0, 1.0, 4000)
            for index in range(1, noise.size):
                noise[index] *= np.sqrt(1.0 - correlation**2)
                noise[index] += correlation * noise[index - 1]
            worst = np.exp(0.5 * (noise - 1.6448536))  # below 1 in 95%
            if is_lost:
                worst = np.where(worst < 1.0, 0.1, 60.0)
            rest = {"first_byte_s": 0.05 * worst, "chunk_gap_s": 0.001 * worst}
            found = judged([SHARE], 0.04 * worst, **rest).response
            holding += found.low <= (0.05 if is_lost else 1.0) <= found.high
        assert holding >= 71
