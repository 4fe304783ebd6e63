"""Default runs on this machine: how many give an interval, how soon, and how narrow.

Workloads of the standard library and numpy, a command, and a function of three seconds, beside
nothing, processes that keep the processors busy, and bursts of them; four runs a cell, the order
of cells drawn anew for each. Every default counts: nothing but the function is given.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.machine import RunDelay
from benchrigor.model import Progress
from benchrigor.testing import cpu_hog
from benchrigor.workloads import CommandWorkload

__all__ = ["machine", "pairs"]

LEAST_INTERVALS, LONGEST_S, FIGURE_S, NARROW = 0.98, 12.0, 1.0, 0.10

_RNG = random.Random(1)
_ROWS = [{"id": each, "name": str(each) * 3, "tags": [each] * 5} for each in range(60)]
_NUMBERS = [_RNG.random() for _ in range(2_000)]
_TEXT = " ".join(str(_RNG.random()) for _ in range(800))
_PATTERN = re.compile(r"\d+\.(\d)7")
_BASE = sqlite3.connect(":memory:")
_BASE.execute("create table numbers (n integer, name text)")
_BASE.executemany("insert into numbers values (?, ?)", [(n, str(n)) for n in range(2_000)])
_MATRIX = np.random.default_rng(1).random((150, 150))


def three_seconds() -> None:
    """Compute for three seconds of wall time."""
    until = time.perf_counter() + 3.0
    while time.perf_counter() < until:
        sum(range(1_000))


FUNCTIONS: dict[str, Callable[[], object]] = {
    "sort": lambda: sorted(_NUMBERS),
    "json": lambda: json.dumps(_ROWS),
    "sqlite": lambda: _BASE.execute("select sum(n) from numbers where name like '%7%'").fetchall(),
    "re": lambda: _PATTERN.findall(_TEXT),
    "matmul, one thread": lambda: _MATRIX @ _MATRIX,
    "function of 3 s": three_seconds,
}
COMMAND = "command true"

CONDITIONS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "idle": nullcontext,
    "one hog": partial(cpu_hog, 1),
    "two hogs": partial(cpu_hog, 2),
    "four hogs": partial(cpu_hog, 4),
    "bursts": partial(cpu_hog, 2, bursts_s=(0.2, 2.0)),
}


class Run(NamedTuple):
    """A default run: seconds in all, from the first call's end to the first figure, and widths."""

    took_s: float
    figure_s: float
    half_width: float | None
    why: str


class _Watch:
    """Notes when the first figure is shown."""

    def __init__(self) -> None:
        self.first_s: float | None = None

    def __call__(self, progress: Progress) -> None:
        known = [*progress.analyses, *([progress.provisional] if progress.provisional else [])]
        if self.first_s is None and any(each.estimate is not None for each in known):
            self.first_s = time.perf_counter()


def _called(func: Callable[[], object], ended: list[float]) -> Callable[[], object]:
    """Note when the first call ends."""

    def first() -> object:
        result = func()
        if not ended:
            ended.append(time.perf_counter())
        return result

    return first


def default_run(name: str) -> Run:
    """Make one default run."""
    watch, ended, began = _Watch(), list[float](), time.perf_counter()
    if name == COMMAND:
        workload = CommandWorkload(["true"], clock=WallClock(), meter=RunDelay())
        record = br.Session(br.Options(), progress=watch).run(workload)
        ended.append(began + record.rounds[0].elapsed_ns / 1e9)
    else:
        record = br.measure(_called(FUNCTIONS[name], ended), progress=watch)
    over = time.perf_counter()
    found = record.estimate()
    return Run(
        took_s=over - began,
        figure_s=(watch.first_s or over) - ended[0],
        half_width=None if found is None else found.relative_half_width,
        why="" if found is not None else _refusal(record),
    )


def _refusal(record: br.RunRecord) -> str:
    return next(each.sentence for each in record.notices if each.severity == "refusal")


