"""Jobs in processes of their own, as hosts run them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchrigor.workbench.executors import LocalExecutor
from benchrigor.workbench.on_host import (
    HostBusy,
    HostLock,
    Job,
    Outcome,
    Token,
    carry_out_job,
)
from benchrigor.workbench.pool import Pool, on_host

SHELL = "subprocess:getoutput"
MINE, OTHER = Token(owner="a", number=5), Token(owner="b", number=1)
CLOCK = Path(__file__).parents[2] / "simulations" / "clock_ahead.py"
VERSION = r'sed -u "s/\"version\": \"[^\"]*/\"version\": \"99.0/" | "$0" "$@"'


def job_of(call: str, folder: Path, **arguments: object) -> Job:
    own = {"host": "elm", "token": MINE, "lock_folder": str(folder)}
    return Job(call=call, arguments=arguments, alone=False, watched=False, **own)


def run(job: Job, *prefix: str) -> Outcome:
    """Run a job in a process, which a command may start."""
    executor = LocalExecutor([job.host], prefix=prefix)
    outcome = executor.run(job.host, job)
    executor.close()
    return outcome


def pool_in(folder: Path, owner: str = "a") -> Pool:
    return Pool(LocalExecutor(["elm", "oak"]), owner=owner, lock_folder=str(folder))


def wait_until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 300.0
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_what_a_job_prints_is_no_outcome(tmp_path: Path) -> None:
    outcome = run(job_of("builtins:print", tmp_path, sep="x"))
    assert (outcome.failure, outcome.value) == ("", None)


def test_what_a_job_leaves_running_ends_soon_after_its_outcome(tmp_path: Path) -> None:
    began_s = time.monotonic()
    outcome = run(job_of(SHELL, tmp_path, cmd="sleep 600 > /dev/null 2>&1 & echo $!"))
    left = int(outcome.value)
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE
    assert time.monotonic() - began_s < 9.0  # an unwanted job may take ten to end


def test_a_job_that_cannot_be_asked_is_lost(tmp_path: Path, monkeypatch) -> None:
    def no_more() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("os.pipe", no_more)
    outcome = run(job_of("builtins:print", tmp_path))
    assert (outcome.kind, outcome.failure) == ("lost", "elm cannot be asked: Too many open files")


def test_other_versions_are_refused_whatever_fields_they_send(tmp_path: Path) -> None:
    outcome = run(job_of("builtins:dict", tmp_path), "sh", "-c", VERSION)
    assert outcome.kind == "refused"
    assert "99.0" in outcome.failure


@pytest.mark.parametrize(
    ("owner", "number", "boot", "kind"),
    [
        ("b", 1, {}, "busy"),
        ("a", 9, {}, "late"),
        ("a", 5, {}, "done"),
        ("a", 1, {}, "done"),
        ("b", 1, {"boot": "before"}, "done"),  # taken over
    ],
)
def test_a_host_is_held_or_the_job_is_refused(
    tmp_path: Path, owner: str, number: int, boot: dict[str, str], kind: str
) -> None:
    HostLock("elm", Token(owner=owner, number=number), folder=tmp_path, **boot).take()
    outcome = carry_out_job(job_of("builtins:dict", tmp_path, x=1), lambda: None)
    assert (outcome.kind, outcome.value) == (kind, {"x": 1} if kind == "done" else None)
    assert outcome.taken_over_from == ("b" if boot else "")


@pytest.mark.parametrize(
    ("call", "arguments", "kind"),
    [
        ("os:listdir", {"path": "no such folder"}, "refused"),  # a host without space or packages
        ("builtins:complex", {"real": 1}, "failed"),  # what is no JSON
        ("math:nothing", {}, "failed"),
    ],
)
def test_a_host_that_is_not_fit_says_nothing_of_what_was_to_be_measured(
    tmp_path: Path, call: str, arguments: Any, kind: str
) -> None:
    assert carry_out_job(job_of(call, tmp_path, **arguments), lambda: None).kind == kind
    (tmp_path / "file").touch()  # where no lock can be
    assert carry_out_job(job_of("builtins:dict", tmp_path / "file"), int).kind == "refused"


@pytest.mark.parametrize(("others", "is_disturbed"), [(0.0, False), (0.4, False), (0.9, True)])
def test_what_others_use_disturbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: float, *, is_disturbed: bool
) -> None:
    begun_s = time.monotonic()
    monkeypatch.setattr(on_host, "_busy_s", lambda: others * (time.monotonic() - begun_s))
    monkeypatch.setattr(on_host, "_own_s", lambda: 0.0)
    monkeypatch.setattr(on_host, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(on_host, "_LOOK_S", 0.01)
    job = replace(job_of("time:monotonic", tmp_path), watched=True)
    outcome = carry_out_job(job, lambda: None)
    assert (outcome.disturbed != "") == is_disturbed


def test_a_second_controller_is_refused_and_after_the_first_it_is_not(tmp_path: Path) -> None:
    """All hosts of a gang are held, each of its names."""
    with pool_in(tmp_path) as first:
        first.submit("builtins:dict", {"hosts": []}, n_hosts=2).result()
        with pool_in(tmp_path, "b") as second:
            for host in ("elm", "oak"):
                with pytest.raises(HostBusy):
                    second.submit("builtins:dict", {}, first=host).result()
    with pool_in(tmp_path, "b") as second:
        done = second.submit("builtins:dict", {}, first="elm").result()
    assert (done.failure, done.taken_over_from) == ("", "")


def test_closing_ends_what_is_under_way_and_what_that_has_started(tmp_path: Path) -> None:
    """Its process sees that nobody asks any more, as when the controller is killed."""
    child = tmp_path / "child"
    cmd = f"sleep 600 & echo $! > {child}.part; mv {child}.part {child}; wait"
    pool = pool_in(tmp_path)
    job = pool.submit(SHELL, {"cmd": cmd}, first="elm")
    wait_until(child.exists)
    pool.close()
    assert job.result(60.0).failure
    pid = int(child.read_text())
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")
    lock = HostLock("elm", OTHER, folder=tmp_path)
    lock.take()  # nobody holds it
    assert lock.taken_over_from == ""


@pytest.mark.parametrize("said", ["nonsense", "[]", '{"kind": 3}'])
def test_what_is_no_outcome_is_lost(tmp_path: Path, said: str) -> None:
    says = ("sh", "-c", f"echo '{said}'; cat > /dev/null")
    assert run(job_of("builtins:dict", tmp_path), *says).kind == "lost"


def test_a_job_that_does_not_end_in_time_is_lost_although_it_gives_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it has begun, reads its job, and gives signs of life for ever."""
    said = "echo begun; read job; while :; do echo; sleep 0.05; done"
    monkeypatch.setattr("benchrigor.workbench.executors._GRACE_S", 0.01)
    job = replace(job_of("builtins:dict", tmp_path), limit_s=0.05)
    assert run(job, "sh", "-c", said).kind == "lost"


