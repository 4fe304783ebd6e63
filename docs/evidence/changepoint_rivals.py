"""Other detectors on the same series: accuracy, false alarms, speed.

Nobody's settings are tuned here. Penalties of ruptures: 10 for the rbf kernel, else 3 s^2 ln n,
where s is the median absolute deviation of successive differences, scaled to the standard
deviation of independent normal readings: shifts hardly touch it. Segments hold at least 10
readings, all places are candidates (jump 1). MongoDB's and Otava's own defaults (p 0.05 and
0.001), ours at level 0.01.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from typing import Any

import numpy as np
from changepoint_quality import ALARMS, SCORED, Score, repeated, score, stepped
from changepoint_series import NOISES, Floats, three_phases

from benchrigor.model import ChangePoints
from benchrigor.stats import detect_changes

__all__ = ["METHODS", "compare"]

SPEED = 1
LIMIT_S = 20.0
RUNS, CELL_S = 50, 10.0
LENGTH = 500
SIZES = (1_000, 10_000, 100_000, 1_000_000)

Detector = Callable[[Floats], Iterable[int]]


def _penalty(series: Floats) -> float:
    steps = np.diff(series)
    deviation = 1.4826 * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2.0)
    return 3.0 * deviation**2 * math.log(series.size)


def _ruptures(search: str, model: str, series: Floats) -> list[int]:
    package: Any = importlib.import_module("ruptures")
    if search == "KernelCPD":
        estimator = package.KernelCPD(kernel=model, min_size=10)
    else:
        estimator = getattr(package, search)(model=model, min_size=10, jump=1)
    penalty = 10.0 if model == "rbf" else _penalty(series)
    found: list[int] = estimator.fit_predict(series.reshape(-1, 1), pen=penalty)
    return found[:-1]


def _mongodb(series: Floats) -> list[int]:
    package: Any = importlib.import_module(
        "signal_processing_algorithms.energy_statistics.energy_statistics"
    )
    np.random.seed(0)  # noqa: NPY002 # it permutes by the global generator
    found: list[int] = package.e_divisive(series)
    return found


def _otava(series: Floats) -> list[int]:
    package: Any = importlib.import_module("otava.analysis")
    # A list: of an array it does not take the window it means to look at.
    points, _ = package.compute_change_points(series.tolist())
    return [point.index for point in points]


METHODS: dict[str, tuple[str, Detector]] = {
    "benchrigor": ("benchrigor", lambda series: detect_changes(series).indices),
    "ruptures Pelt l2": ("ruptures", partial(_ruptures, "Pelt", "l2")),
    "ruptures KernelCPD linear": ("ruptures", partial(_ruptures, "KernelCPD", "linear")),
    "ruptures KernelCPD rbf": ("ruptures", partial(_ruptures, "KernelCPD", "rbf")),
    "ruptures Binseg l2": ("ruptures", partial(_ruptures, "Binseg", "l2")),
    "ruptures BottomUp l2": ("ruptures", partial(_ruptures, "BottomUp", "l2")),
    "MongoDB e_divisive": ("signal-processing-algorithms", _mongodb),
    "Otava": ("apache-otava", _otava),
}


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def found_by(method: str, series: Floats) -> ChangePoints:
    """Return another method's change points as ours."""
    if method == "benchrigor":
        return detect_changes(series)
    indices = tuple(sorted({int(each) for each in METHODS[method][1](series)}))
    return ChangePoints(indices=indices, n=series.size, level=0.01, inflation=1.0)


def _until(function: Callable[[int], Any]) -> list[Any]:
    """Return the results of run 0, 1, ... until there are enough or the time is over."""
    results: list[Any] = []
    start = time.perf_counter()
    while len(results) < RUNS and (not results or time.perf_counter() - start < CELL_S):
        results.append(function(len(results)))
    return results


