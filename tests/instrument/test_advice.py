import itertools
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.errors import MissingExtra
from benchrigor.model import Kernel
from benchrigor.stats import advise_batching, partition_kernels

MJPEG = [  # Kristoffersen's thesis: instances, dispatch and work in microseconds
    ("init", 1, 69.00, 18.00, 0.793, 1),
    ("read", 51, 35.50, 1641.57, 0.021, 1),
    ("yDCT", 80_784, 3.07, 170.30, 0.018, 1),
    ("uDCT", 20_196, 3.14, 170.24, 0.018, 1),
    ("VLC", 51, 3.09, 2160.71, 0.001, 1),
]
K_MEANS = [
    ("init", 1, 58.00, 9829.00, 0.006, 1),
    ("assign", 2_024_251, 4.07, 6.95, 0.369, 3),
    ("refine", 1_000, 3.21, 92.91, 0.033, 1),
    ("print", 11, 1.09, 379.36, 0.003, 1),
]


def kernel(dispatch: Any, work: Any, *, instances: int = 10**6, name: str = "a") -> Kernel:
    return Kernel(name=name, instances=instances, dispatch_s=dispatch, work_s=work)


def advice(dispatch: Any, work: Any, *, bound: float = 0.2, instances: int = 10**6) -> Any:
    (found,) = advise_batching([kernel(dispatch, work, instances=instances)], bound=bound)
    return found


# Batches


@pytest.mark.parametrize("row", MJPEG + K_MEANS, ids=lambda row: row[0])
def test_of_the_thesis_only_assign_is_batched(
    row: tuple[str, int, float, float, float, int],
) -> None:
    name, instances, dispatch_us, work_us, share, batch = row
    found = advice(dispatch_us * 1e-6, work_us * 1e-6, instances=instances)
    assert (round(found.share, 3), found.batch) == (share, batch)
    assert (found.reason is not None) == (name == "init" and share > 0.2)


@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3), st.floats(0.01, 0.99), st.integers(1, 10**30))
def test_the_batch_is_the_fewest_within_the_bound(
    dispatch: float, work: float, bound: float, instances: int
) -> None:
    d, w, most = (Fraction(str(each)) for each in (dispatch, work, bound))

    def share(size: int) -> Fraction:
        return d / (d + size * w)

    found = advice(dispatch, work, bound=bound, instances=instances)
    assert found.batch is not None
    assert 1 <= found.batch <= instances
    assert share(found.batch) <= most or found.batch == instances
    assert found.batch == 1 or share(found.batch - 1) > most
    assert (found.reason is None) == (share(found.batch) <= most)


def test_all_instances_at_once_may_be_too_few_and_a_bound_is_reached_where_it_is() -> None:
    found = advice(8.0, 1.0, instances=8)
    assert (found.batch, found.saving_s) == (8, 56.0)
    assert found.reason is not None
    assert advice(3.0, 1.0, bound=0.3).batch == 7


# Partitions

Traffic = dict[tuple[str, str], float]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, float], Traffic, dict[str, float]]:
    names = [f"k{index}" for index in range(draw(st.integers(1, 9)))]
    weight = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    times = {name: draw(weight) for name in names}
    times["k0"] += 1.0
    keys = st.tuples(st.sampled_from(names), st.sampled_from(names))
    traffic = draw(st.dictionaries(keys, weight, max_size=12))
    speeds = draw(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=4))
    return times, traffic, {f"n{index}": speed for index, speed in enumerate(speeds)}


def cut_of(assignment: Mapping[str, str], traffic: Traffic) -> float:
    return sum(
        value for (one, other), value in traffic.items() if assignment[one] != assignment[other]
    )


def busiest_of(assignment: Mapping[str, str], times: Mapping[str, float], nodes: Any) -> float:
    return max(
        sum(times[kernel] for kernel, place in assignment.items() if place == node) / speed
        for node, speed in nodes.items()
    )


def busiest(found: Any) -> float:
    return max(node.load_s for node in found.nodes)


