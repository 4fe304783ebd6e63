import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from tests.stats.told import analysed

from benchrigor.errors import NotEstimable
from benchrigor.model import Code
from benchrigor.stats import estimate_invocations
from benchrigor.stats.statistic import readings_per_invocation


def test_the_interval_is_students_t_of_the_invocation_means() -> None:
    rng = np.random.default_rng(1)
    invocations = [rng.normal(level, 0.1, 50) for level in rng.normal(5.0, 0.5, 12)]
    means = [series.mean() for series in invocations]
    found = estimate_invocations(invocations)
    mean, reach = np.mean(means), scipy_stats.t.ppf(0.975, 11) * scipy_stats.sem(means)
    ends = mean / np.exp(reach / mean), mean * np.exp(reach / mean)  # of log(mean)
    assert (found.low, found.high) == pytest.approx(ends)
    below = estimate_invocations([series - 9.0 for series in invocations])
    assert (below.low, below.high) == pytest.approx((mean - 9.0 - reach, mean - 9.0 + reach))
    assert found.n == 12
    assert found.notices == ()


def test_no_shift_stays_that_the_interval_does_not_bear() -> None:
    rng = np.random.default_rng(5)
    shift = np.repeat([0.006, 0.0], [600, 1_400])
    invocations = [1.0 + shift + 0.01 * rng.normal(size=2_000) for _ in range(10)]
    found = estimate_invocations(invocations, trim=True)
    # Joined, the shift of 0.6 % would leave the level some 0.002 too high.
    assert abs(found.value - 1.0) < 0.0007


def test_what_is_refused_is_refused_each_time() -> None:
    refusals = set[str]()
    for _ in range(2):
        with pytest.raises(NotEstimable) as caught:
            estimate_invocations([[1.0], [2.0]], trim=True)
        refusals.add(str(caught.value))
    assert len(refusals) == 1


def test_an_invocation_that_the_cut_swallows_does_not_count() -> None:
    rng = np.random.default_rng(7)
    whole = [rng.normal(1.0, 0.05, 200) + 0.5 * (np.arange(200) < 30) for _ in range(10)]
    found = estimate_invocations([*whole, rng.normal(1.5, 0.05, 20)], trim=True)
    assert found.n == 10
    assert found.notices[0].code is Code.ROUNDS_REJECTED
    assert found.value == estimate_invocations(whole, trim=True).value


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_times_too_far_apart_are_no_number_and_differences_are(statistic: str) -> None:
    times = [np.linspace(level, level + 0.1, 30) for level in (1.0, 5.0)]
    apart = analysed(*times, unit="s", statistic=statistic, trim="none")
    assert apart.estimate is None
    differences = [series - 2.0 for series in times]
    found = analysed(*differences, statistic=statistic, trim="none").estimate
    assert found is not None
    assert found.low < -10.0


@pytest.mark.parametrize(
    ("sizes", "rates", "level"), [([3, 7, 5, 9], [0.1], 0.1), ([8, 8, 8], [0.2, 0.6], 0.3)]
)
def test_equal_levels_of_rates_are_said_as_rates(
    sizes: list[int], rates: list[float], level: float
) -> None:
    found = analysed(*(np.resize(rates, size) for size in sizes), unit="1/s", trim="none")
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(level)
    (constant,) = (each for each in found.notices if each.code is Code.CONSTANT)
    assert constant.evidence["value"] == pytest.approx(level)


# --- Where the variance arises, and how much to measure of what.


def components(*invocations: Any, **options: Any) -> Any:
    return analysed(*invocations, **{"trim": "none", **options}).split


SPLIT = components([1.0, 2.0, 1.0], [2.0, 1.0, 3.0])


@given(
    between=st.floats(1e-6, 1.0),
    within=st.floats(1e-6, 1.0),
    start_cost=st.floats(0.01, 1e4),
    reading_cost=st.floats(0.01, 100.0),
)
def test_no_other_number_of_readings_is_better(
    between: float, within: float, start_cost: float, reading_cost: float
) -> None:
    split = dataclasses.replace(SPLIT, between=between, within=within)
    best = readings_per_invocation(
        split, start_cost=start_cost, reading_cost=reading_cost, longest=10_000
    )

    def price(n: float) -> float:
        """Cost of an invocation times its variance: what a given width costs."""
        return (start_cost + n * reading_cost) * (between + within / n)

    assert 2 <= best <= 10_000
    near = min(price(max(best - 0.5, 2.0)), price(min(best + 0.5, 10_000.0)))
    assert min(price(2.0), price(10_000.0), price(best)) >= near * (1.0 - 0.05)
    assert price(best) <= min(price(2.0), price(10_000.0)) * (1.0 + 1e-9)


def test_the_ends_of_the_allocation() -> None:
    def best(between: float, within: float, start_cost: float = 1.0) -> int:
        split = dataclasses.replace(SPLIT, between=between, within=within)
        return readings_per_invocation(split, start_cost=start_cost, reading_cost=1.0, longest=500)

    assert best(0.0, 1.0) == 500
    assert best(1e-300, 1e-2) == 500
    assert best(1.0, 0.0) == best(0.0, 0.0) == best(1.0, 1.0, start_cost=0.0) == 2
