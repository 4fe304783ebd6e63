"""Files of pyperf, pytest-benchmark, hyperfine, google-benchmark and JMH."""

import re

import numpy as np
import pyperf
import pytest
from tests.formats.written_files import DATA

from benchrigor.errors import InvalidInput
from benchrigor.model import Code
from benchrigor.units import Direction

GOOGLE = "google-benchmark.json"
WARM_UP = "warm-up: time"
PYTEST = "pytest-benchmark-5.3.1.json"


def test_means_of_pyperf_agree_with_those_it_shows(sample) -> None:
    found = sample("pyperf-2.11.0.json")
    for each in pyperf.BenchmarkSuite.load(str(DATA / "pyperf-2.11.0.json")).get_benchmarks():
        record = found[each.get_name()]
        assert record.readings().mean() == pytest.approx(each.mean(), rel=1e-12)
        assert record.subject["unit"] == "process"


def test_each_run_of_pyperf_is_a_round_and_warm_up_is_kept_beside_it(sample) -> None:
    calibration, *measured = sample("pyperf-2.11.0.json")["sort 100"].rounds
    assert [*calibration.unit_readings] == [WARM_UP]
    assert calibration.n_readings == 0
    assert [each.n_readings for each in measured] == [3] * 12
    assert all(each.unit_readings[WARM_UP].size == 1 for each in measured)
    assert all(each.facts["inner_loop"] == 8192 for each in measured)
    assert all(each.facts["mem_max_rss"] > 0 for each in measured)


def test_of_pyperf_machine_and_interpreter_are_told(sample) -> None:
    where = sample("pyperf-2.11.0.json")["dict"].provenance
    assert (where.cpu, where.cores) == ("AMD EPYC", 2)
    assert re.fullmatch(r"cpython 3\.\d+\.\d+ \(64-bit\)", where.python)
    assert where.packages == {"pyperf": "2.11.0"}
    assert {"aslr", "boot_time", "python_executable"} <= where.environment.keys()


def test_bytes_of_pyperf_are_memory(sample) -> None:
    (found,) = sample("pyperf-2.11.0-memory.json.gz").values()
    assert found.metrics[0].unit == "B"
    assert "inner_loop" not in found.rounds[0].facts


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


def test_data_of_pytest_benchmark_are_seconds_per_call_in_one_series(sample, document) -> None:
    found = sample(PYTEST)
    for each in document(PYTEST)["benchmarks"]:
        (only,) = found[each["fullname"]].rounds
        assert only.unit_readings["time"].mean() == pytest.approx(each["stats"]["mean"], rel=1e-12)
        assert only.unit_readings["time"].size == 60
        assert only.facts["inner_loop"] == each["stats"]["iterations"] == 20
        assert found[each["fullname"]].subject["unit"] == "series"


def test_of_pytest_benchmark_parameters_machine_and_commit_are_told(sample, held, document) -> None:
    found = sample(PYTEST)["test_pb.py::test_sum[10]"]
    assert found.subject["parameters"] == {"n": 10, "answer": "a|b"}
    assert found.provenance.commit == "afea83191391cf855b46c15c465261997923f5a8"
    assert (found.provenance.cores, found.provenance.cpu) == (2, "AMD EPYC")
    assert found.provenance.environment["commit.branch"] == "master"
    data = document(PYTEST)
    data["machine_info"]["cpu"]["hz_actual"] = [1, 0]  # the same machine a moment later
    after = held(data)[0].provenance
    assert (after.host, after.machine) == (found.provenance.host, found.provenance.machine)


def test_each_time_of_hyperfine_is_of_a_process_and_the_first_is_kept(sample) -> None:
    found = sample("hyperfine.json")["sort -n a.txt"]
    assert (found.subject["unit"], len(found.rounds)) == ("process", 40)
    assert found.rounds[0].readings == {"time": 0.31, "memory": 1900544.0}
    assert [(each.name, each.unit) for each in found.metrics] == [("time", "s"), ("memory", "B")]
    other = sample("hyperfine.json")["sort --parallel=2 a.txt"]
    assert other.subject["parameters"] == {"threads": "2"}


