"""Files of other tools, analysed as runs are."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Code, RunRecord
from benchrigor.testing import SyntheticWorkload

DATA = Path(__file__).parents[2] / "formats" / "data"


@pytest.fixture
def hyperfine(tmp_path):
    """Write a file of hyperfine with these times, and return its path."""

    def write(times: object, name: str = "hyperfine.json", command: str = "sort") -> Path:
        path = tmp_path / name
        held = {"command": command, "times": [float(each) for each in np.asarray(times)]}
        path.write_text(json.dumps({"results": [held]}))
        return path

    return write


@pytest.fixture
def pyperf(tmp_path):
    """Write a file of pyperf with a process for each row."""

    def write(processes: object, name: str) -> Path:
        runs = [{"values": [float(x) for x in each]} for each in np.asarray(processes)]
        path = tmp_path / name
        benchmark = {"runs": runs, "metadata": {"name": "sort", "unit": "second"}}
        path.write_text(json.dumps({"version": "1.0", "benchmarks": [benchmark]}))
        return path

    return write


def noise(n: int, seed: int, cv: float = 0.02) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).lognormal(0.0, cv, n))


@pytest.mark.slow
def test_loading_the_package_loads_neither_formats_nor_pyperf() -> None:
    code = (
        "import sys, benchrigor as br; br.measure; br.Session; "
        "print([m for m in sys.modules if m.startswith(('benchrigor.formats', 'pyperf'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_cold_first_run_of_hyperfine_does_not_count_and_is_told(hyperfine) -> None:
    times = [0.31, *(0.1 * noise(9, 2))]
    (record,) = br.read_results(hyperfine(times))
    assert record.estimate().high < 0.11
    assert Code.START_CUT in {each.code for each in record.notices}
    assert record.readings()[0] == 0.31


def test_processes_are_invocations_and_their_spread_is_in_the_interval(pyperf) -> None:
    levels = noise(20, 3, 0.03)
    processes = [level * noise(5, 10 + index, 0.001) for index, level in enumerate(levels)]
    (record,) = br.read_results(pyperf(processes, "a.json"))
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
        assert not {Code.NOT_CONVERGED, Code.NO_DATA} & {each.code for each in record.notices}


def test_verdicts_on_files_name_their_process_only_where_that_is_so(hyperfine, pyperf) -> None:
    one, other = 0.1 * noise(40, 5), 0.1 * noise(40, 6)
    pairs = [
        br.read_results(hyperfine(each, name)) for each, name in ((one, "a"), (other * 1.2, "b"))
    ]
    comparison = br.compare_runs(*(records[0] for records in pairs))
    assert comparison.verdict is br.Verdict.WORSE
    assert [notice.code for notice in comparison.notices] == [Code.NO_COMMON_PACE]
    lines = [
        [{"name": "sort", "unit": "s", "value": float(x)} for x in each] for each in (one, other)
    ]
    sides = []
    for index, rows in enumerate(lines):
        path = hyperfine(one, f"{index}.ndjson")
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        sides += br.read_results(path)
    codes = {each.code for each in br.compare_runs(*sides).notices}
    assert Code.THIS_PROCESS_ONLY in codes


def test_machines_that_differ_are_told(held_hosts) -> None:
    codes = {each.code for each in br.compare_runs(*held_hosts("a", "b")).notices}
    assert Code.HOSTS_DIFFER in codes
    codes = {each.code for each in br.compare_runs(*held_hosts("a", "a")).notices}
    assert Code.HOSTS_DIFFER not in codes


@pytest.fixture
def held_hosts(tmp_path):
    """Read results of pytest-benchmark as from machines with these names."""

    def read(*hosts: str) -> list[RunRecord]:
        data, found = json.loads((DATA / "pytest-benchmark-5.3.1.json").read_text()), []
        for index, host in enumerate(hosts):
            data["machine_info"]["node"] = host
            path = tmp_path / f"{index}.json"
            path.write_text(json.dumps(data))
            found.append(br.read_results(path)[1])
        return found

    return read


def test_other_options_judge_a_saved_record_anew(tmp_path) -> None:
    session = br.Session(br.Options(max_rounds=5), seed=1)
    path = tmp_path / "record.json"
    session.run(SyntheticWorkload(seed=1)).save(path)
    (record,) = br.read_results(path, options=br.Options(statistic="median"))
    assert record.options.statistic == "median"
    assert "median" in str(record)
    assert record.estimate() is not None
