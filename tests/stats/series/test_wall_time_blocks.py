import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.stats.series.wall_time_blocks import block_starts, fit_blocks

RNG = np.random.default_rng(20270212)


def test_blocks_are_of_equal_time_and_not_of_equally_many_readings() -> None:
    durations = np.r_[np.full(400, 1.0), np.full(100, 4.0)]
    starts = block_starts(durations)
    assert starts.tolist() == [0, 100, 200, 300, 400, 425, 450, 475]


def test_readings_that_are_no_durations_are_taken_at_equal_times() -> None:
    assert block_starts(np.arange(-40.0, 40.0)).tolist() == [*range(0, 80, 10)]


@given(
    st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=200),
    st.integers(2, 20),
)
def test_no_block_is_empty_and_the_first_begins_at_the_start(
    values: list[float], blocks: int
) -> None:
    starts = block_starts(np.array(values), blocks=blocks)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    assert starts[-1] < len(values)
    assert starts.size <= max(2, blocks)


def test_one_endless_reading_leaves_the_others_their_blocks() -> None:
    durations = np.r_[np.full(100, 1.0), 1e6]
    starts = block_starts(durations)
    assert starts.tolist() == [0, 100]


def test_blocks_of_equally_many_readings_have_the_t_interval_of_their_means() -> None:
    values = RNG.normal(1.0, 0.1, 800) + np.repeat(RNG.normal(0.0, 0.1, 8), 100)
    fit = fit_blocks(values, np.arange(0, 800, 100))
    means = values.reshape(8, 100).mean(axis=1)
    assert fit.level == pytest.approx(means.mean())
    assert fit.standard_error == pytest.approx(means.std(ddof=1) / math.sqrt(8))
    assert (fit.degrees_of_freedom, fit.transients) == (7.0, ())
