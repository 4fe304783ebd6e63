"""Files of other tools, each as its tool writes them, and folders of results."""

import json
import shutil
from pathlib import Path

import pytest
from tests.formats.written_files import DATA, lines, point

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Code

GOOGLE = "google-benchmark.json"
PYTEST = "pytest-benchmark-5.3.1.json"


@pytest.mark.parametrize(
    "changed",
    [
        *({"runs": [{"values": [wrong]}]} for wrong in (0.0, -1.0, "a")),
        *({"metadata": wrong} for wrong in ({}, {"name": "a", "unit": "furlong"})),
    ],
)
def test_what_pyperf_refuses_is_an_error(held, changed) -> None:
    benchmark = {"runs": [{"values": [1.0]}], "metadata": {"name": "a"}, **changed}
    with pytest.raises(InvalidInput):
        held({"version": "1.0", "benchmarks": [benchmark]})


def test_of_pytest_benchmark_a_machine_is_the_same_at_another_pace(held, document) -> None:
    data = document(PYTEST)
    before = held(data)[0].provenance
    data["machine_info"]["cpu"]["hz_actual"] = [1, 0]
    after = held(data)[0].provenance
    assert (after.host, after.machine) == (before.host, before.machine)


def test_the_primary_metric_of_hyperfine_2_is_the_first(held, document) -> None:
    data = document("hyperfine-2.0.0.json") | {"primary_metric": "memory_peak_resident"}
    data["results"][0]["measurements"][1]["time_cpu"]["value"] = None
    first, second = held(data)
    assert [each.name for each in first.metrics] == ["memory", "time", "time_user", "time_system"]
    assert [each.must_satisfy for each in second.metrics] == [True, False, False, False, False]


def test_failed_runs_of_hyperfine_are_counted(held, evidence) -> None:
    result = {"command": "a", "times": [1.0, 2.0, 3.0], "exit_codes": [0, 1, None]}
    (found,) = held({"results": [result]})
    assert evidence(found, Code.FAILED_RUNS)["failed"] == 2


def older(*rows: tuple[str, float]) -> dict[str, object]:
    """Return a file as versions before 1.5 write it: rows do not say what they are."""
    each = {"iterations": 9, "time_unit": "ns"}
    told = [{"name": name, "real_time": time, "cpu_time": time, **each} for name, time in rows]
    return {"context": {"date": "2018-11-20 10:00:00", "num_cpus": 8}, "benchmarks": told}


def test_before_1_5_rows_of_aggregates_are_no_benchmarks(held, evidence) -> None:
    means = [(f"BM_Copy/8{end}", 1.0) for end in ("_mean", "_median", "_stddev", "_cv")]
    (found,) = held(older(*(("BM_Copy/8", time) for time in (12.0, 13.0)), *means))
    assert (found.name, len(found.rounds)) == ("BM_Copy/8", 2)
    (found,) = held(older(*means))
    told = evidence(found, Code.NO_RAW_READINGS)
    assert (told["mean"], told["median"]) == (1.0, 1.0)
    (found,) = held(older(("BM_mean", 1.0), ("BM_mean", 2.0)))  # a benchmark of means
    assert (found.name, len(found.rounds)) == ("BM_mean", 2)


def test_benchmarks_of_one_name_are_told_apart_by_their_threads(held, document) -> None:
    data = document(GOOGLE)
    rows = [each for each in data["benchmarks"] if each["name"] == "BM_Copy/8"]
    data["benchmarks"] = [*rows, *({**each, "threads": 4} for each in rows)]
    assert [each.name[10:] for each in held(data)] == ["(threads=1)", "(threads=4)"]
    data["benchmarks"] = [*rows, *({**each, "family_index": 4} for each in rows)]
    assert [each.name for each in held(data)] == ["BM_Copy/8", "BM_Copy/8 #2"]


def test_repetitions_of_google_that_failed_are_counted(held, document, evidence) -> None:
    data = document(GOOGLE)
    data["benchmarks"][1] |= {"error_occurred": True}
    first = held(data)[0]
    assert len(first.rounds) == 7
    assert evidence(first, Code.FAILED_RUNS) == {"failed": 1, "total": 8}


@pytest.mark.parametrize(
    ("unit", "base", "factor"),
    [
        ("ns/op", "s", 1e-9),
        ("ns/GC", "s", 1e-9),
        ("ms", "s", 1e-3),
        ("min/op", "s", 60.0),
        ("ops/us", "ops/s", 1e6),
        ("MB/s", "MB/s", 1.0),
        ("allocs/op", "allocs", 1.0),
        *((unit, unit, 1.0) for unit in ("p99-us", "%", "furlongs")),
    ],
)
def test_times_become_seconds_and_rates_per_second(held, unit, base, factor) -> None:
    (found,) = held(f"BenchmarkA-8 10 3 {unit}\nBenchmarkA-8 10 4 {unit}\n")
    assert found.metrics[0].unit == base
    assert found.readings() == pytest.approx([3.0 * factor, 4.0 * factor], rel=1e-15)


