from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats
from simulated.estimates import estimated, mean_of

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice, ServiceRate
from benchrigor.queues import ServiceRateEstimator
from benchrigor.stats import filter_ratio, sum_rates, utilisation_of

NOTICE = Notice.of(Code.NOT_CONVERGED)


def rate(
    value: float, down: float, up: float | None = None, *, df: float | None = None
) -> Estimate:
    """Make an estimate of given standard errors downwards and upwards."""
    quantile = -float(special.stdtrit(math.inf if df is None else df, 0.025))
    high = value + quantile * (down if up is None else up)
    return estimated(value, value - quantile * down, high, degrees_of_freedom=df)


levels, errors = st.floats(1.0, 100.0), st.floats(0.001, 0.3)
rates = st.builds(rate, levels, errors, errors, df=st.sampled_from([None, 4.0, 30.0]))


def shown(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def test_the_sum_is_that_of_welch_and_satterthwaite() -> None:
    rng = np.random.default_rng(75)
    samples = [rng.normal(mean, sd, n) for mean, sd, n in ((5.0, 1.0, 6), (9.0, 3.0, 9))]
    squares = [float(sample.var(ddof=1)) / sample.size for sample in samples]
    df = sum(squares) ** 2 / (squares[0] ** 2 / 5 + squares[1] ** 2 / 8)
    error = math.sqrt(sum(squares))
    levels = [
        mean_of(each.size, value=float(each.mean()), sd=float(each.std(ddof=1))) for each in samples
    ]
    found = sum_rates(levels)
    wanted = sum(float(sample.mean()) for sample in samples)
    reach = float(scipy_stats.t.ppf(0.975, df)) * error
    assert found.degrees_of_freedom == pytest.approx(df)
    assert found.standard_error == pytest.approx(error)
    assert shown(found) == pytest.approx((wanted, wanted - reach, wanted + reach))


@given(
    st.lists(st.builds(rate, levels, errors, errors), min_size=1, max_size=6), st.floats(0.0, 50.0)
)
def test_the_sum_of_asymmetric_rates_is_that_of_zou_and_donner(
    parts: list[Estimate], exact: float
) -> None:
    """A rate that is known exactly shifts the sum."""
    found = sum_rates([*parts, exact])
    total = exact + sum(part.value for part in parts)
    down, up = (
        math.hypot(*(part.value - end(part) for part in parts))
        for end in (lambda part: part.low, lambda part: part.high)
    )
    assert shown(found) == pytest.approx((total, total - down, total + up))
    assert (found.n, found.n_effective) == (20 * len(parts), 15.0 * len(parts))
    assert sum_rates([exact, *parts[::-1]]) == found


def test_the_sum_of_exact_rates_is_exact() -> None:
    exact = sum_rates([1.0, 2.0])
    assert (*shown(exact), exact.method, exact.n) == (3.0, 3.0, 3.0, "exact", 0)


def test_the_notices_of_all_parts_are_carried_once() -> None:
    one = replace(rate(1.0, 0.1), notices=(NOTICE,))
    assert sum_rates([one, rate(2.0, 0.1), one]).notices == (NOTICE,)
    assert utilisation_of(rate(1.0, 0.1), one).notices == (NOTICE,)


@pytest.mark.parametrize(
    ("arrival", "service", "servers", "found"),
    [
        (6.0, 4.0, 3, (0.5, 0.5, 0.5)),
        (0, 10.0, 1, (0.0, 0.0, 0.0)),
        (rate(1.0, 2.0, 0.0), 10.0, 1, (0.1, 0.0, 0.1)),  # none is below 0
        # An exact rate of arrival turns the interval of the service over.
        (60.0, estimated(30.0, 25.0, 40.0), 2, (1.0, 0.75, 1.2)),
    ],
)
def test_the_utilisation_by_a_rate_that_is_known_exactly(
    arrival: Any, service: Any, servers: int, found: tuple[float, float, float]
) -> None:
    used = utilisation_of(arrival, service, servers=servers)
    assert shown(used) == pytest.approx(found)
    assert (used.confidence, used.notices) == (0.95, ())


@given(rates, rates, st.integers(1, 20), st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(
    arrival: Estimate, service: Estimate, servers: int, unit: float
) -> None:
    def scaled(each: Estimate) -> Estimate:
        return replace(each, value=each.value * unit, low=each.low * unit, high=each.high * unit)

    found = utilisation_of(arrival, service, servers=servers)
    other = utilisation_of(scaled(arrival), scaled(service), servers=servers)
    assert shown(other) == pytest.approx(shown(found), rel=1e-6)
    assert 0.0 <= found.low <= found.value <= found.high


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), min_size=2, max_size=60))
def test_nothing_is_lost_in_merging(counts: list[tuple[int, int]]) -> None:
    taken, given_ = (list(each) for each in zip(*counts, strict=True))
    if sum(count > 0 for count in given_) < 2:
        with pytest.raises(NotEstimable):
            filter_ratio(taken, given_)
        return
    found = filter_ratio(taken, given_)
    assert found.value == pytest.approx(sum(taken) / sum(given_))
    assert 0.0 <= found.low <= found.value * (1.0 + 1e-12)
    assert found.value <= found.high * (1.0 + 1e-12)


