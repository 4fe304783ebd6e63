"""How far service rates of queued stages can be trusted, and what watching costs.

    OPENBLAS_NUM_THREADS=1 python docs/evidence/queues.py [--quick] [--seed N] [--only a,b]

Simulated stages have one server of a known rate and arrivals at random, 100,000 items a run. Noisy:
1 in 1000 items stalls by 20 service times, 2 % of the periods are stretched by half, 1 %
of the counts miss an item. Every draw is default_rng([seed, section, row, run]). The other sections
want a machine that does nothing else.
"""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable
from functools import partial
from itertools import product, repeat

import numpy as np

from benchrigor.instrument.advice import KernelPartition, partition_kernels
from benchrigor.model.series import Floats
from benchrigor.queues import ServiceRateEstimator, Tap
from benchrigor.queues.data import ServiceRate
from benchrigor.queues.fakes import StagePeriods, SyntheticStage
from shared.running import Bar, Interval, Run, Script, by_turns, of, tally

script = Script(__doc__)
SEED = 20261207
BUSY, QUANTILE, PHASES, TAPS, STEADY = 91, 92, 93, 94, 95
ITEMS, PERIOD_S = 100_000, 0.032
"""32 items a period at the true rate of 1000 a second."""
LOADS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
NOISY = {"stalled": 0.001, "stretched": 0.02, "missed": 0.01}
SLOW = (
    ("lognormal", 0.5, 0.97),
    ("lognormal", 0.5, 0.99),
    ("lognormal", 0.5, 0.999),
    ("lognormal", 2.0, 0.0),
    ("pareto", 1.5, 0.0),
)
"""Service, its shape, and the correlation of neighbouring items."""
Cell = tuple[str, bool, float]
"""Service, whether noisy, and load."""


def cells(run: Run, least: float = 0.0) -> list[tuple[str, Cell]]:
    """Return the rows of a section, by their names."""
    loads = [load for load in ((0.2, 0.9) if run.quick else LOADS) if load >= least]
    found = product(("exponential", "deterministic"), (False, True), loads)
    return [(f"{case[0]}, {'noisy' if case[1] else 'clean'}, {case[2]:g}", case) for case in found]


def stage_of(cell: Cell, **changes: float) -> SyntheticStage:
    """Return the stage under these conditions."""
    service, noisy, load = cell
    return SyntheticStage(
        utilisation=load, service=service, **{**(NOISY if noisy else {}), **changes}
    )


def told(
    found: ServiceRateEstimator, seen: StagePeriods, start: int = 0, stop: int | None = None
) -> None:
    """Tell an estimator of periods; the quantile method only learns if the stage waited at all."""
    part = slice(start, stop)
    blocked_s = seen.blocked_s[part]
    known_s = blocked_s if found.method == "busy-time" else 0.0
    found.tell_many(seen.items[part], seen.period_s[part], known_s, blocked_s > 0.0)


def off(rate: ServiceRate, truth: float) -> float:
    """Return by how much a rate is off; infinite without one."""
    return np.inf if rate.estimate is None else abs(rate.estimate.value / truth - 1.0)


def watched(
    key: tuple[int, ...], cell: Cell, method: str, number: int
) -> list[tuple[float, Interval | None]]:
    """Return how far the converged rates of a run are off, and their intervals."""
    stage, found = stage_of(cell), ServiceRateEstimator(method)
    rng = np.random.default_rng([*key, number])
    told(found, stage.watch(ITEMS, period_s=PERIOD_S, rng=rng))
    truth = stage.true_rate
    return [(off(r, truth), of(r.estimate, truth)) for r in found.rates if r.converged]


@script.section("Busy time: the last rate of each run", seed=SEED)
def busy(run: Run) -> None:
    """Print errors and coverage; service without any noise has no interval to be judged by."""
    run.heading("service, noise, load", "within 5 %", "bar", "most off", "bar", "held", "bar")
    every: list[Interval | None] = []
    for number, (name, cell) in enumerate(cells(run)):
        trial = partial(watched, (run.seed, BUSY, number), cell, "busy-time")
        last = [
            rates[-1] if rates else (np.inf, None)
            for rates in run.repeated(trial, run.runs(100, 12))
        ]
        errors = np.array([error for error, _ in last])
        held = tally(rate for _, rate in last)
        every += [rate for _, rate in last]
        near = float(np.mean(errors <= 0.05))
        bar = None if cell[:2] == ("deterministic", False) else Bar(0.90, 0.99)
        run.row(
            *(name, f"{near:.3f}", run.bar(f"within 5 %, {name}", near, ">=", 0.95)),
            *(f"{errors.max():.1%}", run.bar(f"within 10 %, {name}", errors.max(), "<=", 0.10)),
            *(held, run.judged(f"coverage, {name}", bar, held)),
        )
    run.share("coverage of all", Bar(0.90, 0.99), every)


