"""What tests of the verbs share: modules to measure, kept runs, and files of readings."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchrigor.model import RunRecord
from benchrigor.storage import Journal

Module = Callable[[str, str], str]
Keep = Callable[[RunRecord], str]


@pytest.fixture
def module(store: Path) -> Iterator[Module]:
    """Write a module of this name into the folder of the test."""
    names: list[str] = []

    def write(name: str, text: str) -> str:
        (store.parent / f"{name}.py").write_text(text)
        sys.modules.pop(name, None)
        names.append(name)
        return name

    yield write
    for name in names:  # other tests may have modules of these names
        sys.modules.pop(name, None)


@pytest.fixture
def script(store: Path) -> Callable[[str], tuple[object, ...]]:
    """Write a Python program and return the words that run it."""

    def write(text: str) -> tuple[object, ...]:
        path = store.with_name("program.py")
        path.write_text(text)
        return sys.executable, "-S", path

    return write


@pytest.fixture
def kept(store: Path) -> Callable[[], list[RunRecord]]:
    """Return what loads the runs that are kept, the newest first."""

    def load() -> list[RunRecord]:
        with Journal(store) as journal:
            return [journal.load(run["run_id"]) for run in journal.runs()]

    return load


@pytest.fixture
def keep(store: Path) -> Keep:
    """Return what keeps a run, and returns its id."""

    def append(record: RunRecord) -> str:
        with Journal(store) as journal:
            run_id = journal.begin(record)
            for each in record.rounds:
                journal.append(run_id, each)
            journal.finish(run_id, record)
        return run_id

    return append


@pytest.fixture
def told(cli: Any, strict: Any) -> Callable[..., Any]:
    """Return what a verb tells programs."""
    return lambda verb, *words: strict(cli(verb, "--json", *words).stdout)


@pytest.fixture
def series(store: Path) -> Callable[[str, Iterable[object]], Path]:
    """Write a file of readings, one a line, below a header."""

    def write(name: str, values: Iterable[object], header: str = "time") -> Path:
        path = store.with_name(name)
        path.write_text("\n".join([header, *map(str, values), ""]))
        return path

    return write


@pytest.fixture
def alone(store: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line as a program of its own, in the folder of the test."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "benchrigor", *map(str, words)]
        given = {"capture_output": True, "text": True, "cwd": store.parent, "timeout": 300.0}
        return subprocess.run(argv, check=False, **given)

    return run


@pytest.fixture
def started(store: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command line as a shell would, in a process group of its own."""
    processes = []

    def start(*words: object, **given: Any) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "benchrigor", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": store.parent}
        process = subprocess.Popen(argv, text=True, start_new_session=True, **{**pipes, **given})
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


@pytest.fixture
def git(store: Path) -> Callable[..., str]:
    """Call git in the folder of the test."""

    def call(*words: str) -> str:
        argv = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        done = subprocess.run(argv, cwd=store.parent, check=True, capture_output=True, text=True)
        return done.stdout

    return call
