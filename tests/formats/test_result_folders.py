"""Folders of results: of asv and criterion."""

import shutil
from pathlib import Path

import pytest
from tests.formats.written_files import DATA

import benchrigor as br
from benchrigor.model import Code

ENVIRONMENT = "existing-py_tmp_venv_bin_python"
LENGTH, MEMORY = "b.Sum.track_length(10, 'list')", "b.peakmem_list"
FIRST = f"asv-0.6.6/host1/1f4885ef-{ENVIRONMENT}.json"


def test_of_asv_the_last_parameter_runs_first(sample, document) -> None:
    samples = document(FIRST)["results"]["b.Sum.time_sum"][11]
    second = sample(FIRST)["b.Sum.time_sum(10, 'tuple')"]
    assert second.subject["parameters"] == {"n": "10", "kind": "'tuple'"}
    assert second.readings().tolist() == samples[1]
    assert second.facts["inner_loop"] == document(FIRST)["results"]["b.Sum.time_sum"][9][1]


def test_of_asv_units_are_those_of_the_benchmarks_beside_it(sample, held, document) -> None:
    found = sample(FIRST)
    assert found[LENGTH].metrics[0].unit == "items"
    assert found[MEMORY].metrics[0].unit == "B"
    assert found[MEMORY].readings().tolist() == [24657920.0]
    alone = {each.name: each for each in held(document(FIRST))}
    assert alone[LENGTH].metrics[0].unit == ""
    assert alone[LENGTH].subject["parameters"] == {"0": "10", "1": "'list'"}


def test_of_asv_commit_and_machine_are_told(sample) -> None:
    where = sample(FIRST)[MEMORY].provenance
    assert where.commit == "1f4885efa5ae50640f0e0f6be0ed8e29ae72b360"
    assert (where.host, where.started_at) == ("host1", "2026-11-27T09:07:37+00:00")


@pytest.fixture
def folder(tmp_path):
    """Copy the sample, in which two commits of one machine are."""
    return Path(shutil.copytree(DATA / "asv-0.6.6", tmp_path / "results"))


@pytest.mark.parametrize("name", ["", "host1"])
def test_of_a_folder_the_latest_commit_is_read_with_its_units(folder, name) -> None:
    found = {each.name: each for each in br.read_results(folder / name)}
    assert len(found) == 13
    commits = {each.provenance.commit for each in found.values()}
    assert commits == {"477407a03d91a71516f77a93e4efa25aec220d61"}
    assert found[LENGTH].metrics[0].unit == "items"
    assert found["b.timeraw_import"].metrics[0].unit == "s"
    for each in ("b.time_broken", "b.Sum.time_sum(1000, 'tuple')"):
        assert Code.NO_RAW_READINGS in {notice.code for notice in found[each].notices}


def test_of_asv_machines_and_environments_are_told_apart(folder) -> None:
    shutil.copytree(folder / "host1", folder / "host2")
    names = {each.name for each in br.read_results(folder)}
    assert len(names) == 26
    assert f"{MEMORY} [host2, {ENVIRONMENT}]" in names


def test_of_criterion_times_are_divided_by_calls_that_grow(sample) -> None:
    found = sample("criterion")
    assert [*found] == ["slow", "sum/fold/1000"]
    linear = found["sum/fold/1000"]
    assert linear.readings() == pytest.approx(950e-9, rel=0.1)
    assert linear.facts["inner_loop"] == 50
    told = {"value_str": "1000", "throughput": {"Elements": 1000}}
    assert linear.subject["parameters"] == told


def test_one_baseline_of_criterion_can_be_read_by_itself(tmp_path, evidence) -> None:
    (found,) = br.read_results(DATA / "criterion" / "slow" / "base")
    assert found.name == "slow"
    folder = Path(shutil.copytree(DATA / "criterion" / "slow", tmp_path / "slow"))
    (folder / "new" / "sample.json").unlink()
    (found,) = br.read_results(folder)
    assert evidence(found, Code.NO_RAW_READINGS)["mean"] == 4.2e6
