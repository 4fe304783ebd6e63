"""Capabilities and provenance, of machines that are made up; ``texts/machine.md`` has the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.machine.made_up import CPU, LAPTOP, SERVER

from benchrigor.machine import capabilities, provenance


def values(root: Path) -> dict[str, str | None]:
    return {each.name: each.value for each in capabilities(full=True, root=root)}


@pytest.mark.parametrize(
    ("ids", "places"),
    [
        (
            lambda n: {"physical_package_id": n // 6, "die_id": n // 3, "core_id": n % 3},
            lambda n: f"package {n // 6}, die {n // 3}, core {n % 3}, thread 0",
        ),
        (
            lambda n: {"physical_package_id": 0, "core_id": n % 6},
            lambda n: f"package 0, core {n % 6}, thread {n // 6}",
        ),
    ],
    ids=["two packages, each of two dies of three cores", "two threads of each of six cores"],
)
def test_each_of_twelve_processors_has_its_place(psutil_of, write, ids, places) -> None:
    root = write(
        {
            f"{CPU.format(number)}/topology/{name}": f"{value}\n"
            for number in range(12)
            for name, value in ids(number).items()
        }
    )
    found = {k: v for k, v in values(root).items() if k.removeprefix("cpu ").isdigit()}
    assert found == {f"cpu {number}": places(number) for number in range(12)}


@pytest.mark.parametrize("limit", ["max", str(2**63 - 4096)])
def test_a_memory_without_a_limit_says_none(psutil_of, write, limit) -> None:
    files = {"proc/self/cgroup": "4:memory:/m\n", "sys/fs/cgroup/memory/m/memory.max": limit}
    assert values(write(files))["memory limit"] == "none"


def test_the_eleven_that_go_into_each_record_stay_as_they_are(psutil_of, write) -> None:
    root = write(SERVER)
    short = capabilities(root=root)
    assert len(short) == 11
    assert capabilities(full=True, root=root)[:11] == short


def test_files_that_make_no_sense_give_a_reason(write) -> None:
    nonsense = capabilities(root=write(dict.fromkeys(LAPTOP, "\x00?!")))
    any_text = {"cpu governor", "clock source", "virtualisation", "power source"}
    assert {each.name for each in nonsense if each.available} == any_text
    assert all(each.reason for each in nonsense if not each.available)


def test_the_superuser_is_forbidden_no_perf_events(write, monkeypatch) -> None:
    root = write({"proc/sys/kernel/perf_event_paranoid": "4"})
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    assert next(each for each in capabilities(root=root) if each.name == "perf events").available


def test_this_machine_is_read_without_an_exception() -> None:
    for each in capabilities(full=True):
        assert each.available == (each.value is not None) == (each.reason == "")


def test_provenance_tells_the_machine_the_interpreter_and_the_packages(write, tmp_path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    assert provenance(root=tmp_path).cpu  # some name where Linux has none
    found = provenance(root=write(LAPTOP))
    assert found.cpu == "Fast CPU 9000"
    assert found.cores == os.cpu_count()
    assert found.python.split()[0] in {"CPython", "PyPy"}
    assert set(found.packages) == {"benchrigor", "numpy", "scipy"}
    assert found.capabilities == capabilities(root=tmp_path)
    assert before <= datetime.fromisoformat(found.started_at) <= datetime.now(UTC)
    assert found.load_after is None


def git(*arguments: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b", *arguments]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def give_git(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for so long for git, however busy the machine is."""
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **kw: run(*a, **{**kw, "timeout": seconds}))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_around_the_working_directory(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GIT_DIR", raising=False)
    give_git(30.0, monkeypatch)
    assert provenance().commit is None
    git("init", "--quiet")
    Path("file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--message", "first")
    assert provenance().commit == git("rev-parse", "HEAD")
    Path("file").write_text("two!")
    assert provenance().commit == git("rev-parse", "HEAD") + "+dirty"


def test_a_git_that_is_missing_or_hangs_leaves_the_commit_unknown(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance().commit is None
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    give_git(0.05, monkeypatch)
    assert provenance().commit is None


def test_a_system_without_a_load_average_gives_none(monkeypatch) -> None:
    monkeypatch.delattr(os, "getloadavg")
    assert provenance().load_before is None


@pytest.mark.parametrize(
    ("broken", "left"), [("pyperf", {"memory"}), ("psutil", set())], ids=["pyperf", "both"]
)
def test_what_cannot_be_read_of_them_is_left_out(broken, left) -> None:
    """In a process of its own, which asks them once."""
    code = "import pyperf, psutil, sys; pyperf.Run = None"
    code += "; psutil.virtual_memory = None" * (broken == "psutil")
    code += "; from benchrigor.machine import provenance; print(*provenance(full=True).environment)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & {"memory", "boot_time"} == left
