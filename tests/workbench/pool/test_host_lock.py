"""The lock of a host: live ones are kept, stale ones taken over, late jobs refused."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.workbench.pool.host_lock import STALE_S, HostBusy, HostLock, LateToken
from benchrigor.workbench.pool.leases import Token

MINE, YOURS = Token(owner="mine", number=5), Token(owner="yours", number=1)


class Clock:
    """A monotonic clock."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lock(folder: Path, token: Token, clock: Clock, *, boot: str = "today") -> HostLock:
    return HostLock("elm", token, folder=folder, now_s=clock, boot=boot)


def test_a_live_lock_of_another_owner_is_refused(tmp_path: Path, clock: Clock) -> None:
    lock(tmp_path, MINE, clock).take()
    clock.now_s += STALE_S - 1.0
    with pytest.raises(HostBusy, match="elm works for mine: a sign of life 59 s ago"):
        lock(tmp_path, YOURS, clock).take()


def test_a_sign_of_life_keeps_it(tmp_path: Path, clock: Clock) -> None:
    mine = lock(tmp_path, MINE, clock)
    mine.take()
    clock.now_s += STALE_S - 1.0
    assert mine.beat()
    clock.now_s += STALE_S - 1.0
    with pytest.raises(HostBusy):
        lock(tmp_path, YOURS, clock).take()


def test_a_stale_lock_is_taken_over_and_that_is_told(tmp_path: Path, clock: Clock) -> None:
    mine, yours = lock(tmp_path, MINE, clock), lock(tmp_path, YOURS, clock)
    mine.take()
    clock.now_s += STALE_S + 1.0
    yours.take()
    assert yours.taken_over_from == "mine"
    assert not mine.beat()  # whoever was only slow sees that the host is not its own any more
    with pytest.raises(HostBusy, match="works for yours"):
        lock(tmp_path, MINE, clock).take()


def test_a_lock_of_before_the_last_start_is_void(tmp_path: Path, clock: Clock) -> None:
    """The monotonic clock begins anew, so its time says nothing."""
    lock(tmp_path, MINE, clock).take()
    clock.now_s = 2.0
    yours = lock(tmp_path, YOURS, clock, boot="tomorrow")
    yours.take()
    assert yours.taken_over_from == "mine"


def test_a_job_that_comes_after_a_later_one_is_refused(tmp_path: Path, clock: Clock) -> None:
    lock(tmp_path, MINE, clock).take()
    with pytest.raises(LateToken, match="a later job of mine"):
        lock(tmp_path, Token(owner="mine", number=4), clock).take()
    lock(tmp_path, MINE, clock).take()  # the same lease may come again
    lock(tmp_path, Token(owner="mine", number=6), clock).take()


def test_a_lock_is_freed_by_its_owner_alone(tmp_path: Path, clock: Clock) -> None:
    lock(tmp_path, MINE, clock).take()
    lock(tmp_path, YOURS, clock).free()
    with pytest.raises(HostBusy):
        lock(tmp_path, YOURS, clock).take()
    lock(tmp_path, Token(owner="mine", number=0), clock).free()
    lock(tmp_path, YOURS, clock).take()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"owner": "mine"}', "null", "7"])
def test_a_file_that_was_cut_off_holds_nobody(tmp_path: Path, clock: Clock, text: str) -> None:
    (tmp_path / "elm.lock").write_text(text)
    lock(tmp_path, YOURS, clock).take()
    assert json.loads((tmp_path / "elm.lock").read_text())["owner"] == "yours"


def test_names_of_hosts_are_names_of_files(tmp_path: Path, clock: Clock) -> None:
    HostLock("../rack 7/elm", MINE, folder=tmp_path, now_s=clock).take()
    assert [each.name for each in tmp_path.iterdir()] == ["..%2Frack%207%2Felm.lock"]


def test_a_full_disk_is_told(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("benchrigor.workbench.pool.host_lock.json.dumps", full)
    with pytest.raises(WorkloadFailed, match=r"the lock of elm cannot be written: .*No space left"):
        lock(tmp_path, MINE, clock).take()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "hosts").write_text("")
    with pytest.raises(WorkloadFailed, match="expected a writable folder with space left"):
        lock(tmp_path / "hosts", MINE, clock).take()
