import json
import shutil
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.formats.recognition import results_in
from benchrigor.model import Code

DATA = Path(__file__).parents[1] / "data"

FOLDER = DATA / "asv-0.6.6"
ENVIRONMENT = "existing-py_tmp_venv_bin_python"
NAME = f"asv-0.6.6/host1/1f4885ef-{ENVIRONMENT}.json"


def test_the_last_parameter_runs_first(sample, document) -> None:
    found = sample(NAME)
    samples = document(NAME)["results"]["b.Sum.time_sum"][11]
    second = found["b.Sum.time_sum(10, 'tuple')"]
    assert second.parameters == {"n": "10", "kind": "'tuple'"}
    (only,) = second.rounds
    assert only.unit_readings["time"].tolist() == samples[1]
    assert only.facts["inner_loop"] == document(NAME)["results"]["b.Sum.time_sum"][9][1]


def test_units_are_those_of_the_benchmarks_beside_it(sample, held, document) -> None:
    found = sample(NAME)
    assert found["b.Sum.track_length(10, 'list')"].metrics[0].unit == "items"
    assert found["b.peakmem_list"].metrics[0].unit == "B"
    assert found["b.peakmem_list"].rounds[0].unit_readings["memory"].tolist() == [24657920.0]
    alone = {each.name: each for each in held(document(NAME))}
    assert alone["b.Sum.track_length(10, 'list')"].metrics[0].unit == ""
    assert alone["b.Sum.track_length(10, 'list')"].parameters == {"0": "10", "1": "'list'"}


def test_the_commit_is_told(sample) -> None:
    where = sample(NAME)["b.peakmem_list"].provenance
    assert where.commit == "1f4885efa5ae50640f0e0f6be0ed8e29ae72b360"
    assert (where.host, where.started_at) == ("host1", "2026-11-27T09:07:37+00:00")


def test_without_samples_there_are_no_readings(held, document) -> None:
    data = document(NAME)
    row = data["results"]["b.Sum.time_sum"]
    data["results"] = {"b.Sum.time_sum": row[:11]}
    data["results"]["b.Sum.time_sum"][0][3] = None
    *others, failed = held(data)
    assert all("asv run with --record-samples" in each.notices[0].sentence for each in others)
    assert failed.notices[0].code is Code.NO_RAW_READINGS
    assert "failed, or was skipped" in failed.notices[0].sentence


def test_another_version_is_refused(held, document) -> None:
    with pytest.raises(InvalidInput, match="version 1 of asv, expected 2"):
        held({**document(NAME), "version": 1})
    with pytest.raises(InvalidInput, match="is 3, expected a list"):
        held({**document(NAME), "results": {"a": 3}})


@pytest.fixture
def folder(tmp_path):
    """Copy the sample, in which two commits of one machine are."""
    return Path(shutil.copytree(FOLDER, tmp_path / "results"))


@pytest.mark.parametrize("name", ["", "host1"])
def test_of_a_folder_the_latest_commit_is_read_with_its_units(folder, name) -> None:
    found = {each.name: each for each in results_in(folder / name)}
    assert len(found) == 13
    commits = {each.provenance.commit for each in found.values()}
    assert commits == {"477407a03d91a71516f77a93e4efa25aec220d61"}
    assert found["b.Sum.track_length(10, 'list')"].metrics[0].unit == "items"
    assert found["b.timeraw_import"].metrics[0].unit == "s"
    for each in ("b.time_broken", "b.Sum.time_sum(1000, 'tuple')"):
        assert "failed, or was skipped" in found[each].notices[0].sentence


def test_machines_and_environments_are_told_apart(folder) -> None:
    shutil.copytree(folder / "host1", folder / "host2")
    names = {each.name for each in results_in(folder)}
    assert len(names) == 26
    assert f"b.peakmem_list [host2, {ENVIRONMENT}]" in names


def test_a_folder_without_commits_and_a_broken_file_in_it_are_errors(folder) -> None:
    path = folder / "host1" / f"1f4885ef-{ENVIRONMENT}.json"
    path.write_text(path.read_text()[:500])
    with pytest.raises(InvalidInput, match=r"1f4885ef.* cannot be read as JSON"):
        results_in(folder)
    path.write_text("[1]")
    with pytest.raises(InvalidInput, match=r"1f4885ef.* is a list, expected an object"):
        results_in(folder)
    shutil.rmtree(folder / "host1")
    with pytest.raises(InvalidInput, match=r"is a folder without results, expected .*of asv"):
        results_in(folder)


def test_a_list_of_benchmarks_that_is_broken_is_an_error(folder) -> None:
    (folder / "benchmarks.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"benchmarks\.json cannot be read as JSON"):
        results_in(folder)


def test_an_earlier_commit_can_be_read_by_itself(folder) -> None:
    path = folder / "host1" / f"1f4885ef-{ENVIRONMENT}.json"
    assert json.loads(path.read_text())["commit_hash"] == results_in(path)[0].provenance.commit
