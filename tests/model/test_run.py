"""Records as data and as files, and what of earlier versions is still read."""

import json
from functools import cache
from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import RunRecord
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


@pytest.mark.parametrize(
    "options", [{"autocorrelation_limit": 0.3, "work": (0, None)}, {"trim": [0.2, 0]}]
)
def test_options_survive_being_stored(options) -> None:
    record = br.Session(br.Options(**options), seed=1).result()
    again = RunRecord.from_dict(json.loads(json.dumps(record.to_dict())))
    assert again.options == record.options


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


def test_an_unknown_metric_is_refused_and_none_means_the_first_required_one() -> None:
    record = record_of()
    assert record.estimate() == record.estimate("time")
    assert record.readings().size == sum(each.n_readings for each in record.rounds)
    for ask in (record.estimate, record.readings, record.analysis):
        with pytest.raises(InvalidInput, match="'speed'"):
            ask("speed")


def test_readings_are_raw_and_read_only() -> None:
    readings = record_of().readings()
    assert readings[0] > 0.0015
    with pytest.raises(ValueError, match="read-only"):
        readings[0] = 1.0


def test_a_running_session_has_a_record_without_a_decision() -> None:
    record = br.Session(seed=1).result()
    assert record.decision is None
    assert record.estimate() is None
    assert record.readings().size == 0


def test_readings_of_a_speed_are_work_over_duration_of_every_round() -> None:
    session = br.Session(br.Options(work=(10, 1000), max_rounds=12), seed=1)
    expected = []
    while (plan := session.ask()) is not None:
        seconds = 0.3 + plan.work / 50
        expected.append(plan.work / seconds)
        session.tell(br.Round(plan=plan, elapsed_ns=9, readings={"time": seconds}))
    record = session.result()
    for name in (None, record.metrics[0].name):
        readings = record.readings(name)
        assert readings == pytest.approx(expected)
        with pytest.raises(ValueError, match="read-only"):
            readings[0] = 1.0
