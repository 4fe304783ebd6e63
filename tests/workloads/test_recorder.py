"""What is recorded stands in the round as it is; ``laws`` has that nothing is lost."""

from __future__ import annotations

import math

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import RoundPlan
from benchrigor.workloads import RoundRecorder

PLAN = RoundPlan(index=3)


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


@pytest.mark.parametrize("values", ["abc", None, 3, [[1]], [math.nan], []])
@pytest.mark.parametrize("what", ["starts_ns", "delays", "references"])
def test_what_is_no_series_is_refused_when_it_arrives(what: str, values: object) -> None:
    recorder = RoundRecorder()
    with pytest.raises(InvalidInput, match=what):
        getattr(recorder, what)(values)
    assert getattr(recorder.finish(PLAN, 0), what) is None