@script.section("The quantile method, given only a flag where the stage waited", seed=SEED)
def quantile(run: Run) -> None:
    """Print converged rates from a load of .8 on, runs without one, and wild ones at any load."""
    run.heading("service, noise, load", "answers", "within 10 %", "refused", "most off")
    near, refused, wild = list[bool](), list[bool](), 0.0
    for number, (name, cell) in enumerate(cells(run)):
        trial = partial(watched, (run.seed, QUANTILE, number), cell, "quantile")
        found = run.repeated(trial, run.runs(100, 12))
        errors = [error for rate in found for error, _ in rate]
        without = [not rate for rate in found]
        if cell[2] >= 0.8:
            near += [error <= 0.10 for error in errors]
            refused += without
        most = max(errors, default=0.0)
        wild = max(wild, most)
        share = f"{np.mean(np.array(errors) <= 0.10):.1%}" if errors else "-"
        run.row(name, len(errors), share, f"{np.mean(without):.0%}", f"{most:.1%}")
    run.say(f"\nwithin 10 %: {run.bar('quantile, near', float(np.mean(near)), '>=', 0.90)}")
    run.say(f"refused: {run.bar('quantile, refused', float(np.mean(refused)), '<=', 0.15)}")
    run.say(f"most off at any load: {run.bar('quantile, wild', wild, '<=', 0.20)}")


def finds_both_rates(key: tuple[int, ...], cell: Cell, number: int) -> bool:
    """Whether both rates of a run that halves are found, the second when 5 % have passed since."""
    stage, rng = stage_of(cell, later=0.5), np.random.default_rng([*key, number])
    seen = stage.watch(ITEMS, period_s=PERIOD_S, rng=rng)
    assert seen.changed is not None
    latest, truth = seen.changed + int(0.05 * len(seen.items)), stage.true_rate
    found = ServiceRateEstimator()
    told(found, seen, 0, latest)
    soon = off(found.rates[-1], truth / 2.0)
    told(found, seen, latest)
    rates = found.rates
    return max(soon, off(rates[0], truth), off(rates[-1], truth / 2.0)) <= 0.10


def steady(key: tuple[int, ...], kind: tuple[str, float, float], load: float, number: int) -> bool:
    """Whether a run without a change has more than one phase."""
    service, shape, correlation = kind
    stage = SyntheticStage(utilisation=load, service=service, shape=shape, correlation=correlation)
    found = ServiceRateEstimator()
    rng = np.random.default_rng([*key, number])
    told(found, stage.watch(ITEMS, period_s=PERIOD_S, rng=rng))
    return len(found.rates) > 1


@script.section("A rate that halves midway, and one that does not change", seed=SEED)
def phases(run: Run) -> None:
    """Print whether both rates are found, and false phases of service that wanders slowly."""
    rows = [
        (f"found: {name}", partial(finds_both_rates, (run.seed, PHASES, number), cell), Bar(0.95))
        for number, (name, cell) in enumerate(cells(run, 0.5))
    ]
    loads = (0.9,) if run.quick else (0.5, 0.9, 0.99)
    rows += [
        (f"false: {kind}, {load:g}", partial(steady, (run.seed, STEADY, number), kind, load), None)  # type: ignore[misc]
        for number, (kind, load) in enumerate(product(SLOW, loads))
    ]
    run.shares(rows, run.runs(100, 12), "share")


