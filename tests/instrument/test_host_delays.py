"""Throttling and steal of hosts that are known because they are made up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.instrument.host_delays import HostDelays, Rises, Steal, Throttling, charge, shares
from benchrigor.instrument.kernel_files import Unavailable

GROUP = "proc/self/cgroup"


@pytest.mark.parametrize(
    ("files", "lost_ns"),
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
def test_throttled_time_is_read_of_all_groups_around(write, files, lost_ns) -> None:
    throttling = Throttling(root=write(files))
    assert throttling.lost_ns() == lost_ns
    throttling.close()


def test_without_a_quota_there_is_no_throttling(write) -> None:
    root = write({GROUP: "0::/\n", "sys/fs/cgroup/cpu.stat": "usage_usec 1\n"})
    with pytest.raises(Unavailable, match=r"no cpu\.stat tells of throttling"):
        Throttling(root=root)


def stat(*, busy: int, steal: int) -> dict[str, str]:
    return {"proc/stat": f"cpu  {busy} 0 0 900 5 0 0 {steal} 0 0\ncpu0 1 2 3\n"}


@pytest.mark.parametrize(
    ("own_ms", "busy_ticks", "charged_ms"),
    [(100, 10, 30), (50, 10, 15), (0, 10, 0), (100, 0, 30)],
)
def test_a_thread_is_charged_its_share_of_what_was_stolen(
    write, own_ms, busy_ticks, charged_ms
) -> None:
    used_ns = iter([0, own_ms * 1_000_000])
    steal = Steal(root=write(stat(busy=100, steal=4)), cpu_ns=lambda: next(used_ns))
    assert steal.lost_ns() == 0
    write(stat(busy=100 + busy_ticks, steal=7))
    assert steal.lost_ns() == charged_ms * 1_000_000
    assert steal.lost_ns() == charged_ms * 1_000_000
    steal.close()


def test_what_the_host_does_not_tell_is_left_out_with_the_reason(write) -> None:
    host = HostDelays(root=write({"proc/stat": "intr 5\n"}))
    host.start()
    assert host.rises().lost_ns == {}
    assert "cgroup: No such file" in host.missing["throttled"]
    assert "cannot be understood" in host.missing["steal"]
    host.close()


def test_what_cannot_be_read_once_is_in_the_next_rise(write, quiet) -> None:
    host = HostDelays(root=quiet, cpu_ns=lambda: 0)
    host.start()
    assert host.rises().lost_ns == {"throttled": 0, "steal": 0}
    name = "sys/fs/cgroup/bench/cpu.stat"
    for text, rise in (("throttled_usec 3\n", 3_000), ("throttled_usec 8\n", 5_000)):
        write({name: text, "proc/stat": ""})
        assert host.rises().lost_ns == {"throttled": rise}
    host.close()


def test_a_rise_has_the_wall_time_since_the_reading_before(quiet, clock) -> None:
    host = HostDelays(root=quiet, cpu_ns=lambda: 0, now_ns=clock.now_ns)
    clock.advance(3)
    host.start()
    for step_ns in (7, 20):
        clock.advance(step_ns)
        assert host.rises().wall_ns == step_ns
    host.close()


def test_files_that_the_program_closed_are_no_error(quiet) -> None:
    host = HostDelays(root=quiet, cpu_ns=lambda: 0)
    host.start()
    assert host._sources  # there is something to close twice
    for source in host._sources.values():
        source.close()
    host.close()
    assert not any(host.rises().lost_ns.values())


@pytest.mark.parametrize(
    ("wall_ns", "stolen_ns"),
    [(1_000, [9, 0]), (100, [50, 40]), (0, [50, 40])],
    ids=["a-tenth", "all", "clocks-apart"],
)
def test_of_what_was_stolen_segments_have_their_part_of_the_time(wall_ns, stolen_ns) -> None:
    rises = Rises(wall_ns=wall_ns, lost_ns={"steal": 90})
    assert charge(rises, [50, 50], [0, 0]) == {"steal": stolen_ns}


@given(
    st.integers(0, 500),
    st.integers(0, 500),
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=6),
)
@settings(max_examples=40)
def test_throttled_time_is_never_more_than_was_waited(throttled, stolen, pairs) -> None:
    waits, walls = [min(each) for each in pairs], [max(each) for each in pairs]
    lost_ns = {"throttled": throttled, "steal": stolen}
    found = charge(Rises(wall_ns=sum(walls), lost_ns=lost_ns), walls, waits)
    assert sum(found["throttled"]) == min(throttled, sum(waits))
    assert all(part <= wait for part, wait in zip(found["throttled"], waits, strict=True))
    assert sum(found["steal"]) == min(stolen, sum(walls) - sum(waits))


@given(st.integers(0, 1_000), st.lists(st.integers(0, 300), max_size=8))
@settings(max_examples=40)
def test_shares_fill_the_largest_first_and_nobody_beyond(lost, room) -> None:
    found = dict(shares(lost, room))
    assert sum(found.values()) == min(lost, sum(room))
    assert all(share <= room[index] for index, share in found.items())
    left = [each for index, each in enumerate(room) if found.get(index, 0) < each]
    full = [room[index] for index, share in found.items() if share == room[index]]
    assert not left or not full or max(left) <= min(full)
