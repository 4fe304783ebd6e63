"""The status of machines that are known because they are made up; reasons are in the texts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import psutil
import pytest

from benchrigor.machine import StatusReader, kernel_files, status
from benchrigor.machine.kernel_files import Unavailable
from benchrigor.model import Sample, Status
from benchrigor.testing import FakeClock

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


@pytest.fixture
def reader(psutil_of, write, clock: FakeClock) -> StatusReader:
    return StatusReader(root=write(HOST), clock=clock)


def known(found: Status) -> dict[str, float | str]:
    return {each.name: each.value for each in found.samples if each.value is not None}


def test_rates_are_of_what_happened_since(reader, psutil_of, write, clock) -> None:
    assert reader.read().span_s is None
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
    twice = {"disk sda1 read", "disk loop0 read", "network br0 sent", "cpu guest"}
    assert not twice & set(values)


@pytest.mark.parametrize(
    ("files", "throttled"),
    [
        ({"proc/self/cgroup": "2:cpu:/\n", "sys/fs/cgroup/cpu/cpu.stat": "throttled_time {}"}, 1),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/cpu.stat": "usage_usec 1\n",
                "sys/fs/cgroup/a/cpu.stat": "usage_usec 1\nthrottled_usec {}",
                "sys/fs/cgroup/unified/a/b/cpu.stat": "throttled_usec {}",
            },
            2_000,
        ),
        ({"proc/self/cgroup": "4:memory:/a", "sys/fs/cgroup/cpu.stat": "throttled_usec {}"}, None),
    ],
    ids=["version 1", "nested groups, and both versions", "no group of processors"],
)
def test_throttled_time_is_read_of_all_groups_around(write, clock, files, throttled) -> None:
    root = write({name: text.format(0) for name, text in files.items()})
    reader = StatusReader(root=root, clock=clock)
    reader.read()
    clock.advance(SECOND)
    write({name: text.format(10_000_000) for name, text in files.items()})
    assert reader.read().value("throttled") == throttled


def test_a_short_status_holds_what_disturbs_a_measurement(psutil_of, write, clock) -> None:
    reader = StatusReader(root=write(HOST), clock=clock, short=True)
    assert {each.name for each in reader.read().samples} == SHORT
    clock.advance(SECOND)
    psutil_of.work({"user": 1.0}, {"idle": 1.0})
    assert set(known(reader.read())) == SHORT


@pytest.mark.parametrize("text", ["", "\x00?!", "throttled_usec", "some total=x", "1 2"])
def test_files_cut_off_or_of_another_kernel_give_reasons(psutil_of, write, clock, text) -> None:
    reader = StatusReader(root=write(dict.fromkeys(HOST, text)), clock=clock)
    for _ in range(2):
        found = reader.read()
        clock.advance(SECOND)
    missing = {"throttled", "pressure cpu some"}
    assert not missing & set(known(found))
    assert all(each.reason for each in found.samples if each.value is None)
    assert found.value("load 1 min") == 0.5


def test_a_reading_that_failed_is_made_up_for_by_the_next(reader, psutil_of, clock, monkeypatch):
    reader.read()
    clock.advance(SECOND)
    with monkeypatch.context() as patch:
        patch.setattr(psutil, "net_io_counters", lambda **_: None)
        assert reader.read().value("network sent") is None
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


def test_what_was_gone_has_a_first_reading(reader, psutil_of, clock) -> None:
    nets = psutil_of.nets
    for present in (nets, {"veth0": (0, 0)}, {"veth0": (0, 0), **nets}):
        psutil_of.nets = present
        found = reader.read()
        clock.advance(SECOND)
    assert all("eth0" not in name for name in known(found))


@pytest.mark.parametrize("what", ["read only", "a file", "cannot be asked", "may not be entered"])
def test_a_file_system_that_cannot_be_filled_is_not_the_fullest(
    reader, psutil_of, tmp_path, monkeypatch, what
) -> None:
    place = tmp_path / "mount"
    (place.touch if what == "a file" else place.mkdir)()
    usage, stat = psutil.disk_usage, os.stat

    def denied(path: object, **how: object) -> object:
        if str(path) == str(place):
            raise PermissionError(path)
        return usage(path) if what == "cannot be asked" else stat(path, **how)

    if what == "cannot be asked":
        monkeypatch.setattr(psutil, "disk_usage", denied)
    elif what == "may not be entered":
        monkeypatch.setattr(os, "stat", denied)
    added = ("image", str(place), "ro,nodev" if what == "read only" else "rw")
    psutil_of.parts = [added] if what == "a file" else [*psutil_of.parts, added]
    psutil_of.used[str(place)] = 100.0
    assert reader.read().value("storage fullest") == "/"


@pytest.mark.skipif(not psutil.LINUX, reason="files of Linux")
@pytest.mark.parametrize("text", [None, "pgpgin 1\n"], ids=["no file", "not in it"])
def test_where_the_kernel_does_not_count_what_is_swapped_that_is_not_known(
    write, clock, monkeypatch, text: str | None
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
    assert "proc/vmstat" in found["swap in"].reason
    assert "proc/vmstat" in found["swap out"].reason


def test_the_run_delay_of_another_thread_is_a_first_reading(reader, clock) -> None:
    reader.read()
    clock.advance(SECOND)
    found: list[Status] = []
    thread = threading.Thread(target=lambda: found.append(reader.read()))
    thread.start()
    thread.join()
    assert found[0].value("run delay") is None


class OwnSampler:
    """Yields one sample, and raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def describe(self) -> str:
        return "queue"

    def sample(self) -> Iterator[Sample]:
        yield Sample("items", 1.0)
        raise self.error


def test_an_interrupt_is_no_failure_of_a_sampler() -> None:
    with pytest.raises(KeyboardInterrupt):
        StatusReader(samplers=[OwnSampler(KeyboardInterrupt())]).read()


def test_this_machine_is_read_without_an_exception() -> None:
    found = status(interval_s=0.02)
    assert found.span_s >= 0.02
    assert found.value("memory total") > 0
    assert all((each.value is None) == bool(each.reason) for each in found.samples)
    assert len({each.name for each in found.samples}) == len(found.samples)


SOFTWARE, TASK_CLOCK = 1, 1


def opened() -> object:
    try:
        return kernel_files.open_counter(SOFTWARE, TASK_CLOCK)
    except Unavailable as error:
        pytest.skip(str(error))


def test_an_event_of_this_thread_is_counted() -> None:
    counter = opened()
    first = kernel_files.read_counter(counter)
    sum(range(100_000))
    assert 0 < first < kernel_files.read_counter(counter)


def test_an_event_that_does_not_count_multiplications_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two events the second counts two operations for each multiplication."""
    counts = iter([0, 17, 0, 2_000, 0, 0, 0, 2_001])
    opened = []

    def note(*event: int) -> None:
        opened.append(event)

    def count(_counter: object) -> int:
        return next(counts)

    monkeypatch.setattr(kernel_files, "open_counter", note)
    monkeypatch.setattr(kernel_files, "read_counter", count)
    kernel_files.open_floating_point()
    assert opened == [(4, 0xFFC7), (4, 0xFF03)]
    with pytest.raises(Unavailable, match=r"0xffc7.*0xff03"):
        kernel_files.open_floating_point()