@pytest.mark.parametrize("said", ["", "echo begun; "])
def test_a_long_job_that_nobody_reads_is_lost_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr("benchrigor.workbench.executors._GRACE_S", 0.01)
    job = replace(job_of("builtins:dict", tmp_path, x="x" * 200_000), limit_s=0.05)
    outcome = run(job, "sh", "-c", f"{said}exec sleep 30")
    assert (outcome.kind, "within" in outcome.failure) == ("lost", True)


@pytest.mark.parametrize(("said", "code"), [("exec >&-; sleep 30", -9), ("exit 3", 3)])
def test_a_process_without_an_outcome_is_lost_also_if_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int
) -> None:
    monkeypatch.setattr("benchrigor.workbench.executors._GRACE_S", 2.0 if code > 0 else 0.01)
    outcome = run(job_of("builtins:dict", tmp_path), "sh", "-c", said)
    assert (outcome.kind, f"ended with {code}" in outcome.failure) == ("lost", True)


def test_a_host_of_another_version_is_named_whichever_side_is_newer(tmp_path: Path) -> None:
    """Hosts of all versions say first that they have begun, and read the job only then."""
    said = """echo begun; read job; echo '{"kind": "refused", "failure": "elm has 0.1"}'; cat"""
    assert run(job_of("builtins:dict", tmp_path), "sh", "-c", said).failure == "elm has 0.1"


def test_a_start_is_the_same_moment_by_the_clock_of_a_host(tmp_path: Path) -> None:
    """It is an hour ahead, begins late, and then receives its job slowly."""
    slow = 'sleep 0.5; { dd bs=1 count=1 2> /dev/null; sleep 0.5; cat; } | exec "$0" "$@"'
    start_s = time.monotonic() + 9.0
    job = replace(job_of("builtins:dict", tmp_path, start_s=start_s), host="oak")
    outcome = run(job, "sh", "-c", slow, sys.executable, str(CLOCK), "oak")
    assert (outcome.kind, outcome.failure) == ("done", "")
    assert 0.0 <= outcome.value["start_s"] - start_s - 3600.0 < 0.4  # without its own start
