import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.stats import relative_clusters
from benchrigor.stats.interference.clustering import clusters_of

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


def by_hand(values: list[float], threshold: float, spread: float) -> list[int]:
    clusters: list[list[float]] = []
    for value in sorted(values):
        if clusters and distance(clusters[-1][-1], value) < threshold:
            clusters[-1].append(value)
        else:
            clusters.append([value])
    pieces: list[list[float]] = []
    for cluster in clusters:
        pieces.append([])
        tail = len(cluster) // 20
        chain = distance(cluster[tail], cluster[-1 - tail]) > spread
        for value in cluster:
            if chain and pieces[-1] and distance(pieces[-1][0], value) > spread:
                pieces.append([])
            pieces[-1].append(value)
    return [next(i for i, piece in enumerate(pieces) if value in piece) for value in values]


@example([-110.0, -1e-9, 90.0], 3.0)
@given(values_of_any_sign, st.sampled_from([0.05, 0.1, 0.5, 3.0]))
def test_one_pass_over_sorted_values_gives_the_same(values: list[float], threshold: float) -> None:
    found = relative_clusters(values, threshold=threshold, spread=math.inf)
    assert found.tolist() == by_hand(values, threshold, math.inf)


@given(values_of_any_sign, st.sampled_from([0.05, 0.1, 0.5, 3.0]), st.sampled_from([0.25, 1.0]))
def test_few_values_have_no_valleys(values: list[float], threshold: float, spread: float) -> None:
    del values[13:]  # it takes 7 on either side
    found = relative_clusters(values, threshold=threshold, spread=spread)
    assert found.tolist() == by_hand(values, threshold, spread)


@given(st.lists(st.integers(100, 400).map(float), min_size=14, max_size=200), st.booleans())
def test_the_guard_only_parts(values: list[float], negative: bool) -> None:
    if negative:
        values = [-value for value in values]
    whole = relative_clusters(values, spread=math.inf)
    pieces = relative_clusters(values)
    ordered = np.argsort(values, kind="stable")
    assert set(np.diff(pieces[ordered])) <= {0, 1}
    assert len({*zip(whole.tolist(), pieces.tolist(), strict=True)}) == pieces.max() + 1
    assert len({*zip(values, pieces.tolist(), strict=True)}) == len(set(values))
    for label in range(pieces.max() + 1):
        sizes = np.sort(np.abs(np.array(values)[pieces == label]))
        tail = sizes.size // 20
        assert sizes[-1 - tail] <= 1.25 * sizes[tail]


@pytest.mark.parametrize("n", [63, 64, 65, 128, 1000])
def test_gaps_are_found_wherever_they_lie(n: int) -> None:
    rng = np.random.default_rng(n)
    values = np.exp(rng.uniform(0.0, 20.0, n))
    found = relative_clusters(values, spread=math.inf)
    assert found.tolist() == by_hand(values.tolist(), 0.1, math.inf)


def test_neighbours_at_the_threshold_are_apart() -> None:
    assert relative_clusters([100.0, 110.0]).tolist() == [0, 1]
    assert relative_clusters([100.0, 109.0]).tolist() == [0, 0]
    assert relative_clusters([-110.0, -100.0, -91.0]).tolist() == [0, 1, 1]


def test_zero_is_alike_to_nothing_but_zero() -> None:
    assert relative_clusters([0.0, 5e-324, -5e-324, 0.0, -0.0]).tolist() == [1, 2, 0, 1, 1]


@given(values_of_any_sign, st.integers(-300, 300))
def test_the_unit_does_not_matter(values: list[float], exponent: int) -> None:
    scaled = [value * 2.0**exponent for value in values]
    assert relative_clusters(scaled).tolist() == relative_clusters(values).tolist()


