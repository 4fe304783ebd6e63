"""What is written for other tools holds what was measured, and their own readers take it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyperf
import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Metric, Options, Round, RunRecord
from benchrigor.model.readings import WARM_UP
from benchrigor.report.writers.formats import write_records
from benchrigor.session import Engine

DATA = Path(__file__).parents[2] / "formats" / "data"
READABLE = [
    *("pyperf-2.11.0.json", "pyperf-2.11.0-memory.json.gz", "pytest-benchmark-5.3.1.json"),
    *("hyperfine.json", "criterion", "go.txt", "jmeter.csv", "k6.csv", "k6.ndjson", "vegeta.csv"),
]
HOSTILE = ["<script>|`", "a\nb\x1b[2J\r", "\u202egnp", ' " quoted, ', "x" * 5000, "µ\ud800"]


def told(*rounds: dict[str, Any], name: str = "a", metrics: Any = None, **options: Any) -> Any:
    """Return the record of rounds with these readings."""
    options |= {"max_rounds": len(rounds), "target": 1e-9}
    engine = Engine(Options(**options), metrics, name=name, recorded=True)
    for each in rounds:
        plan = engine.ask()
        assert plan is not None
        engine.tell(Round(plan=plan, elapsed_ns=1000, **each))
    return engine.result()


def processes(n: int = 8, *, seed: int = 1, **others: Any) -> RunRecord:
    rng = np.random.default_rng(seed)
    rounds = [{"unit_readings": {"time": rng.normal(1e-3, 1e-5, 10)}} for _ in range(n)]
    return told(*rounds, rounds="restarted", **others)


def as_suite(records: list[RunRecord]) -> Any:
    return pyperf.BenchmarkSuite.loads(write_records(records, "pyperf").text)


def kept_of(record: RunRecord) -> list[float]:
    """Return the readings that count, by the table of all readings."""
    head, *rows = csv.reader(io.StringIO(write_records([record], "csv").text))
    table = [dict(zip(head, row, strict=True)) for row in rows]
    main = table[0]["metric"]
    return [float(r["value"]) for r in table if r["kept"] == "yes" and r["metric"] == main]


@pytest.mark.parametrize("name", READABLE)
def test_pyperf_reads_what_was_written_of_each_tool_and_finds_the_same_mean(name: str) -> None:
    records = br.read_results(DATA / name)
    suite = as_suite(records)
    assert suite.get_benchmark_names() == [each.name for each in records]
    for record, benchmark in zip(records, suite, strict=True):
        readings = kept_of(record) if record.estimate() else record.readings()
        assert benchmark.mean() == pytest.approx(np.mean(readings), rel=1e-12)
        n_all = sum(len(run.values) + len(run.warmups) for run in benchmark.get_runs())
        names = (record.metrics[0].name, f"{WARM_UP}{record.metrics[0].name}")
        held = [each.unit_readings.get(name, ()) for each in record.rounds for name in names]
        single = sum(names[0] in each.readings for each in record.rounds)
        assert n_all == sum(map(len, held)) + single


def test_a_file_of_pyperf_keeps_its_values_warm_up_and_metadata() -> None:
    before = pyperf.BenchmarkSuite.load(str(DATA / "pyperf-2.11.0.json"))
    after = as_suite(br.read_results(DATA / "pyperf-2.11.0.json"))
    for old, new in zip(before, after, strict=True):
        assert new.mean() == pytest.approx(old.mean(), rel=1e-12)
        for was, run in zip(old.get_runs(), new.get_runs(), strict=True):
            assert sorted([*was.values, *(v for _, v in was.warmups)]) == sorted(
                [*run.values, *(v for _, v in run.warmups)]
            )
            assert was.get_total_loops() == run.get_total_loops()
        lost = {"loops", "inner_loops"}
        assert {*old.get_metadata()} - lost <= {*new.get_metadata()}
        assert new.get_metadata()["cpu_model_name"] == old.get_metadata()["cpu_model_name"]
        assert new.get_dates() is not None


def test_processes_are_runs_and_the_number_agrees() -> None:
    record = processes()
    (benchmark,) = as_suite([record])
    assert benchmark.get_nrun() == 8
    estimate = record.estimate()
    assert estimate is not None
    assert benchmark.mean() == pytest.approx(estimate.value, rel=1e-12)
    assert benchmark.get_metadata()["benchrigor_low"] == estimate.low


def test_one_series_is_one_run_whose_warm_up_does_not_count() -> None:
    rng = np.random.default_rng(1)
    series = np.where(np.arange(1000) < 100, 2.0, 1.0) + rng.normal(0.0, 0.05, 1000)
    record = told(*({"unit_readings": {"time": part}} for part in np.split(series, 4)))
    (benchmark,) = as_suite([record])
    (run,) = benchmark.get_runs()
    assert len(run.warmups) == 1000 - record.analyses[0].n_kept > 100
    assert [value for _, value in run.warmups[:100]] == series[:100].tolist()
    assert benchmark.mean() == pytest.approx(np.mean(kept_of(record)), rel=1e-12)


def test_what_is_read_again_is_the_same_benchmark(tmp_path: Path) -> None:
    record, path = processes(), tmp_path / "again.json"
    path.write_text(write_records([record], "pyperf").text)
    (again,) = br.read_results(path)
    assert again.name == record.name
    assert again.estimate().value == pytest.approx(record.estimate().value, rel=1e-12)
    assert len(again.rounds) == 8


def test_without_a_number_all_readings_are_values_and_it_is_said() -> None:
    drift = np.linspace(1.0, 2.0, 400)
    record = told({"unit_readings": {"time": drift}})
    assert record.estimate() is None
    document = write_records([record], "pyperf")
    (benchmark,) = pyperf.BenchmarkSuite.loads(document.text)
    assert benchmark.get_values() == tuple(drift)
    assert "no number" in document.remarks[0]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_taken_by_pyperf_and_by_readers_of_json(name: str, strict: Any) -> None:
    record = processes(name=name)
    assert len(as_suite([record])) == 1
    for to in ("bencher", "github"):
        assert strict(write_records([record], to).text)


def test_names_that_are_one_to_pyperf_are_an_error() -> None:
    with pytest.raises(InvalidInput, match="by pyperf"):
        write_records([processes(name="a"), processes(name=" a")], "pyperf")


def test_facts_that_pyperf_would_refuse_are_left_out() -> None:
    facts = {"mem_max_rss": -5, "date": "yesterday", "unit": "byte", "a": "b\nc", "b": "", "c": 1}
    facts |= {"d": float("nan")}
    rounds = [{"unit_readings": {"time": [1.0, 1.1]}, "facts": facts} for _ in range(4)]
    (benchmark,) = as_suite([told(*rounds, rounds="restarted")])
    metadata = benchmark.get_metadata()
    assert metadata["c"] == 1
    assert metadata["unit"] == "second"
    assert not {"mem_max_rss", "date", "a", "b", "d"} & metadata.keys()


@pytest.mark.parametrize(
    ("metric", "values", "unit", "mean"),
    [
        (Metric(name="t", unit="ms"), [2.0, 4.0], "second", 0.003),
        (Metric(name="m", unit="B"), [10.0, 20.0], "byte", 15.0),
        (Metric(name="n", direction="lower", kind="other"), [3.0, 5.0], "integer", 4.0),
    ],
)
def test_units_become_those_of_pyperf(metric: Metric, values: Any, unit: str, mean: float) -> None:
    rounds = [{"unit_readings": {metric.name: values}} for _ in range(6)]
    (benchmark,) = as_suite([told(*rounds, rounds="restarted", metrics=[metric])])
    assert benchmark.get_unit() == unit
    assert benchmark.mean() == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "values", "said"),
    [
        (Metric(name="r", unit="req/s"), [2.0, 4.0], r"r of a is in req/s \(higher is better\)"),
        (Metric(name="r", unit="points"), [2.0, 4.0], "r of a is in points, expected a time"),
        (Metric(name="d", unit="s", kind="other"), [2.0, 4.0], "d of a is in s"),
        (Metric(name="t", unit="s"), [0.0, 1.0], "a is refused by pyperf: values must be"),
    ],
)
def test_what_pyperf_cannot_hold_is_refused(metric: Metric, values: Any, said: str) -> None:
    rounds = [{"unit_readings": {metric.name: values}} for _ in range(6)]
    record = told(*rounds, rounds="restarted", metrics=[metric])
    with pytest.raises(InvalidInput, match=said):
        write_records([record], "pyperf")


def test_all_readings_are_in_the_table_with_what_the_tool_took_as_warm_up() -> None:
    records = br.read_results(DATA / "pyperf-2.11.0.json")
    head, *rows = csv.reader(io.StringIO(write_records(records, "csv").text))
    assert head[:5] == ["benchmark", "metric", "unit", "round", "index"]
    before = [row for row in rows if row[4].startswith("-")]
    assert {(row[6], row[7]) for row in before} == {("warm-up", "no")}
    n = sum(len(r.unit_readings[f"{WARM_UP}time"]) for each in records for r in each.rounds)
    assert len(before) == n


def test_bencher_gets_intervals_in_its_own_units() -> None:
    document = json.loads(write_records(br.read_results(DATA / "hyperfine.json"), "bencher").text)
    record = br.read_results(DATA / "hyperfine.json")[0]
    latency = document[record.name]["latency"]
    assert latency["value"] == pytest.approx(1e9 * record.headline().value)
    assert latency["lower_value"] < latency["value"] < latency["upper_value"]
    assert document[record.name].keys() >= {"latency", "memory"}


def test_the_list_for_github_has_one_direction_and_says_which() -> None:
    document = write_records([processes()], "github")
    (entry,) = json.loads(document.text)
    assert entry.keys() >= {"name", "unit", "value", "range"}
    assert "customSmallerIsBetter" in document.remarks[-1]
    rate = told({"unit_readings": {"r": np.arange(1, 13.0)}}, name="b", metrics=RATE, trim="none")
    assert "customBiggerIsBetter" in write_records([rate], "github").remarks[-1]
    with pytest.raises(InvalidInput, match="is better"):
        write_records([processes(), rate], "github")


RATE = [Metric(name="r", unit="req/s")]


@pytest.mark.parametrize("to", ["pyperf", "csv", "bencher", "github"])
def test_what_has_no_readings_is_left_out_and_alone_it_is_an_error(to: str) -> None:
    records = br.read_results(DATA / "google-benchmark.json")
    if to in ("csv", "bencher"):
        document = write_records(records, to)
        assert document.size == 2
    with pytest.raises(NotEstimable, match="--export-json"):
        write_records(br.read_results(DATA / "hyperfine.csv"), to)
