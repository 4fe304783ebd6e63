"""A recording on a made-up system, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchrigor.interference.thread_recording import Recording
from benchrigor.machine.kernel_files import open_file
from benchrigor.model import SegmentProfile
from benchrigor.testing import FakeClock

MS = 1_000_000
SCHEDSTAT = "proc/thread-self/schedstat"
CPU_STAT = "sys/fs/cgroup/bench/cpu.stat"


class Made:
    """A recording of a program whose time passes on a fake clock."""

    def __init__(self, root: Path, clock: FakeClock) -> None:
        self.clock = clock
        self.all_cpu_ns: int | None = 0
        self.events: list[Callable[[], object]] = []  # at next readings of processor time
        self.recording = Recording(
            root=root,
            now_ns=clock.now_ns,
            cpu_ns=self.read_cpu,
            all_cpu_ns=self.read_all_cpu,
        )
        self.recording.start()

    def read_cpu(self) -> int:
        if self.events:
            self.events.pop(0)()
        return self.clock.now_ns()

    def read_all_cpu(self) -> int:
        if self.all_cpu_ns is None:
            raise RuntimeError
        return self.all_cpu_ns

    def run(self, ms: int) -> None:
        self.clock.advance(ms * MS)
        self.recording.finish(self.clock.now_ns(), "", None)

    def stop(self) -> SegmentProfile:
        self.recording.stop()
        return SegmentProfile(**self.recording.profile())


@pytest.fixture
def made(quiet: Path, clock: FakeClock) -> Made:
    return Made(quiet, clock)


def test_each_segment_has_what_passed_since_the_one_before(made: Made, write) -> None:
    made.run(3)
    write({SCHEDSTAT: f"1000 {2 * MS} 2\n"})
    made.run(5)
    profile = made.stop()
    np.testing.assert_allclose(profile.duration_s, [0.003, 0.005])
    np.testing.assert_allclose(profile.delays["run queue"], [0.0, 0.002])
    np.testing.assert_allclose(profile.delay_s, [0.0, 0.002])
    assert profile.facts["wall_s"] == pytest.approx(0.008)
    assert "label" not in profile.nominal


def test_the_host_is_read_every_ten_milliseconds_at_most(made: Made, write) -> None:
    """Throttled time is taken out of the run delay."""
    write({SCHEDSTAT: f"1000 {4 * MS} 2\n"})
    made.run(4)
    write({CPU_STAT: "throttled_usec 3000\n"})
    made.run(4)  # too early to look
    made.run(4)
    write({CPU_STAT: "throttled_usec 5000\n", SCHEDSTAT: f"1000 {8 * MS} 3\n"})
    made.run(4)
    profile = made.stop()  # looks once more
    np.testing.assert_allclose(profile.delays["throttled"], [0.003, 0.0, 0.0, 0.002])
    np.testing.assert_allclose(profile.delays["run queue"], [0.001, 0.0, 0.0, 0.002])


def test_delay_outside_of_segments_belongs_to_none(made: Made, write) -> None:
    for _ in range(2):  # a tenth of the time is in segments
        made.clock.advance(90 * MS)
        made.recording.begin()
        made.run(10)
    write({CPU_STAT: "throttled_usec 9000\n", "proc/stat": "cpu 110 0 0 0 0 0 0 10 0 0\n"})
    made.clock.advance(90 * MS)
    made.recording.begin()
    made.run(10)
    profile = made.stop()
    # of 100 ms stolen, a tenth; and nobody waited for a quota
    np.testing.assert_allclose(profile.delays["steal"], [0.0, 0.0, 0.010])
    assert profile.delays["throttled"].tolist() == [0.0] * 3


def test_a_start_or_stop_that_fails_releases_the_thread(made: Made, quiet: Path, clock) -> None:
    made.all_cpu_ns = None
    unstarted = Recording(root=quiet, now_ns=clock.now_ns, all_cpu_ns=made.read_all_cpu)
    for recording, call in ((made.recording, made.recording.stop), (unstarted, unstarted.start)):
        with pytest.raises(RuntimeError):
            call()
        assert not recording.running
        again = Made(quiet, clock)
        again.run(1)
        again.stop()


def test_the_recorders_own_time_is_in_no_segment(made: Made) -> None:
    for _ in range(5):
        made.events = [lambda: None, lambda: made.clock.advance(9_000)]
        made.run(1)
    profile = made.stop()
    np.testing.assert_allclose(profile.duration_s, 0.001)
    np.testing.assert_allclose(profile.computation["cpu_s"], 0.001)
    assert profile.facts["recording_cost_s"] == pytest.approx(5 * 9e-6)
    assert profile.facts["wall_s"] == pytest.approx(0.005 + 5 * 9e-6)


def test_a_disturbed_boundary_is_in_no_segment(made: Made, write) -> None:
    def hold_up() -> None:
        made.clock.advance(20 * MS)
        write({SCHEDSTAT: f"1000 {20 * MS} 2\n"})

    made.events = [lambda: None, hold_up]
    made.run(3)
    made.run(3)
    profile = made.stop()
    np.testing.assert_allclose(profile.duration_s, [0.003, 0.003])
    assert profile.delays["run queue"].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(profile.computation["cpu_s"], [0.003, 0.003])


def test_a_counter_that_fails_once_stops_nothing(made: Made, write) -> None:
    made.run(3)
    write({SCHEDSTAT: ""})
    made.run(4)
    write({SCHEDSTAT: f"1000 {MS} 2\n"})
    made.run(5)
    profile = made.stop()
    np.testing.assert_allclose(profile.duration_s, [0.003, 0.004, 0.005])
    np.testing.assert_allclose(profile.delays["run queue"], [0.0, 0.0, 0.001])
    assert profile.facts["counters"]


def test_a_system_without_counters_still_has_times(tmp_path: Path, clock: FakeClock) -> None:
    made = Made(tmp_path, clock)
    made.run(2)
    profile = made.stop()
    np.testing.assert_allclose(profile.computation["cpu_s"], [0.002])
    assert not profile.delays
    assert profile.nominal.keys() == {"opens", "gc_young", "gc_full"}
    for name in ("run queue", "throttled", "steal", "pressure", "closes", "reads"):
        assert str(tmp_path) in str(profile.facts[name])


def test_descriptors_from_elsewhere_are_no_negative_closes(made: Made, write) -> None:
    write({"proc/self/fd": "......"})  # two more, of which this opened one
    made.run(1)
    write({"proc/self/fd": "...."})
    made.run(1)
    assert made.stop().nominal["closes"].tolist() == [0, 3]


def test_counters_are_quantised_and_durations_are_not(made: Made) -> None:
    for index in range(5_000):
        made.clock.advance(100 + index)
        made.recording.finish(made.clock.now_ns(), "", None)
    profile = made.stop()
    assert np.unique(profile.duration_s).size == 5_000
    assert np.unique(profile.computation["cpu_s"]).size == profile.facts["bins"] == 256


@pytest.mark.parametrize(
    ("instructions", "feature"), [(900, "floating_point"), (1100, "instructions"), (None, "cpu_s")]
)
def test_floating_point_operations_are_the_work_where_they_are_many(
    quiet: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    instructions: int | None,
    feature: str,
) -> None:
    """A segment may do none; of seconds the share of operations is not known."""
    counts = {"floating": [0, 0, 100]}
    if instructions is not None:  # read at a boundary, and once more to leave that out
        counts["instructions"] = [each * instructions for each in (0, 0, 1, 1, 2, 2)]
    for name, values in counts.items():
        (quiet / name).write_bytes(np.array(values, dtype=np.int64).tobytes())
    for name, opener in (
        ("instructions", "benchrigor.interference.thread_counters.open_counter"),
        ("floating", "benchrigor.interference.thread_counters.open_floating_point"),
    ):
        monkeypatch.setattr(opener, lambda name=name: open_file(quiet / name))
    made = Made(quiet, clock)
    made.run(1)
    made.run(1)
    profile = made.stop()
    assert profile.computation.keys() == {feature}
    others = {"floating_point", *(["instructions"] if instructions else [])} - {feature}
    assert others <= profile.evidence.keys()
    if instructions:
        everything = {**profile.computation, **profile.evidence}
        assert everything["floating_point"].tolist() == [0.0, 100.0]
        assert everything["instructions"].tolist() == [float(instructions)] * 2


def test_pressure_is_what_it_rose_by(made: Made, write) -> None:
    write({"sys/fs/cgroup/bench/io.pressure": "some avg10=0.00 total=1500000\n"})
    made.run(1)
    profile = made.stop()
    assert profile.facts["pressure_io_s"] == 1.5
    assert profile.facts["pressure_cpu_s"] == 0.0


def test_folders_of_older_kernels_tell_no_number_of_descriptors(
    quiet: Path, write, clock: FakeClock
) -> None:
    write({"proc/self/fd": ""})  # before Linux 6.2
    made = Made(quiet, clock)
    made.run(1)
    profile = made.stop()
    assert "closes" not in profile.nominal
    assert "proc/self/fd" in str(profile.facts["closes"])
