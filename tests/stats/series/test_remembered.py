import numpy as np

from benchrigor.stats.series import remembered as module
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


def test_the_latest_results_are_kept(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 2)
    seen = []
    first = remembered(lambda series: seen.append(series[0]) or series[0])
    assert [first(np.array([value])) for value in (1.0, 2.0, 2.0, 3.0, 1.0)] == [1, 2, 2, 3, 1]
    assert seen == [1.0, 2.0, 3.0, 1.0]