@settings(max_examples=15)
@given(graphs(), st.integers(-40, 40))
def test_a_partition_adds_up_in_any_unit(
    graph: tuple[dict[str, float], Traffic, dict[str, float]], power: int
) -> None:
    times, traffic, nodes = graph
    found = partition_kernels(times, traffic, nodes)
    assert sorted(kernel for node in found.nodes for kernel in node.kernels) == sorted(times)
    assert [(node.name, node.speed) for node in found.nodes] == list(nodes.items())
    assert busiest(found) == pytest.approx(busiest_of(found.assignment, times, nodes))
    assert sum(node.load_s * node.speed for node in found.nodes) == pytest.approx(
        sum(times.values())
    )
    assert sum(node.share for node in found.nodes) == pytest.approx(1.0)
    assert found.traffic_cut == pytest.approx(cut_of(found.assignment, traffic))
    assert sum(node.traffic for node in found.nodes) == pytest.approx(2.0 * found.traffic_cut)
    assert 0.0 <= found.traffic_cut <= found.traffic_total
    assert busiest(found) == pytest.approx(found.even_s * (1.0 + found.imbalance))
    scaled = (
        {key: value * 2.0**by for key, value in weights.items()}
        for weights, by in ((times, power), (traffic, -power), (nodes, power // 2))
    )
    other = partition_kernels(*scaled)
    assert other.assignment == found.assignment
    assert other.imbalance == pytest.approx(found.imbalance)


@pytest.mark.parametrize("seed", range(8))
def test_no_partition_of_few_kernels_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, nodes = int(rng.integers(4, 8)), {"a": 1.0, "b": 2.0, "c": 0.5}
    times = {f"k{index}": float(each) for index, each in enumerate(rng.lognormal(0.0, 1.0, size))}
    pairs = itertools.combinations(times, 2)
    traffic = {pair: float(rng.lognormal(0.0, 1.5)) for pair in pairs if rng.random() < 0.5}
    every = [
        dict(zip(times, places, strict=True)) for places in itertools.product(nodes, repeat=size)
    ]
    loads = [busiest_of(each, times, nodes) for each in every]
    most = 1.05 * min(loads)
    least = min(
        cut_of(each, traffic) for each, load in zip(every, loads, strict=True) if load <= most
    )
    found = partition_kernels(times, traffic, nodes)
    assert busiest(found) <= most * (1.0 + 1e-6)
    assert found.traffic_cut <= least * (1.0 + 1e-6)


def crowds(number: int, size: int, rng: np.random.Generator) -> tuple[dict[str, float], Traffic]:
    """Return kernels in groups, each with much traffic inside and little to the next one."""
    times = {f"{g}-{i}": float(rng.uniform(0.5, 1.5)) for g in range(number) for i in range(size)}
    traffic = {
        (f"{g}-{i}", f"{g}-{(i + step) % size}"): 10.0
        for g in range(number)
        for i in range(size)
        for step in (1, 2, 5)
    }
    return times, traffic | {(f"{g}-0", f"{g + 1}-0"): 1.0 for g in range(number - 1)}


@pytest.mark.parametrize("size", [12, 100])
def test_what_talks_much_stays_together(size: int) -> None:
    times, traffic = crowds(3, size, np.random.default_rng(1))
    found = partition_kernels(times, traffic, {"a": 1.0, "b": 1.0, "c": 1.0}, tolerance=0.15)
    assert found.traffic_cut == 2.0
    assert found.imbalance < 0.15


PAIR = {"one": 1.0, "other": 1.0}
FOUR = dict.fromkeys("abcd", 1.0)
BOTH_WAYS = {("a", "c"): 3.0, ("c", "a"): 3.0, ("a", "b"): 5.0, ("d", "b"): 5.5}
CHAIN = {"a": 10.0, "b": 1.0, "c": 9.0}


@pytest.mark.parametrize(
    "case",  # times, traffic, nodes; their loads, and the traffic between them
    [
        ({"a": 1.0, "b": 3.0}, {("a", "b"): 5.0}, {"only": 2.0}, [2.0], 0.0),
        ({"a": 8.0, "b": 3.0}, {}, {"slow": 1.0, "fast": 8.0, "middle": 4.0}, [0, 1, 0.75], 0.0),
        ({"a": 3.0, "b": 2.0, "c": 1.0}, {("a", "a"): 7.0}, PAIR, [3.0, 3.0], 0.0),
        (FOUR, BOTH_WAYS, PAIR, [2.0, 2.0], 5.0),
        (FOUR, {("a", "b"): 1.0, ("c", "d"): 1.0}, PAIR, [2.0, 2.0], 0.0),
        (CHAIN, {("a", "b"): 5.0, ("b", "c"): 4.0}, PAIR, [10.0, 10.0], 5.0),
        ({"a": 1e150, "b": 1.0}, {}, {"snail": 1e-150, "light": 1e150}, [0.0, 1.0], 0.0),
    ],
)
def test_a_partition_has_the_least_load_and_then_the_least_traffic(case: tuple[Any, ...]) -> None:
    *graph, loads, cut = case
    found = partition_kernels(*graph)
    assert [node.load_s for node in found.nodes] == pytest.approx(loads)
    assert found.traffic_cut == cut
    assert found.imbalance == pytest.approx(max(loads) / found.even_s - 1.0)


def test_the_tolerance_is_what_traffic_is_saved_with() -> None:
    traffic = {("a", "b"): 5.0, ("b", "c"): 4.0}
    assert partition_kernels(CHAIN, traffic, PAIR, tolerance=0.11).traffic_cut == 4.0


def test_nothing_is_printed_where_one_kernel_outweighs_all_others(
    capfd: pytest.CaptureFixture[str],
) -> None:
    times = {f"k{index}": 1.0 for index in range(80)} | {"giant": 1e6}
    traffic = {("giant", name): 1.0 for name in times}
    found = partition_kernels(times, traffic, {f"n{index}": 1.0 for index in range(7)})
    assert found.imbalance == pytest.approx(6.0, abs=0.01)
    assert capfd.readouterr() == ("", "")


def test_the_same_seed_gives_the_same_partition() -> None:
    times, traffic = crowds(3, 40, np.random.default_rng(3))
    nodes = {"a": 1.0, "b": 2.0}
    one, other = (partition_kernels(times, traffic, nodes, seed=7) for _ in range(2))
    assert one == other


def test_the_extra_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MissingExtra):
        partition_kernels({"a": 1.0}, {}, {"x": 1.0})
