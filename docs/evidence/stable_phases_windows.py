"""Windows of a recording of this machine, as files without references: what they say, and hold.

The recording stands in stable_phases.npz in the current folder, and is made when it is missing.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from coverage_tables import Setting, heading, row

import benchrigor as br

__all__ = ["windows"]

Floats = npt.NDArray[np.float64]

PLACE = Path("stable_phases.npz")
SECONDS = 120.0
"""Of each workload."""
LENGTHS_S = (2.0, 5.0, 10.0)

_RNG = random.Random(1)
_ROWS = [{"id": number, "name": str(number) * 3} for number in range(60)]
_NUMBERS = [_RNG.random() for _ in range(2_000)]
_BASE = sqlite3.connect(":memory:", check_same_thread=False)
_BASE.execute("create table numbers (n integer, name text)")
_BASE.executemany("insert into numbers values (?, ?)", [(n, str(n)) for n in range(2_000)])
WORKLOADS: dict[str, Callable[[], object]] = {
    "json": lambda: json.dumps(_ROWS),
    "sorted": lambda: sorted(_NUMBERS),
    "sqlite": lambda: _BASE.execute("select sum(n) from numbers").fetchall(),
}


def record(seconds: float) -> dict[str, Floats]:
    """Time all calls of each workload, for so long."""
    found = {}
    for name, call in WORKLOADS.items():
        readings, until = [], time.perf_counter() + seconds
        began = time.perf_counter()
        while began < until:
            call()
            ended = time.perf_counter()
            readings.append(ended - began)
            began = time.perf_counter()
        found[name] = np.array(readings)
    return found


@cache
def recording() -> dict[str, Floats]:
    """Return what was recorded on this machine."""
    with np.load(PLACE) as stored:
        return {name: stored[name] for name in stored}


class Window(NamedTuple):
    """What became of a window: whether its interval holds its own mean, and how wide it is."""

    held: bool
    half_width: float
    averaged: bool


def _cut(rng: np.random.Generator, name: str, length_s: float) -> Floats:
    ends = np.cumsum(recording()[name])
    start = rng.uniform(0.0, ends[-1] - length_s)
    first, stop = np.searchsorted(ends, [start, start + length_s])
    return recording()[name][first:stop]


def _window(seed: int, number: int) -> Window | None:
    rng = np.random.default_rng([seed, 5, number])
    name = list(WORKLOADS)[number % 3]
    readings = _cut(rng, name, LENGTHS_S[number // 3 % 3])
    try:
        mean = br.stats.estimate_mean(readings, trim=True)
    except br.NotEstimable:
        return None
    held = mean.low <= float(readings.mean()) <= mean.high
    return Window(held, mean.relative_half_width, "blocks" in mean.method)


def _pair(seed: int, number: int) -> str:
    rng = np.random.default_rng([seed, 6, number])
    name, length_s = list(WORKLOADS)[number % 3], LENGTHS_S[number // 3 % 3]
    one, other = (_cut(rng, name, length_s) for _ in range(2))
    try:
        return str(br.compare_runs(one, other).verdict)
    except br.NotEstimable:
        return "no number"


def windows(setting: Setting) -> None:
    """Print how often windows hold their own mean, and are called different. No bar."""
    if not PLACE.exists():
        recorded = record(2.0 * max(LENGTHS_S) if setting.quick else SECONDS)
        np.savez_compressed(
            PLACE, json=recorded["json"], sorted=recorded["sorted"], sqlite=recorded["sqlite"]
        )
    runs, pairs = setting.runs(2_160, 90), setting.runs(200, 30)
    print(f"{runs} windows of 2, 5 and 10 s; {pairs} pairs of windows of one workload.\n")
    found = setting.repeated(partial(_window, setting.seed), runs)
    heading(["workload", "holds the mean of its window", "averaged over time", "no number", "±"])
    for index, name in enumerate((*WORKLOADS, "all")):
        some = found if name == "all" else found[index::3]
        known = [one for one in some if one is not None]
        row(
            name,
            f"{sum(one.held for one in known) / len(some):.3f}",
            f"{sum(one.averaged for one in known) / len(some):.3f}",
            len(some) - len(known),
            f"{float(np.median([one.half_width for one in known])):.2%}",
        )
    verdicts = setting.repeated(partial(_pair, setting.seed), pairs)
    told = {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}
    print(f"\nPairs: {', '.join(f'{count} {verdict}' for verdict, count in told.items())}.")
