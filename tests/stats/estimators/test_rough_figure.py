"""A first figure, before there is an estimate."""

import math

import numpy as np
import pytest
from scipy import stats

from benchrigor.stats.estimators.rough_figure import latest, rough_figure


def test_a_few_readings_have_students_t_interval() -> None:
    values = np.array([3.0, 3.2, 3.1, 3.4])
    found = rough_figure(values, q=None, confidence=0.95)
    assert found is not None
    mean, reach = values.mean(), stats.t.ppf(0.975, 3) * stats.sem(values)
    ends = mean / np.exp(reach / mean), mean * np.exp(reach / mean)
    assert (found.value, found.low, found.high) == pytest.approx((mean, *ends))
    found = rough_figure(values - 3.1, q=None, confidence=0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((mean - 3.1 - reach, mean - 3.1 + reach))


def test_one_reading_has_a_value_and_no_end() -> None:
    found = rough_figure(np.array([3.0]), q=None, confidence=0.95)
    assert found is not None
    assert (found.value, found.low, found.high) == (3.0, -math.inf, math.inf)


def test_a_quantile_and_a_ratio() -> None:
    rng = np.random.default_rng(8)
    values = rng.normal(10.0, 1.0, 2_000)
    found = rough_figure(values, q=0.1, confidence=0.95)
    assert found is not None
    assert found.value == np.quantile(values, 0.1)
    assert 0.0 < found.half_width < 0.1
    ratio = rough_figure(1.03 * values[::-1], values, q=None, confidence=0.95)
    assert ratio is not None
    assert ratio.value == pytest.approx(1.03)
    assert ratio.low < 1.03 < ratio.high


def test_a_ratio_to_nothing_has_no_figure() -> None:
    assert rough_figure(np.ones(4), np.zeros(4), q=None, confidence=0.95) is None


def test_the_latest_readings_are_taken_across_chunks() -> None:
    chunks = [np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0, 5.0, 6.0])]
    assert latest(chunks, 5).tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert latest(chunks, 2).tolist() == [5.0, 6.0]
    assert latest(chunks, 50).size == 6
    assert latest([], 5).size == 0
