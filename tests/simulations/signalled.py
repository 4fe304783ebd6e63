"""A signal while benchrigor measures, in each way of measuring: what becomes of all it started.

>>> trial("run", signal.SIGTERM, Path(folder))                               # doctest: +SKIP
Outcome(code=143, left=[], files=[], rounds=2, stderr='...', seconds=0.4)
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

_MARK = "SIGNALLED_TRIAL"  # in the environment of all that is started
_PATIENCE_S = 300.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# The child tells that it lives by a file of its own; every third one stays.
CHILD = "echo $$ >> pids; [ $(wc -l < pids) -lt 3 ] || exec sleep 600"
STAYING = "echo $$ >> pids; echo $$ >> pids; echo $$ >> pids; exec sleep 600"
# Shells have what runs in their background ignore some signals, and children do as well.
_PREPARED = """
import os, signal, sys
for name, is_ignored in eval(sys.argv[1]).items():
    signal.signal(getattr(signal, name), signal.SIG_IGN if is_ignored else signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[2:]])
"""
BACKGROUND = f"sh -c '{STAYING}' & sleep 0.1"  # the shell does not wait for it
_MODULE = f"""
import asyncio, os, subprocess, time

def child():
    subprocess.run(["sh", "-c", {CHILD!r}], check=True)

def other():
    child()

def forking():
    with open("pids", "a") as pids:
        print(os.getpid(), file=pids)
    if sum(1 for _ in open("pids")) >= 3:
        pid = os.fork()
        if not pid:
            time.sleep(600)
        os.waitpid(pid, 0)

def pooled():
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(staying, range(2)))

def staying(_):
    for _ in range(2):
        with open("pids", "a") as pids:
            print(os.getpid(), file=pids)
    time.sleep(600)

async def request():
    with open("pids", "a") as pids:
        print(os.getpid(), file=pids)
    await asyncio.sleep(0.01)

def background():
    subprocess.run({BACKGROUND!r}, shell=True, check=True)

def test_it(bench):
    bench(child)

def test_background(bench):
    bench(background)

def test_comparison(bench):
    bench.compare(child, other)
