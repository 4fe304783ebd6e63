"""Runs of a program of four classes of segments, disturbed at random."""

from typing import Any

import numpy as np

from benchrigor.model import SegmentProfile

CLASSES_S = np.array([0.01, 0.02, 0.05, 0.2])


SHARES = [0.4, 0.3, 0.2, 0.1]


N = 200


def program(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the class of each segment, the same in all runs."""
    return rng.permutation(np.repeat(np.arange(4), (N * np.array(SHARES)).astype(int)))


def disturbed(
    rng: np.random.Generator, kinds: Any, level: float = 1.0, lost: float = 0.5, hit: float = 0.2
) -> SegmentProfile:
    """Run a program that loses up to a share ``lost`` of its time in a share ``hit`` of it."""
    clean = CLASSES_S[kinds] * level * rng.normal(1.0, 0.01, kinds.size)
    struck = rng.random(kinds.size) < rng.uniform(0.05, max(hit, 0.05))
    delay = struck * rng.exponential(1.0, kinds.size)
    delay *= rng.uniform(0.0, lost) * clean.sum() / max(delay.sum(), 1e-9)
    return SegmentProfile(
        duration_s=clean + delay,
        computation={"flops": 1e9 * CLASSES_S[kinds] * rng.normal(1.0, 0.003, kinds.size)},
        nominal={"writes": (kinds == 3).astype(int)},
    )
