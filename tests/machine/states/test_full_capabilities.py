"""What made-up machines have."""

from __future__ import annotations

import sys

import pytest

from benchrigor.machine import capabilities

CPU = "sys/devices/system/cpu/cpu{}"
SERVER = {
    f"{CPU.format(0)}/topology/physical_package_id": "0\n",
    f"{CPU.format(1)}/topology/physical_package_id": "1\n",
    f"{CPU.format(0)}/cache/index0/level": "1\n",
    f"{CPU.format(0)}/cache/index0/type": "Data\n",
    f"{CPU.format(0)}/cache/index0/size": "32K\n",
    f"{CPU.format(0)}/cache/index0/shared_cpu_list": "0-1\n",
    "proc/cpuinfo": (
        "processor : 0\nvendor_id : Maker\nmodel name : Fast\nflags : fpu sse2\nbogomips : 5\n\n"
        "processor : 1\nvendor_id : Maker\nmodel name : Slow\nflags : fpu sse2\nbogomips : 5\n"
    ),
    "proc/self/cgroup": "0::/a/b\n",
    "sys/fs/cgroup/a/memory.max": "2000000000\n",
    "sys/fs/cgroup/a/b/memory.max": "max\n",
    "sys/block/vda/device/vendor": "0x1af4\n",
    "sys/block/vda/size": "2000000\n",
    "sys/block/vda/queue/rotational": "0\n",
    "sys/block/sda/device/model": "OLD DISK   \n",
    "sys/block/sda/size": "4000000000\n",
    "sys/block/sda/queue/rotational": "1\n",
    "sys/block/loop0/size": "8\n",
    "sys/class/net/eth0/device/vendor": "0x1af4\n",
}


def texts(root) -> dict[str, str]:
    found = {each.name: each for each in capabilities(full=True, root=root)}
    return {name: each.value or f"- {each.reason}" for name, each in found.items()}


def test_a_server_is_told_as_it_is(psutil_of, write, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = texts(write(SERVER))
    expected = {
        "cpu packages": "2",
        "cpu cores": "2",
        "cpu threads": "4",
        "cpu mhz": "2400, at most 3600",
        "cpu model": "Fast; Slow",
        "cpu vendor": "Maker",
        "cpu flags": "fpu sse2",
        "cpu bogomips": "5",
        "cpu cache L1 data": "32K of cpus 0-1",
        "ram": "8 GB",
        "swap": "1 GB",
        "memory limit": "2 GB",
        "disk sda": "2,048 GB, rotating, OLD DISK",
        "disk vda": "1.02 GB, solid",
        "network eth0": "up, 1000 Mb/s, MTU 1500",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["gpus"].startswith("- reading GPUs needs nvidia-ml-py")
    assert "disk loop0" not in found


def test_each_logical_processor_has_its_place(psutil_of, write) -> None:
    """Of twelve: two packages, each of two dies of three cores that are numbered alike."""
    files = {}
    for number in range(12):
        folder = f"{CPU.format(number)}/topology"
        files[f"{folder}/physical_package_id"] = f"{number // 6}\n"
        files[f"{folder}/die_id"] = f"{number // 3}\n"
        files[f"{folder}/core_id"] = f"{number % 3}\n"
    found = texts(write(files))
    rows = {name: value for name, value in found.items() if name.removeprefix("cpu ").isdigit()}
    assert rows == {
        f"cpu {number}": f"package {number // 6}, die {number // 3}, core {number % 3}, thread 0"
        for number in range(12)
    }


def test_threads_of_a_core_are_numbered_and_a_missing_layout_has_a_reason(
    psutil_of, write, tmp_path
) -> None:
    files = {f"{CPU.format(n)}/topology/physical_package_id": "0\n" for n in range(4)}
    files |= {f"{CPU.format(n)}/topology/core_id": f"{n % 2}\n" for n in range(4)}
    found = texts(write(files))
    assert [found[f"cpu {n}"] for n in range(4)] == [
        f"package 0, core {n % 2}, thread {n // 2}" for n in range(4)
    ]
    assert texts(tmp_path / "bare")["cpu layout"].startswith("- ")


@pytest.mark.parametrize("limit", ["max", str(2**63 - 4096)])
def test_a_memory_without_a_limit_says_none(psutil_of, write, limit) -> None:
    files = {"proc/self/cgroup": "4:memory:/m\n", "sys/fs/cgroup/memory/m/memory.max": limit}
    assert texts(write(files))["memory limit"] == "none"


def test_the_eleven_that_go_into_each_record_stay_as_they_are(psutil_of, write) -> None:
    root = write(SERVER)
    short = capabilities(root=root)
    assert len(short) == 11
    assert capabilities(full=True, root=root)[:11] == short


def test_a_machine_that_shows_nothing_gives_reasons(broken_psutil, tmp_path) -> None:
    found = capabilities(full=True, root=tmp_path)
    assert not any(each.available for each in found)
    assert all(each.value is None and each.reason for each in found)
    names = {each.name for each in found}
    assert {"cpu packages", "cpu cores", "cpu flags", "ram", "swap", "memory limit"} <= names
    assert {"gpus", "disks", "networks", "cpu caches"} <= names


def test_this_machine_is_read_without_an_exception() -> None:
    for each in capabilities(full=True):
        assert each.available == (each.value is not None) == (each.reason == "")
