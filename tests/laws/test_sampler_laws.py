"""Laws of protocols.Sampler, over every implementation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from benchrigor.clocks import WallClock
from benchrigor.machine import StatusReader
from benchrigor.machine.states.gpus import Gpus
from benchrigor.machine.states.sampling import Counters, GuardedSampler
from benchrigor.machine.states.smart_disks import read_disks
from benchrigor.machine.states.status_readers import _SHORT, _SOURCES
from benchrigor.model import Sample
from benchrigor.protocols import Sampler
from benchrigor.testing import FakeSampler

NOWHERE = Path("/nowhere")


def built_in(name: str, root: Path, *, short: bool = False) -> Sampler:
    read, names = (_SHORT if short else _SOURCES)[name]
    counters = Counters(WallClock())
    return GuardedSampler(name, lambda: read(counters, root), names, only=short)


def raising() -> list[Sample]:
    raise ZeroDivisionError


SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "fake": lambda: FakeSampler({"a": 1.0, "b": "text", "c": None}),
    "one that raises": lambda: GuardedSampler("raising", raising, "a"),
    "gpus": lambda: GuardedSampler("gpus", Gpus().sample, "gpus"),
    "disks": lambda: GuardedSampler("disks", lambda: read_disks(5.0), "smart failing disks"),
    **{name: lambda name=name: built_in(name, Path("/")) for name in _SOURCES},
    **{f"short {name}": lambda name=name: built_in(name, Path("/"), short=True) for name in _SHORT},
    **{f"{name} nowhere": lambda name=name: built_in(name, NOWHERE) for name in _SOURCES},
}


@pytest.fixture(params=SAMPLERS.values(), ids=SAMPLERS.keys())
def sampler(request: pytest.FixtureRequest) -> Sampler:
    made: Sampler = request.param()
    return made


def test_it_is_a_sampler_that_always_describes_itself_alike(sampler: Sampler) -> None:
    assert isinstance(sampler, Sampler)
    before = sampler.describe()
    list(sampler.sample())
    assert sampler.describe() == before != ""


def test_what_it_does_not_know_has_a_reason_and_what_it_knows_has_none(sampler: Sampler) -> None:
    for _ in range(3):
        samples = list(sampler.sample())
        assert samples
        for each in samples:
            assert isinstance(each, Sample)
            assert (each.value is None) == (each.reason != "")
        assert len({each.name for each in samples}) == len(samples)


def test_its_names_stay(sampler: Sampler) -> None:
    first = {each.name for each in sampler.sample()}
    assert first <= {each.name for each in sampler.sample()}


def test_no_exception_escapes_whatever_psutil_does(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise psutil.AccessDenied(1)

    for name in ("cpu_times", "virtual_memory", "swap_memory", "disk_partitions", "getloadavg"):
        monkeypatch.setattr(psutil, name, broken)
    for name in ("disk_io_counters", "net_io_counters"):
        monkeypatch.setattr(psutil, name, lambda **_: 5)
    assert list(sampler.sample())


def test_its_cost_is_known(sampler: Sampler) -> None:
    found = StatusReader(samplers=[sampler]).read()
    assert found.cost_s[sampler.describe()] >= 0.0
