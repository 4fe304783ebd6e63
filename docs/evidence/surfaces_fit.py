"""Surfaces that are fitted to samples of simulated servers."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Setting, Tally, heading, row
from surfaces_servers import ERROR, KINDS, measure, peaks_of, space_of, spread

from benchrigor.model import Floats
from benchrigor.workbench.surfaces.factors import Factor, Space
from benchrigor.workbench.surfaces.gaussian_process import fit_gaussian_process
from benchrigor.workbench.surfaces.quadratic import fit_quadratic
from benchrigor.workbench.surfaces.surface import Surface, fit_surface

__all__ = [
    "LARGE_SIZES",
    "SIZES",
    "accuracy",
    "best",
    "crossovers",
    "error_of",
    "reaches",
    "sensitivities",
    "speed",
]

SIZES = {8: 0.05, 12: 0.035}
"""Numbers of samples, and the mean absolute error at most."""
LARGE_SIZES = dict.fromkeys((12, 20), math.inf)


class Fitted(NamedTuple):
    """One map: mean absolute errors, share of unmeasured points held, half-width, model."""

    error: float
    quadratic: float
    process: float
    held: float
    half_width: float
    is_quadratic: bool


def _map_of(seed: int, kind: str, n: int, run: int) -> tuple[Surface, Space, Floats, list[int]]:
    rng = np.random.default_rng([seed, KINDS.index(kind), n, run])
    space = space_of(kind)
    grid, peaks = space.grid(), peaks_of(kind, rng)
    chosen = spread(space, n, rng)
    samples = measure({index: grid[index] for index in chosen}, peaks, rng)
    return fit_surface(space, samples), space, peaks, chosen


def _one(seed: int, kind: str, n: int, run: int) -> Fitted:
    surface, space, peaks, chosen = _map_of(seed, kind, n, run)
    grid = space.grid()
    points = [each.sample.point for each in surface.samples]
    logs = np.log([each.estimates["peak"].value for each in surface.samples])
    errors = np.full(n, ERROR)
    alone = []
    for fit in (fit_quadratic, fit_gaussian_process):
        fitted = fit(space, points, logs, errors)
        alone.append(math.nan if fitted is None else error_of(fitted.predictions(grid)[0], peaks))
    left = sorted(set(range(len(grid))) - set(chosen))
    predicted = [surface.predict(grid[index]) for index in left]
    held = [each.low <= peaks[at] <= each.high for each, at in zip(predicted, left, strict=True)]
    return Fitted(
        error_of(surface.predictions(grid)[0], peaks),
        alone[0],
        alone[1],
        float(np.mean(held)),
        float(np.median([each.relative_half_width for each in predicted])),
        surface.model == "quadratic",
    )


def error_of(logs: Floats, peaks: Floats) -> float:
    """Return the mean absolute relative error of predicted logarithms."""
    return float(np.mean(np.abs(np.exp(logs) / peaks - 1.0)))


def reaches(setting: Setting, values: Sequence[float], low: float, high: float) -> bool:
    """Whether the mean over maps is in a range; of a quick run, whether its interval reaches it."""
    reach = setting.z * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    reach *= setting.quick
    mean = float(np.mean(values))
    return mean - reach <= high and mean + reach >= low


def accuracy(setting: Setting) -> None:
    """Print errors and coverage of each kind of map and number of samples, and all coverage."""
    heading(
        [
            *("map", "samples", "error", "quadratic alone", "process alone", "quadratic chosen"),
            *("bar", "no worse than the better by 10 %", "unmeasured held", "half-width", "bar"),
        ]
    )
    everything: list[float] = []
    for kind in KINDS:
        # The bars on errors are of 32 points.
        few = kind != "64 points"
        for n, most in (SIZES if few else LARGE_SIZES).items():
            name = f"{kind}, {n}"
            run = partial(_one, setting.seed, kind, n)
            found = setting.repeated(run, setting.runs(100, 12))
            mean = Fitted(*np.mean(found, axis=0))
            held = [each.held for each in found]
            everything += held
            better = 1 if mean.quadratic < mean.process else 2
            excess = [each.error - 1.1 * each[better] for each in found]
            is_small = reaches(setting, [each.error for each in found], 0.0, most)
            row(
                kind,
                n,
                f"{mean.error:.4f}",
                f"{mean.quadratic:.4f}",
                f"{mean.process:.4f}",
                f"{mean.is_quadratic:.2f}",
                f"<= {most:g}: {setting.verdict(f'error {name}', is_small)}" if few else "none",
                setting.verdict(f"better of {name}", reaches(setting, excess, -9.0, 0.0)),
                f"{mean.held:.3f}",
                f"{mean.half_width:.3f}",
                f">= .88: {setting.verdict(f'held {name}', reaches(setting, held, 0.88, 1.0))}",
            )
    is_met = reaches(setting, everything, 0.92, 0.98)
    verdict = setting.verdict("held, pooled", is_met)
    print(f"\nunmeasured points held, all maps: {np.mean(everything):.3f}, .92 to .98: {verdict}")


def _regret(seed: int, kind: str, run: int) -> tuple[float, bool, float]:
    surface, space, peaks, _ = _map_of(seed, kind, 12, run)
    found = surface.best()
    chosen = space.grid().index(found.point)
    regret = 1.0 - float(peaks[chosen] / peaks.max())
    return regret, regret <= found.regret.high, found.regret.high


def best(setting: Setting) -> None:
    """Print how often the best point of maps of 12 is nearly the best, and its interval holds."""
    heading(["map", "mean regret", "at most 5 %", "told at most", "interval holds"])
    together: list[tuple[float, bool, float]] = []
    for kind in KINDS:
        run = partial(_regret, setting.seed, kind)
        found = setting.repeated(run, setting.runs(100, 12))
        together += found
        small = np.mean([each[0] <= 0.05 for each in found])
        mean, held, high = np.mean(found, axis=0)
        row(kind, f"{mean:.3f}", f"{small:.2f}", f"{high:.3f}", f"{held:.2f}")
    n = len(together)
    small_of_all = sum(each[0] <= 0.05 for each in together)
    told = setting.judged("regret", Bar(0.90), Tally(small_of_all, 0, n, 0.0))
    print(f"\nregret of 5 % at most: {small_of_all / n:.3f} of {n}: {told}")
    held_of_all = sum(each[1] for each in together)
    told = setting.judged("interval of the regret", Bar(0.92), Tally(held_of_all, 0, n, 0.0))
    print(f"intervals of the regret that hold it: {held_of_all / n:.3f} of {n}: {told}")


def _ratios(seed: int, kind: str, run: int) -> dict[str, bool]:
    surface, space, peaks, _ = _map_of(seed, kind, 12, run)
    held = {}
    for name, found in surface.sensitivities().items():
        levels = [each[name] for each in space.grid()]
        means = [
            float(np.mean(np.log(peaks[[other == level for other in levels]])))
            for level in dict.fromkeys(levels)
        ]
        held[name] = found.low <= math.exp(max(means) - min(means)) <= found.high
    return held


def sensitivities(setting: Setting) -> None:
    """Print how often the interval of a factor's ratio holds the ratio of its true levels."""
    heading(["map", "factor", "held"])
    for kind in ("tilted", "64 points"):
        found = setting.repeated(partial(_ratios, setting.seed, kind), setting.runs(100, 12))
        for name in found[0]:
            share = sum(each[name] for each in found)
            bar = Tally(share, 0, len(found), 0.0)
            told = setting.judged(f"ratio of {name}, {kind}", Bar(0.92), bar)
            row(kind, name, f"{bar.share:.3f}: {told}")


