"""How often a series without any change is said to change.

    python docs/evidence/false_alarms.py [runs] [seed]

Level 0.01; the share of series with any change point, with its 95 % Wilson interval.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from machine import describe, wilson
from scipy.signal import lfilter

from benchrigor.stats import detect_changes

Rng = np.random.Generator


def ar1(phi: float) -> Callable[[Rng, int], np.ndarray]:
    """Return a generator of AR(1) series."""
    return lambda rng, n: lfilter([1.0], [1.0, -phi], rng.normal(size=n + 300))[300:]


NOISES: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "bimodal": lambda rng, n: rng.normal(size=n) + 8.0 * (rng.random(n) < 0.4),
    "Student t2": lambda rng, n: rng.standard_t(2, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "coarse ticks": lambda rng, n: np.round(rng.normal(0.0, 0.8, n)),
    "AR(1) 0.5": ar1(0.5),
    "AR(1) 0.9": ar1(0.9),
}


def main(runs: int = 1000, seed: int = 20261121) -> None:
    """Print the table."""
    print(describe())
    print(f"{runs} series per cell, seed {seed}\n")
    print("| noise | n = 200 | n = 1000 | n = 10000 |")
    print("| --- | --- | --- | --- |")
    for row, (name, draw) in enumerate(NOISES.items()):
        cells = []
        for n in (200, 1000, 10_000):
            rng = np.random.default_rng([seed, row, n])
            alarms = sum(bool(detect_changes(draw(rng, n)).indices) for _ in range(runs))
            low, high = wilson(alarms, runs)
            cells.append(f"{alarms / runs:.3f} [{low:.3f}, {high:.3f}]")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