@script.section("What a tap adds to put and get of a queue.Queue", seed=SEED, quick=False)
def taps(run: Run) -> None:
    """Print processor time of the thread, in batches without and with a tap in random order."""
    rng, events = run.rng(TAPS, 0), 250
    plain: queue.Queue[int] = queue.Queue()
    sources = plain, Tap(queue.Queue[int]()).queue

    def timed(event: Callable[[], object]) -> float:
        start_ns = time.thread_time_ns()
        for _ in repeat(None, events):
            event()
        return (time.thread_time_ns() - start_ns) / events / 1e3

    costs: dict[str, list[list[float]]] = {"put": [], "get": []}
    for _ in range(run.runs(400, 60)):
        turn = {name: [0.0, 0.0] for name in costs}
        for way in rng.permutation(2).tolist():
            turn["put"][way] = timed(partial(sources[way].put, 1))
            turn["get"][way] = timed(sources[way].get)
        for name, pair in turn.items():
            costs[name].append(pair)
    for name, pairs in costs.items():
        adds = float(np.median(np.diff(pairs, axis=1)))
        run.say(f"{name}: {adds:.2f} us, {run.bar(f'tap, {name}', adds, '<=', 0.3)}")


# --- partitions of kernels over nodes

KernelGraph = tuple[Floats, Floats, Floats]
"""Times of kernels, symmetric traffic between them, and speeds of nodes."""


def small_graph(rng: np.random.Generator) -> KernelGraph:
    """Return a graph over 2 to 4 nodes, with few enough kernels to try every partition."""
    nodes = int(rng.integers(2, 5))
    kernels = min(int(rng.integers(6, 12)), int(math.log(300_000, nodes)))
    linked = rng.random((kernels, kernels)) < rng.choice([0.2, 0.4, 0.8])
    traffic = np.triu(linked, 1) * rng.lognormal(0.0, 1.5, (kernels, kernels))
    speeds = rng.choice([0.5, 1.0, 2.0, 3.0], nodes)
    return rng.lognormal(0.0, 1.0, kernels), traffic + traffic.T, speeds


def large_graph(rng: np.random.Generator) -> KernelGraph:
    """Return 1,000 kernels in a plane, linked to their neighbours, over eight nodes."""
    places = rng.random((1_000, 2))
    apart = np.hypot(*(places[:, None] - places).T)
    traffic = np.triu(apart < math.sqrt(3.0 / 1_000), 1) * rng.lognormal(size=apart.shape)
    return rng.lognormal(0.0, 1.0, 1_000), traffic + traffic.T, rng.choice([0.5, 1.0, 2.0], 8)


def partition_of(graph: KernelGraph) -> KernelPartition:
    """Return our partition, with a tolerance of 5 %."""
    times, traffic, speeds = graph
    rows, columns = np.nonzero(np.triu(traffic))
    return partition_kernels(
        {f"{index}": float(time_s) for index, time_s in enumerate(times)},
        {(f"{i}", f"{j}"): float(traffic[i, j]) for i, j in zip(rows, columns, strict=True)},
        {f"{index}": float(speed) for index, speed in enumerate(speeds)},
        tolerance=0.05,
    )


def is_best(seed: int, number: int) -> bool:
    """Whether no partition whose busiest node is within 5 % of the least load cuts less."""
    times, traffic, speeds = graph = small_graph(np.random.default_rng([seed, number]))
    kernels, nodes = len(times), len(speeds)
    every = (np.arange(nodes**kernels) // nodes ** np.arange(kernels)[:, None] % nodes).T
    loads = np.max([(every == node) @ times / speed for node, speed in enumerate(speeds)], axis=0)
    cuts = np.zeros(len(every))
    for one, other in zip(*np.nonzero(np.triu(traffic)), strict=True):
        cuts += traffic[one, other] * (every[:, one] != every[:, other])
    most = 1.05 * loads.min() * (1.0 + 1e-7)
    found = partition_of(graph)
    is_even = max(node.load_s for node in found.nodes) <= most
    return bool(is_even and found.traffic_cut <= cuts[loads <= most].min() * (1.0 + 1e-7) + 1e-12)


@script.section("Partitions of kernels over nodes", seed=1)
def partitions(run: Run) -> None:
    """Print how many are the best there is, and the time of a large one."""
    run.shares([("the best", partial(is_best, run.seed), Bar(0.95))], run.runs(200, 20), "share")
    graph = large_graph(run.rng(2))
    (took_s,) = by_turns(0, partial(partition_of, graph))
    run.say(f"1,000 kernels: {took_s:.2f} s, {run.bar('large graph, s', took_s, '<=', 2.0)}")


if __name__ == "__main__":
    raise SystemExit(script.main())
