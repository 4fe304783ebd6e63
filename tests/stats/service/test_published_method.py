from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from benchrigor.stats.service.published_method import WINDOW, Settling, settle, window_quantiles


def by_hand(counts: list[float], *, normalised: bool) -> list[float]:
    """Equations 2 and 3, term by term."""
    weights = [math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi) for x in range(-2, 3)]
    if normalised:
        weights = [each / sum(weights) for each in weights]
    found = []
    for start in range(len(counts) - WINDOW + 1):
        window = counts[start : start + WINDOW]
        filtered = [sum(weights[k] * window[i + k] for k in range(5)) for i in range(WINDOW - 4)]
        mean = sum(filtered) / len(filtered)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in filtered) / (len(filtered) - 1))
        found.append(mean + 1.64485 * deviation)
    return found


@given(st.lists(st.floats(0.0, 1e6), min_size=16, max_size=60), st.booleans())
def test_quantiles_are_those_of_the_published_equations(
    counts: list[float], normalised: bool
) -> None:
    found = window_quantiles(np.array(counts), normalised=normalised)
    assert found == pytest.approx(by_hand(counts, normalised=normalised), rel=1e-6, abs=1e-6)


def test_fewer_counts_than_a_window_give_no_quantile() -> None:
    assert window_quantiles(np.ones(15), normalised=True).size == 0


def test_the_kernel_as_published_loses_what_it_is_known_to_lose() -> None:
    assert window_quantiles(np.ones(16), normalised=False)[0] == pytest.approx(0.990866, abs=1e-6)
    assert window_quantiles(np.ones(16), normalised=True)[0] == pytest.approx(1.0)


def test_the_quantile_of_the_text_is_the_normal_one() -> None:
    assert reference.norm.ppf(0.95) == pytest.approx(1.64485, abs=1e-5)


@given(
    st.lists(st.floats(10.0, 1000.0), min_size=2, max_size=200),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
def test_settling_by_parts_is_the_same_as_at_once(values: list[float], sizes: list[int]) -> None:
    whole, stopped = settle(Settling(), np.array(values), relative=True)
    state, at, start = Settling(), None, 0
    while start < len(values) and at is None:
        size = sizes[start % len(sizes)]
        state, at = settle(state, np.array(values[start : start + size]), relative=True)
        at = None if at is None else start + at
        start += size
    assert at == stopped
    assert (state.n, state.steady) == (whole.n, whole.steady)
    assert state.mean == pytest.approx(whole.mean)
    assert state.second == pytest.approx(whole.second, rel=1e-6, abs=1e-6)


@given(st.lists(st.floats(10.0, 1000.0), min_size=3, max_size=100))
def test_mean_and_deviation_are_those_of_all_quantiles(values: list[float]) -> None:
    found, stopped = settle(Settling(), np.array(values), relative=True)
    kept = values[: len(values) if stopped is None else stopped + 1]
    assert found.mean == pytest.approx(np.mean(kept))
    assert found.deviation == pytest.approx(np.std(kept, ddof=1), rel=1e-6, abs=1e-6)


def test_quantiles_without_noise_settle_after_two_and_sixteen_looks() -> None:
    _, stopped = settle(Settling(), np.full(40, 7.0), relative=False)
    assert stopped == 2 + WINDOW - 1


def test_the_published_tolerance_depends_on_the_unit_and_the_relative_one_does_not() -> None:
    noise = np.random.default_rng(1).normal(0.0, 1e-3, 400)
    values = 100.0 + np.convolve(noise, np.ones(12) / 12.0, mode="same")
    stops = {
        relative: [settle(Settling(), values * unit, relative=relative)[1] for unit in (1.0, 1e4)]
        for relative in (False, True)
    }
    assert stops[True][0] == stops[True][1] is not None
    assert stops[False][0] is not None
    assert stops[False][1] is None or stops[False][1] > stops[False][0]
