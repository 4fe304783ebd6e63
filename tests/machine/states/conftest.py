from __future__ import annotations

import shutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace as Told
from typing import Any

import psutil
import pytest

Times = namedtuple("Times", "user nice system idle iowait steal guest")

GB = 10**9


class FakeMachine:
    """What psutil tells of a machine that a test moves; `broken` raises from all of it."""

    def __init__(self) -> None:
        self.cores = [Times(10, 0, 5, 100, 1, 0, 4), Times(20, 0, 5, 100, 1, 0, 0)]
        self.swapped = (0, 0)
        self.disks = {"sda": (1000, 2000), "sda1": (900, 1900), "loop0": (7, 0)}
        self.nets = {"lo": (55, 55), "eth0": (100, 10), "br0": (90, 9)}
        self.parts = [("/dev/sda1", "/", "rw")]
        self.used = {"/": 40.0}

    def work(self, *modes: dict[str, float]) -> None:
        """Let each core spend more time in some modes."""
        self.cores = [
            core._replace(**{mode: getattr(core, mode) + more for mode, more in spent.items()})
            for core, spent in zip(self.cores, modes, strict=True)
        ]

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "cpu_times": lambda **_: self.cores,
            "cpu_count": lambda logical: 4 if logical else 2,
            "cpu_freq": lambda: Told(current=2400.4, max=3600.0),
            "getloadavg": lambda: (0.5, 0.25, 0.125),
            "virtual_memory": lambda: Told(total=8 * GB, available=2 * GB, used=6 * GB),
            "swap_memory": lambda: Told(
                total=GB, used=GB // 4, free=3 * GB // 4, sin=self.swapped[0], sout=self.swapped[1]
            ),
            "disk_partitions": lambda: [
                Told(device=device, mountpoint=place, opts=opts)
                for device, place, opts in self.parts
            ],
            "disk_usage": lambda place: Told(percent=self.used[place], free=GB),
            "disk_io_counters": lambda **_: {
                name: Told(read_bytes=read, write_bytes=written)
                for name, (read, written) in self.disks.items()
            },
            "net_io_counters": lambda **_: {
                name: Told(bytes_recv=received, bytes_sent=sent)
                for name, (received, sent) in self.nets.items()
            },
            "net_if_stats": lambda: {
                "lo": Told(isup=True, speed=0, mtu=65536),
                "eth0": Told(isup=True, speed=1000, mtu=1500),
            },
            "sensors_temperatures": dict,
        }


@pytest.fixture
def psutil_of(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """Put a fake machine behind psutil."""
    machine = FakeMachine()
    for name, function in machine.functions().items():
        monkeypatch.setattr(psutil, name, function, raising=False)
    return machine


@pytest.fixture
def broken_psutil(psutil_of: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all of psutil raise something of its own."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("psutil is broken")

    for name in psutil_of.functions():
        monkeypatch.setattr(psutil, name, broken)


@pytest.fixture
def smartctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Put a shell script in the place of smartctl, and nothing else on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(script: str) -> None:
        path = folder / "smartctl"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    yield put
    shutil.rmtree(folder)
