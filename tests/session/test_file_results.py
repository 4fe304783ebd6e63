"""Files of other tools, analysed as runs are."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.session.telling import codes, steady

import benchrigor as br
from benchrigor.model import Code, RunRecord
from benchrigor.testing import SyntheticWorkload

DATA = Path(__file__).parents[1] / "formats" / "data"


def read(path: Path, found: object) -> RunRecord:
    """Write a file of one benchmark, and read it."""
    path.write_text(json.dumps(found))
    (record,) = br.read_results(path)
    return record


def test_a_cold_first_run_of_hyperfine_does_not_count_and_is_told(tmp_path) -> None:
    times = [0.31, *steady(2, 0.1, 0.02)(9).tolist()]
    record = read(tmp_path / "a.json", {"results": [{"command": "sort", "times": times}]})
    assert record.estimate().high < 0.11
    assert Code.START_CUT in codes(record)
    assert record.readings()[0] == 0.31


def test_processes_are_invocations_and_their_spread_is_in_the_interval(tmp_path) -> None:
    levels = steady(3, cv=0.03)(20)
    runs = [
        {"values": steady(10 + index, level, 0.001)(5).tolist()}
        for index, level in enumerate(levels)
    ]
    benchmark = {"runs": runs, "metadata": {"name": "sort", "unit": "second"}}
    record = read(tmp_path / "a.json", {"version": "1.0", "benchmarks": [benchmark]})
    assert record.analysis().kind == "invocations"
    assert record.estimate().n == 20
    half = 2.09 * levels.std(ddof=1) / np.sqrt(20)
    assert record.estimate().half_width == pytest.approx(half, rel=0.1)


def test_warm_up_counts_nowhere_and_is_saved(tmp_path) -> None:
    (record, _) = br.read_results(DATA / "pyperf-2.11.0.json")
    assert record.readings().size == record.analysis().n == 36
    path = tmp_path / "record.json"
    record.save(path)
    (again,) = br.read_results(path)
    assert again.estimate() == record.estimate()
    assert again.provenance == record.provenance
    kept_apart = "warm-up: time"
    assert [each.unit_readings[kept_apart].size for each in again.rounds][1:] == [1] * 12


@pytest.mark.parametrize("name", [path.name for path in DATA.iterdir() if path.is_file()])
def test_every_sample_is_a_list_of_records_that_can_be_shown_and_saved(name: str) -> None:
    for record in br.read_results(DATA / name):
        assert isinstance(record, RunRecord)
        assert RunRecord.from_dict(record.to_dict()).estimate() == record.estimate()
        assert record.name[:10] in str(record)
        assert "running" not in str(record)
        assert not {Code.NOT_CONVERGED, Code.NO_DATA} & {*codes(record)}


def test_other_options_judge_a_saved_record_anew(tmp_path) -> None:
    session = br.Session(br.Options(max_rounds=5), seed=1)
    path = tmp_path / "record.json"
    session.run(SyntheticWorkload(seed=1)).save(path)
    (record,) = br.read_results(path, options=br.Options(statistic="median"))
    assert record.options.statistic == "median"
    assert "median" in str(record)
    assert record.estimate() is not None


@pytest.mark.parametrize(
    "name", ["hyperfine.json", "pyperf-2.11.0.json", "pytest-benchmark-5.3.1.json"]
)
def test_suites_that_are_not_analysed_first_compare_alike(cli, tmp_path, name):
    again = tmp_path / "again.json"
    again.write_bytes((DATA / name).read_bytes())
    suites = json.loads(cli("compare", DATA / name, again, "--json").stdout)
    compared = suites["suites"]["families"]["again.json"]["comparisons"]
    for record in br.read_results(DATA / name):
        ratio = br.compare_runs(record, record).ratio
        told = compared[record.name]["ratio"]
        found = float(told["low"]), float(told["high"]), told["n"]  # it may be infinite
        assert found == (ratio.low, ratio.high, ratio.n)


def test_a_session_loads_neither_formats_nor_pyperf() -> None:
    code = (
        "import sys, benchrigor as br; br.measure; br.Session; "
        "print([m for m in sys.modules if m.startswith(('benchrigor.formats', 'pyperf'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
