import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model import SegmentProfile
from benchrigor.stats import estimate_interference, profile_interference
from benchrigor.stats.segment_groups import find_clusters


def distance(low: float, high: float) -> float:
    if low == high:
        return 0.0
    return (high - low) / min(abs(low), abs(high)) if low and high else math.inf


def starts_by_hand(ordered: list[float]) -> list[int]:
    return [
        index
        for index in range(1, len(ordered))
        if distance(ordered[index - 1], ordered[index]) >= 0.1
    ]


def cluster_labels(values: list[float] | np.ndarray) -> np.ndarray:
    return np.asarray(find_clusters(np.asarray(values)).labels, dtype=np.int64)


@given(st.lists(st.integers(100, 400).map(float), min_size=14, max_size=200), st.booleans())
def test_cuts_only_divide_published_clusters(values: list[float], negative: bool) -> None:
    if negative:
        values = [-value for value in values]
    ordered = np.sort(values)
    pieces = cluster_labels(ordered)
    assert set(np.diff(pieces)) <= {0, 1}
    assert all(np.diff(pieces)[start - 1] == 1 for start in starts_by_hand(ordered.tolist()))
    assert len({*zip(ordered.tolist(), pieces.tolist(), strict=True)}) == len(set(values))
    for label in range(pieces.max() + 1):
        sizes = np.sort(np.abs(ordered[pieces == label]))
        tail = sizes.size // 20
        assert sizes[-1 - tail] <= 1.25 * sizes[tail]


def test_a_chain_is_cut_where_it_spreads_too_far() -> None:
    values = np.exp(np.linspace(0.0, math.log(20.0), 300))
    assert not starts_by_hand(values.tolist())
    clusters = find_clusters(values)
    assert clusters.chained
    assert set(clusters.chains.tolist()) == {0}
    for label in range(clusters.chains.size):
        piece = values[clusters.labels == label]
        assert piece.max() <= 1.25 * piece.min()
    negative = find_clusters(-values)
    assert negative.chained
    assert negative.chains.size == pytest.approx(clusters.chains.size, abs=1)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "negative"])
@pytest.mark.parametrize("n", [60, 500, 10_000])
@pytest.mark.parametrize(
    ("apart", "noise"), [(0.11, 0.003), (0.11, 0.01), (0.17, 0.01), (0.17, 0.03), (0.3, 0.03)]
)
def test_two_noisy_classes_are_cut_at_the_valley(
    apart: float, noise: float, n: int, sign: float
) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = np.concatenate([rng.normal(mean, noise * mean, n) for mean in (1.0, 1.0 + apart)])
        clusters = find_clusters(sign * values)
        labels = clusters.chains[clusters.labels]
        first, second = (np.bincount(each).argmax() for each in (labels[:n], labels[n:]))
        assert first != second
        assert np.mean(labels[:n] == first) > 0.97
        assert np.mean(labels[n:] == second) > 0.97


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "negative"])
def test_classes_of_a_long_chain_are_all_separated(sign: float) -> None:
    rng = np.random.default_rng(4)
    kinds = np.repeat(np.arange(12), 200)
    values = sign * 1.15 ** (sign * kinds) * rng.normal(1.0, 0.015, kinds.size)
    assert len(starts_by_hand(sorted(values))) < 6
    clusters = find_clusters(values)
    assert np.mean(clusters.labels == kinds) > 0.999
    assert not clusters.chained


@pytest.mark.parametrize(("stragglers", "pieces"), [(40, 1), (90, 2)])
def test_a_tail_of_a_twentieth_makes_no_chain(stragglers: int, pieces: int) -> None:
    # no gap and no valley: each as far from the next, up to 1.5 times the least
    bulk = np.linspace(1.0, 1.15, 1000 - stragglers)
    tail = np.linspace(1.15, 1.5, stragglers + 1)[1:]
    assert cluster_labels([*bulk, *tail]).max() == pieces - 1


