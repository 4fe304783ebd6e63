"""Laws of protocols.DelayMeter, Clock and Sampler, over every implementation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from benchrigor.clocks import WallClock
from benchrigor.machine import StatusReader
from benchrigor.machine.delays import RunDelay
from benchrigor.model import Sample
from benchrigor.protocols import Clock, DelayMeter, Sampler
from benchrigor.testing import FakeClock, FakeMeter, FakeSampler

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


# --- Laws of protocols.Clock, over every implementation.


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


# --- Laws of protocols.Sampler, and of a reader of the status with any of them.


class Raising(FakeSampler):
    """Nothing can be read of it."""

    def sample(self) -> Iterator[Sample]:
        raise ZeroDivisionError


FAKE = FakeSampler({"a": 1.0, "b": "text", "c": None})
READERS: dict[str, Callable[[], StatusReader]] = {
    "fake": lambda: StatusReader(samplers=[FAKE]),
    "one that raises": lambda: StatusReader(
        samplers=[Raising({}, name="a"), FakeSampler({"b": 1})]
    ),
    "built in": StatusReader,
    "built in and short": lambda: StatusReader(short=True),
    "built in and nowhere": lambda: StatusReader(root=Path("/nowhere")),
}


@pytest.fixture(params=READERS.values(), ids=READERS.keys())
def reader(request: pytest.FixtureRequest) -> StatusReader:
    made: StatusReader = request.param()
    return made


def test_a_sampler_always_describes_itself_alike() -> None:
    assert isinstance(FAKE, Sampler)
    before = FAKE.describe()
    list(FAKE.sample())
    assert FAKE.describe() == before != ""


def test_what_is_not_known_has_a_reason_and_what_is_known_has_none(reader: StatusReader) -> None:
    names: set[str] = set()
    for _ in range(2):
        found = reader.read()
        assert found.samples
        for each in found.samples:
            assert isinstance(each, Sample)
            assert (each.value is None) == (each.reason != "")
        assert names <= (names := {each.name for each in found.samples})
        assert len(names) == len(found.samples)
        assert found.cost_s
        assert min(found.cost_s.values()) >= 0.0


def test_no_exception_escapes_whatever_psutil_does(
    reader: StatusReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise psutil.AccessDenied(1)

    for name in ("cpu_times", "virtual_memory", "swap_memory", "disk_partitions", "getloadavg"):
        monkeypatch.setattr(psutil, name, broken)
    for name in ("disk_io_counters", "net_io_counters"):
        monkeypatch.setattr(psutil, name, lambda **_: 5)
    assert reader.read().samples