_CROSSING = Space(
    [
        Factor("clients", levels=[1, 2, 4, 8, 16, 32, 64], scale="log2", workload=True),
        Factor("fs", levels=["ext4", "xfs"]),
    ]
)


def _crossing(seed: int, run: int) -> tuple[int, bool]:
    """Return how many crossovers are told of one that there is, and whether the first holds it."""
    rng = np.random.default_rng([seed, 77, run])
    true = 2.0 ** rng.uniform(1.0, 5.0)
    power, bend = rng.uniform(0.1, 0.4), rng.uniform(0.0, 0.04)
    grid = _CROSSING.grid()
    clients = np.array([float(each["clients"]) for each in grid])
    gain = np.array([power if each["fs"] == "xfs" else 0.0 for each in grid])
    peaks = 100.0 * clients**0.6 / (1.0 + bend * clients) * (clients / true) ** gain
    samples = measure(dict(enumerate(grid)), peaks, rng)
    surface = fit_surface(_CROSSING, samples)
    found = surface.crossovers({"clients": 1, "fs": "ext4"}, {"clients": 1, "fs": "xfs"})
    return len(found), bool(found) and found[0].at.low <= true <= found[0].at.high


def crossovers(setting: Setting) -> None:
    """Print how often the interval of a crossover holds the true one."""
    found = setting.repeated(partial(_crossing, setting.seed), setting.runs(200, 20))
    one = sum(each[0] == 1 for each in found)
    held = sum(each[1] for each in found)
    told = setting.judged("crossovers", Bar(0.92), Tally(held, 0, len(found), 0.0))
    print(f"one crossover told in {one} of {len(found)}; held in {held / len(found):.3f}: {told}")


def speed(setting: Setting) -> None:
    """Print the seconds of a fit of 60 samples, with predictions of 1,000 candidates."""
    rng = np.random.default_rng(setting.seed)
    levels = range(10)
    space = Space(
        [
            Factor("a", levels=levels),
            Factor("b", levels=levels),
            Factor("c", levels=[*"abcdefghij"]),
        ]
    )
    grid = space.grid()
    rows = space.coordinates(grid)
    peaks = np.exp(rows @ rng.normal(0.0, 0.3, rows.shape[1]) + np.sin(2.0 * rows[:, 0]))
    chosen = rng.choice(len(grid), 60, replace=False).tolist()
    samples = measure({index: grid[index] for index in chosen}, peaks, rng)
    fit_surface(space, samples)  # imports
    took = []
    for _ in range(3):
        start = time.perf_counter()
        fit_surface(space, samples).predictions(grid)
        took.append(time.perf_counter() - start)
    verdict = setting.verdict("speed", min(took) <= 1.0)
    print(
        f"a fit of 60 and predictions of 1,000: {', '.join(f'{s:.2f}' for s in took)} s, "
        f"1 s: {verdict}"
    )
