"""Where the time of k-means goes, and which of its kernels are too small.

    python examples/kmeans_probes.py

Each kernel is set up and then works: what it takes beside its work is dispatch.
"""

from __future__ import annotations

import numpy as np

from benchrigor.instrument import ProbeRegistry
from benchrigor.report import render_probes

Points = np.ndarray


def k_means(points: Points, k: int, rounds: int, registry: ProbeRegistry) -> Points:
    """Return the centers of k groups; points are assigned ten at a time."""
    init, assign, refine = (registry.probe(name) for name in ("init", "assign", "refine"))
    with init:
        rng = np.random.default_rng(1)
        with init.work:
            centers = points[rng.choice(len(points), k, replace=False)]
    nearest = np.empty(len(points), dtype=np.int64)
    for _ in range(rounds):
        for start in range(0, len(points), 10):
            with assign:
                some = points[start : start + 10]
                with assign.work:
                    distances = ((some[:, None] - centers) ** 2).sum(axis=2)
                    nearest[start : start + 10] = distances.argmin(axis=1)
        with refine:
            groups = [points[nearest == group] for group in range(k)]
            with refine.work:
                centers = np.array([group.mean(axis=0) for group in groups if len(group)])
    return centers


def main(points: int = 2_000, rounds: int = 10) -> None:
    """Print the table of probes."""
    registry = ProbeRegistry()
    data = np.random.default_rng(2).normal(size=(points, 2))
    k_means(data, 8, rounds, registry)
    print(render_probes(registry.read()))


if __name__ == "__main__":
    main()
