"""Laws of protocols.DelayMeter, over every implementation."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from benchrigor.instrument.run_delay import RunDelay
from benchrigor.protocols import DelayMeter
from benchrigor.testing import FakeClock, FakeMeter

METERS = {
    "scheduler statistics": RunDelay,
    "scheduler statistics that are not there": lambda: RunDelay(root=Path("/nowhere")),
    "fake": lambda: FakeMeter(FakeClock()),
}


@pytest.fixture(params=METERS.values(), ids=METERS.keys())
def meter(request: pytest.FixtureRequest) -> DelayMeter:
    made: DelayMeter = request.param()
    return made


def test_it_is_a_meter(meter: DelayMeter) -> None:
    assert isinstance(meter, DelayMeter)


def test_it_never_goes_back_and_tells_whole_nanoseconds(meter: DelayMeter) -> None:
    told = [meter.delay_ns() for _ in range(2_000)]
    assert all(type(each) is int and each >= 0 for each in told)
    assert all(earlier <= later for earlier, later in pairwise(told))


def test_what_follows_a_process_ends_and_says_the_same_again(meter: DelayMeter) -> None:
    for pid in (os.getpid(), 2**30):
        stop = meter.follow(pid)
        lost_ns, known_ns = stop()
        assert all(type(each) is int and each >= 0 for each in (lost_ns, known_ns))
        assert stop() == (lost_ns, known_ns)
