import re

import numpy as np
import pyperf
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model.readings import WARM_UP


def test_means_agree_with_those_of_pyperf(sample, request) -> None:
    path = request.path.parents[1] / "data" / "pyperf-2.11.0.json"
    found = sample(path.name)
    for each in pyperf.BenchmarkSuite.load(str(path)).get_benchmarks():
        rounds = found[each.get_name()].rounds
        values = np.concatenate([r.unit_readings.get("time", []) for r in rounds])
        assert values.mean() == pytest.approx(each.mean(), rel=1e-12)
        assert found[each.get_name()].unit == "process"


def test_each_run_is_a_round_and_warm_up_is_kept_beside_it(sample) -> None:
    rounds = sample("pyperf-2.11.0.json")["sort 100"].rounds
    calibration, *measured = rounds
    assert [*calibration.unit_readings] == [f"{WARM_UP}time"]
    assert calibration.n_readings == 0
    assert [each.n_readings for each in measured] == [3] * 12
    assert all(each.unit_readings[f"{WARM_UP}time"].size == 1 for each in measured)
    assert all(each.facts["inner_loop"] == 8192 for each in measured)
    assert all(each.facts["mem_max_rss"] > 0 for each in measured)


def test_machine_and_interpreter_are_told(sample) -> None:
    where = sample("pyperf-2.11.0.json")["dict"].provenance
    assert where.cpu == "AMD EPYC"
    assert where.cores == 2
    assert re.fullmatch(r"cpython 3\.\d+\.\d+ \(64-bit\)", where.python)
    assert where.packages == {"pyperf": "2.11.0"}
    assert {"aslr", "boot_time", "python_executable"} <= where.environment.keys()


def test_bytes_are_memory(sample) -> None:
    (found,) = sample("pyperf-2.11.0-memory.json.gz").values()
    assert found.metrics[0].unit == "B"
    assert "inner_loop" not in found.rounds[0].facts


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": "2.0"}, "version '2.0' of pyperf, expected '1.0'"),
        ({"values": [0.0]}, "is refused by pyperf"),
        ({"values": [-1.0]}, "is refused by pyperf"),
        ({"values": ["a"]}, "is refused by pyperf"),
        ({"metadata": {}}, "is refused by pyperf"),
        ({"metadata": {"name": "a", "unit": "furlong"}}, "is refused by pyperf"),
    ],
)
def test_what_pyperf_refuses_is_an_error(held, change, said) -> None:
    run = {"values": change.get("values", [1.0])}
    metadata = change.get("metadata", {"name": "a"})
    benchmark = {"runs": [run], "metadata": metadata}
    with pytest.raises(InvalidInput, match=said):
        held({"version": change.get("version", "1.0"), "benchmarks": [benchmark]})
