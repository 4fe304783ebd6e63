import numpy as np
import pytest

from benchrigor.errors import InvalidInput

NAME = "pytest-benchmark-5.3.1.json"


def test_data_are_seconds_per_call_in_one_series(sample, document) -> None:
    found = sample(NAME)
    for each in document(NAME)["benchmarks"]:
        (only,) = found[each["fullname"]].rounds
        assert only.unit_readings["time"].mean() == pytest.approx(each["stats"]["mean"], rel=1e-12)
        assert only.facts["inner_loop"] == each["stats"]["iterations"] == 20
        assert found[each["fullname"]].unit == "series"


def test_parameters_machine_and_commit_are_told(sample) -> None:
    found = sample(NAME)["test_pb.py::test_sum[10]"]
    assert found.parameters == {"n": 10, "answer": "a|b"}
    assert found.provenance.commit == "afea83191391cf855b46c15c465261997923f5a8"
    assert (found.provenance.cores, found.provenance.cpu) == (2, "AMD EPYC")
    assert found.provenance.environment["commit.branch"] == "master"


def test_the_clock_of_the_processor_does_not_tell_machines_apart(held, document) -> None:
    data = document(NAME)
    before = held(data)[0].provenance
    data["machine_info"]["cpu"]["hz_actual"] = [1, 0]
    after = held(data)[0].provenance
    assert (before.host, before.machine) == (after.host, after.machine)


def test_wrong_data_are_named(held, document) -> None:
    data = document(NAME)
    data["benchmarks"][1]["stats"]["data"][2] = float("nan")
    with pytest.raises(InvalidInput, match=r"benchmarks\[1\] stats.data\[2\] is nan"):
        held(data)
    data["benchmarks"][1]["stats"] = {"data": [1.0], "iterations": 0}
    with pytest.raises(InvalidInput, match="has 0 for 'iterations', expected 1 or more"):
        held(data)
    assert np.isfinite(before := held(document(NAME))[0].rounds[0].unit_readings["time"]).all()
    assert before.size == 60