@given(values_of_any_sign, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(values: list[float], random: object) -> None:
    places = list(range(len(values)))
    random.shuffle(places)  # type: ignore[attr-defined]
    shuffled = relative_clusters([values[place] for place in places])
    assert shuffled.tolist() == relative_clusters(values)[places].tolist()


def test_a_chain_is_cut_where_it_spreads_too_far() -> None:
    values = np.exp(np.linspace(0.0, math.log(20.0), 300))
    assert relative_clusters(values, spread=math.inf).max() == 0
    found = clusters_of(values)
    assert found.chained
    assert set(found.chains.tolist()) == {0}
    for label in range(found.chains.size):
        piece = values[found.labels == label]
        assert piece.max() <= 1.25 * piece.min()
    negative = clusters_of(-values)
    assert negative.chained
    assert negative.chains.size == pytest.approx(found.chains.size, abs=1)


@pytest.mark.parametrize("n", [30, 500, 2000, 10_000])
@pytest.mark.parametrize("noise", [0.003, 0.01, 0.03])
def test_a_noisy_class_stays_nearly_whole(noise: float, n: int) -> None:
    cut_off = []
    for seed in range(50):
        labels = relative_clusters(np.random.default_rng(seed).normal(1e6, noise * 1e6, n))
        cut_off.append(float(np.mean(labels != np.bincount(labels).argmax())))
    assert np.mean(cut_off) <= (0.002 if noise == 0.03 else 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "negative"])
@pytest.mark.parametrize("n", [60, 500, 10_000])
@pytest.mark.parametrize(
    ("apart", "noise"), [(0.11, 0.003), (0.11, 0.01), (0.17, 0.01), (0.17, 0.03), (0.3, 0.03)]
)
def test_two_noisy_classes_are_parted_at_the_valley(
    apart: float, noise: float, n: int, sign: float
) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = np.concatenate([rng.normal(mean, noise * mean, n) for mean in (1.0, 1.0 + apart)])
        labels = clusters_of(sign * values).chains[relative_clusters(sign * values)]
        first, second = (np.bincount(each).argmax() for each in (labels[:n], labels[n:]))
        assert first != second
        assert np.mean(labels[:n] == first) > 0.97
        assert np.mean(labels[n:] == second) > 0.97


def test_a_rare_class_is_parted_too() -> None:
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(1.0, 0.003, 2000), rng.normal(1.11, 0.003, 40)])
    assert relative_clusters(values, spread=math.inf).max() == 0
    assert relative_clusters(values).tolist() == [0] * 2000 + [1] * 40


def test_a_large_threshold_joins_values_across_zero() -> None:
    assert relative_clusters([-110.0, -1e-9, 90.0], threshold=3.0).tolist() == [0, 1, 2]
    values = [-100.0] * 20 + [90.0] * 20 + [300.0] * 20
    assert relative_clusters(values, threshold=3.0, spread=9.0).max() == 0


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["positive", "negative"])
def test_classes_of_a_long_chain_are_all_parted(sign: float) -> None:
    rng = np.random.default_rng(4)
    kinds = np.repeat(np.arange(12), 200)
    values = sign * 1.15 ** (sign * kinds) * rng.normal(1.0, 0.015, kinds.size)
    assert relative_clusters(values, spread=math.inf).max() < 6
    found = clusters_of(values)
    assert np.mean(found.labels == kinds) > 0.999
    assert not found.chained


@pytest.mark.parametrize(("share", "pieces"), [(0.7, 1), (0.3, 2)])
def test_a_valley_holds_less_than_half(share: float, pieces: int) -> None:
    counts = np.full(16, 1000)
    counts[6:10] = 1000 * share
    steps = np.concatenate([place + np.arange(n) / n for place, n in enumerate(counts)])
    assert relative_clusters(1.1 ** (steps / 10.0)).max() == pieces - 1


@pytest.mark.parametrize(("stragglers", "pieces"), [(40, 1), (90, 2)])
def test_a_tail_of_a_twentieth_makes_no_chain(stragglers: int, pieces: int) -> None:
    # no gap and no valley: each as far from the next, up to 1.5 times the least
    bulk = np.linspace(1.0, 1.15, 1000 - stragglers)
    tail = np.linspace(1.15, 1.5, stragglers + 1)[1:]
    assert relative_clusters([*bulk, *tail]).max() == pieces - 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"values": [1.0, math.nan]}, r"values\[1\] is nan"),
        ({"values": []}, "values is empty"),
        ({"values": [1.0], "threshold": 0.0}, "threshold is 0.0"),
        ({"values": [1.0], "spread": math.nan}, "spread is nan"),
        ({"values": [1.0], "threshold": True}, "threshold is True"),
    ],
    ids=["nan", "empty", "threshold", "spread", "bool"],
)
def test_what_cannot_be_clustered_is_refused(given: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        relative_clusters(**given)  # type: ignore[arg-type]
