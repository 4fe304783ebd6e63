"""What is written for other tools and as tables holds what was measured."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyperf
import pytest
from tests.report.recorded import told

import benchrigor as br
from benchrigor.model import Delays, Metric, RunRecord
from benchrigor.stats import estimate_mean

DATA = Path(__file__).parents[1] / "formats" / "data"
READABLE = [
    *("pyperf-2.11.0.json", "pyperf-2.11.0-memory.json.gz", "pytest-benchmark-5.3.1.json"),
    *("hyperfine.json", "criterion", "go.txt", "jmeter.csv", "k6.csv", "k6.ndjson", "vegeta.csv"),
]
HOSTILE = ["<script>|`", "a\nb\x1b[2J\r", "\u202egnp", ' " quoted, ', "x" * 5000, "µ\ud800"]
RATE = Metric(name="r", unit="req/s")


def processes(n: int = 8, **others: Any) -> RunRecord:
    rng = np.random.default_rng(1)
    return told(*rng.normal(1e-3, 1e-5, (n, 10)), rounds="restarted", **others)


Written = Callable[..., tuple[Path, list[str]]]


@pytest.fixture
def written(cli: Any, tmp_path: Path) -> Written:
    """Convert a run, or a file of some tool; return the path and the remarks."""

    def convert(source: RunRecord | str, to: str) -> tuple[Path, list[str]]:
        path = DATA / source if isinstance(source, str) else tmp_path / "in.json"
        if isinstance(source, RunRecord):
            source.save(path)
        done = cli("convert", path, "out", "--to", to, "--force", "--json")
        assert done.exit_code == 0, done.output
        return tmp_path / "out", json.loads(done.stdout)["remarks"]

    return convert


@pytest.fixture
def as_suite(written: Written) -> Callable[[RunRecord | str], Any]:
    return lambda source: pyperf.BenchmarkSuite.load(str(written(source, "pyperf")[0]))


def rows_of(path: Path) -> list[dict[str, str]]:
    return [*csv.DictReader(path.read_text(encoding="utf-8").splitlines())]


def kept_of(table: list[dict[str, str]], name: str) -> list[float]:
    """Return the readings that count, by the table of all readings."""
    own = [row for row in table if row["benchmark"] == name and row["kept"] == "yes"]
    return [float(row["value"]) for row in own if row["metric"] == own[0]["metric"]]


@pytest.mark.parametrize("name", READABLE)
def test_pyperf_reads_what_was_written_of_each_tool_and_finds_the_same_mean(
    written, as_suite, name: str
) -> None:
    records, suite = br.read_results(DATA / name), as_suite(name)
    table = rows_of(written(name, "csv")[0])
    assert suite.get_benchmark_names() == [each.name for each in records]
    for record, benchmark in zip(records, suite, strict=True):
        readings = kept_of(table, record.name) if record.estimate() else record.readings()
        assert benchmark.mean() == pytest.approx(np.mean(readings), rel=1e-12)
        n_all = sum(len(run.values) + len(run.warmups) for run in benchmark.get_runs())
        of = (record.name, record.metrics[0].name)
        assert n_all == sum((row["benchmark"], row["metric"]) == of for row in table)


def test_a_file_of_pyperf_keeps_its_values_warm_up_and_metadata(as_suite) -> None:
    before = pyperf.BenchmarkSuite.load(str(DATA / "pyperf-2.11.0.json"))
    for old, new in zip(before, as_suite("pyperf-2.11.0.json"), strict=True):
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


def test_one_series_is_one_run_whose_warm_up_does_not_count(written, as_suite) -> None:
    rng = np.random.default_rng(1)
    series = np.where(np.arange(1000) < 100, 2.0, 1.0) + rng.normal(0.0, 0.05, 1000)
    record = told(*np.split(series, 4))
    (benchmark,) = as_suite(record)
    (run,) = benchmark.get_runs()
    assert len(run.warmups) == 1000 - record.analyses[0].n_kept > 100
    assert [value for _, value in run.warmups[:100]] == series[:100].tolist()
    kept = kept_of(rows_of(written(record, "csv")[0]), "a")
    assert benchmark.mean() == pytest.approx(np.mean(kept), rel=1e-12)


def test_without_a_number_all_readings_are_values_and_it_is_said(written, as_suite) -> None:
    drift = np.linspace(1.0, 2.0, 400)
    record = told(drift)
    assert record.estimate() is None
    (benchmark,) = as_suite(record)
    assert benchmark.get_values() == tuple(drift)
    assert "no number" in written(record, "pyperf")[1][0]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_taken_by_pyperf_and_by_readers_of_json(
    written, as_suite, name: str, strict: Any
) -> None:
    record = processes(name=name)
    assert len(as_suite(record)) == 1
    for to in ("bencher", "github"):
        assert strict(written(record, to)[0].read_text())


def test_facts_that_pyperf_would_refuse_are_left_out(as_suite) -> None:
    facts = {"mem_max_rss": -5, "date": "yesterday", "unit": "byte", "a": "b\nc", "b": "", "c": 1}
    (benchmark,) = as_suite(told(*[[1.0, 1.1]] * 4, rounds="restarted", facts=facts))
    metadata = benchmark.get_metadata()
    assert (metadata["c"], metadata["unit"]) == (1, "second")
    assert not {"mem_max_rss", "date", "a", "b"} & metadata.keys()


@pytest.mark.parametrize(
    ("metric", "values", "unit", "mean"),
    [
        (Metric(name="t", unit="ms"), [2.0, 4.0], "second", 0.003),
        (Metric(name="m", unit="B"), [10.0, 20.0], "byte", 15.0),
        (Metric(name="n", direction="lower", kind="other"), [3.0, 5.0], "integer", 4.0),
        (RATE, [2.0, 4.0], None, None),
        (Metric(name="r", unit="points"), [2.0, 4.0], None, None),
        (Metric(name="d", unit="s", kind="other"), [2.0, 4.0], None, None),
        (Metric(name="t", unit="s"), [0.0, 1.0], None, None),
    ],
)
def test_units_become_those_of_pyperf_or_are_refused(cli, metric, values, unit, mean) -> None:
    told(*[values] * 6, rounds="restarted", metrics=[metric]).save("in.json")
    assert cli("convert", "in.json", "out.json").exit_code == (0 if unit else 2)
    if unit:
        (benchmark,) = pyperf.BenchmarkSuite.load("out.json")
        assert benchmark.get_unit() == unit
        assert benchmark.mean() == pytest.approx(mean, rel=1e-12)


def test_bencher_gets_intervals_in_its_own_units(written) -> None:
    document = json.loads(written("hyperfine.json", "bencher")[0].read_text())
    record = br.read_results(DATA / "hyperfine.json")[0]
    latency = document[record.name]["latency"]
    assert latency["value"] == pytest.approx(1e9 * record.headline().value)
    assert latency["lower_value"] < latency["value"] < latency["upper_value"]
    assert document[record.name].keys() >= {"latency", "memory"}


def test_the_list_for_github_has_one_direction_and_says_which(written) -> None:
    path, remarks = written(processes(), "github")
    (entry,) = json.loads(path.read_text())
    assert entry.keys() >= {"name", "unit", "value", "range"}
    assert "customSmallerIsBetter" in remarks[-1]
    rate = told(np.arange(1, 13.0), metrics=[RATE], trim="none")
    assert "customBiggerIsBetter" in written(rate, "github")[1][-1]


@pytest.mark.parametrize(
    ("to", "others"), [("github", {"unit": "req/s"}), ("pyperf", {"name": " a"})]
)
def test_benchmarks_that_do_not_fit_beside_each_other_are_refused(cli, to: str, others) -> None:
    row = {"name": "a", "unit": "ms", "values": [1.0, 1.1, 1.2] * 5}
    two = [row, {**row, "name": "b", **others}]
    Path("in.json").write_text("".join(f"{json.dumps(each)}\n" for each in two))
    assert cli("convert", "in.json", "out", "--to", "csv").exit_code == 0
    assert cli("convert", "in.json", "other", "--to", to).exit_code == 2


@pytest.mark.parametrize("to", ["pyperf", "csv", "bencher", "github"])
def test_what_failed_is_left_out_and_what_has_no_readings_is_an_error(cli, written, to) -> None:
    assert cli("convert", DATA / "hyperfine.csv", "alone", "--to", to).exit_code == 4
    if to in ("csv", "bencher"):
        path = written("google-benchmark.json", to)[0]
        names = (
            {row["benchmark"] for row in rows_of(path)}
            if to == "csv"
            else json.loads(path.read_text())
        )
        assert len(names) == 2


Rows = list[dict[str, str]]


@pytest.fixture
def table(cli: Any) -> Callable[[RunRecord, str], Rows]:
    """Return the rows of a table of a run that is exported."""

    def export(record: RunRecord, name: str) -> Rows:
        record.save("record.json")
        assert cli("export", "record.json", "-o", "tables", "--force").exit_code == 0
        return [*csv.DictReader(Path("tables", f"{name}.csv").read_text().splitlines())]

    return export


def column(rows: Rows, name: str, **where: str) -> list[str]:
    return [row[name] for row in rows if all(row[key] == cell for key, cell in where.items())]


def test_what_is_kept_is_what_the_number_is_made_of(table) -> None:
    rng = np.random.default_rng(1)
    series = np.where(np.arange(900) < 90, 2.0, 1.0) + rng.normal(0.0, 0.05, 900)
    record = told(*np.split(series, 3), trim=(0.1, 0.2))
    rows = table(record, "readings")
    assert [*map(float, column(rows, "value"))] == series.tolist()
    places = zip(column(rows, "round"), column(rows, "index"), strict=True)
    assert [(int(a), int(b)) for a, b in places] == [divmod(n, 300) for n in range(900)]
    kept = [*map(float, column(rows, "value", kept="yes"))]
    estimate = record.estimate()
    assert estimate is not None
    assert (len(kept), estimate.value) == (630, estimate_mean(kept).value)
    assert {*column(rows, "phase", kept="yes")} == {"stable"}


def test_restarted_rounds_have_phases_of_their_own_and_red_rounds_have_none(table) -> None:
    rng = np.random.default_rng(2)
    units = [rng.normal(1.0, 0.1, n) for n in (40, 40, 60)]
    delays = Delays(stops=[40], seconds={"run queue": [30.0]})
    options = {"rounds": "restarted", "trim": 0.1, "red_rounds": "repeat", "max_rounds": 2}
    record = told(*units, delays={1: delays}, **options)
    assert record.red_rounds == (1,)
    rows = table(record, "readings")
    assert [column(rows, "round").count(each) for each in "012"] == [40, 40, 60]
    assert [column(rows, "round", kept="yes").count(each) for each in "012"] == [32, 0, 48]
    assert {*column(rows, "phase", round="1")} == {"red round"}
    found = table(record, "rounds")
    assert column(found, "counts") == ["yes", "no", "yes"]
    assert column(found, "delay_s") == ["", "30.0", ""]
