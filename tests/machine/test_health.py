"""Whether made-up machines are sound; ``texts/machine.md`` has the reasons where nobody knows."""

from __future__ import annotations

import ctypes
import errno
import json
from pathlib import Path
from types import SimpleNamespace as Told

import psutil
import pytest
from tests.machine.made_up import CPUS, SCAN, VERSION, disks, kernel_clock

from benchrigor.machine import health

EDAC = "sys/devices/system/edac/mc"
ALWAYS = {
    *("temperature cpu", "temperature margin", "temperature nearest limit", "smart failing disks"),
    *("throttle count core", "throttle count package", "clock synchronised", "clock error"),
    *("memory errors corrected", "memory errors uncorrected"),
}
FAILING = "smart failing disks"
ATA = {
    **VERSION,
    "smart_status": {"passed": True},
    "temperature": {"current": 33},
    "power_on_time": {"hours": 1200},
    "ata_smart_attributes": {
        "table": [
            {"id": 5, "raw": {"value": 2}},
            {"id": 9, "raw": {"value": 1200}},
            {"id": 199, "raw": {"value": 0}},
        ]
    },
}
NVME = {
    **VERSION,
    "smart_status": {"passed": False},
    "nvme_smart_health_information_log": {"percentage_used": 101, "media_errors": 3},
}


@pytest.fixture(autouse=True)
def _no_smartctl(smartctl) -> None:
    """Keep the real one off the path."""


def sensor(label: str, current: float, high: float | None = None, critical: float | None = None):
    return Told(label=label, current=current, high=high, critical=critical)


def warm(monkeypatch: pytest.MonkeyPatch, chips: dict[str, list]) -> None:
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: chips, raising=False)


def known(root: Path, **given: float) -> dict[str, object]:
    found = health(root=root, **given)
    return {each.name: each.value for each in found.samples if each.value is not None}


def test_the_hottest_of_each_chip_and_core_is_told_with_its_limit(monkeypatch, tmp_path) -> None:
    nvme = [sensor("Composite", 40.0, 65261.8, 85.0), sensor("Composite", 55.0, 65261.8, 85.0)]
    cores = [sensor("Core 0", 60.0, 80.0, 100.0), sensor("Core 1", 72.0, 80.0, 100.0)]
    warm(monkeypatch, {"coretemp": cores, "nvme": nvme, "acpitz": [sensor("", 30.0)]})
    found = known(tmp_path)
    expected = {
        "temperature coretemp Core 1": 72.0,
        "temperature coretemp Core 1 limit": 100.0,
        "temperature nvme Composite": 55.0,
        "temperature acpitz": 30.0,
        "temperature cpu": 72.0,
        "temperature margin": 28.0,
        "temperature nearest limit": "temperature coretemp Core 1",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("chip", "limits", "margin"),
    [
        ("k10temp", (None, None), 5.0),
        ("k10temp", (100.0, None), 10.0),
        ("coretemp", (80.0, 0.0), -10.0),
        ("nct6775", (80.0, None), None),
        ("nvme", (None, 65261.8), None),
    ],
)
def test_limits_of_sensors_that_are_not_connected_do_not_count(
    monkeypatch, tmp_path, chip, limits, margin
) -> None:
    warm(monkeypatch, {chip: [sensor("x", 90.0, *limits)]})
    assert known(tmp_path).get("temperature margin") == margin


def test_a_system_without_sensors_has_no_margin(monkeypatch, tmp_path) -> None:
    monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
    assert "temperature margin" not in known(tmp_path)


def test_counts_of_throttling_and_of_memory_errors_are_read(write) -> None:
    found = known(
        write(
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
    )
    expected = {
        "throttle count core": 7,
        "throttle count package": 9,
        "memory errors corrected": 3,
        "memory errors uncorrected": None,
    }
    assert {name: found.get(name) for name in expected} == expected


def test_where_the_kernel_may_not_be_asked_a_mark_of_systemd_tells(monkeypatch, write) -> None:
    monkeypatch.setattr(ctypes, "CDLL", kernel_clock(errno=errno.EPERM))
    root = write({"run/systemd/timesync/synchronized": ""})
    assert known(root)["clock synchronised"] == "yes"


def test_this_machine_is_read_without_an_exception() -> None:
    found = health()
    assert {each.name for each in found.samples} >= ALWAYS
    assert found.span_s is None
    assert found.cost_s.keys() == {
        *("temperatures", "throttle counts", "disks", "memory errors", "clock")
    }


def test_what_each_disk_tells_is_kept(smartctl, tmp_path) -> None:
    devices = [*SCAN["devices"], {"name": "/dev/nvme0", "type": "nvme"}]
    smartctl(disks({**VERSION, "devices": devices}, sda=ATA, nvme0=NVME))
    expected = {
        "smart sda": "passed",
        "smart sda temperature": 33.0,
        "smart sda power on": 1200.0,
        "smart sda reallocated sectors": 2.0,
        "smart sda crc errors": 0.0,
        "smart nvme0": "failing",
        "smart nvme0 wear": 101.0,
        "smart nvme0 media errors": 3.0,
        FAILING: 1,
    }
    assert {name: each for name, each in known(tmp_path).items() if "smart" in name} == expected


def test_a_disk_behind_a_controller_is_asked_by_its_type(smartctl, tmp_path) -> None:
    device = {"name": "/dev/bus/0", "type": "megaraid,3"}
    smartctl(
        f"case \"$*\" in\n*--scan) echo '{json.dumps({**VERSION, 'devices': [device]})}';;\n"
        f"*--device=megaraid,3?/dev/bus/0) echo '{json.dumps(ATA)}';;\nesac"
    )
    assert "passed" in known(tmp_path).values()


def test_a_disk_that_hangs_is_killed_and_leaves_the_others(smartctl, tmp_path) -> None:
    devices = [{"name": "/dev/sdb", "type": "scsi"}, *SCAN["devices"]]
    smartctl(disks({**VERSION, "devices": devices}, sda=ATA, other="exec /bin/sleep 60"))
    found = known(tmp_path, timeout_s=1.0)
    assert "smart sdb" not in found
    assert found["smart sda"] == "passed"
    assert found[FAILING] == 0


def test_a_smartctl_that_is_no_program_leaves_the_rest(smartctl, tmp_path) -> None:
    smartctl("")
    (tmp_path / "bin" / "smartctl").write_bytes(b"\x7fELF nonsense")
    assert FAILING not in known(tmp_path)