def machine(setting: Setting) -> None:
    """Print, for each workload and condition, what became of default runs."""
    names = [*FUNCTIONS, COMMAND]
    runs, rng = setting.runs(4, 1), random.Random(setting.seed)
    found: dict[tuple[str, str], list[Run]] = {}
    for _ in range(runs):
        cells = [(name, condition) for name in names for condition in CONDITIONS]
        rng.shuffle(cells)
        for name, condition in cells:
            with CONDITIONS[condition]():
                found.setdefault((name, condition), []).append(default_run(name))
    heading(
        ["workload", "beside", "with interval", "longest", "figure after at most", "half-widths, %"]
    )
    for name in names:
        for condition in CONDITIONS:
            _print_cell(name, condition, found[name, condition])
    everything = [each for cell in found.values() for each in cell]
    _judge(setting, everything)


def _print_cell(name: str, condition: str, cell: list[Run]) -> None:
    widths = [each.half_width for each in cell if each.half_width is not None]
    row(
        name,
        condition,
        f"{len(widths)} of {len(cell)}",
        f"{max(each.took_s for each in cell):.1f} s",
        f"{max(each.figure_s for each in cell):.2f} s",
        ", ".join(f"{100.0 * each:.2g}" for each in sorted(widths)),
    )
    for each in cell:
        if each.why:
            print(f"<!-- {name}, {condition}: {each.why} -->")


def _judge(setting: Setting, runs: list[Run]) -> None:
    """Print the bars over all runs."""
    widths = [each.half_width for each in runs if each.half_width is not None]
    longest = max(each.took_s for each in runs)
    latest = max(each.figure_s for each in runs)
    late = sum(each.took_s > LONGEST_S for each in runs)
    slow = sum(each.figure_s > FIGURE_S for each in runs)
    middle = statistics.median(widths)
    share = len(widths) / len(runs)
    bars = [
        (f"an interval: {len(widths)} of {len(runs)}", share >= LEAST_INTERVALS),
        (f"over within {LONGEST_S:g} s: all but {late}, longest {longest:.1f} s", late == 0),
        (f"a figure within {FIGURE_S:g} s: all but {slow}, latest {latest:.2f} s", slow == 0),
        (f"median half-width {100.0 * middle:.2g} %, at most {100 * NARROW:g}", middle <= NARROW),
    ]
    print()
    for text, met in bars:
        print(f"- {text}: {setting.verdict(text, met)}")


# --- pairs

PAIRED = ("idle", "two hogs", "bursts")


def _repeated(func: Callable[[], object], times: int) -> Callable[[], object]:
    def repeated() -> None:
        for _ in range(times):
            func()

    return repeated


def pairs(setting: Setting) -> None:
    """Print the verdicts of default comparisons, of the same code and of three times the work."""
    rng = random.Random(setting.seed + 1)
    names, wrong, missed, number = ("sort", "json", "sqlite"), 0, 0, 0
    heading(["workload", "beside", "same code", "three times the work"])
    runs = setting.runs(2, 1)
    for name in names:
        for condition in PAIRED:
            cells: dict[int, list[br.Comparison]] = {1: [], 3: []}
            for times in rng.sample([1, 3] * runs, 2 * runs):
                func = FUNCTIONS[name]
                with CONDITIONS[condition]():
                    cells[times].append(br.measure_pair(_repeated(func, 1), _repeated(func, times)))
            number += runs
            wrong += sum(each.verdict in {"better", "worse"} for each in cells[1])
            missed += sum(each.verdict != "worse" for each in cells[3])
            row(name, condition, *("; ".join(map(_shown, each)) for each in cells.values()))
    print()
    print(f"- same code called better or worse: {wrong} of {number} (no bar here)")
    text = f"three times the work called worse: all but {missed} of {number}"
    print(f"- {text}: {setting.verdict(text, missed == 0)}")


def _shown(comparison: br.Comparison) -> str:
    ratio = comparison.ratio
    if ratio is None:
        return f"{comparison.verdict}, no ratio"
    return f"{comparison.verdict} {ratio.value:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]"
