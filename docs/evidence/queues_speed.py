"""What it takes to estimate the rate of a long recorded series."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from coverage_tables import Setting, heading, row

from benchrigor.queues import ServiceRateEstimator
from benchrigor.queues.recording.recorded_rates import rate_recording
from benchrigor.queues.recording.recordings import Recording

__all__ = ["series"]

SERIES = 95
MILLION, TURNS = 1_000_000, 3
MOST_S, MOST_HELD = 2.0, 2_000_000
"""Seconds; bytes at any length: of rates the last 1000 are kept, and they come to 0.7 MB."""
PERIOD_S = 0.05

Columns = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """How which series is estimated; the published method starts anew after each convergence."""

    what: str
    options: Mapping[str, Any]
    regular: bool = False


CASES = (
    Case(what="busy-time", options={}),
    Case(what="quantile", options={"method": "quantile"}),
    Case(what="quantile, as published", options={"method": "quantile", "guards": False}),
    Case(
        what="quantile, as published, of regular counts",
        options={"method": "quantile", "guards": False},
        regular=True,
    ),
    Case(
        what="quantile, period_s given, of regular counts",
        options={"method": "quantile", "period_s": PERIOD_S},
        regular=True,
    ),
)


def series(setting: Setting) -> None:
    """Print times and memory."""
    print(
        f"{MILLION:,} periods of 30 items in the mean, half of them with waiting; least of {TURNS}"
    )
    print(
        "turns. Regular counts: 30 in each, none with waiting; the published method converges every"
    )
    print(
        "33 periods. Held: what the estimator still holds in memory, after as many, and twice them."
    )
    print()
    heading(["what", "wall", "processor", "bar", "held", "twice as long", "bar"])
    columns = drawn(setting.seed)
    regular = np.full(MILLION, 30.0), np.zeros(MILLION)
    for case in CASES:
        told_of = regular if case.regular else columns
        wall_s, cpu_s = least(lambda case=case, told_of=told_of: told(case, told_of))
        once, twice = (held(case, told_of, turns) for turns in (1, 2))
        row(
            f"tell_many, {case.what}",
            f"{wall_s:.2f} s",
            f"{cpu_s:.2f} s",
            f"{MOST_S:g} s: {setting.verdict(f'a million periods, {case.what}', wall_s <= MOST_S)}",
            f"{once / 1e3:.0f} kB",
            f"{twice / 1e3:.0f} kB",
            f"{MOST_HELD // 1000} kB: "
            f"{setting.verdict(f'memory, {case.what}', max(once, twice) <= MOST_HELD)}",
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "series.csv"
        written(path, columns)
        wall_s, cpu_s = least(lambda: read(path))
    row("a CSV file, read and estimated", f"{wall_s:.2f} s", f"{cpu_s:.2f} s", *["none"] * 4)


def drawn(seed: int) -> Columns:
    """Draw items and blocked time of each period."""
    rng = np.random.default_rng([seed, SERIES])
    items = rng.poisson(30.0, MILLION).astype(np.float64)
    waited = rng.random(MILLION) < 0.5
    return items, waited * rng.integers(0, 40_000_000, MILLION) / 1e9


def told(case: Case, columns: Columns, turns: int = 1) -> ServiceRateEstimator:
    """Tell an estimator of all periods, once or more often, and ask for its rates."""
    items, blocked_s = columns
    est = ServiceRateEstimator(**case.options)
    for _ in range(turns):
        est.tell_many(items, PERIOD_S, blocked_s, blocked_s > 0.0)
    assert est.rates
    return est


def held(case: Case, columns: Columns, turns: int) -> int:
    """Return how many bytes an estimator still holds in the end."""
    told(case, columns)  # what is imported or cached at first use does not count
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    est = told(case, columns, turns)
    found = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert est.rates
    return found


def least(call: object) -> tuple[float, float]:
    """Return the least wall and processor time of some turns, in seconds."""
    assert callable(call)
    walls, cpus = [], []
    for _ in range(TURNS):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall_s)
        cpus.append(time.process_time() - cpu_s)
    return min(walls), min(cpus)


def written(path: Path, columns: Columns) -> None:
    """Write the series down as any program would."""
    with path.open("w", encoding="utf-8") as file:
        file.write("# counters: delta\nperiod_s,items,blocked_s\n")
        rows = zip(*(each.tolist() for each in columns), strict=True)
        file.writelines(f"{PERIOD_S},{items:.0f},{blocked_s:.9f}\n" for items, blocked_s in rows)


def read(path: Path) -> None:
    """Do what ``benchrigor rate`` does."""
    with Recording.open(path) as recording:
        assert rate_recording(recording)[0].rates
