from __future__ import annotations

import numpy as np
import pytest
from simulated.series import autoregressive

from benchrigor.errors import InvalidInput
from benchrigor.model import Floats
from benchrigor.stats.phases.repeated_warm_up import find_repeated_warm_ups

WARM_UP = 1.0 + 2.0 * np.exp(-np.arange(300) / 20.0)


def noise(n: int, phi: float = 0.0) -> Floats:
    return 1.0 + 0.05 * autoregressive(np.random.default_rng(n), n, phi)


@pytest.mark.parametrize("rounds", [5, 10, 30])
@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_rounds_joined_end_to_end_are_found(rounds: int, phi: float) -> None:
    series = np.tile(WARM_UP, rounds) * noise(300 * rounds, phi)
    found = find_repeated_warm_ups(series)
    assert found is not None
    assert found.starts == tuple(range(0, 300 * rounds, 300))
    assert (found.length, found.examined) == (300, series.size)
    # Twice the first excess, for 20 of 300 readings.
    assert found.excess == pytest.approx(2.0 * 20.0 / 300.0, abs=0.02)


def test_the_last_round_may_be_cut_short() -> None:
    found = find_repeated_warm_ups((np.tile(WARM_UP, 8) * noise(2_400))[:2_150])
    assert found is not None
    assert found.starts == tuple(range(0, 2_101, 300))


def test_long_rounds_are_found_by_batch_means() -> None:
    warm_up = 1.0 + 2.0 * np.exp(-np.arange(30_000) / 2_000.0)
    found = find_repeated_warm_ups(np.tile(warm_up, 8) * noise(240_000))
    assert found is not None
    assert found.starts == pytest.approx(range(0, 240_000, 30_000), abs=150)
    assert found.examined == pytest.approx(240_000, abs=15)


def test_of_many_readings_the_first_are_examined() -> None:
    found = find_repeated_warm_ups(np.tile(WARM_UP, 100) * noise(30_000))
    assert found is not None
    assert found.examined == 16_384
    assert len(found.starts) == 55


@pytest.mark.parametrize(
    "series",
    [
        WARM_UP * noise(300),
        np.ones(3_000),
        noise(3_000),
        noise(3_000, 0.95),
        np.tile(WARM_UP[::-1], 10) * noise(3_000),  # rises gradually
        np.roll(np.tile(WARM_UP, 10) * noise(3_000), 150),  # does not begin with a start
        noise(3_000) * np.where(np.arange(3_000) % 100 < 2, 3.0, 1.0),  # two slow readings
        noise(3_000) + np.sin(np.arange(3_000) / 15.0),
    ],
    ids=["one", "constant", "white", "slow", "reversed", "later", "collection", "wave"],
)
def test_other_series_are_not_taken_for_joined_rounds(series: Floats) -> None:
    assert find_repeated_warm_ups(series) is None


def test_negatives_of_rates_that_rise_are_recognised() -> None:
    rates = 1.0 / np.tile(WARM_UP, 10) * noise(3_000)
    found = find_repeated_warm_ups(-rates)
    assert found is not None
    assert len(found.starts) == 10
    assert 0.0 < found.excess < 0.14


def test_the_scale_does_not_matter() -> None:
    series = np.tile(WARM_UP, 10) * noise(3_000)
    one, other = find_repeated_warm_ups(series), find_repeated_warm_ups(1e-9 * series)
    assert one is not None
    assert other is not None
    assert other.starts == one.starts
    assert other.excess == pytest.approx(one.excess)


def test_invalid_values_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"values\[1\] is nan"):
        find_repeated_warm_ups([1.0, float("nan")])
