from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.workbench.on_host import HostBusy, HostLock, Token

MakeLock = Callable[..., HostLock]


class Clock:
    now_s = 1000.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lock_of(tmp_path: Path, clock: Clock) -> MakeLock:
    def make(owner: str, number: int = 1, *, boot: str = "today", **given: Any) -> HostLock:
        token = Token(owner=owner, number=number)
        own = {"host": "elm", "machine": "m", "boot": boot} | given
        return HostLock(token=token, folder=tmp_path, now_s=lambda: clock.now_s, **own)

    return make


@pytest.mark.parametrize(
    ("first", "boot", "now_s", "second", "host", "refused"),
    [
        (("a",), "today", 1059.0, ("b",), "elm", HostBusy),  # also between jobs
        (("a",), "today", 1000.0, ("b",), "oak", HostBusy),  # whatever others call it
        (("a",), "today", 1000.0, ("a",), "oak", WorkloadFailed),  # two names of one machine
        (("a", 2), "today", 1000.0, ("a", 1), "elm", WorkloadFailed),  # an old token
        (("a", 2), "today", 1000.0, ("a", 3), "elm", None),
        (("a",), "yesterday", 5.0, ("b",), "elm", None),  # of an earlier start
        (("a",), "today", 5.0, ("b",), "elm", None),  # as its clock tells
    ],
)
def test_a_lock_is_refused_or_taken_over(  # noqa: PLR0917
    lock_of: MakeLock, clock: Clock, first, boot, now_s, second, host, refused
) -> None:
    lock_of(*first, boot=boot).take()
    clock.now_s, new = now_s, lock_of(*second, host=host)
    if refused is not None:
        with pytest.raises(refused):
            new.take()
    else:
        new.take()
        assert new.taken_over_from == ("a" if second[0] == "b" else "")


def test_a_stale_lock_is_taken_over_and_told(lock_of: MakeLock, clock: Clock) -> None:
    """Signs of life keep a lock alive."""
    dead, new = lock_of("a"), lock_of("b")
    dead.take()
    clock.now_s += 59.0
    assert dead.beat()
    clock.now_s += 59.0
    with pytest.raises(HostBusy):
        new.take()
    clock.now_s += 1.0
    new.take()
    assert new.taken_over_from == "a"
    assert not dead.beat()  # and the dead one does not get it back
    dead.free()
    with pytest.raises(HostBusy):
        lock_of("c").take()
    new.free()
    lock_of("c").take()  # what was freed is anyone's


def test_an_old_job_frees_nothing_of_a_later_one(lock_of: MakeLock) -> None:
    """What a killed controller has left ends while its run goes on already."""
    old, new = lock_of("a", 1), lock_of("a", 2)
    old.take()
    new.take()
    old.free()
    assert new.beat()


@pytest.mark.parametrize(
    "text", ["{", "[]", "3", '{"owner": "a"}', '{"owner":"a","numbers":{},"at_s":"x","boot":""}']
)
def test_a_damaged_lock_is_nobodys(lock_of: MakeLock, tmp_path: Path, text: str) -> None:
    (tmp_path / "m.lock").write_text(text)
    lock_of("b").take()
    with pytest.raises(HostBusy):
        lock_of("c").take()


def test_names_that_are_known_to_be_one_machine_are_held_together(lock_of: MakeLock) -> None:
    elm, oak = lock_of("a", 5, alone=False), lock_of("a", 3, host="oak", alone=False)
    elm.take()
    oak.take()  # its number is its own
    assert elm.beat()
    assert oak.beat()
    elm.free()
    with pytest.raises(HostBusy):
        lock_of("b").take()
    oak.free()
    lock_of("b").take()


def test_machines_that_share_the_folder_are_two(lock_of: MakeLock, tmp_path: Path) -> None:
    """Their names stay in the folder."""
    owners = (("a", "elm", "m"), ("a", "oak", "n"), ("b", "elm", "../elm/1"))
    locks = [lock_of(owner, host=host, machine=machine) for owner, host, machine in owners]
    for lock in locks:
        lock.take()
    assert all(lock.beat() for lock in locks)
    assert {path.parent for path in tmp_path.rglob("*.lock")} == {tmp_path}


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (tmp_path / "m.lock").symlink_to("/dev/full")
    lock = HostLock("elm", Token(owner="a", number=1), folder=tmp_path, machine="m")
    with pytest.raises(WorkloadFailed):
        lock.take()