def test_measurements_of_hyperfine_2_are_metrics(sample, document) -> None:
    name, command = "hyperfine-2.0.0.json", "sort --parallel=2 a.txt"
    found, data = sample(name)[command], document(name)["results"][1]
    wall = [each["time_wall_clock"]["value"] for each in data["measurements"]]
    assert found.readings().tolist() == wall
    assert [(each.name, each.unit) for each in found.metrics] == [
        *(("time", "s"), ("time_cpu", "s"), ("time_user", "s"), ("time_system", "s")),
        ("memory", "B"),
    ]
    assert found.subject["parameters"] == {"threads": "2"}
    assert found.provenance.packages == {"hyperfine": "2.0.0"}
    assert found.provenance.system == "Linux x86_64"


def test_the_primary_metric_of_hyperfine_2_is_the_first(held, document) -> None:
    data = document("hyperfine-2.0.0.json") | {"primary_metric": "memory_peak_resident"}
    data["results"][0]["measurements"][1]["time_cpu"]["value"] = None
    first, second = held(data)
    assert [each.name for each in first.metrics] == ["memory", "time", "time_user", "time_system"]
    assert [each.must_satisfy for each in second.metrics] == [True, False, False, False, False]


def test_failed_runs_of_hyperfine_are_counted_and_means_of_a_csv_shown(
    held, sample, evidence
) -> None:
    result = {"command": "a", "times": [1.0, 2.0, 3.0], "exit_codes": [0, 1, None]}
    (found,) = held({"results": [result]})
    assert evidence(found, Code.FAILED_RUNS)["failed"] == 2
    for name in ("hyperfine.csv", "hyperfine-2.0.0.csv"):
        for each in sample(name).values():
            told = evidence(each, Code.NO_RAW_READINGS)
            assert {"mean", "stddev", "median", "min", "max", "cure"} <= told.keys()


def test_repetitions_of_google_are_readings_and_rows_of_means_are_none(sample) -> None:
    found = sample(GOOGLE)
    assert [*found] == ["BM_Copy/8", "BM_Copy/512/threads:2", "BM_Broken"]
    first = found["BM_Copy/8"]
    assert (first.subject["unit"], len(first.rounds)) == ("repetition", 8)
    assert 8.0e-8 < first.rounds[0].readings["time"] < 8.7e-8
    assert first.rounds[0].facts["inner_loop"] == 8123456
    assert found["BM_Copy/512/threads:2"].subject["parameters"]["threads"] == 2
    metrics = {each.name: each for each in first.metrics}  # counters that are finite
    assert [*metrics] == ["time", "cpu_time", "misses"]
    assert not metrics["misses"].must_satisfy


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


def test_forks_of_jmh_are_rounds(sample, document) -> None:
    found = sample("jmh.json")["org.example.B.sum avgt (n=10)"]
    raw = document("jmh.json")[0]["primaryMetric"]["rawData"]
    assert found.subject["unit"] == "fork"
    held = [each.unit_readings["time"] for each in found.rounds]
    assert np.array(held) == pytest.approx(np.array(raw) * 1e-6, rel=1e-12)
    assert found.subject["parameters"] == {"n": "10", "threads": 1}
    assert found.provenance.environment["jdkVersion"] == "17.0.15"
    # Numbers that stand as words are no readings.
    assert [each.name for each in found.metrics] == ["time", "·gc.alloc.rate.norm"]


def test_of_throughput_more_is_better_and_iterations_take_equal_times(sample) -> None:
    (metric,) = sample("jmh.json")["org.example.B.sum thrpt (n=10)"].metrics
    assert (metric.unit, metric.direction) == ("ops/s", Direction.HIGHER)
    assert metric.averaging == "arithmetic"


def test_sampled_calls_give_a_mean_for_each_iteration_in_order(sample) -> None:
    readings = sample("jmh.json")["org.example.B.sum sample (n=10)"].readings()
    assert readings.size == 25
    assert readings == pytest.approx((1.9 * 300 + 2.1 * 290 + 18) / 592 * 1e-6, rel=0.02)
