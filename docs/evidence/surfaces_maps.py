"""Maps that choose their own samples of simulated servers, and keep them."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coverage_tables import Bar, Setting, Tally, heading, row
from surfaces_fit import LARGE_SIZES, SIZES, error_of, reaches
from surfaces_servers import KINDS, MOVED, measure, peaks_of, space_of

from benchrigor.model import Floats, Options, RunRecord
from benchrigor.model.metric import describe_metric
from benchrigor.storage import Journal
from benchrigor.workbench.maps.map_run import Found, round_of, samples_of
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.factors import Factor, Space
from benchrigor.workbench.surfaces.surface import Surface, fit_surface

__all__ = ["adaptive", "moved", "opened", "regret"]

_QUICK = ("tilted",)
_STREAM = 31  # of random numbers, apart from those of the other sections


def _map_of(seed: int, kind: str, n: int, run: int) -> tuple[Surface, Space, Floats]:
    """Let a map choose n samples, all of them."""
    rng = np.random.default_rng([seed, _STREAM, (*KINDS, MOVED).index(kind), n, run])
    space, peaks = space_of(kind), peaks_of(kind, rng)
    grid = space.grid()
    search = SurfaceMap(space.factors, samples=n, target=1e-3, seed=run + 1)
    while (sample := search.ask()) is not None:
        index = grid.index(sample.point)
        (found,) = measure({index: sample.point}, peaks, rng)
        search.tell(sample, found.estimates)
    return search.result(), space, peaks


def _one(seed: int, kind: str, n: int, run: int) -> tuple[float, float, float]:
    """Return the mean absolute error, the share of unmeasured points held, and their half-width."""
    surface, space, peaks = _map_of(seed, kind, n, run)
    grid = space.grid()
    measured = {space.key(each.sample.point) for each in surface.samples}
    left = [index for index, point in enumerate(grid) if space.key(point) not in measured]
    predicted = [surface.predict(grid[index]) for index in left]
    held = [each.low <= peaks[at] <= each.high for each, at in zip(predicted, left, strict=True)]
    half_width = float(np.median([each.relative_half_width for each in predicted]))
    return error_of(surface.predictions(grid)[0], peaks), float(np.mean(held)), half_width


def adaptive(setting: Setting) -> None:
    """Print errors and coverage of maps that choose their samples, and all coverage."""
    heading(["map", "samples", "error", "bar", "unmeasured held", "half-width", "bar"])
    everything: list[float] = []
    for kind in _QUICK if setting.quick else KINDS:
        few = kind != "64 points"
        for n, most in (SIZES if few else LARGE_SIZES).items():
            name = f"{kind}, {n}, adaptive"
            found = setting.repeated(partial(_one, setting.seed, kind, n), setting.runs(100, 4))
            errors, held, widths = map(list, zip(*found, strict=True))
            everything += held
            is_small = reaches(setting, errors, 0.0, most)
            row(
                kind,
                n,
                f"{np.mean(errors):.4f}",
                f"<= {most:g}: {setting.verdict(f'error {name}', is_small)}" if few else "none",
                f"{np.mean(held):.3f}",
                f"{np.mean(widths):.3f}",
                f">= .88: {setting.verdict(f'held {name}', reaches(setting, held, 0.88, 1.0))}",
            )
    verdict = setting.verdict("held, adaptive, pooled", reaches(setting, everything, 0.92, 0.98))
    print(f"\nunmeasured points held, all maps: {np.mean(everything):.3f}, .92 to .98: {verdict}")


def _regret(seed: int, kind: str, run: int) -> tuple[float, bool, float]:
    surface, space, peaks = _map_of(seed, kind, 12, run)
    found = surface.best()
    lost = 1.0 - float(peaks[space.grid().index(found.point)] / peaks.max())
    return lost, lost <= found.regret.high, found.regret.high


def regret(setting: Setting) -> None:
    """Print how often the best point of maps of 12 of their own samples is nearly the best."""
    heading(["map", "mean regret", "at most 5 %", "told at most", "interval holds"])
    together: list[tuple[float, bool, float]] = []
    for kind in _QUICK if setting.quick else KINDS:
        found = setting.repeated(partial(_regret, setting.seed, kind), setting.runs(100, 4))
        together += found
        small = np.mean([each[0] <= 0.05 for each in found])
        mean, held, high = np.mean(found, axis=0)
        row(kind, f"{mean:.3f}", f"{small:.2f}", f"{high:.3f}", f"{held:.2f}")
    n = len(together)
    small_of_all = sum(each[0] <= 0.05 for each in together)
    told = setting.judged("regret, adaptive", Bar(0.90), Tally(small_of_all, 0, n, 0.0))
    print(f"\nregret of 5 % at most: {small_of_all / n:.3f} of {n}: {told}")
    held_of_all = sum(each[1] for each in together)
    bar = Tally(held_of_all, 0, n, 0.0)
    told = setting.judged("interval of the regret, adaptive", Bar(0.92), bar)
    print(f"intervals of the regret that hold it: {held_of_all / n:.3f} of {n}: {told}")


class _Moved(NamedTuple):
    """One map of a moved surface."""

    held: list[bool]
    half_width: float
    error: float
    lost: float
    most: float  # that its interval says may be lost


def _one_moved(seed: int, n: int, run: int) -> _Moved:
    surface, space, peaks = _map_of(seed, MOVED, n, run)
    grid, best = space.grid(), surface.best()
    measured = {space.key(each.sample.point) for each in surface.samples}
    left = [index for index, point in enumerate(grid) if space.key(point) not in measured]
    predicted = [surface.predict(grid[index]) for index in left]
    return _Moved(
        [each.low <= peaks[at] <= each.high for each, at in zip(predicted, left, strict=True)],
        float(np.median([each.relative_half_width for each in predicted])),
        error_of(surface.predictions(grid)[0], peaks),
        1.0 - float(peaks[grid.index(best.point)] / peaks.max()),
        best.regret.high,
    )


def moved(setting: Setting) -> None:
    """Print what maps of 8 and 12 samples of surfaces say whose limits meet anywhere."""
    heading(["samples", "error", "unmeasured held", "half-width", "regret <= 5 %", "regret held"])
    everything: list[_Moved] = []
    for n in SIZES:
        found = setting.repeated(partial(_one_moved, setting.seed, n), setting.runs(48, 4))
        everything += found
        row(
            n,
            f"{np.mean([each.error for each in found]):.3f}",
            f"{np.mean([held for each in found for held in each.held]):.3f}",
            f"{np.mean([each.half_width for each in found]):.3f}",
            f"{np.mean([each.lost <= 0.05 for each in found]):.3f}",
            f"{np.mean([each.lost <= each.most for each in found]):.3f}",
        )
    held = [float(np.mean(each.held)) for each in everything]
    verdict = setting.verdict("held, moved", reaches(setting, held, 0.92, 0.98))
    print(f"\nunmeasured points held, all maps: {np.mean(held):.3f}, .92 to .98: {verdict}")
    small = sum(each.lost <= 0.05 for each in everything)
    n = len(everything)
    told = setting.judged("regret, moved", Bar(0.90), Tally(small, 0, n, 0.0))
    print(f"regret of 5 % at most: {small / n:.3f} of {n}: {told}")


_LEVELS = range(10)
_FACTORS = [
    Factor("a", levels=_LEVELS),
    Factor("b", levels=_LEVELS),
    Factor("c", levels=[*"abcdefghij"]),
]


def opened(setting: Setting) -> None:
    """Print the seconds in which a map of 1,000 opens, and one of 60 says what is next.

    Of the processor, since others may use it; both ways hardly wait for anything else.
    """
    rng = np.random.default_rng([setting.seed, _STREAM])
    space = Space(_FACTORS)
    grid, rows = space.grid(), space.coordinates(space.grid())
    peaks = np.exp(rows @ rng.normal(0.0, 0.3, rows.shape[1]) + np.sin(2.0 * rows[:, 0]))
    header = RunRecord(
        name="a map of 1,000",
        options=Options(),
        metrics=(describe_metric("peak", "1/s"),),
        seed=0,
        rounds=(),
        analyses=(),
        subject={"kind": "map"},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        store = Journal(path)
        run_id = store.begin(header)
        for each in measure(dict(enumerate(grid)), peaks, rng):
            store.append(run_id, round_of(each, Found()))
        took = []
        for _ in range(setting.runs(3, 1)):
            start = time.process_time()
            samples = samples_of(Journal(path).load(run_id))
            read = time.process_time()
            fit_surface(space, samples)
            took.append((time.process_time() - start, read - start))
    seconds, reading = min(took)
    verdict = setting.verdict("opens", seconds <= 2.0)
    print(
        f"a map of {len(samples):,}: {seconds:.2f} s, {reading:.2f} of it to read; 2 s: {verdict}"
    )
    search = SurfaceMap(_FACTORS, samples=100, target=1e-3)
    chosen = rng.choice(len(grid), 60, replace=False).tolist()
    search.recall([*measure({index: grid[index] for index in chosen}, peaks, rng)])
    search._queue.clear()  # noqa: SLF001  # its first design is over
    waits = []
    for _ in range(setting.runs(3, 1)):
        start = time.process_time()
        sample = search.ask()
        waits.append(time.process_time() - start)
        assert sample is not None
        (found,) = measure({grid.index(sample.point): sample.point}, peaks, rng)
        search.tell(sample, found.estimates)
    verdict = setting.verdict("next", max(waits) <= 1.0)
    print(f"the next of 1,000 candidates: {', '.join(f'{s:.2f}' for s in waits)} s; 1 s: {verdict}")
