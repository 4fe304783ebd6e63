"""The runs of the machines script: each in a process of its own, and what is kept of it."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import tempfile
import timeit
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from machines_work import COMMAND, DEFAULTS, FUNCTIONS, PLANTED, UNITS, WORKLOADS, pair_of, work

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.machine import RunDelay
from benchrigor.testing import cpu_hog, memory_hog
from benchrigor.workloads import CommandWorkload, InterpreterWorkload

__all__ = ["CONDITIONS", "DOORS", "Cell", "Door", "Machine", "Row"]

Row = dict[str, Any]
"""What is kept of one run."""

CONDITIONS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "idle": nullcontext,
    "one hog": partial(cpu_hog, 1),
    "two hogs": partial(cpu_hog, 2),
    "four hogs": partial(cpu_hog, 4),
    "bursts": partial(cpu_hog, 2, bursts_s=(0.2, 5.0)),
    "memory hog": memory_hog,
}
ALL_FUNCTIONS = "functions in turn"
_LEAST_OF, _LEAST_OF_S = 15, 0.02  # repeats of timeit beside a default run, and their length
BASE, TENTH, FIFTH = UNITS, PLANTED["10 %"], PLANTED["20 %"]


class Cell(NamedTuple):
    """One process: which door, what it measures, beside what, and how many were before."""

    door: str
    workload: str
    condition: str
    number: int


class Machine(NamedTuple):
    """How long runs last, where they are kept, and the interpreter of other tools."""

    seconds: float
    folder: str
    rivals: str


class Door(NamedTuple):
    """A way to measure."""

    run: Callable[[Cell, Machine], list[Row]]
    share: float
    """Of the runs of each cell, how many pass here."""
    workloads: tuple[str, ...] = FUNCTIONS
    conditions: tuple[str, ...] = tuple(CONDITIONS)
    lengths: float = 1.0
    """How long a run takes, in lengths of a usual one."""
    needs: str = ""
    """Module that the interpreter of other tools must have."""


# --- benchrigor's doors


def _single(cell: Cell, machine: Machine, *, units: int) -> list[Row]:
    """Measure once, with defaults."""
    if cell.workload == COMMAND:
        workload = CommandWorkload([COMMAND], clock=WallClock(), meter=RunDelay())
        record = br.Session(br.Options(budget_s=machine.seconds)).run(workload)
    else:
        func = work(cell.workload, units)
        record = br.measure(func, name=cell.workload, budget_s=machine.seconds)
    return [_kept(record, cell, machine, cell.workload, units)]


def _default(cell: Cell, machine: Machine) -> list[Row]:
    """Measure a function with defaults; then let timeit look for its least."""
    func = DEFAULTS[cell.workload]
    record = br.measure(func, name=cell.workload)
    timer = timeit.Timer(func)
    number, took_s = timer.autorange()
    number = max(1, round(_LEAST_OF_S * number / took_s))
    least = min(timer.repeat(_LEAST_OF, number)) / number
    return [{**_kept(record, cell, machine, cell.workload, BASE), "timeit": least}]


def _fresh(cell: Cell, machine: Machine) -> list[Row]:
    """Measure once in fresh interpreters, with defaults."""
    here = str(Path(__file__).parent)
    workload = InterpreterWorkload(f"machines_work:run_{cell.workload}", cwd=here)
    record = br.Session(br.Options(budget_s=machine.seconds)).run(workload)
    return [_kept(record, cell, machine, cell.workload, BASE)]


def _pieces(cell: Cell, machine: Machine) -> list[Row]:
    """Measure every function, and each with a tenth more to do, in pieces by turns."""
    names = [(name, units) for units in (BASE, TENTH) for name in FUNCTIONS]
    functions = {f"{name} {units}": work(name, units) for name, units in names}
    records = br.measure_many(functions, budget_s=machine.seconds, pieces=6)
    return [
        _kept(record, cell, machine, name, units)
        for (name, units), record in zip(names, records.values(), strict=True)
    ]


def _kept(record: br.RunRecord, cell: Cell, machine: Machine, workload: str, units: int) -> Row:
    """Save a run; return its figures."""
    name = f"{cell.door} {workload} {units} {cell.condition} {cell.number}"
    path = Path("records") / f"{re.sub(r'[^a-z0-9]+', '-', name)}.json"
    record.save(Path(machine.folder) / path)
    analysis, headline, at_full = record.analysis(), record.estimate(), record.at_full_pace()
    assert analysis is not None
    pace, disturbed = analysis.pace, analysis.disturbed
    return {
        "workload": workload,
        "units": units,
        "record": str(path),
        "estimate": _interval(headline),
        "at full pace": _interval(at_full),
        "pace": None if pace is None else pace.mean,
        "full_s": None if pace is None else dict(pace.full_s),
        "sensitivity": None if pace is None else pace.sensitivity,
        "lost": None if disturbed is None else disturbed.lost,
        "wall mean": float(record.readings("time").mean()),
        "readings": int(record.readings("time").size),
        "reason": str(record.decision and record.decision.reason),
        "notices": [str(each.code) for each in record.notices],
    }


def _interval(estimate: br.Estimate | None) -> list[float] | None:
    return None if estimate is None else [estimate.value, estimate.low, estimate.high]


def _pair(cell: Cell, machine: Machine, *, units: int) -> list[Row]:
    """Compare in turn, with defaults."""
    found = br.measure_pair(*pair_of(cell.workload, BASE, units), budget_s=machine.seconds)
    ratio = _interval(found.ratio)
    return [{"units": units, "verdict": str(found.verdict), "ratio": ratio}]


# --- other tools', given the same time; each tells seconds per call


def _timeit(cell: Cell, machine: Machine) -> list[Row]:
    """Return the least of five repeats, as its documentation advises."""
    timer = timeit.Timer(_called(cell.workload))
    number, took_s = timer.autorange()
    number = max(1, round(machine.seconds / 5.0 * number / took_s))
    return [{"value": min(timer.repeat(5, number)) / number}]


def _called(workload: str) -> Callable[[], object]:
    if workload == COMMAND:
        return partial(subprocess.run, [COMMAND], check=True)
    return work(workload)


_CALLED = """
import subprocess, sys
sys.path.insert(0, {here!r})
from machines_work import work
called = (lambda: subprocess.run(["true"])) if {name!r} == "true" else work({name!r})
"""
_TEST = """
def test_called(benchmark):
    benchmark(called)
