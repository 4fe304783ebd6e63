"""Laws of protocols.Sampler, and of a reader of the status with any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from benchrigor.machine import StatusReader
from benchrigor.model import Sample
from benchrigor.protocols import Sampler
from benchrigor.testing import FakeSampler


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
