import json
from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Analysis, RunRecord, codec
from benchrigor.model.analysis import Kind
from benchrigor.testing import ExponentialWarmUp, FakeClock, SyntheticWorkload


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


@pytest.mark.slow
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
    data["options"]["detector"] = name
    assert RunRecord.from_dict(data).options == record_of().options


def test_a_record_says_which_versions_made_it() -> None:
    data = record_of().to_dict()
    assert data["schema"] == codec.SCHEMA
    assert data["method_version"] == codec.METHOD


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("{", "is not a record"),
        ("[]", "no schema version"),
        ('{"schema": 1, "name": "x"}', "is no RunRecord"),
        ('{"schema": 1, "options": 3}', r"record\.options is 3"),
        ('{"schema": 1, "rounds": [{"elapsed_ns": "soon"}]}', r"record\.rounds\[0\]\.elapsed_ns"),
        ('{"schema": 1, "rounds": 7}', r"record\.rounds is 7"),
        ('{"schema": 1, "seed": 1e999}', r"record\.seed is inf, expected int"),
        (f'{{"schema": 1, "rounds": [{{"elapsed_ns": {"9" * 400}}}]}}', "expected int"),
        (f'{{"schema": 1, "seed": {"9" * 5000}}}', "is not a record"),
        ("[" * 100_000, "is not a record: maximum recursion"),
        (f'{{"schema": 1, "options": {"[" * 900}{"]" * 900}}}', r"record\.options is \[\["),
    ],
)
def test_what_is_no_record_is_named(text: str, phrase: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InvalidInput, match=phrase):
        RunRecord.load(tmp_path / "run.json")


def test_an_unknown_metric_is_named_and_none_means_the_first_required_one() -> None:
    record = record_of()
    assert record.estimate() == record.estimate("time")
    assert record.readings().size == sum(each.n_readings for each in record.rounds)
    for ask in (record.estimate, record.readings, record.analysis):
        with pytest.raises(InvalidInput, match="metric 'speed' is unknown, expected one of 'time'"):
            ask("speed")


def test_readings_are_raw_and_read_only() -> None:
    readings = record_of().readings()
    assert readings[0] > 0.0015
    with pytest.raises(ValueError, match="read-only"):
        readings[0] = 1.0


def test_a_running_session_has_a_record_without_a_decision() -> None:
    session = br.Session(seed=1)
    record = session.result()
    assert record.decision is None
    assert record.estimate() is None
    assert record.readings().size == 0
    assert "still running" in str(record)


def test_readings_of_a_speed_are_work_over_duration_of_every_round() -> None:
    pairs = [(1e6, 0.5), (2e6, 0.8), (5e5, 0.0), (4e6, 1.5)]
    rounds = tuple(
        br.Round(plan=br.RoundPlan(index=index, work=work), elapsed_ns=9, readings={"time": time})
        for index, (work, time) in enumerate(pairs)
    )
    speed = br.Metric(name="speed", unit="B/s")
    record = RunRecord(
        name="job",
        options=br.Options(analysis="wps"),
        metrics=(speed,),
        seed=1,
        rounds=rounds,
        analyses=(Analysis(metric=speed, kind=Kind.WORK, n=4, n_kept=3, left_out=(2,)),),
    )
    for name in (None, "speed"):
        readings = record.readings(name)
        assert readings.tolist() == [1e6 / 0.5, 2e6 / 0.8, 4e6 / 1.5]
        with pytest.raises(ValueError, match="read-only"):
            readings[0] = 1.0
