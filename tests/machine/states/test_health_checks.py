"""Whether made-up machines are sound."""

from __future__ import annotations

import errno
from types import SimpleNamespace as Told

import psutil
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.machine import health
from benchrigor.machine.states import health_checks

CPUS = "sys/devices/system/cpu"
EDAC = "sys/devices/system/edac/mc"
ALWAYS = {
    *("temperature cpu", "temperature margin", "temperature nearest limit", "smart failing disks"),
    *("throttle count core", "throttle count package", "clock synchronised", "clock error"),
    *("memory errors corrected", "memory errors uncorrected"),
}


def sensor(label: str, current: float, high: float | None = None, critical: float | None = None):
    return Told(label=label, current=current, high=high, critical=critical)


@pytest.fixture(autouse=True)
def _no_smartctl(smartctl) -> None:
    """Keep the real one off the path."""


def warm(monkeypatch: pytest.MonkeyPatch, chips: dict[str, list]) -> None:
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: chips, raising=False)


def value(found, name: str) -> object:
    return {each.name: each.value or each.reason for each in found.samples}[name]


def test_the_hottest_of_each_chip_and_core_is_told_with_its_limit(monkeypatch, tmp_path) -> None:
    nvme = [sensor("Composite", 40.0, 65261.8, 85.0), sensor("Composite", 55.0, 65261.8, 85.0)]
    cores = [sensor("Core 0", 60.0, 80.0, 100.0), sensor("Core 1", 72.0, 80.0, 100.0)]
    warm(monkeypatch, {"coretemp": cores, "nvme": nvme, "acpitz": [sensor("", 30.0)]})
    found = health(root=tmp_path)
    assert value(found, "temperature coretemp Core 1") == 72.0
    assert value(found, "temperature coretemp Core 1 limit") == 100.0
    assert value(found, "temperature nvme Composite") == 55.0
    assert value(found, "temperature acpitz") == 30.0
    assert value(found, "temperature cpu") == 72.0
    assert value(found, "temperature margin") == 28.0
    assert value(found, "temperature nearest limit") == "temperature coretemp Core 1"


@pytest.mark.parametrize(
    ("chip", "limits", "margin"),
    [
        ("k10temp", (None, None), 5.0),
        ("k10temp", (100.0, None), 10.0),
        ("coretemp", (80.0, 0.0), -10.0),
        ("nct6775", (80.0, None), "no sensor states a critical limit"),
        ("nvme", (None, 65261.8), "no sensor states a critical limit"),
    ],
)
def test_limits_of_sensors_that_are_not_connected_do_not_count(
    monkeypatch, tmp_path, chip, limits, margin
) -> None:
    warm(monkeypatch, {chip: [sensor("x", 90.0, *limits)]})
    assert value(health(root=tmp_path), "temperature margin") == margin


def test_counts_of_throttling_and_of_memory_errors_are_read(write) -> None:
    root = write(
        {
            f"{CPUS}/cpu0/thermal_throttle/core_throttle_count": "3\n",
            f"{CPUS}/cpu1/thermal_throttle/core_throttle_count": "7\n",
            f"{CPUS}/cpu0/thermal_throttle/package_throttle_count": "9\n",
            f"{CPUS}/cpu1/thermal_throttle/package_throttle_count": "9\n",
            f"{EDAC}/mc0/ce_count": "2\n",
            f"{EDAC}/mc1/ce_count": "1\n",
            f"{EDAC}/mc0/ue_count": "torn",
        }
    )
    found = health(root=root)
    assert value(found, "throttle count core") == 7
    assert value(found, "throttle count package") == 9
    assert value(found, "memory errors corrected") == 3
    assert "torn" in str(value(found, "memory errors uncorrected"))


@pytest.mark.parametrize(
    ("state", "told", "error_s"),
    [((True, 0.002), "yes", 0.002), ((False, 16.0), "no", "the clock is not synchronised")],
)
def test_the_kernel_knows_whether_its_clock_is_synchronised(
    monkeypatch, tmp_path, state, told, error_s
) -> None:
    monkeypatch.setattr(health_checks, "kernel_clock", lambda: state)
    found = health(root=tmp_path)
    assert value(found, "clock synchronised") == told
    assert value(found, "clock error") == error_s


def test_where_the_kernel_may_not_be_asked_a_mark_of_systemd_tells(monkeypatch, write) -> None:
    def forbidden() -> tuple[bool, float]:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(health_checks, "kernel_clock", forbidden)
    root = write({"proc/x": ""})
    assert "adjtimex: [Errno 1]" in str(value(health(root=root), "clock synchronised"))
    write({"run/systemd/timesync/synchronized": ""})
    assert value(health(root=root), "clock synchronised") == "yes"


def test_a_machine_that_shows_nothing_gives_a_reason_for_each(
    monkeypatch, broken_psutil, tmp_path
) -> None:
    monkeypatch.setattr(health_checks, "kernel_clock", lambda: 1 / 0)
    found = health(root=tmp_path)
    assert {each.name for each in found.samples} == ALWAYS
    assert all(each.value is None and each.reason for each in found.samples)
    assert set(found.cost_s) == {
        *("temperatures", "throttle counts", "disks", "memory errors", "clock")
    }


def test_a_system_without_sensors_says_so(monkeypatch, tmp_path) -> None:
    monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
    reason = value(health(root=tmp_path), "temperature margin")
    assert reason == "psutil reads no temperatures on this system"


def test_this_machine_is_read_without_an_exception() -> None:
    found = health()
    assert {each.name for each in found.samples} >= ALWAYS
    assert found.span_s is None


def test_a_timeout_must_be_a_number_of_seconds() -> None:
    with pytest.raises(InvalidInput, match="timeout_s is 0"):
        health(timeout_s=0)