RARE, FEW = "no-nonblocking-period", "few-nonblocking-periods"


def rates_of(
    items: Any, period_s: Any = 0.05, *told: Any, method: str = "busy-time"
) -> list[ServiceRate]:
    est = ServiceRateEstimator(method)
    est.tell_many(items, period_s, *told)
    return est.rates


def poisson(seed: int, *levels: tuple[float, int]) -> Any:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.poisson(level, n) for level, n in levels]).astype(np.float64)


def stalled(at: int) -> Any:
    items = poisson(3, (100.0, 80))
    items[at] = 0.0
    return items


@pytest.mark.parametrize(
    ("items", "begin"),
    [
        (poisson(1, (100.0, 60), (50.0, 6)), [0, 61]),
        (poisson(1, (100.0, 60), (200.0, 6)), [0, 61]),
        (poisson(1, (100.0, 60), (115.0, 60)), [0, 64]),
        (poisson(2, (1e6, 60), (0.95e6, 60)), [0]),  # less than a tenth
        (stalled(77), [0]),
        (np.array([100.0] * 40 + [0.0] * 5), [0, 41]),  # it hangs
        (np.array([100.0] * 15 + [50.0] * 8), [0]),  # few tell nothing
        (poisson(5, (40.0, 10), (100.0, 190)), [0, 11]),  # a short warm-up
        (np.random.default_rng(6).poisson(np.linspace(4e3, 2e3, 200)), [0, 42, 78, 111, 138, 167]),
    ],
)
def test_phases_begin_where_the_rate_has_changed(items: Any, begin: list[int]) -> None:
    found = rates_of(items)
    assert [round(each.start_s / 0.05) for each in found] == begin
    assert (found[-1].reason == "no-items") is bool(items[-1] == 0.0)


def test_of_a_steady_rate_there_is_one_phase_in_a_hundred_looks() -> None:
    assert all(len(rates_of(poisson(seed, (100.0, 128)))) == 1 for seed in range(100))


@pytest.mark.parametrize(
    ("free", "items", "width", "used", "reason"),
    [
        ([1] * 200, 20.0, 4, 33, None),
        ([1, 1, 1, 1, 1, 1, 0, 0] * 64, 20.0, 1, 33, None),
        ([1, 1, 1, 1, 0] * 40, 20.0, 1, 33, None),
        ([1] * 128, 8.0, 4, 32, "not-converged"),  # of few items they are widened
        ([1, 1, 1, 1, 1, 1, 0, 0] * 64, 8.0, 1, 384, "too-few-items-per-period"),
        ([0] * 128, 20.0, 1, 0, RARE),
        ([1] * 5 + [0] * 123, 20.0, 1, 5, FEW),
        ([0] * 20, 20.0, 1, 0, RARE),
        ([1] * 20, 20.0, 1, 20, "not-converged"),
    ],
)
def test_periods_free_of_waiting_are_joined_as_far_as_there_are_enough(
    free: list[int], items: float, width: int, used: int, reason: str | None
) -> None:
    blocked = np.array(free) == 0
    for counts in (
        np.full(blocked.size, items),
        items * ~blocked,
    ):  # of others they need not be known
        found = rates_of(counts, 0.01, 0.0, blocked, method="quantile")[0]
        assert (round(found.period_s / 0.01), found.used, found.reason) == (width, used, reason)


@pytest.mark.parametrize(
    ("shape", "variation", "skewness", "process"),
    [
        (1.0, 1.0, 2.0, "exponential"),
        (4.0, 0.25, 1.0, "other"),
        (100.0, 0.01, None, "deterministic"),
    ],
)
def test_moments_of_gamma_service_are_read_off_counts(
    shape: float, variation: float, skewness: float | None, process: str
) -> None:
    rng = np.random.default_rng(7)
    ends = np.cumsum(rng.gamma(shape, 1.0 / shape, 1_000_000) * 0.001)
    counts = np.diff(np.searchsorted(ends, np.arange(0.0, ends[-1], 0.1)))
    found = rates_of(counts, 0.1)[-1].moments
    assert found is not None
    assert found.mean_s == pytest.approx(0.001, rel=0.01)
    # Of m counts the variance has a relative standard error of sqrt(2/m); borders add 1/6.
    error = np.sqrt(2.0 / counts.size) + 1.0 / 6.0 / 100.0 / variation
    assert found.variation == pytest.approx(variation, rel=4.0 * error)
    assert found.process == process
    if skewness is not None:
        assert found.third_s3 / found.variance_s2**1.5 == pytest.approx(skewness, abs=1.0)


def test_the_third_moment_holds_where_service_itself_ends_the_busy_time() -> None:
    """At a low load a period holds as many services as items came: their time is random."""
    rng = np.random.default_rng(8)
    counts = rng.poisson(64.0, 20_000).astype(np.float64)
    found = rates_of(counts, 200.0, 200.0 - rng.gamma(counts, 1.0))[-1].moments
    assert found is not None
    assert found.variation == pytest.approx(1.0, abs=0.05)
    assert found.third_s3 == pytest.approx(2.0, abs=1.0)
