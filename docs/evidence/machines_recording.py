"""The recording of the machines script: which runs are missing, and each in its own process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from machine import describe
from machines_runs import CONDITIONS, DOORS, Cell, Machine, Row

__all__ = ["Recording", "kept_rows", "record", "run_cell"]

RUNS, SETTING = "runs.jsonl", "setting.json"
START_S = 1.5  # that a process takes beside its run
LONGEST = 6.0  # lengths of a run, and a minute, after which a process is ended


class Recording(NamedTuple):
    """What is to be recorded."""

    folder: Path
    runs: int
    seconds: float
    seed: int
    minutes: float | None
    rivals: str
    only: Collection[str]
    """Names of doors, workloads and conditions; of a kind of which none is named all are."""


def record(asked: Recording) -> int:
    """Carry out the runs that are missing, in rotation; return how many are still missing."""
    (asked.folder / "records").mkdir(parents=True, exist_ok=True)
    _keep_setting(asked)
    machine = Machine(asked.seconds, str(asked.folder), asked.rivals)
    done = {_cell_of(each) for each in kept_rows(asked.folder)}
    cells = [each for each in _in_rotation(asked) if each not in done]
    began, ratio = time.monotonic(), 1.0
    for number, cell in enumerate(cells):
        passed = time.monotonic() - began
        if asked.minutes is not None and passed > 60.0 * asked.minutes:
            print(f"{asked.minutes:g} minutes are over", flush=True)
            return len(cells) - number
        left = ratio * sum(_expected_s(each, asked.seconds) for each in cells[number:])
        where = ", ".join(map(str, cell))
        print(f"{number + 1} of {len(cells)}, {left / 60:.1f} minutes left: {where}", flush=True)
        _append(asked.folder, _carried_out(cell, machine))
        ratio = (time.monotonic() - began) / sum(
            _expected_s(each, asked.seconds) for each in cells[: number + 1]
        )
    return 0


def kept_rows(folder: Path) -> list[Row]:
    """Return what is recorded so far, without a line whose writing was interrupted."""
    try:
        lines = (folder / RUNS).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    rows = []
    for line in lines:
        try:
            rows.extend(json.loads(line))
        except ValueError:
            print(f"left out, not whole: {line[:60]}", file=sys.stderr)
    return rows


def run_cell(cell: Cell, machine: Machine) -> list[Row]:
    """Carry out one run in this process."""
    rows = DOORS[cell.door].run(cell, machine)
    return [{**cell._asdict(), "cell": cell.workload, **each} for each in rows]


def _cell_of(row: Row) -> Cell:
    return Cell(row["door"], row["cell"], row["condition"], row["number"])


def _keep_setting(asked: Recording) -> None:
    """Keep how long runs last, which all of a recording have in common."""
    path, own = asked.folder / SETTING, {"seconds": asked.seconds, "seed": asked.seed}
    if not path.exists():
        path.write_text(json.dumps(own | {"machine": describe()}), encoding="utf-8")
    known = json.loads(path.read_text(encoding="utf-8"))
    if any(known[name] != value for name, value in own.items()):
        raise SystemExit(f"{path} has {known}, expected {own}: take another folder")


def _in_rotation(asked: Recording) -> list[Cell]:
    """Spread the runs of every cell evenly over the whole time, in an order from the seed."""
    rng, placed = random.Random(asked.seed), []
    for name, door in DOORS.items():
        runs = max(1, round(door.share * asked.runs))
        missing = door.needs and not _has(asked.rivals, door.needs)
        for condition in door.conditions:
            for workload in door.workloads:
                at = [(number + rng.random()) / runs for number in range(runs)]
                cells = [Cell(name, workload, condition, number) for number in range(runs)]
                placed += [] if missing else list(zip(at, cells, strict=True))
        if missing:
            print(f"{name}: left out, {asked.rivals} has no {door.needs}", flush=True)
    return [cell for _, cell in sorted(placed) if _is_asked(cell, asked.only)]


def _has(python: str, module: str) -> bool:
    found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    return found.returncode == 0


def _is_asked(cell: Cell, only: Collection[str]) -> bool:
    def fits(value: str, known: Iterable[str]) -> bool:
        named = set(only).intersection(known)
        return not named or value in named

    workloads = {each for door in DOORS.values() for each in door.workloads}
    return (
        fits(cell.door, DOORS)
        and fits(cell.condition, CONDITIONS)
        and fits(cell.workload, workloads)
    )


def _expected_s(cell: Cell, seconds: float) -> float:
    return seconds * DOORS[cell.door].lengths + START_S


def _carried_out(cell: Cell, machine: Machine) -> list[Row]:
    """Run a cell in a new process, beside its neighbours; empty where it failed."""
    argv = [sys.executable, str(Path(__file__).with_name("machines.py")), "cell"]
    argv += [json.dumps(cell), json.dumps(machine)]
    # Full pace is that of the recording, and so is kept with it.
    data = str((Path(machine.folder) / "data").resolve())
    unset = ("PYTHONHASHSEED", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # users set none
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env["XDG_DATA_HOME"] = data
    longest_s = 60.0 + LONGEST * _expected_s(cell, machine.seconds)
    began = time.time()
    try:
        with CONDITIONS[cell.condition]():
            ended = subprocess.run(
                argv, env=env, capture_output=True, timeout=longest_s, check=True
            )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (error.stderr or b"").decode().strip().splitlines()[-1:]
        print(f"  failed: {error.__class__.__name__} {' '.join(said)}", flush=True)
        return []
    took_s = round(time.time() - began, 2)
    return [{**each, "at": began, "took_s": took_s} for each in json.loads(ended.stdout)]


def _append(folder: Path, rows: list[Row]) -> None:
    """Append the line of a process: it is there whole, or it is left out when read."""
    if rows:
        with (folder / RUNS).open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(rows)}" if file.tell() else json.dumps(rows))
