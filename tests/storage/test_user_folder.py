"""The fastest levels of machines, kept from run to run."""

import json
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from simulated.paced import paced_round
from tests.session.telling import told

import benchrigor as br
from benchrigor.errors import StoreFailed
from benchrigor.storage.user_settings import keep_levels, kept_levels


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "benchrigor"


def test_the_levels_of_runs_are_kept_for_each_machine_and_kind():
    assert kept_levels("here") == {}
    keep_levels("here", {"interpreter": (4e-6, 0.5)})
    keep_levels("there", {"interpreter": (2e-6, 1.0)})
    keep_levels("here", {"interpreter": (3e-6, 0.25), "command": (0.01, 1.0)})
    assert kept_levels("here") == {
        "interpreter": [(4e-6, 0.5), (3e-6, 0.25)],
        "command": [(0.01, 1.0)],
    }
    assert kept_levels("there") == {"interpreter": [(2e-6, 1.0)]}


def test_a_level_that_the_last_twenty_runs_did_not_show_is_forgotten():
    keep_levels("here", {"interpreter": (1e-6, 1.0)})
    for number in range(20):
        assert (1e-6, 1.0) in kept_levels("here")["interpreter"]
        keep_levels("here", {"interpreter": (4e-6 + number * 1e-9, 1.0)})
    assert len(kept_levels("here")["interpreter"]) == 20
    assert (1e-6, 1.0) not in kept_levels("here")["interpreter"]


def test_a_level_of_two_weeks_ago_is_forgotten(monkeypatch):
    keep_levels("here", {"interpreter": (1e-6, 1.0)})
    began = time.time()
    for days, is_kept in ((13.9, True), (14.1, False), (-14.1, False)):  # of a clock ahead
        monkeypatch.setattr(time, "time", lambda days=days: began + days * 86_400)
        assert kept_levels("here") == ({"interpreter": [(1e-6, 1.0)]} if is_kept else {})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[1]",
        '{"here": 3}',
        '{"here": {"interpreter": 4e-6}}',
        '{"here": {"interpreter": ["x", [1], [4e9, "x", 1], [4e9, 1e-6, 2], [4e9, 1e-320, 1]]}}',
        f'{{"here": {{"interpreter": [[4e9, {"9" * 400}, 1.0]]}}}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_holds_something_else_is_as_good_as_none(folder, content):
    folder.mkdir()
    (folder / "full_speed.json").write_text(content)
    assert not any(kept_levels("here").values())
    keep_levels("here", {"interpreter": (4e-6, 1.0)})
    assert kept_levels("here") == {"interpreter": [(4e-6, 1.0)]}


def test_a_folder_that_cannot_be_made_is_named(folder):
    folder.write_text("a file")
    with pytest.raises(StoreFailed, match="full_speed"):
        keep_levels("here", {"interpreter": (4e-6, 1.0)})


def test_processes_that_keep_their_levels_at_once_lose_none(folder):
    def keep(number):
        keep_levels("here", {"interpreter": (1e-6 * (1 + number), 1.0)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(keep, range(20)))
    assert len(kept_levels("here")["interpreter"]) == 20
    assert json.loads((folder / "full_speed.json").read_text())
    assert stat.S_IMODE((folder / "full_speed.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_kind_without_recent_levels_does_not_end_a_measurement(monkeypatch):
    keep_levels("here", {"interpreter": (1e-6, 1.0), "command": (1e-2, 1.0)})
    began = time.time()
    monkeypatch.setattr(time, "time", lambda: began + 10.0 * 86_400)
    keep_levels("here", {"interpreter": (1e-6, 1.0)})
    monkeypatch.setattr(time, "time", lambda: began + 15.0 * 86_400)
    kept = kept_levels("here")
    assert kept.keys() == {"interpreter"}
    session = br.Session(br.Options(max_rounds=1), seed=1)
    session.subject.kept_levels = {**kept, "command": []}
    rng = np.random.default_rng(1)
    record = told(session, lambda plan: paced_round(plan, rng, slow_share=0.5))
    assert record.analysis().pace.full_s == {"interpreter": 1e-6}