"""


def _setup(cell: Cell) -> str:
    return _CALLED.format(here=str(Path(__file__).parent), name=cell.workload)


def _pyperf(cell: Cell, machine: Machine) -> list[Row]:
    """Return the mean of ``pyperf timeit --fast``, whose time is its own."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        argv = [machine.rivals, "-m", "pyperf", "timeit", "--fast", "-q", "-o", str(found)]
        subprocess.run([*argv, "-s", _setup(cell), "called()"], check=True, capture_output=True)
        runs = json.loads(found.read_text())["benchmarks"][0]["runs"]
    return [{"value": statistics.fmean(each for run in runs for each in run.get("values", ()))}]


def _pytest(cell: Cell, machine: Machine) -> list[Row]:
    """Return the median of pytest-benchmark, given so much time."""
    with tempfile.TemporaryDirectory() as folder:
        test, found = Path(folder) / "test_called.py", Path(folder) / "found.json"
        test.write_text(_setup(cell) + _TEST)
        argv = [
            machine.rivals,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:benchrigor",
            "-p",
            "no:cacheprovider",
        ]
        argv += [f"--benchmark-json={found}", f"--benchmark-max-time={machine.seconds}"]
        subprocess.run([*argv, str(test)], check=True, capture_output=True, cwd=folder)
        return [{"value": json.loads(found.read_text())["benchmarks"][0]["stats"]["median"]}]


_IN_TURN = len(FUNCTIONS) * 2.0
DOORS: dict[str, Door] = {
    "default": Door(
        _default, 1.0, tuple(DEFAULTS), ("idle", "one hog", "two hogs", "bursts"), lengths=0.6
    ),
    "run": Door(partial(_single, units=BASE), 1.0, WORKLOADS),
    "run, fresh": Door(_fresh, 1.0),
    "run, 20 % more": Door(partial(_single, units=FIFTH), 0.25),
    "pieces": Door(_pieces, 0.25, (ALL_FUNCTIONS,), lengths=_IN_TURN),
    "pair": Door(partial(_pair, units=BASE), 0.3),
    "pair, 5 % more": Door(
        partial(_pair, units=PLANTED["5 %"]), 0.5, conditions=("idle", "two hogs")
    ),
    "pair, twice": Door(partial(_pair, units=PLANTED["a factor of 2"]), 0.15),
    "timeit": Door(_timeit, 0.25, WORKLOADS),
    "pyperf": Door(_pyperf, 0.25, WORKLOADS, needs="pyperf"),
    "pytest-benchmark": Door(_pytest, 0.25, WORKLOADS, needs="pytest_benchmark"),
}
