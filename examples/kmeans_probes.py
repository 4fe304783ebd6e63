"""Where the time of k-means goes, and which of its kernels are too small.

    python examples/kmeans_probes.py

Each instance of a kernel fetches its input, works and stores what it found: what it takes beside
its work is dispatch. Points are assigned one at a time first. The table marks `assign` with
"batch", and the probes themselves take more than a hundredth of the run: such units are too small
for either. Then two thousand points at a time, as that table asks for.
"""

from __future__ import annotations

import numpy as np

from benchrigor.instrument import ProbeRegistry
from benchrigor.instrument.probe_report import render_probes

Points = np.ndarray


def k_means(
    points: Points, k: int, rounds: int, registry: ProbeRegistry, at_once: int = 2_000
) -> Points:
    """Return the centers of k groups; so many points are assigned at once."""
    init, assign, refine = (registry.probe(name) for name in ("init", "assign", "refine"))
    with init:
        rng = np.random.default_rng(1)
        with init.work:
            centers = points[rng.choice(len(points), k, replace=False)]
    nearest = np.empty(len(points), dtype=np.int64)
    for _ in range(rounds):
        for start in range(0, len(points), at_once):
            with assign:
                unit = slice(start, start + at_once)
                some, targets = points[unit].copy(), centers.copy()
                with assign.work:
                    distances = ((some[:, None] - targets) ** 2).sum(axis=2)
                    found = distances.argmin(axis=1)
                nearest[unit] = found
        with refine:
            groups = [points[nearest == group] for group in range(k)]
            with refine.work:
                centers = np.array([group.mean(axis=0) for group in groups if len(group)])
    return centers


def main(points: int = 20_000, rounds: int = 5) -> None:
    """Print the table of probes for small units of work, and for larger ones."""
    data = np.random.default_rng(2).normal(size=(points, 2))
    for at_once in (1, 2_000):
        registry = ProbeRegistry()
        k_means(data, 8, rounds, registry, at_once)
        print(f"Points at a time: {at_once:,}\n\n{render_probes(registry.read())}\n")


if __name__ == "__main__":
    main()
