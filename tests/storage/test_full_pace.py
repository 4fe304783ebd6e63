"""The full pace of machines, kept from run to run."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchrigor.errors import StoreFailed
from benchrigor.storage import full_pace
from benchrigor.storage.full_pace import (
    believe,
    full_pace_path,
    keep_full_pace,
    keep_quiet_run,
    kept_full_pace,
    kept_quiet_runs,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(full_pace, "full_pace_path", lambda: tmp_path / "b" / "full_pace.json")
    return tmp_path / "b"


def test_the_path_is_in_the_folder_of_the_user(tmp_path):
    assert full_pace_path().parts[-2:] == ("benchrigor", "full_pace.json")


def test_nothing_is_known_at_first():
    assert kept_full_pace("here") == {}


def test_the_best_level_is_kept_for_each_machine_and_kind():
    keep_full_pace("here", {"interpreter": 4e-6})
    keep_full_pace("there", {"interpreter": 2e-6})
    keep_full_pace("here", {"interpreter": 3e-6, "command": 0.01})
    keep_full_pace("here", {"interpreter": 5e-6})
    assert kept_full_pace("here") == {"interpreter": 3e-6, "command": 0.01}
    assert kept_full_pace("there") == {"interpreter": 2e-6}


def test_what_is_hardly_better_changes_nothing():
    keep_full_pace("here", {"interpreter": 4e-6})
    keep_full_pace("here", {"interpreter": 3.97e-6})
    assert kept_full_pace("here") == {"interpreter": 4e-6}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[1]",
        '{"here": 3}',
        '{"here": {"interpreter": "x", "command": -1}}',
        '{"here": {"interpreter": 1e-320}}',
        '{"here": {"interpreter": 1e999}}',
        f'{{"here": {{"interpreter": {"9" * 400}}}}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_holds_something_else_is_as_good_as_none(folder, content):
    folder.mkdir()
    (folder / "full_pace.json").write_text(content)
    assert kept_full_pace("here") == {}
    keep_full_pace("here", {"interpreter": 4e-6})
    assert json.loads((folder / "full_pace.json").read_text())["here"] == {"interpreter": 4e-6}


def test_what_a_run_contradicts_is_neither_believed_nor_kept():
    own = {"interpreter": 4e-6, "command": 0.01, "command rest": 1e-3}
    wrong = {"interpreter": 3e-7, "command": 0.002, "command rest": 1e-6}
    keep_full_pace("here", wrong)
    right = {"command": 0.002, "command rest": 1e-6}
    assert believe(wrong, own) == right
    keep_full_pace("here", own)
    assert kept_full_pace("here") == {"interpreter": 4e-6, **right}


def test_a_folder_that_cannot_be_made_is_named(folder):
    folder.write_text("a file")
    with pytest.raises(StoreFailed, match=r"full_pace\.json: cannot be written: .+"):
        keep_full_pace("here", {"interpreter": 4e-6})


def test_processes_that_keep_their_times_at_once_lose_none(folder):
    def keep(number):
        keep_full_pace(f"machine {number}", {"interpreter": 4e-6})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(keep, range(40)))
    assert all(kept_full_pace(f"machine {number}") for number in range(40))
    assert stat.S_IMODE((folder / "full_pace.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_median_references_of_quiet_runs_are_kept_beside_it(folder):
    assert kept_quiet_runs("here") == {}
    keep_quiet_run("here", {})
    assert not folder.exists()
    keep_quiet_run("here", {"interpreter": 4e-6})
    keep_quiet_run("there", {"interpreter": 5e-6})
    keep_quiet_run("here", {"interpreter": 4.1e-6, "command": 0.01})
    assert kept_quiet_runs("here") == {"interpreter": [4e-6, 4.1e-6], "command": [0.01]}
    assert stat.S_IMODE((folder / "quiet_pace.json").stat().st_mode) == 0o600
    for number in range(100):
        keep_quiet_run("here", {"interpreter": 1.0 + number})
    assert kept_quiet_runs("here")["interpreter"][-1] == 100.0
    assert len(kept_quiet_runs("here")["interpreter"]) == 50


@pytest.mark.parametrize(
    "content", ["{", '{"here": {"interpreter": 4e-6}}', '{"here": {"a": [-1]}}']
)
def test_what_is_no_median_is_as_good_as_none(folder, content):
    folder.mkdir()
    (folder / "quiet_pace.json").write_text(content)
    assert kept_quiet_runs("here") == {}
    keep_quiet_run("here", {"interpreter": 4e-6})
    assert kept_quiet_runs("here") == {"interpreter": [4e-6]}


def test_a_quiet_run_that_cannot_be_kept_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(full_pace, "full_pace_path", lambda: tmp_path / "file" / "pace.json")
    with pytest.raises(StoreFailed, match="cannot be written"):
        keep_quiet_run("here", {"interpreter": 4e-6})
