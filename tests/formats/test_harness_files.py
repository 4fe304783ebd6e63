"""Files of pyperf, pytest-benchmark, hyperfine, google-benchmark and JMH."""

import pytest

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
