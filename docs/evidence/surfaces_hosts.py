"""Maps whose samples come from several hosts, each with an effect of its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from coverage_tables import Setting

from benchrigor.workbench import Factor, SurfaceMap

__all__ = ["hosts"]

FACTORS = [
    Factor("disks", levels=[1, 2, 3, 4]),
    Factor("nfsds", levels=[1, 2, 4, 8, 16, 32, 64, 100], scale="log2"),
]
HOSTS, SAMPLES, ERROR = 4, 12, 0.025
LEAST = 0.92  # coverage of intervals of 95 %


def hosts(setting: Setting) -> None:
    """Print how right and how sure maps are, with effects of hosts in the model and without."""
    maps = setting.runs(40, 6)
    print("| design | hosts differ by (sd) | in the model | intervals hold | error | bar |")
    print("| --- | --- | --- | --- | --- | --- |")
    for design in ("adaptive", "d-optimal"):
        for spread in (0.1, 0.0):
            for interchangeable in (False, True):
                found = np.mean(
                    [
                        map_of(design, spread, [setting.seed, number], interchangeable)
                        for number in range(maps)
                    ],
                    axis=0,
                )
                share, error = found
                name = f"{design} {spread:g}"
                bar = "" if interchangeable else setting.verdict(name, share >= LEAST)
                print(
                    f"| {design} | {spread:g} | {'no' if interchangeable else 'yes'} "
                    f"| {share:.3f} | {error:.3f} | {bar and f'>= {LEAST:g}: {bar}'} |",
                    flush=True,
                )


def map_of(
    design: str, spread: float, seeds: list[int], interchangeable: bool
) -> tuple[float, float]:
    """Carry out a map of a random surface; return the share held and the mean absolute error."""
    rng = np.random.default_rng(seeds)
    slopes, phase = rng.normal(size=5) * [0.4, 0.4, 0.15, 0.2, 0.2], rng.normal()
    effects = rng.normal(0.0, spread, HOSTS)

    def truth(point: Mapping[str, float | str]) -> float:
        x = (float(point["disks"]) - 2.5) / 1.5
        y = np.log2(float(point["nfsds"])) / 3.32 - 1.0
        terms = np.array([x, y, x * y, x * x, y * y])
        return float(5.0 + slopes @ terms + 0.1 * np.sin(3.0 * y + phase))

    search = SurfaceMap(
        FACTORS,
        design=design,
        samples=SAMPLES,
        target=0.02,
        interchangeable=interchangeable,
        seed=seeds[-1],
    )
    while (sample := search.ask()) is not None:
        host = sample.id % HOSTS
        log = truth(sample.point) + effects[host] + ERROR * rng.normal()
        answer = tuple(np.exp(log + np.array([0.0, -1.96, 1.96]) * ERROR).tolist())
        search.tell(sample, answer, host=f"host {host}", cost_s=1.0)
    surface, grid = search.result(), search.space.grid()
    value, low, high = surface.intervals(grid)
    known = np.exp(np.array([truth(point) for point in grid]) + effects.mean())
    held = np.mean((low <= known) & (known <= high))
    return float(held), float(np.mean(np.abs(value / known - 1.0)))