HEAD = "goos: linux\ngoarch: amd64\npkg: p\ncpu: %s\n"
END = "PASS\nok  \tp\t1.2s\n"


def test_a_configuration_that_changes_makes_other_results(held) -> None:
    line = "BenchmarkA-8 10 %d ns/op\n"
    text = f"commit: a\n{line % 3}{line % 3}commit: b\n{line % 9}{line % 9}"
    old, new = held(text)
    assert (old.name, new.name) == ("BenchmarkA-8 (commit=a)", "BenchmarkA-8 (commit=b)")
    assert (old.provenance.commit, new.provenance.commit) == ("a", "b")
    assert new.readings() == pytest.approx([9e-9] * 2)
    one, other = held(HEAD % "X" + line % 3 + END + HEAD % "Y" + line % 3 + END)
    assert (one.name, other.provenance.cpu) == ("BenchmarkA-8 (cpu=X)", "Y")


def test_what_go_test_writes_as_json_is_read_as_its_text(held) -> None:
    printed = [
        *("goos: linux\n", "pkg: p\n", "=== RUN   BenchmarkA\n", "BenchmarkA\n"),
        *("BenchmarkA-8   \t", "     100\t        12.5 ns/op\n", "BenchmarkA-8   \t"),
        *("a log\n", "     100\t        12.7 ns/op\n", "PASS\n"),
    ]
    events = [{"Action": "start", "Package": "p"}]
    events += [{"Action": "output", "Package": "p", "Output": each} for each in printed]
    events += [{"Action": "pass", "Package": "p", "Elapsed": 1.2}]
    (found,) = held("".join(json.dumps(each) + "\n" for each in events))
    assert (found.name, found.subject["parameters"]["pkg"]) == ("BenchmarkA-8", "p")
    assert found.readings() == pytest.approx([12.5e-9, 12.7e-9])


LOGS = [
    "BenchmarkA-8   \tstarting\n     100\t        12 ns/op\n",
    "BenchmarkA-8   \t2026/11/28 18:54:42 a\n2026/11/28 18:54:42 b\n     100\t        12 ns/op\n",
    "BenchmarkA-8   \tno line end     100\t        12 ns/op\n",
    "BenchmarkA-8   \t\nkey: value\n     100\t        12 ns/op\t       3 B/op\n",
]


@pytest.mark.parametrize("log", LOGS)
def test_a_result_behind_what_was_logged_is_read(held, log) -> None:
    (found,) = held(log + "BenchmarkA-8   \t     100\t        12 ns/op\n")
    assert found.readings() == pytest.approx([12e-9] * 2)
    assert found.subject["parameters"] == {"procs": "8"}


def test_a_name_without_a_result_is_lost_and_said_to_be(held, evidence) -> None:
    good = "BenchmarkA-8 10 3 ns/op\n"
    lost = "BenchmarkA-8   \tpanic\nBenchmarkB-8   \t--- FAIL: BenchmarkB-8\n    b_test.go: no\n"
    first, second = held(good + good + lost + "FAIL\n")
    assert evidence(first, Code.FAILED_RUNS) == {"failed": 1, "total": 3}
    assert second.rounds == ()
    assert evidence(second, Code.NO_RAW_READINGS) == {}


def test_what_is_written_about_benchmarks_is_none(held) -> None:
    (found,) = held("Benchmarking 3 things:\nBenchmark results of today\nBenchmarkA 10 3 ns/op\n")
    assert (found.name, found.session_notices) == ("BenchmarkA", ())


def test_units_that_not_all_repetitions_have_are_left_out(held, evidence) -> None:
    (found,) = held("BenchmarkA 10 3 ns/op 4 B/op\nBenchmarkA 10 3 ns/op\n")
    assert [each.name for each in found.metrics] == ["time"]
    assert evidence(found, Code.NOT_READ) == {"units": "B/op"}


