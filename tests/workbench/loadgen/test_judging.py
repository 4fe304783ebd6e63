"""What a trial's responses come to."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchrigor.workbench.data import Limit
from benchrigor.workbench.loadgen.judging import judged
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


def test_mean_and_quantiles_are_those_of_the_responses():
    response_s = np.random.default_rng(1).exponential(0.02, 5000)
    found = judged(
        sent_of(response_s, failed=50), duration_s=10.0, limits=LIMITS, spent_s={"run": 10.0}
    )
    assert found.mean_response_s == pytest.approx(response_s.mean())
    assert found.p95_response_s == pytest.approx(np.quantile(response_s, 0.95))
    assert found.value("p99") == pytest.approx(np.quantile(response_s, 0.99))
    assert found.value("failed") == 0.01
    assert found.response is not None
    p99_s = -np.log(0.01) * 0.02  # of the exponential distribution; it is nearer to its limit
    assert found.response.low < p99_s < found.response.high
    assert (found.scheduled, found.sent, found.completed) == (5000, 5000, 4950)
    assert (found.cpu_share, found.growing) == (0.1, False)


def test_warm_up_is_left_out():
    rng = np.random.default_rng(1)
    response_s = rng.gamma(20.0, 0.001, 4000)
    response_s[:400] += 0.5
    found = judged(sent_of(response_s), duration_s=10.0, limits=LIMITS, spent_s={"run": 10.0})
    assert found.mean_response_s == pytest.approx(0.02, rel=0.02)
    assert found.spent_s["warm-up"] == pytest.approx(1.0, rel=0.1)
    assert sum(found.spent_s.values()) == pytest.approx(10.0)


def test_the_response_is_that_nearest_to_its_limit():
    response_s = np.random.default_rng(1).exponential(0.02, 5000)
    loose = [Limit(metric="mean", at_most=0.03), Limit(metric="p95", at_most=0.5)]
    found = judged(sent_of(response_s), duration_s=10.0, limits=loose, spent_s={"run": 10.0})
    assert found.response is not None
    assert found.response.low < 0.02 < found.response.high


def test_a_quantile_of_few_requests_is_known_no_better_than_the_mean():
    response_s = np.random.default_rng(1).exponential(0.02, 40)
    found = judged(sent_of(response_s), duration_s=10.0, limits=LIMITS[1:], spent_s={"run": 10.0})
    assert found.response is not None
    assert found.response.standard_error > 0.0


def test_answers_within_the_limit_are_counted():
    response_s = np.repeat([0.1, 2.0], [900, 100])
    found = judged(
        sent_of(response_s, failed=50), duration_s=10.0, limits=LIMITS, spent_s={"run": 10.0}
    )
    assert found.within_limits == 850


def test_a_backlog_that_grows_all_along_is_no_mean():
    rng = np.random.default_rng(1)
    between = rng.exponential(1 / 240.0, 4000) - rng.exponential(1 / 200.0, 4000)
    response_s = np.maximum(-np.cumsum(between), 0.0) + rng.exponential(1 / 240.0, 4000)
    assert response_s[-500:].mean() > 2.0 * response_s[:500].mean()
    assert judged(
        sent_of(response_s), duration_s=10.0, limits=LIMITS, spent_s={"run": 10.0}
    ).growing


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
        found = judged(sent_of(response_s), duration_s=20.0, limits=LIMITS, spent_s={"run": 10.0})
        growing += found.growing
    assert growing <= 1


def test_what_is_sent_after_the_end_was_not_sent_in_time():
    response_s = np.full(1000, 0.5)
    found = judged(
        sent_of(response_s, late_s=1.0), duration_s=10.0, limits=LIMITS, spent_s={"run": 10.0}
    )
    assert found.scheduled == 1000
    assert found.sent == pytest.approx(910, abs=2)
    assert found.lag_p99_s == 1.0
