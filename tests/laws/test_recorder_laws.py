"""Laws of `protocols.Recorder`: nothing is lost, order is kept, however it comes in chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model import RoundPlan
from benchrigor.protocols import Recorder
from benchrigor.workloads import RoundRecorder

chunks = st.lists(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5), min_size=1, max_size=8)


def test_it_is_a_recorder() -> None:
    assert isinstance(RoundRecorder(), Recorder)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from("abc"), chunks, min_size=1))
def test_nothing_is_lost_and_order_is_kept(given_: dict[str, list[list[float]]]) -> None:
    recorder = RoundRecorder()
    for turn in range(8):  # the metrics take turns, as a workload with several of them would
        for name, parts in given_.items():
            if turn < len(parts):
                recorder.unit_readings(name, parts[turn])
    finished = recorder.finish(RoundPlan(index=0), 1)
    assert set(finished.unit_readings) == set(given_)
    for name, parts in given_.items():
        assert finished.unit_readings[name].tolist() == [value for part in parts for value in part]


@given(st.dictionaries(st.sampled_from("abc"), st.floats(-1e9, 1e9)))
def test_single_readings_come_out_as_they_went_in(given_: dict[str, float]) -> None:
    recorder = RoundRecorder()
    for name, value in given_.items():
        recorder.reading(name, value)
    assert recorder.finish(RoundPlan(index=0), 1).readings == given_


@pytest.mark.slow
@given(chunks)
def test_a_cut_keeps_what_was_recorded(parts: list[list[float]]) -> None:
    recorder = RoundRecorder()
    for part in parts:
        recorder.unit_readings("a", part)
    assert not recorder.finish(RoundPlan(index=0), 1).cut
    recorder.cut()
    finished = recorder.finish(RoundPlan(index=0), 1)
    assert finished.cut
    assert finished.unit_readings["a"].tolist() == [value for part in parts for value in part]
