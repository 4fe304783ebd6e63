import pytest

from benchrigor.errors import InvalidInput

NAME = "google-benchmark.json"


def test_repetitions_are_readings_and_rows_of_means_are_none(sample) -> None:
    found = sample(NAME)
    assert [*found] == ["BM_Copy/8", "BM_Copy/512/threads:2", "BM_Broken"]
    first = found["BM_Copy/8"]
    assert (first.unit, len(first.rounds)) == ("repetition", 8)
    assert 8.0e-8 < first.rounds[0].readings["time"] < 8.7e-8
    assert first.rounds[0].facts["inner_loop"] == 8123456
    assert found["BM_Copy/512/threads:2"].parameters["threads"] == 2


def test_counters_that_are_not_finite_are_left_out(sample) -> None:
    metrics = {each.name: each for each in sample(NAME)["BM_Copy/8"].metrics}
    assert [*metrics] == ["time", "cpu_time", "misses"]
    assert not metrics["misses"].must_satisfy


def test_an_error_is_told(sample) -> None:
    assert sample(NAME)["BM_Broken"].notices[0].sentence == "It failed: no file."


def test_means_alone_are_no_readings(held, document) -> None:
    data = document(NAME)
    data["benchmarks"] = [each for each in data["benchmarks"] if "aggregate_name" in each]
    for each in held(data):
        assert "without --benchmark_report_aggregates_only" in each.notices[0].sentence
        assert each.notices[0].evidence["median"] > 0


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("real_time", float("nan"), r"real_time\[0\] is nan"),
        ("real_time", None, r"real_time\[0\] is None, expected a number"),
        ("time_unit", "fortnight", "time_unit 'fortnight', expected ns, us, ms or s"),
        ("iterations", 0, "has 0 for 'iterations'"),
        ("name", None, "name is None, expected a text"),
    ],
)
def test_wrong_fields_are_named(held, document, field, value, said) -> None:
    data = document(NAME)
    data["benchmarks"][3][field] = value
    with pytest.raises(InvalidInput, match=rf"benchmarks\[3\].*{said}"):
        held(data)


def older(*rows: tuple[str, float]) -> dict[str, object]:
    """Return a file as versions before 1.5 write it: rows do not say what they are."""
    each = {"iterations": 9, "time_unit": "ns"}
    told = [{"name": name, "real_time": time, "cpu_time": time, **each} for name, time in rows]
    return {"context": {"date": "2018-11-20 10:00:00", "num_cpus": 8}, "benchmarks": told}


def test_before_1_5_rows_of_aggregates_are_no_benchmarks(held) -> None:
    ends = ("_mean", "_median", "_stddev", "_cv")
    means = [(f"BM_Copy/8{end}", 1.0) for end in ends]
    (found,) = held(older(*(("BM_Copy/8", time) for time in (12.0, 13.0)), *means))
    assert (found.name, len(found.rounds)) == ("BM_Copy/8", 2)
    (found,) = held(older(*means))
    assert "only mean 1, median 1" in found.notices[0].sentence
    (found,) = held(older(("BM_mean", 1.0), ("BM_mean", 2.0)))  # a benchmark of means
    assert (found.name, len(found.rounds)) == ("BM_mean", 2)


def test_benchmarks_of_one_name_are_told_apart_by_their_threads(held, document) -> None:
    data = document(NAME)
    rows = [each for each in data["benchmarks"] if each["name"] == "BM_Copy/8"]
    data["benchmarks"] = [*rows, *({**each, "threads": 4} for each in rows)]
    assert [each.name for each in held(data)] == ["BM_Copy/8 (threads=1)", "BM_Copy/8 (threads=4)"]
    data["benchmarks"] = [*rows, *({**each, "family_index": 4} for each in rows)]
    assert [each.name for each in held(data)] == ["BM_Copy/8", "BM_Copy/8 #2"]


def test_repetitions_that_failed_are_counted(held, document) -> None:
    data = document(NAME)
    data["benchmarks"][1] |= {"error_occurred": True}
    first = held(data)[0]
    assert len(first.rounds) == 7
    assert dict(first.notices[0].evidence) == {"failed": 1, "total": 8}
