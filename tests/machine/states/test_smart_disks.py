"""What disks tell through a smartctl that is a shell script."""

from __future__ import annotations

import json

import pytest

from benchrigor.machine import health

VERSION = {"smartctl": {"version": [7, 4]}}
SCAN = {**VERSION, "devices": [{"name": "/dev/sda", "type": "scsi"}]}
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


def script(scan: object, *, other: str = "", **disks: object) -> str:
    """Return a smartctl that tells of these disks, by the end of their names."""
    cases = "\n".join(f"*{name}) echo '{json.dumps(told)}';;" for name, told in disks.items())
    return (
        f"case \"$*\" in\n*--scan) echo '{json.dumps(scan)}';;\n{cases}\n*) {other or ':'};;\nesac"
    )


def disks_of(tmp_path, timeout_s: float = 5.0) -> dict[str, object]:
    found = health(root=tmp_path, timeout_s=timeout_s)
    return {
        each.name: each.value if each.value is not None else each.reason
        for each in found.samples
        if each.name.startswith("smart")
    }


def test_what_each_disk_tells_is_kept(smartctl, tmp_path) -> None:
    devices = [*SCAN["devices"], {"name": "/dev/nvme0", "type": "nvme"}]
    smartctl(script({**VERSION, "devices": devices}, sda=ATA, nvme0=NVME))
    assert disks_of(tmp_path) == {
        "smart sda": "passed",
        "smart sda temperature": 33.0,
        "smart sda power on": 1200.0,
        "smart sda reallocated sectors": 2.0,
        "smart sda crc errors": 0.0,
        "smart nvme0": "failing",
        "smart nvme0 wear": 101.0,
        "smart nvme0 media errors": 3.0,
        "smart failing disks": 1,
    }


def test_a_disk_behind_a_controller_is_asked_by_its_type(smartctl, tmp_path) -> None:
    device = {"name": "/dev/bus/0", "type": "megaraid,3"}
    args = "*--device=megaraid,3?/dev/bus/0)"
    smartctl(
        f"case \"$*\" in\n*--scan) echo '{json.dumps({**VERSION, 'devices': [device]})}';;\n"
        f"{args} echo '{json.dumps(ATA)}';;\nesac"
    )
    assert disks_of(tmp_path)["smart bus/0 megaraid,3"] == "passed"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("echo '=======> UNRECOGNIZED OPTION: json'; exit 1", "UNRECOGNIZED OPTION"),
        ('echo \'{"smartctl": {"version": [6, 6]}}\'', "is of version 6, expected 7 or newer"),
        ("echo '[1, 2]'", "wrote '[1, 2]', expected JSON: version 7 or newer is needed"),
        ("printf '\\377\\000{'", "expected JSON"),
        ("exit 4", "wrote ''"),
        (f"echo '{json.dumps({**VERSION, 'devices': 5})}'", "cannot be read: TypeError"),
        (f"echo '{json.dumps(VERSION)}'", "finds no disk"),
        ("exec /bin/sleep 60", "did not answer in 0.2 s: killed"),
    ],
)
def test_a_smartctl_that_hangs_is_old_or_talks_rubbish_is_the_reason(
    smartctl, tmp_path, told, reason
) -> None:
    smartctl(told)
    found = disks_of(tmp_path, 0.2 if "sleep" in told else 5.0)
    assert reason in str(found["smart failing disks"])


@pytest.mark.slow
def test_a_disk_that_hangs_is_killed_and_leaves_the_others(smartctl, tmp_path) -> None:
    devices = [{"name": "/dev/sdb", "type": "scsi"}, *SCAN["devices"]]
    hanging = script({**VERSION, "devices": devices}, sda=ATA, other="exec /bin/sleep 60")
    smartctl(hanging)
    found = disks_of(tmp_path, 1.0)
    assert found["smart sdb"] == "smartctl did not answer in 1 s: killed"
    assert found["smart sda"] == "passed"
    assert found["smart failing disks"] == 0


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (
            {"smartctl": {"version": [7, 4], "messages": [{"string": "Permission denied"}]}},
            "Permission denied",
        ),
        (VERSION, "the disk does not tell"),
        ({**VERSION, "smart_status": 5}, "cannot be read: AttributeError"),
    ],
)
def test_a_disk_that_tells_nothing_has_the_reason(smartctl, tmp_path, told, reason) -> None:
    smartctl(script(SCAN, sda=told))
    found = disks_of(tmp_path)
    assert reason in str(found["smart sda"])
    assert found["smart failing disks"] == "no disk tells whether it is failing"


def test_without_smartctl_the_reason_says_what_to_install(smartctl, tmp_path) -> None:
    assert "smartmontools" in str(disks_of(tmp_path)["smart failing disks"])


def test_a_smartctl_that_is_no_program_is_a_reason(smartctl, tmp_path) -> None:
    smartctl("")
    (tmp_path / "bin" / "smartctl").write_bytes(b"\x7fELF nonsense")
    assert "cannot be read: OSError" in str(disks_of(tmp_path)["smart failing disks"])
