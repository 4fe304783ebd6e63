"""Records as data and as files, and what of earlier versions is still read."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Delays, References, Round, RoundPlan, RunRecord
from benchrigor.testing import ExponentialWarmUp, FakeClock, SyntheticWorkload


@cache
def record_of(rounds: str = "continuous") -> RunRecord:
    clock = FakeClock()
    workload = SyntheticWorkload(
        mean=0.001,
        cv=0.1,
        warm_up=ExponentialWarmUp(amplitude=1.0, time_constant=20.0),
        restarted=rounds == "restarted",
        seed=1,
        clock=clock,
    )
    options = br.Options(target=0.01, rounds=rounds, budget_s=float("inf"))
    return br.Session(options, seed=1, clock=clock, name="synthetic").run(workload)


@pytest.mark.parametrize("rounds", ["continuous", "restarted"])
def test_a_record_survives_the_way_through_plain_data_and_files(
    rounds: str, tmp_path: Path
) -> None:
    record = record_of(rounds)
    text = json.dumps(record.to_dict(), allow_nan=False)
    again = RunRecord.from_dict(json.loads(text))
    assert again.to_dict() == record.to_dict()
    assert repr(again) == repr(record)  # shows types, too
    record.save(tmp_path / "run.json")
    assert RunRecord.load(tmp_path / "run.json").to_dict() == record.to_dict()
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["binseg", "kernel"])
def test_a_choice_of_earlier_versions_is_read_as_the_default(name: str) -> None:
    data = record_of().to_dict()
    data["options"] = {**data["options"], "detector": name}
    assert RunRecord.from_dict(data).options == record_of().options


def test_a_notice_with_a_code_that_is_no_more_is_left_out() -> None:
    data = record_of().to_dict()
    gone = {"code": "repeated-warm-ups", "severity": "note", "sentence": "A.", "evidence": {}}
    data["session_notices"] = [*data["session_notices"], gone]
    assert RunRecord.from_dict(data).session_notices == record_of().session_notices


@pytest.mark.parametrize(
    "text",
    [
        *(f'{{"schema": 1, "seed": {"9" * 5000}}}', "[" * 100_000),
        f'{{"schema": 1, "rounds": [{{"elapsed_ns": {"9" * 400}}}]}}',
    ],
)
def test_numbers_and_nesting_beyond_what_json_is_read_to_are_refused(text, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InvalidInput):
        RunRecord.load(tmp_path / "run.json")


N = 5


def told(values: object = (0.1,) * N, **beside: object) -> Round:
    plan = RoundPlan(index=0, readings=N)
    return Round(plan=plan, elapsed_ns=10**9, unit_readings={"time": values}, **beside)  # type: ignore[arg-type]  # bad on purpose


WAYS: list[Callable[[list[float]], object]] = [list, tuple, np.array, lambda v: (x for x in v)]


@given(st.lists(st.floats(0.0, 1e100), min_size=1, max_size=30), st.sampled_from(WAYS))
def test_every_way_to_hold_numbers_gives_the_same_series(values: list[float], way) -> None:
    assert np.array_equal(told(way(values)).unit_readings["time"], np.array(values))


@given(st.lists(st.floats(0.0, 1e100), min_size=1, max_size=30), st.data())
def test_the_first_bad_index_is_named(values: list[float], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    values[index] = data.draw(st.sampled_from([float("nan"), float("inf"), float("-inf")]))
    with pytest.raises(InvalidInput, match=rf"\[{index}\] is "):
        told(values)


def test_a_series_is_read_only_and_the_array_of_the_caller_is_not_touched() -> None:
    mine = np.array([1.0, 2.0])
    series = told(mine).unit_readings["time"]
    mine[0] = 5.0
    assert series[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        series[0] = 2.0


def test_whole_clock_times_stay_exact_and_none_goes_back() -> None:
    starts = told(starts_ns=[2**62 + each for each in range(N)]).starts_ns
    assert starts is not None
    assert starts.tolist() == [2**62 + each for each in range(N)]
    with pytest.raises(InvalidInput, match=r"starts_ns\[3\]"):
        told(starts_ns=[1, 2, 4, 3, 5])


@pytest.mark.parametrize("kind", [Delays, References])
def test_seconds_without_names_and_versions_that_are_none_are_refused(kind: type) -> None:
    with pytest.raises(InvalidInput):
        kind(stops=[1], seconds=[1.0])
    with pytest.raises(InvalidInput):
        References(stops=[1], seconds={"interpreter": [1.0]}, version="x")  # type: ignore[arg-type]  # bad on purpose
