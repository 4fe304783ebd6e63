"""Trials of the trust script: each is done once, and kept in a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from coverage_tables import Setting

__all__ = ["Run", "done_trials", "ended_run", "processes_of", "start"]

KEPT = Path("trust.jsonl")
MARK = "BENCHRIGOR_TRUST_MARK"
"""Variable by which the processes of a trial are recognised, whatever session they are in."""


def done_trials(
    setting: Setting, section: str, names: Iterable[str], run: Callable[[str], dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Carry out the trials that are missing, and return what came of all, by name.

    What a trial found is kept as soon as it is known; that of a quick run is not.
    """
    done: dict[str, dict[str, Any]] = {}
    if KEPT.exists() and not setting.quick:
        for line in KEPT.read_text().splitlines():
            row = json.loads(line)
            if (row["section"], row["seed"]) == (section, setting.seed):
                done[row["trial"]] = row["found"]
    asked = list(names)
    with ThreadPoolExecutor(setting.jobs) as pool:
        running = {pool.submit(run, name): name for name in asked if name not in done}
        for finished in as_completed(running):
            name = running[finished]
            done[name] = finished.result()
            row = {"section": section, "seed": setting.seed, "trial": name, "found": done[name]}
            if not setting.quick:
                with KEPT.open("a") as file:
                    file.write(f"{json.dumps(row)}\n")
    return {name: done[name] for name in asked}


class Run(NamedTuple):
    """A process that was started for a trial, and how its processes are recognised."""

    process: subprocess.Popen[str]
    mark: str


def start(argv: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> Run:
    """Start a process in a folder, whose output goes to files there."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), MARK: mark, **(variables or {})}
    with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, *argv],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            start_new_session=True,
            text=True,
        )
    return Run(process, mark)


def processes_of(run: Run) -> list[int]:
    """Return the living processes of a trial but for the one that was started."""
    wanted, found = f"{MARK}={run.mark}".encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes().split(b"\0")
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if wanted in environment and state not in "ZX" and int(place.name) != run.process.pid:
            found.append(int(place.name))
    return found


def ended_run(run: Run, seconds: float) -> tuple[float | None, list[int]]:
    """Wait for the end of a process, at most so long; return how long it took, and what is left.

    The time is None if it had to be killed. What is left after a second is ended.
    """
    began, took = time.monotonic(), None
    try:
        run.process.wait(seconds)
        took = time.monotonic() - began
    except subprocess.TimeoutExpired:
        run.process.kill()
        run.process.wait()
    until = time.monotonic() + 1.0
    while (left := processes_of(run)) and time.monotonic() < until:
        time.sleep(0.02)
    for number in left:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return took, left
