"""What it takes to estimate the rate of a long recorded series."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import numpy.typing as npt
from coverage_tables import Setting, heading, row

from benchrigor.queues import ServiceRateEstimator
from benchrigor.queues.recording.recorded_rates import rate_recording
from benchrigor.queues.recording.recordings import Recording

__all__ = ["series"]

SERIES = 95
MILLION, TURNS = 1_000_000, 3
MOST_S, MOST_GROWTH = 2.0, 100_000
METHODS = ("busy-time", "quantile")
PERIOD_S = 0.05

Columns = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def series(setting: Setting) -> None:
    """Print times and memory."""
    print(
        f"{MILLION:,} periods of 30 items in the mean, half of them with waiting; least of {TURNS}"
    )
    print("turns. Held: what the estimator still holds in memory, after an eighth and after all.\n")
    heading(["what", "wall", "processor", "bar", "held after an eighth", "after all", "bar"])
    columns = drawn(setting.seed)
    for method in METHODS:
        wall_s, cpu_s = least(lambda method=method: told(method, columns))
        small, large = (held(method, columns, n) for n in (MILLION // 8, MILLION))
        row(
            f"tell_many, {method}",
            f"{wall_s:.2f} s",
            f"{cpu_s:.2f} s",
            f"{MOST_S:g} s: {setting.verdict(f'a million periods, {method}', wall_s <= MOST_S)}",
            f"{small / 1e3:.0f} kB",
            f"{large / 1e3:.0f} kB",
            f"{MOST_GROWTH // 1000} kB more: "
            f"{setting.verdict(f'memory, {method}', large <= small + MOST_GROWTH)}",
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


def told(method: str, columns: Columns, n: int = MILLION) -> ServiceRateEstimator:
    """Tell an estimator of the first n periods, and ask for its rates."""
    items, blocked_s = (each[:n] for each in columns)
    est = ServiceRateEstimator(method)
    est.tell_many(items, PERIOD_S, blocked_s, blocked_s > 0.0)
    assert est.rates
    return est


def held(method: str, columns: Columns, n: int) -> int:
    """Return how many bytes an estimator still holds after n periods."""
    told(method, columns, 1000)  # what is imported or cached at first use does not count
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    est = told(method, columns, n)
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
