"""Maps of a server whose peaks are known."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchrigor.model import Estimate
from benchrigor.workbench import Factor
from benchrigor.workbench.designs import MapSample, Measured, Point, Space
from benchrigor.workbench.surface import Surface, fit_surface

THREADS = Factor("threads", levels=[1, 2, 4, 8, 16, 32], scale="log2")
CACHE = Factor("cache_mb", levels=[16, 64, 256], scale="log2")
DISKS = Factor("disks", levels=[1, 2, 3])
FS = Factor("fs", levels=["ext4", "xfs"])


def peak_of(point: Point) -> float:
    """Return the true peak: xfs gains more of threads."""
    threads = float(point.get("threads", 8))
    speed, contention = (120.0, 0.12) if point.get("fs") == "ext4" else (95.0, 0.05)
    speed *= float(point.get("cache_mb", 16)) ** 0.1 * float(point.get("disks", 1)) ** 0.4
    return speed * threads / (1.0 + contention * threads)


def known(value: float, error: float = 0.02) -> Estimate:
    return Estimate(
        value=value,
        low=value * (1.0 - 2.0 * error),
        high=value * (1.0 + 2.0 * error),
        confidence=0.95,
        n=9,
        n_effective=9.0,
        method="mean",
        standard_error=error * value,
    )


def surface_of(
    factors: Sequence[Factor],
    lost: Mapping[int, Mapping[str, Any]] | None = None,
    *,
    step: int = 1,
    names: Sequence[str] = ("peak",),
    **options: Any,
) -> Surface:
    """Fit a surface to every ``step``-th point of a grid; ``lost`` has those without a peak.

    ``options`` are those of `fit_surface`.
    """
    rng, space = np.random.default_rng(1), Space(factors)
    samples = []
    for number, point in enumerate(space.grid()[::step]):
        value = peak_of(point) * math.exp(rng.normal(0.0, 0.02))
        without = (lost or {}).get(number)
        found = {} if without else {name: known(value) for name in names}
        sample = MapSample(id=number, point=point)
        samples.append(Measured(sample=sample, estimates=found, cost_s=60.0, **(without or {})))
    return fit_surface(space, samples, **options)


def with_lost() -> Surface:
    """Fit one of three factors, of whose samples two keep no limit, and one each is otherwise lost.

    The best point is the one that failed.
    """
    limits = {"at_most": 10.0, "reason": "p95 at the lowest load"}
    failed = {"reason": "exit code 1, \x1b[31mno space"}
    lost = {0: limits, 1: limits, 5: {"at_least": 5000.0}, 34: failed, 35: failed}
    return surface_of([THREADS, DISKS, FS], lost)
