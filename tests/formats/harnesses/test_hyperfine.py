import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Code


def test_each_time_is_of_a_process_and_the_first_is_kept(sample) -> None:
    found = sample("hyperfine.json")["sort -n a.txt"]
    assert found.unit == "process"
    assert len(found.rounds) == 40
    assert found.rounds[0].readings == {"time": 0.31, "memory": 1900544.0}
    assert [(each.name, each.unit) for each in found.metrics] == [("time", "s"), ("memory", "B")]
    assert sample("hyperfine.json")["sort --parallel=2 a.txt"].parameters == {"threads": "2"}


def test_runs_that_failed_are_told(held) -> None:
    result = {"command": "a", "times": [1.0, 2.0, 3.0], "exit_codes": [0, 1, None]}
    (found,) = held({"results": [result]})
    (notice,) = found.notices
    assert notice.code is Code.FAILED_RUNS
    assert notice.evidence["failed"] == 2


def test_means_alone_are_no_readings(held) -> None:
    (found,) = held({"results": [{"command": "a", "mean": 1.0, "stddev": None}]})
    assert found.rounds == ()
    assert "only mean 1. To keep the readings, run hyperfine" in found.notices[0].sentence


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"times": []}, r"results\[0\] times is empty"),
        ({"times": "1"}, "times is '1', expected a list"),
        ({"times": [1.0, "NaN"]}, r"times\[1\] is 'NaN', expected a number"),
        ({"times": [1.0, 2.0], "memory_usage_byte": [1]}, "fewer memory_usage_byte than times"),
        ({"command": 3, "times": [1.0]}, "command is 3, expected a text"),
    ],
)
def test_wrong_fields_are_named(held, fields, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        held({"results": [{"command": "a", **fields}]})


def test_measurements_of_version_2_are_metrics(sample, document) -> None:
    name, command = "hyperfine-2.0.0.json", "sort --parallel=2 a.txt"
    found, data = sample(name)[command], document(name)["results"][1]
    wall = [each["time_wall_clock"]["value"] for each in data["measurements"]]
    assert [each.readings["time"] for each in found.rounds] == wall
    assert [(each.name, each.unit) for each in found.metrics] == [
        *(("time", "s"), ("time_cpu", "s"), ("time_user", "s"), ("time_system", "s")),
        ("memory", "B"),
    ]
    assert found.parameters == {"threads": "2"}
    assert found.provenance.packages == {"hyperfine": "2.0.0"}
    assert found.provenance.system == "Linux x86_64"


def test_the_primary_metric_of_version_2_is_the_first(held, document) -> None:
    data = document("hyperfine-2.0.0.json") | {"primary_metric": "memory_peak_resident"}
    data["results"][0]["measurements"][1]["time_cpu"]["value"] = None
    first, second = held(data)
    assert [each.name for each in first.metrics] == ["memory", "time", "time_user", "time_system"]
    assert [each.must_satisfy for each in second.metrics] == [True, False, False, False, False]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": 3}, "schema_version 3 of hyperfine, expected 2"),
        ({"value": "NaN"}, r"results\[0\] time_wall_clock\[0\] is 'NaN', expected a number"),
        ({"unit": "fortnight"}, r"time_wall_clock is in fortnight, second, expected one of"),
        ({"primary_metric": "instructions"}, r"instructions\[0\] is None, expected"),
        ({"measurements": []}, "time_wall_clock is empty"),
        ({"measurements": [1]}, r"measurements\[0\] is 1, expected an object"),
    ],
)
def test_what_is_wrong_in_version_2_is_named(held, document, change, said) -> None:
    data = document("hyperfine-2.0.0.json")
    first = data["results"][0]
    first["measurements"][0]["time_wall_clock"] |= change
    first |= {key: change[key] for key in change if key == "measurements"}
    with pytest.raises(InvalidInput, match=said):
        held(data | {key: change[key] for key in change if key in data})


@pytest.mark.parametrize("name", ["hyperfine.csv", "hyperfine-2.0.0.csv"])
def test_a_csv_is_shown_as_the_means_it_holds(sample, name) -> None:
    for each in sample(name).values():
        (notice,) = each.notices
        assert {"mean", "stddev", "median", "min", "max", "cure"} <= notice.evidence.keys()