def _accuracy_cell(seed: int, method: str, noise: str) -> str:
    row = list(SCORED).index(noise)

    def one(run: int) -> Score:
        series = stepped(seed, row, noise, run)
        return score(series, found_by(method, series))

    scores = _until(one)
    f1, covered, stable, _, errors = (np.array(each) for each in zip(*scores, strict=True))
    error = np.quantile(errors, 0.5, method="inverted_cdf")
    return (
        f"{f1.mean():.2f} / {covered.mean():.2f} / {stable.mean():.2f} / "
        f"{'none' if math.isinf(error) else f'{error:.3f}'} ({len(scores)})"
    )


def _alarm_cell(seed: int, method: str, noise: str) -> str:
    row = 100 + list(NOISES).index(noise)

    def one(run: int) -> int:
        rng = np.random.default_rng([seed, ALARMS, row, run])
        return len(found_by(method, NOISES[noise](rng, LENGTH)).indices)

    counts = np.array(_until(one))
    return f"{np.mean(counts > 0):.2f}, {counts.mean():.1f} ({counts.size})"


def _seconds(seed: int, method: str, n: int) -> float:
    """Return the least duration of up to three calls, behind one on little data."""
    series = three_phases(np.random.default_rng([seed, SPEED, SIZES.index(n), 0]), n)
    found_by(method, series[:200])
    durations: list[float] = []
    while len(durations) < 3 and sum(durations) < LIMIT_S / 4:
        start = time.perf_counter()
        found_by(method, series)
        durations.append(time.perf_counter() - start)
    return min(durations)


def _speed_row(seed: int, method: str) -> list[str]:
    """Return the times at all sizes; a call that takes too long is ended, larger ones not tried."""
    cells: list[str] = []
    for n in SIZES:
        with multiprocessing.Pool(1) as pool:
            try:
                taken = pool.apply_async(_seconds, (seed, method, n)).get(LIMIT_S)
            except multiprocessing.TimeoutError:
                cells.append(f"> {LIMIT_S:.0f} s")
                break
        cells.append(f"{taken * 1e3:.3g} ms")
        if 10.0 * taken > LIMIT_S:
            break
    return cells + ["not tried"] * (len(SIZES) - len(cells))


def compare(seed: int) -> None:
    """Print the tables of all methods that are installed."""
    present = {package: _installed(package) for package, _ in METHODS.values()}
    print(", ".join(f"{name} {number or 'not installed'}" for name, number in present.items()))
    methods = [name for name, (package, _) in METHODS.items() if present[package]]
    print(f"Up to {RUNS} series, and {CELL_S:.0f} s, a cell; how many were done in brackets.\n")
    print("F1 / covering / share with a stable phase / median error of its mean:\n")
    _table(methods, SCORED, partial(_accuracy_cell, seed))
    print(f"\nShare of {LENGTH} readings without change said to change, mean number of points:\n")
    _table(methods, NOISES, partial(_alarm_cell, seed))
    print(
        "\nThree phases, least of up to three calls. A size is not tried when ten times as long as"
    )
    print(f"the one before it took would be more than {LIMIT_S:.0f} s.\n")
    print(f"| method | {' | '.join(f'n = {n:,}' for n in SIZES)} |")
    print(f"| --- |{' --- |' * len(SIZES)}")
    for method in methods:
        print(f"| {method} | {' | '.join(_speed_row(seed, method))} |", flush=True)


def _table(methods: list[str], noises: Iterable[str], cell: Callable[[str, str], str]) -> None:
    columns = list(noises)
    cells = repeated(
        partial(_cell, cell, list(product(methods, columns))), len(methods) * len(columns)
    )
    print(f"| method | {' | '.join(columns)} |")
    print(f"| --- |{' --- |' * len(columns)}")
    for at, method in enumerate(methods):
        print(
            f"| {method} | {' | '.join(cells[at * len(columns) :][: len(columns)])} |", flush=True
        )


def _cell(cell: Callable[[str, str], str], places: list[tuple[str, str]], at: int) -> str:
    return cell(*places[at])
