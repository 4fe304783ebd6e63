"""Columns of segments: what is kept, and which segment has how much of the host's delay."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.interference.recording.segment_columns import BINS, SegmentColumns
from benchrigor.interference.recording.thread_counters import (
    EVIDENCE,
    FLOATING_POINT,
    NOMINAL,
)
from benchrigor.machine.host_delays import HostDelay
from benchrigor.model import SegmentProfile

REST = len(NOMINAL) + len(EVIDENCE)


def filled(segments: list[tuple[int, int]], labels: str = "") -> SegmentColumns:
    """Return columns of segments with these wall times and run delays."""
    columns = SegmentColumns()
    for index, (wall_ns, delay_ns) in enumerate(segments):
        label = labels[index : index + 1]
        columns.add(wall_ns, (delay_ns, index, *range(REST)), label, None)
    return columns


def attribute(columns: SegmentColumns, **delay_ns: int) -> None:
    columns.attribute(HostDelay(wall_ns=0, delay_ns=delay_ns))


def delays_ns(columns: SegmentColumns) -> dict[str, list[int]]:
    found = columns.profile_columns("cpu_s", ())["delays"]
    return {name: np.rint(values * 1e9).astype(int).tolist() for name, values in found.items()}


def test_what_is_kept_makes_a_profile() -> None:
    columns = filled([(10, 1), (20, 2), (30, 0)], labels="aba")
    columns.mark_unfinished()
    missing = {"reads", "steal", FLOATING_POINT}
    profile = SegmentProfile(**columns.profile_columns("instructions", missing))
    assert profile.duration_s.tolist() == [1e-8, 2e-8, 3e-8]
    assert profile.computation["instructions"].tolist() == [0.0, 1.0, 2.0]
    assert profile.nominal["label"].tolist() == ["a", "b", "a"]
    assert profile.nominal["unfinished"].tolist() == [0, 0, 1]
    assert "reads" not in profile.nominal
    assert profile.nominal["writes"].tolist() == [3.0, 3.0, 3.0]
    assert profile.evidence.keys() == {*EVIDENCE} - {FLOATING_POINT}


def test_floating_point_operations_are_the_work_where_they_are_many() -> None:
    for instructions, feature in ((900, FLOATING_POINT), (1100, "instructions")):
        columns = SegmentColumns()
        for operations in (0, 100):  # a segment may do none
            columns.add(5, (0, instructions, *range(REST - 1), operations), "", None)
        found = columns.profile_columns("instructions", ())
        assert found["computation"].keys() == {feature}
        assert {"instructions", FLOATING_POINT} - {feature} <= found["evidence"].keys()
        # Seconds are no instructions: of them the share is not known.
        assert columns.profile_columns("cpu_s", ())["computation"].keys() == {"cpu_s"}


def test_without_labels_there_is_no_such_column() -> None:
    profile = SegmentProfile(**filled([(10, 1)]).profile_columns("cpu_s", {"run queue"}))
    assert profile.nominal.keys() == set(NOMINAL)
    assert not profile.delays


def test_work_stands_alone_where_all_have_it() -> None:
    columns = SegmentColumns()
    for work in (2.0, 3.0):
        columns.add(5, (0, 7, *range(REST)), "", work)
    found = columns.profile_columns("cpu_s", ())
    assert found["computation"].keys() == {"work"}
    assert found["evidence"]["cpu_s"].tolist() == [7e-9, 7e-9]
    columns.add(5, (0, 7, *range(REST)), "", None)
    assert columns.without_work == 1
    assert columns.profile_columns("cpu_s", ())["computation"].keys() == {"cpu_s"}


def test_counts_of_the_user_begin_at_zero_where_they_come_late() -> None:
    columns = filled([(5, 0), (5, 0)])
    counts: dict[str, int | float] = {"sends": 3}
    columns.add_counts(counts)
    columns.add(5, (0, 7, *range(REST)), "", None)
    columns.add_counts(counts)
    found = columns.profile_columns("cpu_s", ())["nominal"]["sends"]
    assert found.tolist() == [0.0, 3.0, 0.0]


def test_descriptors_from_elsewhere_are_no_negative_closes() -> None:
    columns = SegmentColumns()
    columns.add(5, (0, 7, 0, -1, *range(REST - 2)), "", None)
    assert columns.profile_columns("cpu_s", ())["nominal"]["closes"].tolist() == [0.0]


def test_counters_are_quantised_and_durations_are_not() -> None:
    columns = filled([(100 + index, 0) for index in range(5_000)])
    while columns.full:
        columns.pack()
    profile = SegmentProfile(**columns.profile_columns("instructions", ()))
    assert np.unique(profile.duration_s).size == 5_000
    assert np.unique(profile.computation["instructions"]).size == BINS


def test_throttling_is_taken_out_of_the_run_delay() -> None:
    columns = filled([(100, 80), (100, 10), (100, 30)])
    attribute(columns, throttled=90)
    assert delays_ns(columns) == {"run queue": [0, 10, 20], "throttled": [80, 0, 10]}


def test_throttling_beyond_the_run_delay_belongs_to_no_segment() -> None:
    columns = filled([(100, 80), (60, 0), (50, 0)])
    attribute(columns, throttled=150)
    assert delays_ns(columns) == {"run queue": [0, 0, 0], "throttled": [80, 0, 0]}


def test_only_segments_since_the_last_reading_have_a_delay() -> None:
    columns = filled([(500, 0)])
    attribute(columns)
    columns.add(70, (0, 0, *range(REST)), "", None)
    attribute(columns, steal=50)
    columns.add(90, (0, 0, *range(REST)), "", None)
    assert delays_ns(columns)["steal"] == [0, 50, 0]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=6),
    st.integers(0, 500),
    st.integers(0, 500),
)
@settings(max_examples=40)
def test_no_segment_has_more_delay_than_wall_time(pairs, throttled, stolen) -> None:
    segments = [(max(pair), min(pair)) for pair in pairs]
    columns = filled(segments)
    attribute(columns, throttled=throttled, steal=stolen)
    found = delays_ns(columns)
    walls, waits = (sum(each) for each in zip(*segments, strict=True))
    assert sum(found["run queue"]) + sum(found["throttled"]) == waits
    delay = np.sum(list(found.values()), axis=0)
    assert (delay <= [wall for wall, _ in segments]).all()
    assert delay.sum() == min(walls, waits + stolen)


def test_whole_counts_are_integers_and_others_are_not() -> None:
    columns = filled([(5, 0), (5, 0)])
    columns.add_counts({"sends": 3, "mean": 0.5})
    found = columns.profile_columns("cpu_s", ())["nominal"]
    assert found["reads"].dtype == found["sends"].dtype == np.int64
    assert found["mean"].tolist() == [0.0, 0.5]
