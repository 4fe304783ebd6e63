"""The status of machines that are known because they are made up."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psutil
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.machine import StatusReader, status
from benchrigor.model import Status
from benchrigor.testing import FakeClock, FakeSampler

SECOND = 1_000_000_000
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0 total={}\n"
HOST = {
    "proc/self/cgroup": "0::/bench\n",
    "sys/fs/cgroup/bench/cpu.stat": "throttled_usec 0\n",
    "proc/thread-self/schedstat": "1000 0 1\n",
    "sys/fs/cgroup/bench/cpu.pressure": "of the group, not of the host",
    "proc/pressure/cpu": PRESSURE.format(0, 0),
    "proc/pressure/io": PRESSURE.format(0, 0),
    "proc/pressure/memory": PRESSURE.format(0, 0),
    "sys/block/sda/device/model": "DISK",
    "sys/class/net/eth0/device/vendor": "0x1",
}
SHORT = {
    *("cpu busy", "steal", "load 1 min", "memory available", "swap in", "swap out"),
    *("pressure cpu some", "pressure io some", "pressure io full", "pressure memory some"),
    *("pressure memory full", "run delay", "throttled"),
}
RATES = {
    *("cpu busy", "cpu busiest core", "cpu user", "cpu system", "cpu idle", "steal"),
    *("swap in", "swap out", "run delay", "throttled", "disk read", "disk written"),
    *("network received", "network sent", "pressure cpu some", "pressure io some"),
    *("pressure io full", "pressure memory some", "pressure memory full"),
}


@pytest.fixture
def reader(psutil_of, write, clock: FakeClock) -> StatusReader:
    return StatusReader(root=write(HOST), clock=clock)


def known(found: Status) -> dict[str, float | str]:
    return {each.name: each.value for each in found.samples if each.value is not None}


def test_a_first_reading_has_no_rates_and_says_so(reader: StatusReader) -> None:
    found = reader.read()
    assert found.span_s is None
    first = {each.name for each in found.samples if each.reason == "first reading"}
    assert first >= RATES
    assert known(found) == {
        "load 1 min": 0.5,
        "load 5 min": 0.25,
        "load 15 min": 0.125,
        "memory available": 2e9,
        "memory available share": 25.0,
        "memory used": 6e9,
        "memory total": 8e9,
        "swap used": 0.25e9,
        "swap free": 0.75e9,
        "storage used": 40.0,
        "storage free": 1e9,
        "storage fullest": "/",
        "storage / free": 1e9,
    }


def test_rates_are_of_what_happened_since(reader, psutil_of, write, clock) -> None:
    reader.read()
    clock.advance(2 * SECOND)
    psutil_of.work({"user": 1.0, "guest": 1.0, "system": 1.0}, {"idle": 1.5, "steal": 0.5})
    psutil_of.swapped = (8192, 4096)
    psutil_of.disks = {"sda": (3000, 2000), "sda1": (2900, 1900), "loop0": (9, 0)}
    psutil_of.nets = {"lo": (99, 99), "eth0": (300, 20), "br0": (290, 19)}
    write(
        {
            "sys/fs/cgroup/bench/cpu.stat": "throttled_usec 500000\n",
            "proc/thread-self/schedstat": "1000 100000000 1\n",
            "proc/pressure/cpu": PRESSURE.format(200_000, 0),
            "proc/pressure/memory": PRESSURE.format(0, 1_000_000),
        }
    )
    found = reader.read()
    assert found.span_s == 2.0
    expected = {
        "cpu busy": 50.0,
        "cpu busiest core": 100.0,
        "cpu core 0": 100.0,
        "cpu core 1": 0.0,
        "cpu user": 25.0,
        "cpu system": 25.0,
        "cpu idle": 37.5,
        "cpu nice": 0.0,
        "steal": 12.5,
        "swap in": 4096.0,
        "swap out": 2048.0,
        "throttled": 25.0,
        "run delay": 5.0,
        "pressure cpu some": 10.0,
        "pressure io some": 0.0,
        "pressure memory full": 50.0,
        "disk read": 1000.0,
        "disk written": 0.0,
        "disk sda read": 1000.0,
        "network received": 100.0,
        "network sent": 5.0,
        "network eth0 received": 100.0,
    }
    values = known(found)
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert not {"disk sda1 read", "disk loop0 read", "network br0 sent", "cpu guest"} & set(values)


def test_a_short_status_holds_what_disturbs_a_measurement(psutil_of, write, clock) -> None:
    reader = StatusReader(root=write(HOST), clock=clock, short=True)
    assert {each.name for each in reader.read().samples} == SHORT
    clock.advance(SECOND)
    psutil_of.work({"user": 1.0}, {"idle": 1.0})
    assert set(known(reader.read())) == SHORT


def test_where_psutil_is_broken_every_name_has_a_reason(broken_psutil, tmp_path, clock) -> None:
    reader = StatusReader(root=tmp_path, clock=clock)
    for _ in range(2):
        found = reader.read()
        assert known(found) == {}
        reasons = {each.name: each.reason for each in found.samples}
        assert "psutil is broken" in reasons["cpu busy"]
        assert "psutil is broken" in reasons["storage used"]
        assert reasons["throttled"].startswith(str(tmp_path))
        assert all(reasons.values())
        clock.advance(SECOND)


@pytest.mark.parametrize("text", ["", "\x00?!", "throttled_usec", "some total=x", "1 2"])
def test_files_cut_off_or_of_another_kernel_give_reasons(psutil_of, write, clock, text) -> None:
    reader = StatusReader(root=write(dict.fromkeys(HOST, text)), clock=clock)
    for _ in range(2):
        found = reader.read()
        clock.advance(SECOND)
    assert found.value("throttled") is None
    assert found.value("pressure cpu some") is None
    assert all(each.reason for each in found.samples if each.value is None)
    assert found.value("load 1 min") == 0.5


def test_a_reading_that_failed_is_made_up_for_by_the_next(reader, psutil_of, clock, monkeypatch):
    reader.read()
    counters = psutil.net_io_counters
    clock.advance(SECOND)
    with monkeypatch.context() as patch:
        patch.setattr(psutil, "net_io_counters", lambda **_: None)
        assert reader.read().value("network sent") is None
    assert psutil.net_io_counters is counters
    psutil_of.nets = {"eth0": (100, 30)}
    clock.advance(SECOND)
    assert reader.read().value("network sent") == 10.0  # over both seconds


def test_counters_that_go_back_give_no_rate_and_the_others_do(reader, psutil_of, clock) -> None:
    reader.read()
    psutil_of.disks = {"sda": (0, 3000)}
    psutil_of.work({"user": 1.0, "iowait": -0.5}, {"idle": 1.0})
    clock.advance(SECOND)
    found = reader.read()
    assert found.value("disk read") is None
    assert found.value("disk written") == 1000.0
    assert found.value("cpu busy") == 50.0
    assert found.value("cpu iowait") == 0.0


def test_without_a_tick_the_processors_are_not_known(reader, clock) -> None:
    reader.read()
    clock.advance(SECOND)
    found = {each.name: each for each in reader.read().samples}
    assert found["cpu busy"].reason == "no tick of the processors since the last reading"


def test_a_file_system_that_is_never_written_to_is_not_the_fullest(
    reader, psutil_of, tmp_path
) -> None:
    psutil_of.parts += [("image", str(tmp_path), "ro,nodev")]
    psutil_of.used[str(tmp_path)] = 100.0
    assert reader.read().value("storage fullest") == "/"


def test_where_no_interface_has_a_device_all_but_the_loopback_count(
    psutil_of, tmp_path, clock
) -> None:
    reader = StatusReader(root=tmp_path, clock=clock)
    reader.read()
    psutil_of.nets = {"lo": (99, 99), "eth0": (300, 20), "br0": (290, 19)}
    clock.advance(SECOND)
    assert reader.read().value("network sent") == 20.0


def test_a_container_without_partitions_has_its_root(reader, psutil_of) -> None:
    psutil_of.parts = [("/dev/sda1", "/etc/hosts", "rw")]
    assert reader.read().value("storage fullest") == "/"


def test_a_file_system_that_cannot_be_asked_is_left_out(
    reader, psutil_of, tmp_path, monkeypatch
) -> None:
    usage = psutil.disk_usage

    def denied(place: str) -> object:
        if place == str(tmp_path):
            raise PermissionError(place)
        return usage(place)

    psutil_of.parts += [("other", str(tmp_path), "rw")]
    monkeypatch.setattr(psutil, "disk_usage", denied)
    assert reader.read().value("storage fullest") == "/"


def test_a_place_that_may_not_be_entered_is_left_out(
    reader, psutil_of, tmp_path, monkeypatch
) -> None:
    stat = os.stat

    def denied(path: object, **how: object) -> os.stat_result:
        if str(path) == str(tmp_path / "mount"):
            raise PermissionError(path)
        return stat(path, **how)  # type: ignore[arg-type]

    psutil_of.parts += [("other", str(tmp_path / "mount"), "rw")]
    monkeypatch.setattr(os, "stat", denied)
    assert reader.read().value("storage fullest") == "/"


@pytest.mark.skipif(not psutil.LINUX, reason="files of Linux")
@pytest.mark.parametrize(("text", "why"), [(None, "No such file"), ("pgpgin 1\n", "not in it")])
def test_where_the_kernel_does_not_count_what_is_swapped_that_is_not_known(
    write, clock, monkeypatch, text: str | None, why: str
) -> None:
    root = write({"proc/meminfo": "SwapTotal: 8 kB\nSwapFree: 6 kB\n"})
    write({} if text is None else {"proc/vmstat": text})
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(root / "proc"))
    reader = StatusReader(root=root, clock=clock)
    reader.read()
    clock.advance(SECOND)
    found = {each.name: each for each in reader.read().samples}
    assert (found["swap used"].value, found["swap free"].value) == (2048, 6144)
    assert found["swap in"].value is found["swap out"].value is None
    assert why in found["swap in"].reason
    assert why in found["swap out"].reason


def test_the_run_delay_of_another_thread_is_a_first_reading(reader, psutil_of, clock) -> None:
    reader.read()
    clock.advance(SECOND)
    found: list[Status] = []
    thread = threading.Thread(target=lambda: found.append(reader.read()))
    thread.start()
    thread.join()
    assert next(s for s in found[0].samples if s.name == "run delay").reason == "first reading"


def test_samplers_of_others_are_asked_in_place_of_those_built_in(clock) -> None:
    class Broken:
        def describe(self) -> str:
            return "queue"

        def sample(self) -> list:
            raise OSError("gone")

    fake = FakeSampler({"queue length": 3.0}, clock=clock, cost_s=0.5)
    found = StatusReader(samplers=[fake, Broken()], clock=clock).read()
    assert found.value("queue length") == 3.0
    assert found.value("queue") is None
    assert found.cost_s == {"fake": 0.5, "queue": 0.0}


def test_a_status_waits_between_two_readings(psutil_of, write) -> None:
    assert status(interval_s=0.02, root=write(HOST)).span_s >= 0.02
    for wrong in (-1.0, float("nan"), "1"):
        with pytest.raises(InvalidInput, match="interval_s"):
            status(interval_s=wrong)  # type: ignore[arg-type]


def test_this_machine_is_read_without_an_exception(tmp_path: Path) -> None:
    found = status(interval_s=0.02)
    assert found.value("memory total") > 0
    assert all((each.value is None) == bool(each.reason) for each in found.samples)
    assert len({each.name for each in found.samples}) == len(found.samples)
