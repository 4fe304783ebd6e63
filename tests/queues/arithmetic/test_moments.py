from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.moments import (
    Row,
    as_observations,
    batches_of,
    dispersion,
    pool,
    rates_of,
    ripen,
    service_moments,
    share_of_waits,
)
from benchrigor.queues.data.service import ServiceMoments, ServiceProcess

ALL = np.zeros(1, dtype=np.int64)


def periods(items: object, busy: object = 1.0) -> Floats:
    counts = np.asarray(items, dtype=np.float64)
    found = np.zeros((Row.COUNT, counts.size))
    found[Row.ITEMS], found[Row.BUSY], found[Row.WALL] = counts, busy, busy
    found[Row.PERIODS] = found[Row.USED] = 1.0
    return batches_of(found)


@st.composite
def observations(draw: st.DrawFn) -> tuple[Floats, list[int]]:
    n = draw(st.integers(2, 40))
    counts = draw(st.lists(st.integers(0, 1000), min_size=n, max_size=n))
    spent = draw(st.lists(st.floats(0.01, 10.0), min_size=n, max_size=n))
    cuts = draw(st.lists(st.integers(1, n - 1), unique=True, max_size=8))
    return as_observations(periods(counts, spent)), [0, *sorted(cuts)]


@pytest.mark.slow
@given(observations())
def test_pooling_in_steps_is_the_same_as_pooling_at_once(
    drawn: tuple[Floats, list[int]],
) -> None:
    tallies, cuts = drawn
    once = pool(tallies, ALL)
    steps = pool(pool(tallies, np.array(cuts)), ALL)
    np.testing.assert_allclose(steps, once, rtol=1e-9, atol=1e-6)


@pytest.mark.slow
@given(observations())
def test_pooled_moments_are_the_central_moments_of_all_pairs(
    drawn: tuple[Floats, list[int]],
) -> None:
    tallies, cuts = drawn
    found = pool(pool(tallies, np.array(cuts)), ALL)[:, 0]
    c = tallies[Row.ITEMS] - tallies[Row.ITEMS].mean()
    b = tallies[Row.BUSY] - tallies[Row.BUSY].mean()
    products = [c * c, c * b, b * b, c**3, c * c * b, c * b * b, b**3]
    expected = [float(each.sum()) for each in products]
    sizes = [float(np.abs(each).sum()) for each in products]
    for got, want, size in zip(found[Row.ITEMS_2 :], expected, sizes, strict=True):
        assert got == pytest.approx(want, rel=1e-9, abs=1e-9 * size + 1e-9)
    assert found[Row.COUNT] == c.size


def test_rates_are_items_per_busy_second_and_0_where_none_was() -> None:
    assert rates_of(periods([6.0, 3.0, 0.0], [2.0, 0.5, 0.0])).tolist() == [3.0, 6.0, 0.0]


def test_stretches_are_joined_until_they_hold_as_many_items_and_none_is_lost() -> None:
    tallies = as_observations(periods([3.0] * 21))
    found, starts = ripen(tallies, items=16.0)
    assert starts.tolist() == [0, 8]
    assert found[Row.ITEMS].tolist() == [24.0, 39.0]
    assert ripen(tallies, items=3.0)[0] is tallies


@pytest.mark.parametrize(
    ("shape", "variation", "skewness", "process"),
    [
        (1.0, 1.0, 2.0, ServiceProcess.EXPONENTIAL),
        (4.0, 0.25, 1.0, ServiceProcess.OTHER),
        (100.0, 0.01, 0.2, ServiceProcess.DETERMINISTIC),
    ],
)
def test_moments_of_gamma_service_are_read_off_counts(
    shape: float, variation: float, skewness: float, process: ServiceProcess
) -> None:
    rng = np.random.default_rng(7)
    ends = np.cumsum(rng.gamma(shape, 1.0 / shape, 1_000_000) * 0.001)
    counts = np.diff(np.searchsorted(ends, np.arange(0.0, ends[-1], 0.1)))
    found = service_moments(as_observations(periods(counts, 0.1)))
    assert found is not None
    assert found.mean_s == pytest.approx(0.001, rel=0.01)
    # Of m counts the variance has a relative standard error of sqrt(2/m); borders add 1/6.
    error = np.sqrt(2.0 / counts.size) + 1.0 / 6.0 / 100.0 / variation
    assert found.variation == pytest.approx(variation, rel=4.0 * error)
    assert found.process is process
    if variation >= 0.25:
        assert found.third_s3 / found.variance_s2**1.5 == pytest.approx(skewness, abs=1.0)


def test_the_third_moment_holds_where_service_itself_ends_the_busy_time() -> None:
    """At a low load a period holds as many services as items came: their time is random."""
    rng = np.random.default_rng(8)
    counts = rng.poisson(64.0, 20_000).astype(np.float64)
    found = service_moments(as_observations(periods(counts, rng.gamma(counts, 1.0))))
    assert found is not None
    assert found.variation == pytest.approx(1.0, abs=0.05)
    assert found.third_s3 == pytest.approx(2.0, abs=1.0)


def test_of_few_observations_or_of_none_with_items_nothing_is_said() -> None:
    assert service_moments(as_observations(periods([5.0] * 29))) is None
    assert service_moments(as_observations(periods([0.0] * 40))) is None


def test_the_dispersion_of_poisson_counts_is_their_rate() -> None:
    counts = np.random.default_rng(9).poisson(50.0, 10_000)
    tally = pool(as_observations(periods(counts, 0.5)), ALL)[:, 0]
    assert dispersion(tally) == pytest.approx(100.0, rel=4.0 * np.sqrt(2.0 / 10_000))


@pytest.mark.parametrize(("mean_s", "share"), [(0.001, 0.2), (0.001, 0.05), (0.0002, 0.1)])
def test_waits_make_constant_service_vary_as_much_as_is_said(mean_s: float, share: float) -> None:
    wait_s = 0.004
    waits = np.random.default_rng(3).poisson(share / (1.0 - share) / wait_s * mean_s, 1_000_000)
    service_s = mean_s + wait_s * waits
    moments = ServiceMoments(
        n=waits.size,
        mean_s=float(service_s.mean()),
        variance_s2=float(service_s.var()),
        third_s3=0.0,
        process=ServiceProcess.OTHER,
    )
    assert share_of_waits(moments, share) == pytest.approx(1.0, abs=0.05)
