import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.stats.interference.clustering import cluster_starts, find_clusters

values_of_any_sign = st.lists(
    st.sampled_from(
        [-300.0, -110.0, -105.0, -100.0, -1e-9, 0.0, 1e-9, 3.0, 3.2, 3.3, 3.7, 3.9, 90.0]
    )
    | st.integers(95, 160).map(float),
    min_size=1,
    max_size=60,
)


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


@given(values_of_any_sign)
def test_the_published_pass_over_sorted_values(values: list[float]) -> None:
    assert cluster_starts(np.sort(values)).tolist() == starts_by_hand(sorted(values))


@pytest.mark.slow
@given(st.lists(st.integers(100, 400).map(float), min_size=14, max_size=200), st.booleans())
def test_cuts_only_divide_published_clusters(values: list[float], negative: bool) -> None:
    if negative:
        values = [-value for value in values]
    ordered = np.sort(values)
    pieces = cluster_labels(ordered)
    assert set(np.diff(pieces)) <= {0, 1}
    assert (np.diff(pieces)[cluster_starts(ordered) - 1] == 1).all()
    assert len({*zip(ordered.tolist(), pieces.tolist(), strict=True)}) == len(set(values))
    for label in range(pieces.max() + 1):
        sizes = np.sort(np.abs(ordered[pieces == label]))
        tail = sizes.size // 20
        assert sizes[-1 - tail] <= 1.25 * sizes[tail]


def test_neighbours_at_the_threshold_are_apart() -> None:
    assert cluster_labels([100.0, 110.0]).tolist() == [0, 1]
    assert cluster_labels([100.0, 109.0]).tolist() == [0, 0]
    assert cluster_labels([-110.0, -100.0, -91.0]).tolist() == [0, 1, 1]


def test_a_chain_is_cut_where_it_spreads_too_far() -> None:
    values = np.exp(np.linspace(0.0, math.log(20.0), 300))
    assert not cluster_starts(values).size
    clusters = find_clusters(values)
    assert clusters.chained
    assert set(clusters.chains.tolist()) == {0}
    for label in range(clusters.chains.size):
        piece = values[clusters.labels == label]
        assert piece.max() <= 1.25 * piece.min()
    negative = find_clusters(-values)
    assert negative.chained
    assert negative.chains.size == pytest.approx(clusters.chains.size, abs=1)


@pytest.mark.parametrize("n", [30, 500, 2000, 10_000])
@pytest.mark.parametrize("noise", [0.003, 0.01, 0.03])
def test_a_noisy_class_stays_nearly_whole(noise: float, n: int) -> None:
    cut_off = []
    for seed in range(50):
        labels = cluster_labels(np.random.default_rng(seed).normal(1e6, noise * 1e6, n))
        cut_off.append(float(np.mean(labels != np.bincount(labels).argmax())))
    assert np.mean(cut_off) <= (0.002 if noise == 0.03 else 0.0)


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


def test_a_rare_class_is_cut_off_too() -> None:
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(1.0, 0.003, 2000), rng.normal(1.11, 0.003, 40)])
    assert not cluster_starts(np.sort(values)).size
    assert cluster_labels(values).tolist() == [0] * 2000 + [1] * 40


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "negative"])
def test_classes_of_a_long_chain_are_all_separated(sign: float) -> None:
    rng = np.random.default_rng(4)
    kinds = np.repeat(np.arange(12), 200)
    values = sign * 1.15 ** (sign * kinds) * rng.normal(1.0, 0.015, kinds.size)
    assert cluster_starts(np.sort(values)).size < 6
    clusters = find_clusters(values)
    assert np.mean(clusters.labels == kinds) > 0.999
    assert not clusters.chained


@pytest.mark.parametrize(("share", "pieces"), [(0.7, 1), (0.3, 2)])
def test_a_valley_holds_less_than_half(share: float, pieces: int) -> None:
    counts = np.full(16, 1000)
    counts[6:10] = 1000 * share
    steps = np.concatenate([place + np.arange(n) / n for place, n in enumerate(counts)])
    assert cluster_labels(1.1 ** (steps / 10.0)).max() == pieces - 1


@pytest.mark.parametrize(("stragglers", "pieces"), [(40, 1), (90, 2)])
def test_a_tail_of_a_twentieth_makes_no_chain(stragglers: int, pieces: int) -> None:
    # no gap and no valley: each as far from the next, up to 1.5 times the least
    bulk = np.linspace(1.0, 1.15, 1000 - stragglers)
    tail = np.linspace(1.15, 1.5, stragglers + 1)[1:]
    assert cluster_labels([*bulk, *tail]).max() == pieces - 1
