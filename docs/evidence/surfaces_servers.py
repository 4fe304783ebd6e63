"""File servers whose peak is known in each configuration, and spread choices of configurations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from benchrigor.model import Estimate, Floats
from benchrigor.workbench.surfaces.factors import Factor, Point, Space
from benchrigor.workbench.surfaces.samples import Measured, Sample

__all__ = ["ERROR", "KINDS", "MOVED", "measure", "peaks_of", "space_of", "spread"]

ERROR = 0.025  # relative standard deviation of a measured peak
_DAEMONS = (1, 2, 4, 8, 16, 32, 64, 100)
_SMALL = Space(
    [Factor("disks", levels=[1, 2, 3, 4]), Factor("nfsds", levels=_DAEMONS, scale="log2")]
)
_LARGE = Space([*_SMALL.factors, Factor("fs", levels=["ext4", "xfs"])])
# Rates at which disks (one of them, and the power of their number), a daemon and the processors
# are saturated, the cost of contention for each daemon, and how sharply limits meet.
_WORKLOADS = {
    "database": (215.0, 0.92, 70.0, 2500.0, 0.0012, 2.5),
    "web": (1500.0, 0.55, 190.0, 2600.0, 0.0008, 2.0),
    "mail": (190.0, 0.9, 900.0, 6000.0, 0.0006, 1.5),
}
KINDS = (*_WORKLOADS, "tilted", "64 points")
MOVED = "moved"
_FARTHEST = math.log(4.0)  # how far a limit of a moved surface lies from that of its workload


def space_of(kind: str) -> Space:
    """Return the factors of a kind of map."""
    return _LARGE if kind == "64 points" else _SMALL


def peaks_of(kind: str, rng: np.random.Generator) -> Floats:
    """Return the peak of each configuration of the grid.

    A workload has fixed peaks. The kind "tilted" changes its rates at random, and adds a random
    slope over each factor. "64 points" has two such surfaces, one for each file system. "moved"
    makes disks, daemons and processors up to four times faster or slower, contention up to 16 times
    more costly, and the limits meet up to four times more sharply. Its best is inside the grid.
    """
    if kind in _WORKLOADS:
        grid = _SMALL.grid()
        return np.array([_peak(each, _WORKLOADS[kind]) for each in grid])
    name = [*_WORKLOADS][int(rng.integers(len(_WORKLOADS)))]
    if kind == MOVED:
        faster = np.exp(rng.uniform(-_FARTHEST, _FARTHEST, 3))
        worse = np.exp(rng.uniform(0.0, [2.0 * _FARTHEST, _FARTHEST]))
        return _tilted(
            np.array(_WORKLOADS[name]) * [faster[0], 1.0, *faster[1:], *worse], np.zeros(2)
        )
    rates = np.array(_WORKLOADS[name]) * np.exp(rng.normal(0.0, 0.25, 6))
    slopes = rng.normal(0.0, 0.15, 2)
    if kind == "tilted":
        return _tilted(rates, slopes)
    other = rates * np.exp(rng.normal(0.0, 0.15, 6))
    both = _tilted(rates, slopes), _tilted(other, slopes + rng.normal(0.0, 0.1, 2))
    return np.column_stack(both).ravel()  # the last factor varies most often


def _tilted(rates: Floats, slopes: Floats) -> Floats:
    grid = _SMALL.grid()
    tilt = np.exp(_SMALL.coordinates(grid) @ slopes)
    peaks: Floats = np.array([_peak(each, rates) for each in grid]) * tilt
    return peaks


def _peak(point: Point, rates: Sequence[float] | Floats) -> float:
    disk, power, daemon, processors, contention, sharpness = map(float, rates)
    disks, daemons = float(point["disks"]), float(point["nfsds"])
    limits = (disk * disks**power, daemon * daemons, processors)
    together: float = math.fsum(each**-sharpness for each in limits) ** (-1.0 / sharpness)
    return together / (1.0 + contention * daemons)


def spread(space: Space, n: int, rng: np.random.Generator, starts: int = 10) -> list[int]:
    """Choose points of the grid that lie far apart: the best of greedy choices."""
    apart = _distances(space)
    best: list[int] = []
    most = (-1.0, 0.0)
    for _ in range(starts):
        chosen = [int(rng.integers(len(apart)))]
        while len(chosen) < n:
            nearest = apart[:, chosen].min(axis=1)
            farthest = np.flatnonzero(nearest >= nearest.max() - 1e-9)
            chosen.append(int(rng.choice(farthest)))
        among = apart[np.ix_(chosen, chosen)] + 9.0 * np.eye(n)
        worth = (float(among.min()), -float(np.sum(among**-4.0)))
        if worth > most:
            best, most = chosen, worth
    return best


@cache
def _distances_of(large: bool) -> Floats:
    space = _LARGE if large else _SMALL
    grid = space.grid()
    return np.array([space.distances(grid, each) for each in grid])


def _distances(space: Space) -> Floats:
    return _distances_of(space is _LARGE)


def measure(points: Mapping[int, Point], peaks: Floats, rng: np.random.Generator) -> list[Measured]:
    """Measure the peaks of some points of the grid, by their index."""
    found = []
    for index, point in points.items():
        value = float(peaks[index]) * math.exp(rng.normal(0.0, ERROR))
        error = ERROR * value
        estimate = Estimate(
            value=value,
            low=value - 1.96 * error,
            high=value + 1.96 * error,
            confidence=0.95,
            n=10,
            n_effective=10.0,
            method="simulated",
            standard_error=error,
        )
        sample = Sample(id=index, point=point)
        found.append(Measured(sample=sample, estimates={"peak": estimate}))
    return found
