import numpy as np
import pytest

from benchrigor.stats.series.remembered import remembered


def test_a_result_is_computed_once_for_the_same_numbers_and_words():
    seen = []

    @remembered
    def total(series, scale=1.0):
        seen.append((series.size, scale))
        return scale * float(series.sum())

    series = np.arange(5.0)
    assert [total(series), total(series.copy()), total(series[::-1])] == [10.0] * 3
    assert total(series, 2.0) == 20.0
    series[0] = 7.0
    assert total(series) == 17.0
    assert seen == [(5, 1.0), (5, 1.0), (5, 2.0), (5, 1.0)]


def test_what_raises_is_computed_again():
    seen = []

    @remembered
    def refuse(series):
        seen.append(series.size)
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):  # noqa: PT011  # any does
            refuse(np.array([1.0]))
    assert seen == [1, 1]
