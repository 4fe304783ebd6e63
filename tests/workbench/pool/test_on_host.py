"""Jobs in processes of their own, as hosts run them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from benchrigor.model import codec
from benchrigor.workbench.pool import on_host
from benchrigor.workbench.pool.executors import LocalExecutor, run_job
from benchrigor.workbench.pool.host_lock import HostBusy, HostLock
from benchrigor.workbench.pool.leases import Token
from benchrigor.workbench.pool.on_host import Job, Outcome
from benchrigor.workbench.pool.pool import Pool

SHELL = "subprocess:getoutput"
MINE = Token(owner="a", number=5)


def job_of(call: str, folder: Path, **arguments: object) -> Job:
    own = {"host": "elm", "token": MINE, "lock_folder": str(folder)}
    return Job(call=call, arguments=arguments, alone=False, watched=False, **own)


def asked(text: str) -> Outcome:
    done = subprocess.run(
        [sys.executable, "-m", on_host.__name__],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    begun, said = done.stdout.splitlines()
    assert begun == "begun"
    return codec.decode(Outcome, json.loads(said))


def wait_until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 300.0
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.02)


@pytest.mark.slow
def test_what_a_job_prints_is_no_outcome(tmp_path: Path) -> None:
    outcome = on_host.call_function(job_of("math:nothing", tmp_path))
    assert "AttributeError" in outcome.failure
    with LocalPool(tmp_path) as pool:
        done = pool.submit("builtins:print", {"sep": "x"}).result()
    assert (done.failure, done.value) == ("", None)


class LocalPool(Pool):
    def __init__(self, folder: Path, owner: str = "a") -> None:
        super().__init__(LocalExecutor(["elm", "oak"]), owner=owner, lock_folder=str(folder))


@pytest.mark.slow
def test_other_versions_are_refused_whatever_fields_they_send() -> None:
    outcome = asked(json.dumps({"version": "99.0", "host": "elm", "new": 1}) + "\n")
    assert outcome.kind == "refused"
    assert "99.0" in outcome.failure


@pytest.mark.parametrize(
    ("owner", "number", "kind"),
    [("b", 1, "busy"), ("a", 9, "late"), ("a", 5, "done"), ("a", 1, "done")],
)
def test_a_host_is_held_or_the_job_is_refused(
    tmp_path: Path, owner: str, number: int, kind: str
) -> None:
    HostLock("elm", Token(owner=owner, number=number), folder=tmp_path).take()
    outcome = on_host.carry_out_job(job_of("builtins:dict", tmp_path, x=1), lambda: None)
    assert (outcome.kind, outcome.value) == (kind, {"x": 1} if kind == "done" else None)


def test_who_was_taken_over_is_told(tmp_path: Path) -> None:
    HostLock("elm", Token(owner="b", number=1), folder=tmp_path, boot="before").take()
    outcome = on_host.carry_out_job(job_of("builtins:dict", tmp_path), lambda: None)
    assert (outcome.kind, outcome.taken_over_from) == ("done", "b")


def test_a_host_without_space_or_packages_is_not_fit(tmp_path: Path) -> None:
    """It says nothing of what was to be measured there."""
    outcome = on_host.call_function(job_of("os:listdir", tmp_path, path=str(tmp_path / "no")))
    assert outcome.kind == "refused"


def test_what_is_no_json_fails(tmp_path: Path) -> None:
    outcome = on_host.call_function(job_of("builtins:complex", tmp_path, real=1))
    assert "TypeError" in outcome.failure


@pytest.mark.parametrize(("others", "is_disturbed"), [(0.0, False), (0.4, False), (0.9, True)])
def test_what_others_use_disturbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: float, is_disturbed: bool
) -> None:
    begun_s = time.monotonic()
    monkeypatch.setattr(on_host, "_busy_s", lambda: others * (time.monotonic() - begun_s))
    monkeypatch.setattr(on_host, "_own_s", lambda: 0.0)
    monkeypatch.setattr(on_host, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(on_host, "_LOOK_S", 0.01)
    job = Job(call="time:monotonic", host="elm", token=MINE)
    outcome = on_host._watch(job)  # noqa: SLF001
    assert (outcome.disturbed != "") == is_disturbed
    assert outcome.before == pytest.approx(others, abs=0.05)


@pytest.mark.slow
def test_a_second_controller_is_refused_and_after_the_first_it_is_not(tmp_path: Path) -> None:
    with LocalPool(tmp_path) as first:
        first.submit("builtins:dict", {}, among=["elm"]).result()
        with LocalPool(tmp_path, "b") as second, pytest.raises(HostBusy):
            second.submit("builtins:dict", {}, among=["elm"]).result()
    with LocalPool(tmp_path, "b") as second:
        done = second.submit("builtins:dict", {}, among=["elm"]).result()
    assert (done.failure, done.attempts[0].outcome.taken_over_from) == ("", "")


@pytest.mark.slow
def test_real_gangs_hold_each_of_their_hosts(tmp_path: Path) -> None:
    with LocalPool(tmp_path) as pool:
        pool.submit("builtins:dict", {"hosts": []}, n_hosts=2).result()
        for host in ("elm", "oak"):
            with pytest.raises(HostBusy):
                HostLock(host, Token(owner="b", number=1), folder=tmp_path).take()
    for host in ("elm", "oak"):
        HostLock(host, Token(owner="b", number=1), alone=False, folder=tmp_path).take()


@pytest.mark.slow
def test_a_job_ends_with_who_asked_and_so_does_what_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    cmd = f"sleep 600 & echo $! > {child}.part; mv {child}.part {child}; wait"
    process = subprocess.Popen(
        [sys.executable, "-m", on_host.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    job = job_of(SHELL, tmp_path, cmd=cmd)
    process.stdin.write(json.dumps(codec.encode(job)).encode() + b"\n")
    process.stdin.flush()
    wait_until(child.exists)
    process.stdin.close()
    process.wait(60.0)
    pid = int(child.read_text())
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")
    lock = HostLock("elm", Token(owner="b", number=1), folder=tmp_path)
    lock.take()  # nobody holds it
    assert lock.taken_over_from == ""


@pytest.mark.parametrize("said", ["nonsense", "[]", '{"kind": 3}'])
def test_what_is_no_outcome_is_lost(tmp_path: Path, said: str) -> None:
    executor = LocalExecutor(["elm"], prefix=["sh", "-c", f"echo '{said}'; cat > /dev/null"])
    outcome = executor.submit("elm", job_of("builtins:dict", tmp_path)).result(60.0)
    executor.close()
    assert outcome.kind == "lost"


def test_a_job_that_does_not_end_in_time_is_lost_although_it_gives_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it has begun, reads its job, and gives signs of life for ever."""
    said = "echo begun; read job; while :; do echo; sleep 0.05; done"
    executor = LocalExecutor(["elm"], prefix=["sh", "-c", said])
    monkeypatch.setattr("benchrigor.workbench.pool.executors._GRACE_S", 0.01)
    job = replace(job_of("builtins:dict", tmp_path), limit_s=0.05)
    outcome = executor.submit("elm", job).result(60.0)
    executor.close()
    assert outcome.kind == "lost"


