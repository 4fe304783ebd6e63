"""Series with one mode or several."""

from collections.abc import Callable

import numpy as np

from benchrigor.stats.multimodality import find_modes

Rng = np.random.Generator


Draw = Callable[[int, Rng], np.ndarray]


def spike_beside_a_plain(n: int, rng: Rng) -> np.ndarray:
    """Draw from the density with one mode that looks most like several."""
    plain = rng.random(n)
    return np.where(rng.random(n) < 0.2, -0.001 * plain, plain)


def counts_found(draw: Draw, n: int, times: int, level: float = 0.01) -> np.ndarray:
    drawn = (draw(n, np.random.default_rng([n, seed, 11])) for seed in range(times))
    return np.array([len(find_modes(series, level)) for series in drawn])
