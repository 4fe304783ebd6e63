"""What comes in and goes out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from benchrigor.queues.watching.period_block import PeriodBlock
from benchrigor.queues.watching.stage_flows import StageFlows
from benchrigor.stats.estimators.rate import estimate_rate

RNG = np.random.default_rng(75)


def filled(
    periods: int, *, arrived: npt.ArrayLike = 10.0, given: npt.ArrayLike = 5.0
) -> StageFlows:
    flows = StageFlows(1, 0.95)
    block = PeriodBlock.of(
        start_s=0.1 * np.arange(periods),
        period_s=0.1,
        items=np.full(periods, 10.0),
        arrived=[arrived],
        given=given,
    )
    for start in range(0, periods, 7):
        flows.add(block.part(slice(start, start + 7)))
    return flows


def test_few_periods_are_kept_as_they_are() -> None:
    counts = RNG.poisson(20.0, 100)
    found = filled(100, arrived=counts).arrivals(0)
    assert found == estimate_rate(counts / 0.1, weights=np.full(100, 0.1))


def test_only_what_came_since_counts() -> None:
    flows = filled(100, arrived=np.where(np.arange(100) < 50, 10.0, 30.0))
    found = flows.arrivals(0, since_s=5.0)
    assert found is not None
    assert found.value == pytest.approx(300.0)


def test_the_ratio_is_items_in_over_items_out() -> None:
    found = filled(60, given=np.arange(60) % 2).ratio()
    assert found is not None
    assert found.value == pytest.approx(20.0)


@pytest.mark.parametrize("periods", [0, 1])
def test_too_little_tells_nothing(periods: int) -> None:
    flows = filled(periods)
    assert flows.arrivals(0) is None
    assert flows.ratio() is None


def test_what_nobody_counted_is_not_known() -> None:
    flows = filled(40, arrived=np.nan, given=np.nan)
    assert flows.arrivals(0) is None
    assert flows.ratio() is None
