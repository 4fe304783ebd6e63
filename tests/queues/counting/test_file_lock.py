"""Only one at a time holds the lock of a file, with flock and without it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from benchrigor.queues.counting import file_lock
from benchrigor.queues.counting.file_lock import locked


@pytest.fixture(params=["flock", "a file beside"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param != "flock":
        monkeypatch.setattr(file_lock, "fcntl", None)
    elif file_lock.fcntl is None:
        pytest.skip("this system has no flock")
    made = tmp_path / "work.cells"
    made.write_bytes(b"0")
    return made


def test_threads_take_turns(path: Path) -> None:
    def add() -> None:
        for _ in range(20):
            with locked(path):
                path.write_text(str(int(path.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert path.read_text() == "80"
    assert list(path.parent.iterdir()) == [path]


def test_it_is_let_go_when_the_work_fails(path: Path) -> None:
    with pytest.raises(KeyError), locked(path):
        raise KeyError
    with locked(path):
        pass


def test_a_file_that_is_not_there_cannot_be_locked(path: Path) -> None:
    path.unlink()
    with pytest.raises(FileNotFoundError), locked(path):
        pass


def test_a_lock_file_whose_holder_died_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lock, "fcntl", None)
    monkeypatch.setattr(file_lock, "_PAUSE_S", 0.0)
    path = tmp_path / "work.cells"
    path.touch()
    path.with_suffix(".lock").touch()
    with locked(path):
        pass
    assert list(tmp_path.iterdir()) == [path]
