"""Laws of protocols.DelayMeter, over every implementation."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from benchrigor.machine.run_delay import RunDelay
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


def test_it_waits_for_a_child_and_leaves_it_to_be_waited_for(meter: DelayMeter) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", "pass"])
    told = meter.wait_for(child.pid)()
    assert os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    assert child.wait() == 0
    assert all(type(each) is int and each >= 0 for each in told)


def test_of_what_is_no_child_nothing_is_known_and_nothing_raised(meter: DelayMeter) -> None:
    lost_ns, _ = meter.wait_for(2**30)()
    assert lost_ns == 0
