"""Files of other tools, analysed as runs are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.session.telling import codes

import benchrigor as br
from benchrigor.model import Code, RunRecord
from benchrigor.testing import SyntheticWorkload

DATA = Path(__file__).parents[1] / "formats" / "data"


def read(path: Path, found: object) -> RunRecord:
    """Write a file of one benchmark, and read it."""
    path.write_text(json.dumps(found))
    (record,) = br.read_results(path)
    return record


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
