"""Throttling and steal of made-up hosts."""

from __future__ import annotations

import contextlib
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.machine.host_delays import (
    HostDelay,
    HostDelays,
    Steal,
    Throttling,
    attribute_delay,
    read_pressure,
)
from benchrigor.machine.kernel_files import Unavailable

GROUP = "proc/self/cgroup"


@pytest.mark.parametrize(
    ("files", "delay_ns"),
    [
        ({GROUP: "0::/a\n", "sys/fs/cgroup/a/cpu.stat": "throttled_usec 7\n"}, 7_000),
        ({GROUP: "2:cpu:/\n", "sys/fs/cgroup/cpu/cpu.stat": "nr 1\nthrottled_time 9\n"}, 9),
        (
            {
                GROUP: "0::/a/b\n",
                "sys/fs/cgroup/cpu.stat": "usage_usec 1\n",
                "sys/fs/cgroup/a/cpu.stat": "usage_usec 1\nthrottled_usec 2\n",
                "sys/fs/cgroup/a/b/cpu.stat": "usage_usec 1\nthrottled_usec 3\n",
            },
            5_000,
        ),
    ],
    ids=["version-2", "version-1", "nested"],
)
def test_throttled_time_is_read_of_all_groups_around(write, files, delay_ns) -> None:
    assert Throttling(root=write(files)).delay_ns() == delay_ns


def test_without_a_quota_there_is_no_throttling(write) -> None:
    root = write({GROUP: "0::/\n", "sys/fs/cgroup/cpu.stat": "usage_usec 1\n"})
    with pytest.raises(Unavailable, match=r"no cpu\.stat counts throttling"):
        Throttling(root=root)


def stat(*, busy: int, steal: int) -> dict[str, str]:
    return {"proc/stat": f"cpu  {busy} 0 0 900 5 0 0 {steal} 0 0\ncpu0 1 2 3\n"}


@pytest.mark.parametrize(
    ("own_ms", "busy_ticks", "stolen_ms"),
    [(100, 10, 30), (50, 10, 15), (0, 10, 0), (100, 0, 30)],
)
def test_a_thread_has_its_share_of_the_steal(write, own_ms, busy_ticks, stolen_ms) -> None:
    used_ns = iter([0, own_ms * 1_000_000])
    steal = Steal(root=write(stat(busy=100, steal=4)), cpu_ns=lambda: next(used_ns))
    assert steal.delay_ns() == 0
    write(stat(busy=100 + busy_ticks, steal=7))
    assert steal.delay_ns() == stolen_ms * 1_000_000
    assert steal.delay_ns() == stolen_ms * 1_000_000


def test_a_source_that_cannot_be_read_is_left_out_with_the_reason(write) -> None:
    host = HostDelays(root=write({"proc/stat": "intr 5\n"}))
    host.start()
    assert host.read().delay_ns == {}
    assert "cgroup: No such file" in host.missing["throttled"]
    assert "cannot be understood" in host.missing["steal"]
    host.close()


def test_a_reading_that_fails_is_made_up_for_by_the_next_one(write, quiet) -> None:
    host = HostDelays(root=quiet, cpu_ns=lambda: 0)
    host.start()
    assert host.read().delay_ns == {"throttled": 0, "steal": 0}
    name = "sys/fs/cgroup/bench/cpu.stat"
    for text, delay_ns in (("throttled_usec 3\n", 3_000), ("throttled_usec 8\n", 5_000)):
        write({name: text, "proc/stat": ""})
        assert host.read().delay_ns == {"throttled": delay_ns}
    host.close()


def test_a_reading_has_the_wall_time_since_the_one_before(quiet, clock) -> None:
    host = HostDelays(root=quiet, cpu_ns=lambda: 0, now_ns=clock.now_ns)
    clock.advance(3)
    host.start()
    for step_ns in (7, 20):
        clock.advance(step_ns)
        assert host.read().wall_ns == step_ns
    host.close()


def test_files_that_the_program_closed_are_no_error(quiet) -> None:
    host = HostDelays(root=quiet, cpu_ns=lambda: 0)
    host.start()
    assert not host.missing  # both are open
    files = {each.stat().st_ino for each in quiet.rglob("*")}
    for each in range(1024):
        with contextlib.suppress(OSError):
            if os.fstat(each).st_ino in files:
                os.close(each)
    host.close()
    assert host.read().delay_ns == {}


@pytest.mark.parametrize(
    ("wall_ns", "stolen_ns"),
    [(1_000, [9, 0]), (100, [50, 40]), (0, [50, 40])],
    ids=["a-tenth", "all", "clocks-apart"],
)
def test_segments_have_their_share_of_the_time_of_the_steal(wall_ns, stolen_ns) -> None:
    host = HostDelay(wall_ns=wall_ns, delay_ns={"steal": 90})
    assert attribute_delay(host, [50, 50], [0, 0]) == {"steal": stolen_ns}


@given(
    st.integers(0, 500),
    st.integers(0, 500),
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=6),
)
@settings(max_examples=40)
def test_no_segment_has_more_delay_than_room_for_it(throttled, stolen, pairs) -> None:
    waits, walls = [min(each) for each in pairs], [max(each) for each in pairs]
    delay_ns = {"throttled": throttled, "steal": stolen}
    parts = attribute_delay(HostDelay(wall_ns=sum(walls), delay_ns=delay_ns), walls, waits)
    assert sum(parts["throttled"]) == min(throttled, sum(waits))
    assert all(part <= wait for part, wait in zip(parts["throttled"], waits, strict=True))
    assert sum(parts["steal"]) == min(stolen, sum(walls) - sum(waits))


@given(st.integers(0, 1_000), st.lists(st.integers(0, 300), max_size=8))
@settings(max_examples=40)
def test_the_largest_room_is_filled_first(throttled, waits) -> None:
    host = HostDelay(wall_ns=0, delay_ns={"throttled": throttled})
    parts = attribute_delay(host, waits, waits)["throttled"]
    assert sum(parts) == min(throttled, sum(waits))
    left = [wait for wait, part in zip(waits, parts, strict=True) if part < wait]
    full = [wait for wait, part in zip(waits, parts, strict=True) if part == wait > 0]
    assert not left or not full or max(left) <= min(full)


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
