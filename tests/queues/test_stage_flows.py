"""What comes in and goes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchrigor.queues.stage_flows import StageFlows
from benchrigor.queues.stage_reader import Period
from benchrigor.stats.rates import estimate_rate

RNG = np.random.default_rng(75)


def period(number: int, arrived: int | None = 10, given: int | None = 5) -> Period:
    return Period(start_s=number * 0.1, period_s=0.1, items=10, arrived=(arrived,), given=given)


def filled(periods: int, make: Callable[[int], Period] = period) -> StageFlows:
    flows = StageFlows(0.95)
    for number in range(periods):
        flows.add(make(number))
    return flows


def test_few_periods_are_kept_as_they_are() -> None:
    counts = RNG.poisson(20.0, 100).tolist()
    found = filled(100, lambda n: period(n, counts[n])).arrivals(0)
    assert found == estimate_rate([each / 0.1 for each in counts], weights=np.full(100, 0.1))


def test_only_what_came_since_counts() -> None:
    flows = filled(100, lambda n: period(n, 10 if n < 50 else 30))
    found = flows.arrivals(0, since_s=5.0)
    assert found is not None
    assert found.value == pytest.approx(300.0)


def test_the_ratio_is_items_in_over_items_out() -> None:
    found = filled(60, lambda n: period(n, given=n % 2)).ratio()
    assert found is not None
    assert found.value == pytest.approx(20.0)


@pytest.mark.parametrize("periods", [0, 1])
def test_too_little_tells_nothing(periods: int) -> None:
    flows = filled(periods)
    assert flows.arrivals(0) is None
    assert flows.ratio() is None


def test_what_nobody_counted_is_not_known() -> None:
    flows = filled(40, lambda n: period(n, arrived=None, given=None))
    assert flows.arrivals(0) is None
    assert flows.ratio() is None
