import math
import statistics
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.instrument.probing.event_sums import NOTHING, add_events, merge_sums

DURATIONS = st.lists(st.integers(0, 10**13), min_size=1, max_size=30)


@pytest.mark.slow
@given(st.lists(DURATIONS, min_size=1, max_size=5), st.lists(DURATIONS, max_size=5))
def test_sums_are_those_of_all_values_however_they_came(one: list, other: list) -> None:
    sums = merge_sums(reduce(add_events, one, NOTHING), reduce(add_events, other, NOTHING))
    values = [value for some in one + other for value in some]
    count, total, least, greatest, squares = sums
    assert (count, total) == (len(values), sum(values))
    assert (least, greatest) == (min(values), max(values))
    assert squares == pytest.approx(statistics.pvariance(values) * len(values), rel=1e-9, abs=1e-3)


def test_digits_are_not_lost_to_a_large_mean() -> None:
    far = 10**15
    sums = reduce(add_events, ([far + each % 3 for each in range(64)] for _ in range(100)), NOTHING)
    assert sums[4] / sums[0] == pytest.approx(statistics.pvariance([0, 1, 2]), rel=0.02)


def test_nothing_has_no_extremes() -> None:
    assert merge_sums(NOTHING, NOTHING) == (0, 0, math.inf, -math.inf, 0.0)