def test_methods_and_statuses_are_requests_of_their_own(held, evidence) -> None:
    sent = [("GET", "200", 12.0), ("POST", "201", 80.0), ("GET", "503", 0.4)] * 3
    points = [
        point(metric, value, name="http://a/", method=method, status=status)
        for method, status, time in sent
        for metric, value in (
            ("http_req_duration", time),
            ("http_req_failed", int(status == "503")),
        )
    ]
    found = {each.name: each for each in held(lines(*points)["a"])}
    assert [*found] == ["GET http://a/ 200", "POST http://a/ 201", "GET http://a/ 503"]
    assert found["GET http://a/ 200"].readings().tolist() == [0.012, 0.012, 0.012]
    for status in ("503", "200"):
        told = evidence(found[f"GET http://a/ {status}"], Code.FAILED_RUNS)
        assert told == {"failed": 3, "total": 6}
    assert found["POST http://a/ 201"].session_notices == ()


def test_checks_of_k6_that_failed_are_told_of_every_request(held, evidence) -> None:
    requests = [point("http_req_duration", 12.0, name=name) for name in "aabb"]
    checks = [point("checks", value, check="ok") for value in (1, 1, 1, 0)]
    for each in held(lines(*requests, *checks)["a"]):
        assert evidence(each, Code.FAILED_RUNS) == {"failed": 1, "total": 4}


@pytest.mark.parametrize("nested", [True, False])
def test_a_summary_of_k6_tells_what_failed(held, document, nested) -> None:
    counts = {"passes": 1, "fails": 3}
    data = document("k6-summary.json")
    for name in ("checks", "http_req_failed"):
        data["metrics"][name] = {"values": counts} if nested else counts
    (found,) = held(data)
    failed = [each for each in found.notices if each.code is Code.FAILED_RUNS]
    assert [each.evidence["failed"] for each in failed] == [3, 1]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_targets_of_vegeta_that_come_back_are_told_apart(held, form) -> None:
    line = (
        '{"seq": %d, "code": 200, "timestamp": "t", "latency": 1, "method": "GET", "url": "%s"}\n'
        if form == "json"
        else '1795200000000000000,200,1,0,0,"","",load,%d,GET,%s,\n'
    )
    attack = "vegeta" if form == "json" else "load"
    found = held("".join(line % (n, "ab"[n % 2]) for n in range(6)))
    assert [each.name for each in found] == [f"{attack} GET a", f"{attack} GET b"]
    (found,) = held("".join(line % (n, f"item/{n}") for n in range(6)))  # each once
    assert (found.name, found.readings().size) == (attack, 6)


def test_a_list_of_values_is_read_as_json_lines(held) -> None:
    units = {"a": "s", "b": "MB"}
    rows = [{"name": n, "unit": units[n], "value": value} for value in (1.0, 2.0) for n in units]
    one, other = held(rows)
    assert [one.metrics[0].unit, other.metrics[0].unit] == ["s", "MB"]
    assert one.readings().tolist() == [1.0, 2.0]
    assert held(rows[0])[0].readings().tolist() == [1.0]


def test_what_convert_writes_for_github_is_read_back_as_numbers(
    tmp_path: Path, cli, evidence
) -> None:
    written = tmp_path / "history.json"
    assert cli("convert", DATA / "hyperfine.json", written, "--to", "github").exit_code == 0
    numbers = {each["name"]: each["value"] for each in json.loads(written.read_text())}
    assert len(numbers) == 2
    for each in br.read_results(written):
        assert each.rounds == ()
        assert evidence(each, Code.NO_RAW_READINGS)["value"] == numbers[each.name]
    assert cli("analyze", written).exit_code == 4


ENVIRONMENT = "existing-py_tmp_venv_bin_python"
LENGTH, MEMORY = "b.Sum.track_length(10, 'list')", "b.peakmem_list"
FIRST = f"asv-0.6.6/host1/1f4885ef-{ENVIRONMENT}.json"


def test_of_asv_without_the_benchmarks_beside_it_units_are_unknown(held, document) -> None:
    alone = {each.name: each for each in held(document(FIRST))}
    assert alone[LENGTH].metrics[0].unit == ""
    assert alone[LENGTH].subject["parameters"] == {"0": "10", "1": "'list'"}


def test_of_asv_machines_and_environments_are_told_apart(tmp_path) -> None:
    folder = Path(shutil.copytree(DATA / "asv-0.6.6", tmp_path / "results"))
    shutil.copytree(folder / "host1", folder / "host2")
    names = {each.name for each in br.read_results(folder)}
    assert len(names) == 26
    assert f"{MEMORY} [host2, {ENVIRONMENT}]" in names


def test_of_criterion_without_readings_the_means_are_told(tmp_path, evidence) -> None:
    folder = Path(shutil.copytree(DATA / "criterion" / "slow", tmp_path / "slow"))
    (folder / "new" / "sample.json").unlink()
    (found,) = br.read_results(folder)
    assert evidence(found, Code.NO_RAW_READINGS)["mean"] == 4.2e6
