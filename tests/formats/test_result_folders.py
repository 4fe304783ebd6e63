"""Folders of results: of asv and criterion."""

import shutil
from pathlib import Path

from tests.formats.written_files import DATA

import benchrigor as br
from benchrigor.model import Code

ENVIRONMENT = "existing-py_tmp_venv_bin_python"
LENGTH, MEMORY = "b.Sum.track_length(10, 'list')", "b.peakmem_list"
FIRST = f"asv-0.6.6/host1/1f4885ef-{ENVIRONMENT}.json"


def test_of_asv_without_the_benchmarks_beside_it_units_are_unknown(held, document) -> None:
    alone = {each.name: each for each in held(document(FIRST))}
    assert alone[LENGTH].metrics[0].unit == ""
    assert alone[LENGTH].subject["parameters"] == {"0": "10", "1": "'list'"}


def test_of_asv_machines_and_environments_are_told_apart(tmp_path) -> None:
    folder = Path(shutil.copytree(DATA / "asv-0.6.6", tmp_path / "results"))
    shutil.copytree(folder / "host1", folder / "host2")
    names = {each.name for each in br.read_results(folder)}
    assert len(names) == 26
    assert f"{MEMORY} [host2, {ENVIRONMENT}]" in names


def test_of_criterion_without_readings_the_means_are_told(tmp_path, evidence) -> None:
    folder = Path(shutil.copytree(DATA / "criterion" / "slow", tmp_path / "slow"))
    (folder / "new" / "sample.json").unlink()
    (found,) = br.read_results(folder)
    assert evidence(found, Code.NO_RAW_READINGS)["mean"] == 4.2e6
