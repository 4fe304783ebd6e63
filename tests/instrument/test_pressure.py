"""Pressure of the control group, else of the host."""

from __future__ import annotations

import pytest

from benchrigor.instrument.kernel_files import Unavailable
from benchrigor.instrument.pressure import read_pressure

HOST = {
    f"proc/pressure/{resource}": (
        f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
    )
    for resource, total in (("cpu", 1_000_000), ("io", 2_000_000), ("memory", 3))
}


def test_the_control_group_comes_first(write, quiet) -> None:
    folder, totals = read_pressure(root=write(HOST))
    assert folder == str(quiet / "sys/fs/cgroup/bench")
    assert totals == {"pressure_cpu_s": 0.0, "pressure_io_s": 0.0, "pressure_memory_s": 0.0}


def test_the_host_stands_in(write) -> None:
    _, totals = read_pressure(root=write({**HOST, "proc/self/cgroup": "0::/\n"}))
    assert totals["pressure_cpu_s"] == 1.0
    assert totals["pressure_io_s"] == 2.0
    assert totals["pressure_memory_full_s"] == 5e-6


def test_a_kernel_without_says_so(write) -> None:
    with pytest.raises(Unavailable, match="pressure/cpu: No such file"):
        read_pressure(root=write({"proc/self/cgroup": "0::/\n"}))
