"""Laws of protocols.Clock, over every implementation."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchrigor.clocks import WallClock
from benchrigor.protocols import Clock
from benchrigor.testing import FakeClock

CLOCKS = {
    "wall": WallClock,
    "fake": FakeClock,
    "fake that costs": lambda: FakeClock(cost_ns=40),
    "fake that is coarse": lambda: FakeClock(cost_ns=40, resolution_ns=1_000),
}
SLEEP_NS = 2_000_000


@pytest.fixture(params=CLOCKS.values(), ids=CLOCKS.keys())
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


def test_it_is_a_clock(clock: Clock) -> None:
    assert isinstance(clock, Clock)


def test_it_never_goes_back(clock: Clock) -> None:
    reads = [clock.now_ns() for _ in range(2_000)]
    assert all(earlier <= later for earlier, later in pairwise(reads))


def test_it_shows_whole_nanoseconds_and_a_step_of_at_least_one(clock: Clock) -> None:
    assert type(clock.now_ns()) is int
    assert type(clock.resolution_ns) is int
    assert clock.resolution_ns >= 1


def test_sleeping_advances_it(clock: Clock) -> None:
    start = clock.now_ns()
    clock.sleep_ns(SLEEP_NS)
    assert clock.now_ns() - start >= SLEEP_NS