@pytest.mark.slow
def test_a_start_is_the_same_moment_by_the_clock_of_a_host(tmp_path: Path) -> None:
    """It is an hour ahead, and takes a while to begin."""
    code = """
import sys, time
time.sleep(0.5)
calendar = time.time
time.time = lambda: calendar() + 3600.0
from benchrigor.workbench.pool.on_host import main
main()
"""
    argv = [sys.executable, "-c", code]
    start_s = time.time() + 9.0
    job = replace(job_of("builtins:dict", tmp_path), arguments={"start_s": start_s})
    outcome = run_job(argv, job)
    assert (outcome.kind, outcome.failure) == ("done", "")
    assert 0.0 <= outcome.value["start_s"] - start_s - 3600.0 < 0.4  # without its own start


@pytest.mark.slow
def test_closing_ends_what_is_under_way(tmp_path: Path) -> None:
    pool = LocalPool(tmp_path)
    begun = tmp_path / "begun"
    job = pool.submit(SHELL, {"cmd": f"touch {begun}; exec sleep 600"})
    wait_until(begun.exists)
    pool.close()
    assert job.result(60.0).failure


def test_a_folder_of_locks_that_cannot_be_written_fails_the_attempt(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = on_host.carry_out_job(job_of("builtins:dict", tmp_path / "file"), lambda: None)
    assert outcome.kind == "refused"
