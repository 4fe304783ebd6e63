"""What is recorded stands in the round as it is; ``laws`` has that nothing is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Delays, Notice, References, RoundPlan
from benchrigor.workloads import RoundRecorder

PLAN = RoundPlan(index=3)


def test_a_round_has_its_plan_and_its_time() -> None:
    finished = RoundRecorder().finish(PLAN, 11)
    assert (finished.plan, finished.elapsed_ns, finished.n_readings) == (PLAN, 11, 0)


def test_a_chunk_that_its_owner_uses_again_is_not_lost() -> None:
    recorder, buffer = RoundRecorder(), np.array([1.0, 2.0])
    recorder.unit_readings("time", buffer)
    buffer[:] = 9.0
    assert recorder.finish(PLAN, 0).unit_readings["time"].tolist() == [1.0, 2.0]


def test_the_last_value_of_a_fact_counts() -> None:
    recorder = RoundRecorder()
    recorder.fact("inner", 1)
    recorder.fact("inner", 2)
    assert recorder.finish(PLAN, 0).facts == {"inner": 2}


def test_of_notices_with_one_code_the_first_is_kept() -> None:
    recorder = RoundRecorder()
    first, again = (Notice.of(Code.CUT_ROUND, "trial", why_=why) for why in ("One.", "Two."))
    second = Notice.of(Code.NO_INSTRUCTIONS, why_="none")
    for each in (first, again, second):
        recorder.notice(each)
    assert recorder.finish(PLAN, 0).notices == (first, second)


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
