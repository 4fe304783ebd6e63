import json
import shutil
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.formats.recognition import results_in

DATA = Path(__file__).parents[1] / "data" / "criterion"


def test_times_are_divided_by_calls_that_grow(sample) -> None:
    found = sample("criterion")
    assert [*found] == ["slow", "sum/fold/1000"]
    linear = found["sum/fold/1000"]
    (only,) = linear.rounds
    assert only.unit_readings["time"] == pytest.approx(950e-9, rel=0.1)
    assert only.facts["inner_loop"] == 50
    assert linear.parameters == {"value_str": "1000", "throughput": {"Elements": 1000}}


def test_one_baseline_can_be_read_by_itself() -> None:
    (found,) = results_in(DATA / "slow" / "base")
    assert found.name == "slow"


def test_without_samples_there_are_no_readings(tmp_path) -> None:
    folder = Path(shutil.copytree(DATA / "slow", tmp_path / "slow"))
    (folder / "new" / "sample.json").unlink()
    (found,) = results_in(folder)
    assert found.notices[0].evidence["mean"] == 4.2e6


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"times": [1.0], "iters": [1.0, 2.0]}, "1 times and 2 iters"),
        ({"times": [1.0], "iters": [0.0]}, r"iters\[0\] is 0.0, expected 1 call or more"),
        ({"times": [1.0]}, "has no 'iters'"),
        ([], "is a list, expected an object"),
    ],
)
def test_wrong_samples_are_named(tmp_path, sample, said) -> None:
    path = tmp_path / "new" / "sample.json"
    path.parent.mkdir()
    path.write_text(json.dumps(sample))
    with pytest.raises(InvalidInput, match=f"sample.json.* {said}"):
        results_in(tmp_path)
    path.write_text("{")
    with pytest.raises(InvalidInput, match="cannot be read as JSON"):
        results_in(tmp_path)
