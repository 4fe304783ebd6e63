"""What is recorded stands in the round: nothing lost, order kept, bad values named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Delays, Notice, References, RoundPlan
from benchrigor.protocols import Recorder
from benchrigor.workloads.recorder import RoundRecorder

PLAN = RoundPlan(index=3)
NUMBERS = st.floats(-1e9, 1e9)


def notice(sentence: str, code: Code = Code.COARSE_CLOCK) -> Notice:
    return Notice.note(code, sentence)


@pytest.mark.slow
@given(chunks=st.lists(st.lists(NUMBERS, min_size=1), min_size=1))
def test_chunks_are_joined_in_order_and_nothing_is_lost(chunks: list[list[float]]) -> None:
    recorder = RoundRecorder()
    for chunk in chunks:
        recorder.unit_readings("time", chunk)
    series = recorder.finish(PLAN, 0).unit_readings["time"]
    assert series.tolist() == [value for chunk in chunks for value in chunk]


def test_metrics_are_kept_apart() -> None:
    recorder = RoundRecorder()
    recorder.unit_readings("time", [1.0])
    recorder.unit_readings("size", [5])
    recorder.unit_readings("time", [2.0])
    recorder.reading("rate", 7)
    finished = recorder.finish(PLAN, 11)
    assert {name: series.tolist() for name, series in finished.unit_readings.items()} == {
        "time": [1.0, 2.0],
        "size": [5.0],
    }
    assert finished.readings == {"rate": 7.0}
    assert (finished.plan, finished.elapsed_ns) == (PLAN, 11)


def test_a_chunk_that_its_owner_uses_again_is_not_lost() -> None:
    recorder, buffer = RoundRecorder(), np.array([1.0, 2.0])
    recorder.unit_readings("time", buffer)
    buffer[:] = 9.0
    assert recorder.finish(PLAN, 0).unit_readings["time"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0, math.nan], r"unit readings of 'time'\[1\] is nan"),
        ([math.inf], r"unit readings of 'time'\[0\] is inf"),
        ([], "unit readings of 'time' is empty"),
        ([[1.0], [2.0]], "unit readings of 'time'"),
        ("12", "unit readings of 'time' is '12'"),
    ],
)
def test_a_bad_chunk_is_refused_by_the_name_of_its_metric(values: object, found: str) -> None:
    with pytest.raises(InvalidInput, match=found):
        RoundRecorder().unit_readings("time", values)  # type: ignore[arg-type]  # bad on purpose


@pytest.mark.parametrize("value", [math.nan, math.inf, "3", None])
def test_a_bad_reading_is_refused_by_the_name_of_its_metric(value: object) -> None:
    with pytest.raises(InvalidInput, match="reading of 'rate'"):
        RoundRecorder().reading("rate", value)  # type: ignore[arg-type]  # bad on purpose


def test_a_second_reading_of_a_metric_is_refused() -> None:
    recorder = RoundRecorder()
    recorder.reading("rate", 1.0)
    with pytest.raises(InvalidInput, match=r"second reading of 'rate', 2\.0, expected one"):
        recorder.reading("rate", 2.0)


def test_the_last_value_of_a_fact_counts() -> None:
    recorder = RoundRecorder()
    recorder.fact("inner", 1)
    recorder.fact("inner", 2)
    assert recorder.finish(PLAN, 0).facts == {"inner": 2}


def test_of_notices_with_one_code_the_first_is_kept() -> None:
    recorder = RoundRecorder()
    first, second = notice("One."), notice("Three.", Code.EXHAUSTED)
    for each in (first, notice("Two."), second):
        recorder.notice(each)
    assert recorder.finish(PLAN, 0).notices == (first, second)


def test_a_round_may_be_empty() -> None:
    finished = RoundRecorder().finish(PLAN, 0)
    assert finished.n_readings == 0


def test_it_is_a_recorder() -> None:
    assert isinstance(RoundRecorder(), Recorder)


def test_what_is_measured_beside_readings_comes_in_chunks_or_at_once() -> None:
    recorder = RoundRecorder()
    for start in (0, 2):
        recorder.unit_readings("time", [0.1, 0.1])
        recorder.starts_ns([start, start + 1])
        recorder.delays([0.0, start])
    recorder.references({"command": [1.0] * 4})
    finished = recorder.finish(PLAN, 0)
    assert finished.starts_ns is not None
    assert finished.delays is not None
    assert finished.references is not None
    assert finished.starts_ns.tolist() == [0, 1, 2, 3]
    assert finished.delays.seconds["run queue"].tolist() == [0.0, 0.0, 0.0, 2.0]
    assert finished.references.seconds["command"].tolist() == [1.0] * 4


def test_objects_stand_in_the_round_as_they_are() -> None:
    recorder = RoundRecorder()
    recorder.unit_readings("time", [0.1] * 4)
    delays = Delays(stops=[2, 4], seconds={"steal": [0.0, 0.1]})
    references = References(stops=[4], seconds={"interpreter": [1e-6]}, version=3)
    recorder.delays(delays)
    recorder.references(references)
    finished = recorder.finish(PLAN, 0)
    assert (finished.delays, finished.references) == (delays, references)


@pytest.mark.parametrize("values", ["abc", None, 3, [[1]], [math.nan], []])
@pytest.mark.parametrize("what", ["starts_ns", "delays", "references"])
def test_what_is_no_series_is_refused_when_it_arrives(what: str, values: object) -> None:
    recorder = RoundRecorder()
    with pytest.raises(InvalidInput, match=what):
        getattr(recorder, what)(values)
    assert getattr(recorder.finish(PLAN, 0), what) is None


def test_what_is_given_whole_is_given_once() -> None:
    recorder = RoundRecorder()
    recorder.references([1e-6])
    with pytest.raises(InvalidInput, match="references are given again"):
        recorder.references(References(stops=[1], seconds={"interpreter": [1e-6]}))
