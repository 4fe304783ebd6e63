"""How far partitions of kernels over nodes are from the best, and METIS alone beside them.

Random graphs of 6 to 11 kernels (times lognormal with sigma 1, traffic with 1.5, a fifth to four
fifths of all pairs linked) over 2 to 4 nodes of unlike speed, few enough to try every partition.
Then larger graphs of kernels in a plane, linked to their neighbours, over 8 nodes.

    python docs/evidence/partitions.py

Bars: at least 95 % of the small ones are the best there is: the busiest node within 5 % of the
least load, and no partition within that cuts less; a graph of 1,000 kernels takes at most 2 s.
"""

from __future__ import annotations

import math
import time

import numpy as np
import numpy.typing as npt
import pymetis
from machine import describe

from benchrigor.instrument.advice import partition_kernels
from benchrigor.instrument.data.batches import KernelPartition

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
GRAPHS, TOLERANCE, MOST_TRIED = 200, 0.05, 300_000
HEADER = """
| kernels | nodes | METIS: above even load | its cut | ours: above even load | our cut | took |
| --- | --- | --- | --- | --- | --- | --- |"""


def small_graph(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return times, symmetric traffic and speeds."""
    nodes = int(rng.integers(2, 5))
    kernels = min(int(rng.integers(6, 12)), int(math.log(MOST_TRIED, nodes)))
    linked = rng.random((kernels, kernels)) < rng.choice([0.2, 0.4, 0.8])
    traffic = np.triu(linked, 1) * rng.lognormal(0.0, 1.5, (kernels, kernels))
    speeds = rng.choice([0.5, 1.0, 2.0, 3.0], nodes)
    return rng.lognormal(0.0, 1.0, kernels), traffic + traffic.T, speeds


def large_graph(kernels: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return times, symmetric traffic between neighbours in a plane, and speeds."""
    places = rng.random((kernels, 2))
    apart = np.hypot(*(places[:, None] - places).T)
    traffic = np.triu(apart < math.sqrt(3.0 / kernels), 1) * rng.lognormal(size=apart.shape)
    return rng.lognormal(0.0, 1.0, kernels), traffic + traffic.T, rng.choice([0.5, 1.0, 2.0], 8)


def by_metis(times: Floats, traffic: Floats, speeds: Floats) -> Ints:
    """Partition by one call of METIS."""
    whole = [
        np.rint(each / (each.sum() or 1.0) * 2**30).astype(np.int64) for each in (times, traffic)
    ]
    rows, columns = np.nonzero(whole[1])
    found = pymetis.part_graph(
        len(speeds),
        pymetis.CSRAdjacency(np.searchsorted(rows, np.arange(len(times) + 1)), columns),
        vweights=whole[0],
        eweights=whole[1][rows, columns],
        tpwgts=(speeds / speeds.sum()).tolist(),
        options=pymetis.Options(ufactor=round(1000 * TOLERANCE)),
    )
    return np.asarray(found.vertex_part)


def ours(times: Floats, traffic: Floats, speeds: Floats) -> tuple[KernelPartition, float]:
    """Return our partition, and the seconds that it took."""
    rows, columns = np.nonzero(np.triu(traffic))
    start = time.perf_counter()
    found = partition_kernels(
        {f"{index}": float(each) for index, each in enumerate(times)},
        {(f"{i}", f"{j}"): float(traffic[i, j]) for i, j in zip(rows, columns, strict=True)},
        {f"{index}": float(each) for index, each in enumerate(speeds)},
        tolerance=TOLERANCE,
    )
    return found, time.perf_counter() - start


def busiest(parts: Ints, times: Floats, speeds: Floats) -> Floats:
    """Return the load of the busiest node of each partition, one a row."""
    loads = [(parts == node) @ times / speed for node, speed in enumerate(speeds)]
    return np.asarray(np.max(loads, axis=0))


def cut(parts: Ints, traffic: Floats) -> Floats:
    """Return the traffic between the nodes of each partition."""
    found = np.zeros(len(parts))
    for one, other in zip(*np.nonzero(np.triu(traffic)), strict=True):
        found += traffic[one, other] * (parts[:, one] != parts[:, other])
    return found


def small(rng: np.random.Generator) -> None:
    """Compare with all partitions there are."""
    above: dict[str, list[float]] = {"METIS": [], "ours": []}
    best: dict[str, int] = {"METIS": 0, "ours": 0}
    for _ in range(GRAPHS):
        times, traffic, speeds = small_graph(rng)
        kernels, nodes = len(times), len(speeds)
        every = (np.arange(nodes**kernels) // nodes ** np.arange(kernels)[:, None] % nodes).T
        loads, cuts = busiest(every, times, speeds), cut(every, traffic)
        most = (1.0 + TOLERANCE) * loads.min() * (1.0 + 1e-7)
        least = cuts[loads <= most].min() * (1.0 + 1e-7) + 1e-12
        alone = by_metis(times, traffic, speeds)[None]
        found, _ = ours(times, traffic, speeds)
        reached = {
            "METIS": (float(busiest(alone, times, speeds)[0]), float(cut(alone, traffic)[0])),
            "ours": (max(node.load_s for node in found.nodes), found.traffic_cut),
        }
        for name, (load, crossing) in reached.items():
            above[name].append(load / loads.min() - 1.0)
            best[name] += load <= most and crossing <= least
    for name, values in above.items():
        middle, high, most = np.quantile(values, [0.5, 0.9, 1.0])
        print(
            f"{name}: busiest node {middle:.1%} above the least load (median), {high:.1%} (p90), "
            f"{most:.1%} (most); the best partition in {best[name]} of {GRAPHS}"
        )
    print(f"95 % are the best: {'met' if best['ours'] >= 0.95 * GRAPHS else 'MISSED'}")


def large(rng: np.random.Generator) -> None:
    """Compare with METIS alone."""
    print(HEADER)
    for kernels in (20, 50, 100, 300, 1_000):
        times, traffic, speeds = large_graph(kernels, rng)
        alone = by_metis(times, traffic, speeds)[None]
        found, took_s = ours(times, traffic, speeds)
        load = busiest(alone, times, speeds)[0] / found.even_s - 1.0
        crossing = cut(alone, traffic)[0] / found.traffic_total
        own = found.traffic_cut / found.traffic_total
        print(
            f"| {kernels:,} | {len(speeds)} | {load:.1%} | {crossing:.1%} | {found.imbalance:.1%} "
            f"| {own:.1%} | {took_s:.2f} s |"
        )
    print(f"\n1,000 kernels in 2 s: {'met' if took_s <= 2.0 else 'MISSED'}")


def main() -> None:
    """Print the figures."""
    print(describe(), "\n")
    small(np.random.default_rng(1))
    large(np.random.default_rng(2))


if __name__ == "__main__":
    main()