"""
_TARGET = ("--target", "0.001%", "--budget", "300")
_PEAK = ("--p95", "1s", "--seed-load", "5", "--budget", "300")
_COMMAND = ("sh", "-c", CHILD)
_PRINTING = ("sh", "-c", f"{CHILD}; echo 5 ms")
_WORD = f"sh -c '{CHILD}'"
_REVISIONS = ("--rev", "HEAD", "--rev", "HEAD")
MODES: dict[str, tuple[str, ...]] = {
    "run": ("run", *_TARGET, *_COMMAND),
    "job control": ("run", *_TARGET, "bash", "-c", f"set -m; sh -c '{CHILD}' & wait"),
    "timeout": ("run", *_TARGET, "timeout", "900", *_COMMAND),
    "deaf": ("run", *_TARGET, "sh", "-c", f"trap '' TERM HUP QUIT INT; {CHILD}"),
    "function": ("run", "--in-process", *_TARGET, "trial_module:child"),
    "forking": ("run", "--in-process", *_TARGET, "trial_module:forking"),
    "pooled": ("run", "--in-process", *_TARGET, "trial_module:pooled"),
    "in turn": ("run", *_TARGET, "trial_module:child", "trial_module:other"),
    "fresh": ("run", *_TARGET, "trial_module:child"),
    "fresh forking": ("run", *_TARGET, "trial_module:forking"),
    "fresh pooled": ("run", *_TARGET, "trial_module:pooled"),
    "timeit": ("timeit", *_TARGET, "-s", "from trial_module import child", "child()"),
    "commands": ("commands", *_TARGET, _WORD, f"{_WORD} other"),
    "prepare": ("commands", *_TARGET, "--prepare", _WORD, "true"),
    "setup": ("commands", *_TARGET, "--setup", f'sh -c "{STAYING}"', "true"),
    "ab": ("ab", *_TARGET, _WORD, f"{_WORD} other"),
    "ab functions": ("ab", *_TARGET, "trial_module:child", "trial_module:other"),
    "ab fresh": ("ab", "--fresh", *_TARGET, "trial_module:child", "trial_module:other"),
    "ab revisions": ("ab", *_TARGET, *_REVISIONS, "sh {pids}/child.sh"),
    "ab build": ("ab", *_REVISIONS, "--build", "sh {pids}/stay.sh", "true"),
    "peak": ("peak", *_PEAK, "--read", "p95:ms=regex:(.+) ms", "--", *_PRINTING, "{load}"),
    "peak prepare": ("peak", *_PEAK, "--prepare", _WORD, "trial_module:request"),
    "peak processes": ("peak", *_PEAK, "--processes", "2", "trial_module:request"),
    "pytest": ("-q", "trial_module.py", "--bench-store", "store", "--bench-budget", "300"),
    "pytest background": ("-q", "trial_module.py", "-k", "background"),
    "pytest fresh": ("-q", "trial_module.py", "--bench-fresh", "--bench-budget", "300"),
}
"""Words of the command line by the name of a mode; ``{pids}`` is the folder of the trial."""


class Outcome(NamedTuple):
    """What became of a trial.

    ``code`` is the exit code, as shells show it. ``left`` are processes that go on, ``files`` what
    is left in the folder for temporary files and of worktrees, ``rounds`` how many are stored.
    """

    code: int
    left: list[str]
    files: list[str]
    rounds: int
    stderr: str
    seconds: float


def trial(
    mode: str, number: int, folder: Path, *, delay_s: float = 0.0, staying: int = 0
) -> Outcome:
    """Start a mode in an empty folder, signal when its child lives, and look what is left.

    So many processes are expected to stay.
    """
    run = start(mode, folder)
    try:
        until(lambda: lives(folder) or run.poll() is not None)
        time.sleep(delay_s)
        began = time.monotonic()
        run.send_signal(number)
        if number == signal.SIGINT:  # the first one lets the round end
            time.sleep(0.3)
            run.send_signal(number)
        run.wait(timeout=_PATIENCE_S)
        seconds = time.monotonic() - began
        with suppress(TimeoutError):  # the kernel may take a moment to end what it killed
            until(lambda: len(processes_of(folder)) <= staying, 30.0)
        left = processes_of(folder)
    finally:
        clear(folder)
        run.kill()
        run.wait()
    code = run.returncode if run.returncode >= 0 else 128 - run.returncode
    stderr = (folder / "stderr").read_text()
    return Outcome(code, left, temporaries(folder), rounds(folder), stderr, seconds)


def expected_codes(mode: str, number: int) -> set[int]:
    """Return the exit codes that a trial may have.

    A second Ctrl-C may meet pytest itself, whose own code is 2.
    """
    codes = {128 + number}
    if number == signal.SIGINT and mode.startswith("pytest"):
        return codes | {2}
    return codes


def start(mode: str, folder: Path, *, ignored: Collection[int] = ()) -> subprocess.Popen[bytes]:
    """Start a mode in a folder that is prepared for it; it is told to ignore some signals."""
    (folder / "trial_module.py").write_text(_MODULE)
    (folder / "child.sh").write_text(f"cd {folder}; {CHILD}\n")
    (folder / "stay.sh").write_text(f"cd {folder}; {STAYING}\n")
    (folder / "tmp").mkdir()
    (folder / "mark").write_text(uuid4().hex)
    if "--rev" in MODES[mode]:
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        for words in (("init", "-q"), ("add", "child.sh"), ("commit", "-qm", "one")):
            subprocess.run([*git, *words], cwd=folder, check=True)
    program = "pytest" if mode.startswith("pytest") else "benchrigor"
    words = [word.replace("{pids}", str(folder)) for word in MODES[mode]]
    plugin = ("-p", "no:cacheprovider") if program == "pytest" else ()
    handlers = {number.name: number in ignored for number in _SIGNALS}
    with (folder / "stderr").open("w") as stderr:  # no pipe: what is left may hold it open
        return subprocess.Popen(
            [sys.executable, "-c", _PREPARED, repr(handlers), program, *words, *plugin],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(folder),
                "BENCHRIGOR_STORE": str(folder / "store"),
                "TMPDIR": str(folder / "tmp"),
                _MARK: (folder / "mark").read_text(),
            },
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )


def lives(folder: Path) -> bool:
    """Whether the child that stays has told that it lives."""
    pids = folder / "pids"
    return pids.exists() and len(pids.read_text().split()) >= 3


def until(reached: Callable[[], object], patience_s: float = _PATIENCE_S) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + patience_s
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


def processes_of(folder: Path) -> list[str]:
    """Return the processes of a trial that live: they tell by their environment, or the folder."""
    mark = f"{_MARK}={(folder / 'mark').read_text()}".encode()
    noted = (folder / "pids").read_text().split() if (folder / "pids").exists() else []
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (each / "stat").read_text().rpartition(")")[2].split()[0]
            marked = mark in (each / "environ").read_bytes().split(b"\0")
            if state not in "ZX" and (marked or (each.name in noted and _is_in(each, folder))):
                words = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                found.append(f"{each.name} {words}")
    return found


def _is_in(process: Path, folder: Path) -> bool:
    return Path(process / "cwd").resolve().is_relative_to(folder.resolve())


def clear(folder: Path) -> None:
    """Kill what a trial left."""
    for each in processes_of(folder):
        with suppress(OSError):
            os.kill(int(each.split()[0]), signal.SIGKILL)


def temporaries(folder: Path) -> list[str]:
    """Return what a trial left among temporary files, and of worktrees of its repository."""
    kept = [folder / "tmp", folder / ".git" / "worktrees"]
    left = [each for place in kept if place.exists() for each in place.iterdir()]
    return [str(each.relative_to(folder)) for each in left]


def rounds(folder: Path) -> int:
    """Return how many rounds are stored."""
    store = folder / "store"
    if not store.exists():
        return 0
    with sqlite3.connect(store) as journal:
        (number,) = journal.execute("SELECT count(*) FROM round").fetchone()
    return int(number)
