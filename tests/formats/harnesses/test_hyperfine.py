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
        ({"times": "1"}, "has '1' for 'times', expected a list"),
        ({"times": [1.0, "NaN"]}, r"times\[1\] is 'NaN', expected a number"),
        ({"times": [1.0, 2.0], "memory_usage_byte": [1]}, "fewer memory_usage_byte than times"),
        ({"command": 3, "times": [1.0]}, "has 3 for 'command', expected a text"),
    ],
)
def test_wrong_fields_are_named(held, fields, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        held({"results": [{"command": "a", **fields}]})
