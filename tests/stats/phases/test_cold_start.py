import numpy as np
import pytest

from benchrigor.model import Code
from benchrigor.stats import estimate_mean


def test_a_first_reading_among_zeros_is_none_that_is_cold() -> None:
    assert estimate_mean([3.0, 0.0, 0.0, 0.0, 1.0, 0.0], trim=True).n == 6


def test_a_cold_first_reading_of_few_is_left_out_and_told() -> None:
    values = [0.8, *np.random.default_rng(20271129).normal(0.1, 0.002, 10)]
    estimate = estimate_mean(values, trim=True)
    assert estimate.n == 10
    assert estimate.low < 0.1 < estimate.high < 0.11
    assert [each.code for each in estimate.notices] == [Code.START_CUT, Code.FEW_READINGS]
    assert estimate_mean([0.19, *values[1:]], trim=True).n == 11
    assert estimate_mean([0.8, 0.1, 0.1, 0.1], trim=True).n == 4


@pytest.mark.parametrize("n", [5, 11, 19, 20, 29, 30, 31, 49, 50, 400, 5000])
def test_a_cold_first_reading_is_left_out_of_any_number(n: int) -> None:
    values = np.random.default_rng([20261127, n]).normal(0.1, 0.002, n)
    values[0] = 0.31
    estimate = estimate_mean(values, trim=True)
    if n < 50:  # of more, the first fiftieth is left out by its place
        assert estimate.notices[0].code is Code.START_CUT
    assert estimate.n == n - max(1, min(10, n // 50))
    assert 0.094 < estimate.low < estimate.high < 0.106


def test_among_readings_that_are_alike_the_first_is_seldom_cold() -> None:
    """Of lognormal readings with a heavy tail at most once in n times: here far less."""
    rng = np.random.default_rng(4)
    for n in (5, 20, 50):
        found = [estimate_mean(rng.lognormal(0.0, 1.0, n), trim=True) for _ in range(300)]
        cold = [each for each in found if Code.START_CUT in {one.code for one in each.notices}]
        assert len(cold) < 300 / n / 2


@pytest.mark.parametrize("seed", range(8))
def test_three_cold_readings_do_not_move_the_mean(seed: int) -> None:
    series = np.random.default_rng(seed).normal(1.0, 0.1, 500)
    cold = series.copy()
    cold[:3] *= 10.0
    warm = estimate_mean(series, trim=True)
    found = estimate_mean(cold, trim=True)
    assert found.value == pytest.approx(warm.value, abs=0.1 * warm.half_width)
    assert found.half_width == pytest.approx(warm.half_width, rel=0.1)