COLUMNS = [
    np.array([-128, 127], dtype=np.int8),
    np.array([True, False]),
    np.array([0, 2**63 - 1]),
    np.array([2**64 - 1, 2**64 - 2]),
    np.array([0.1, 0.2, 0.3]),
    np.array([0, 30_000, 70_000]),
    np.array([-5, 65_530]),
    np.array([-0.5, 0.5, 1.5]),
    np.array([1.0, 2.0, 4_000.0], dtype=np.float32),
    np.array([-5.0, 0.0, 1e-20]),
    np.array([-1e308, 1e308]),
    np.array([-1, 0, 2**40]),
    np.array(["a", "ab", "b", "ba", ""]),
    np.array(["x" * 40, "x" * 39 + "y"]),
    np.array(["solve", "write", "write on"]),
]


@pytest.mark.parametrize("turn", range(len(COLUMNS)))
def test_nominal_values_of_any_type_alone_and_together_tell_segments_apart(turn: int) -> None:
    rng, n = np.random.default_rng(turn), 2_000
    drawn = [values[rng.integers(0, values.size, n)] for values in (COLUMNS[turn:] + COLUMNS)[:5]]
    for columns in (drawn[:1], drawn):
        nominal = {f"x{index}": values for index, values in enumerate(columns)}
        found = estimate_interference(np.ones(n), {}, nominal=nominal)
        alike = Counter(zip(*(values.tolist() for values in columns), strict=True))
        assert {tuple(each.nominal.values()): each.n for each in found.groups} == {
            did: number for did, number in alike.items() if number >= 5
        }


@pytest.mark.parametrize("n", [5, 6, 7, 8, 100, 101])
def test_median_and_mad_are_exact(n: int) -> None:
    rng = np.random.default_rng(n)
    kinds = rng.permutation(np.repeat(np.arange(40), n))
    durations = rng.lognormal(0.0, 1.0, kinds.size)
    found = estimate_interference(durations, {}, nominal={"kind": kinds})
    assert len(found.groups) == 40
    for group in found.groups:
        members = durations[kinds == group.nominal["kind"]]
        assert group.median_s == np.median(members)
        assert group.mad_s == np.median(np.abs(members - np.median(members)))


def test_more_groups_than_fit_16_bits() -> None:
    rng = np.random.default_rng(1)
    kinds = np.repeat(np.arange(400), 5)
    nominal = {"x": kinds, "y": 1000 * kinds, "z": -kinds, "w": kinds.astype(str)}
    durations = rng.lognormal(0.0, 1.0, kinds.size)
    found = estimate_interference(durations, {"work": 1.3 ** kinds[::-1]}, nominal=nominal)
    one = estimate_interference(durations, {}, nominal={"x": kinds})
    assert len(found.groups) == 400
    assert found.percent == one.percent > 0.0


@pytest.mark.parametrize("name", ["bytes", "read_bytes"])
def test_bytes_that_never_repeat_are_clustered(name: str) -> None:
    rng = np.random.default_rng(6)
    sizes = np.repeat([1000, 5000], 100) + rng.permutation(200) // 10
    profile = SegmentProfile(duration_s=np.ones(200), nominal={name: sizes, "kind": [1] * 200})
    reference = SegmentProfile(
        duration_s=np.full(10, 0.5), nominal={name: [1003] * 10, "kind": [1] * 10}
    )
    found = profile_interference(profile, reference=reference)
    assert found.unclustered_percent == 0.0
    assert [set(group.computation) for group in found.groups] == [{name}] * 2
    assert [set(group.nominal) for group in found.groups] == [{"kind"}] * 2
    assert found.continuous_percent == 25.0
    few = SegmentProfile(duration_s=np.ones(200), nominal={name: sizes // 500})
    assert [set(group.nominal) for group in profile_interference(few).groups] == [{name}] * 2
