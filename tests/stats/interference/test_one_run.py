import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.model import Interference, SegmentProfile
from benchrigor.stats import (
    estimate_interference,
    probability_high,
    profile_interference,
)
from benchrigor.stats.segment_groups import find_clusters

WORK = np.array([1.0, 1.6, 2.9, 6.0])


def noise_of(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    return {
        "normal": lambda: rng.normal(1.0, 0.01, n),
        "lognormal": lambda: rng.lognormal(0.0, 0.05, n),
        "gamma": lambda: rng.gamma(100.0, 0.01, n),
        "exponential tail": lambda: 1.0 + rng.exponential(0.05, n),
        "t(2)": lambda: np.maximum(1.0 + 0.02 * rng.standard_t(2, n), 0.1),
        "wide normal": lambda: rng.normal(1.0, 0.2, n),
        "wide lognormal": lambda: rng.lognormal(0.0, 0.5, n),
        "exponential": lambda: 1.0 + rng.exponential(1.0, n),
    }[name]()


def simulated(
    seed: int,
    *,
    percent: float = 0.0,
    hit: float = 0.05,
    noise: str = "normal",
    feature_noise: float = 0.003,
) -> SegmentProfile:
    """Draw a run of four classes of segments, of which a share was hit by Gaussian delays."""
    rng, n = np.random.default_rng(seed), 2_000
    kind = rng.integers(0, WORK.size, n)
    duration_s = 0.02 * WORK[kind] * noise_of(noise, rng, n)
    lost_s = np.where(rng.random(n) < hit, np.maximum(rng.normal(1.0, 0.3, n), 0.05), 0.0)
    lost_s *= percent / (100.0 - percent) * duration_s.sum() / max(lost_s.sum(), 1e-9)
    return SegmentProfile(
        duration_s=duration_s + lost_s,
        computation={"work": 1e6 * WORK[kind] * rng.normal(1.0, feature_noise, n)},
        evidence={"lost_s": lost_s},
    )


def estimated(run: SegmentProfile) -> Interference:
    return estimate_interference(run.duration_s, run.computation)


def codes(found: Interference) -> set[str]:
    return {str(notice.code) for notice in found.notices}


# --- the paper's figures, and examples by hand


def test_an_example_by_hand() -> None:
    # median 12, deviations 2 1 0 1 18 and so MAD 1, threshold 16: 14 of 76 seconds beyond it
    found = estimate_interference([10.0, 11.0, 12.0, 13.0, 30.0], {})
    assert found.percent == pytest.approx(100.0 * 14.0 / 76.0)
    assert found.above_median_percent == pytest.approx(100.0 * 18.0 / 76.0)
    assert (found.flagged_percent, found.unclustered_percent) == (20.0, 0.0)
    assert (found.n, found.duration_s, found.light) == (5, 76.0, "red")
    assert (found.measured_percent, found.total_percent) == (0.0, found.percent)
    assert found.probability_high == probability_high(found.percent)
    (group,) = found.groups
    assert (group.n, group.median_s, group.mad_s, group.threshold_s) == (5, 12.0, 1.0, 16.0)
    assert (group.duration_s, group.flagged, group.excess_s) == (76.0, 1, 14.0)


def test_groups_are_clusters_of_computation_and_equal_nominal_values() -> None:
    found = estimate_interference(
        [1.0] * 5 + [2.0] * 6 + [3.0] * 5 + [9.0] * 4,
        {"flops": [100.0] * 5 + [104.0] * 6 + [200.0] * 9, "loads": [7.0] * 20},
        nominal={"call": ["a"] * 5 + ["b"] * 6 + ["a"] * 5 + ["b"] * 4, "tag": [0.5] * 20},
    )
    assert [(group.n, group.median_s) for group in found.groups] == [(5, 1.0), (6, 2.0), (5, 3.0)]
    assert found.groups[1].computation == {"flops": (104.0, 104.0), "loads": (7.0, 7.0)}
    assert found.groups[1].nominal == {"call": "b", "tag": 0.5}
    assert found.unclustered_percent == pytest.approx(100.0 * 36.0 / 68.0)


# --- the paper's algorithm, slowly


def by_hand(
    durations: list[float], features: Mapping[str, list[float]], nominal: Mapping[str, list[Any]]
) -> tuple[float, float, float, float]:
    groups = defaultdict(list)
    labels = [find_clusters(np.asarray(values)).labels.tolist() for values in features.values()]
    for index, duration in enumerate(durations):
        key = (*(each[index] for each in labels), *(each[index] for each in nominal.values()))
        groups[key].append(duration)
    excess = above = flagged = clustered = 0.0
    for members in groups.values():
        if len(members) < 5:
            continue
        median = statistics.median(members)
        mad = statistics.median(abs(member - median) for member in members)
        slow = [member for member in members if member > median + 4.0 * mad]
        excess += sum(member - (median + 4.0 * mad) for member in slow)
        above += sum(member - median for member in slow)
        flagged += len(slow)
        clustered += sum(members)
    total = sum(durations)
    shares = (excess / total, above / total, flagged / len(durations), 1.0 - clustered / total)
    return tuple(100.0 * share for share in shares)  # type: ignore[return-value]


runs = st.lists(
    st.tuples(
        st.integers(1, 6) | st.integers(20, 60),
        st.sampled_from([0, 100, 103, 107, 150, -20, -21]),
        st.integers(0, 1),
        st.integers(0, 12),
    ),
    min_size=1,
    max_size=80,
)


def columns(run: list[tuple[int, int, int, int]]) -> tuple[list[float], ...]:
    return tuple([float(value) for value in column] for column in zip(*run, strict=True))


@given(runs)
def test_the_slow_algorithm_gives_the_same(run: list[tuple[int, int, int, int]]) -> None:
    durations, work, kind, _ = columns(run)
    features, nominal = {"work": work}, {"kind": kind}
    found = estimate_interference(durations, features, nominal=nominal)
    assert (
        found.percent,
        found.above_median_percent,
        found.flagged_percent,
        found.unclustered_percent,
    ) == pytest.approx(by_hand(durations, features, nominal), abs=1e-9)


# --- laws


def shares(found: Interference) -> tuple[float, ...]:
    return (
        found.percent,
        found.above_median_percent,
        found.flagged_percent,
        found.unclustered_percent,
        found.measured_percent,
    )


@given(runs)
def test_no_more_than_everything_is_lost(run: list[tuple[int, int, int, int]]) -> None:
    durations, work, _, delay = columns(run)
    found = estimate_interference(durations, {"work": work}, delay_s=delay)
    assert all(0.0 <= share <= 100.0 for share in shares(found)[2:])
    assert 0.0 <= found.percent <= found.above_median_percent <= 100.0
    assert found.total_percent <= 100.0 + 1e-9


@given(runs)
@settings(max_examples=20)
def test_a_run_is_its_own_reference(run: list[tuple[int, int, int, int]]) -> None:
    durations, work, kind, delay = columns(run)
    profile = SegmentProfile(
        duration_s=durations,
        computation={"work": work},
        nominal={"kind": kind},
        delays={"run queue": delay},
    )
    found = profile_interference(profile, reference=profile)
    assert found.continuous_percent == (0.0 if found.groups else None)
    assert shares(found) == shares(profile_interference(profile))


# --- accuracy by simulation


def test_accuracy_where_the_method_applies() -> None:
    accuracy = []
    for seed in range(60):
        run = simulated(seed, percent=40.0 * seed / 59.0)
        found = estimated(run)
        truth = 100.0 * run.evidence["lost_s"].sum() / found.duration_s
        accuracy.append(1.0 - abs(probability_high(truth) - found.probability_high))
        assert codes(found) == {"no-reference"}
    assert np.median(accuracy) >= 0.99
    assert np.quantile(accuracy, 0.05) >= 0.97


def test_the_continuous_part_by_hand() -> None:
    # six of b, without delay 3 s each against 2 s, in 39 s; the reference has too few of a and c
    run = SegmentProfile(
        duration_s=[2.0] * 5 + [3.5] * 6 + [2.0] * 4,
        nominal={"kind": ["a"] * 5 + ["b"] * 6 + ["c"] * 4},
        delays={"steal": [0.0] * 5 + [0.5] * 6 + [0.0] * 4},
    )
    reference = SegmentProfile(
        duration_s=[2.0] * 5 + [2.0] * 4 + [9.0] * 4,
        nominal={"kind": ["b"] * 5 + ["c"] * 4 + ["a"] * 4},
    )
    found = profile_interference(run, reference=reference)
    assert found.continuous_percent == pytest.approx(100.0 * 6 * (3.0 - 2.0) / 39.0)
    assert "reference-differs" not in codes(found)  # 21 of 39 s match


# --- profiles


# --- what is said of a run


def fired(code: str, make: Callable[[int], Interference], runs: int = 20) -> int:
    return sum(code in codes(make(seed)) for seed in range(runs))


@pytest.mark.parametrize("noise", ["normal", "lognormal", "exponential tail", "t(2)"])
@pytest.mark.parametrize("hit", [0.0, 0.2])
def test_the_median_has_not_moved(noise: str, hit: float) -> None:
    def run(seed: int) -> Interference:
        return estimated(simulated(seed, hit=hit, percent=20.0, noise=noise))

    assert fired("median-moved", run) <= 2


@pytest.mark.parametrize("n", [120, 1_000])
@pytest.mark.parametrize("noise", ["wide normal", "wide lognormal", "exponential"])
def test_no_noise_passes_for_nearly_all_hit(noise: str, n: int) -> None:
    """All with so much noise that the least gap counted does not hide the shape."""

    def run(seed: int) -> Interference:
        drawn = noise_of(noise, np.random.default_rng(seed), n)
        return estimate_interference(np.maximum(drawn, 0.1), {})

    assert fired("median-moved", run, 60) <= 4  # 1 % each: more have probability 0.0003


@pytest.mark.parametrize("hit", [0.45, 0.6, 0.9])
def test_the_median_has_moved(hit: float) -> None:
    assert fired("median-moved", lambda seed: estimated(simulated(seed, hit=hit, percent=30))) >= 18


def noisy(seed: int, noise: str, level: float) -> tuple[float, Interference]:
    """Return the true share lost, and what is estimated where like segments differ."""
    rng = np.random.default_rng(seed)
    clean = noise_of(noise, rng, 2_000)
    lost = np.where(rng.random(2000) < 0.2, rng.gamma(2.0, size=2000), 0.0)
    lost *= level / (1.0 - level) * clean.sum() / lost.sum()
    truth = 100.0 * float(lost.sum() / (clean + lost).sum())
    return truth, estimate_interference(0.01 * (clean + lost), {})


@pytest.mark.parametrize("noise", ["lognormal", "gamma"])
def test_where_the_excess_counts_from_matters(noise: str) -> None:
    off = warned = 0
    for seed in range(20):
        truth, found = noisy(seed, noise, 0.12)
        off += abs(probability_high(truth) - found.probability_high) > 0.1
        warned += "wide-groups" in codes(found)
    assert off >= 18
    assert warned >= 18


def contended(seed: int, feature: str, *, labelled: bool = False, hit: float = 0.1) -> Interference:
    """Slow a tenth of the segments of two kinds by what costs processor time as well."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(600) % 2
    lasted = (1.0 + 2.0 * kinds) * rng.normal(1.0, 0.01, 600)
    lasted *= np.where(rng.random(600) < hit, 1.5, 1.0)
    nominal = {"kind": kinds} if labelled else {}
    return estimate_interference(lasted, {feature: lasted}, nominal=nominal)


def test_contention_that_costs_processor_time_is_noted() -> None:
    found = contended(1, "processor_s", labelled=True)
    assert found.percent < 0.5  # of the 4.8 that were lost
    (notice,) = (each for each in found.notices if each.code == "processor-time")
    assert notice.severity == "note"
    # Also where it alone tells work apart.
    assert "processor-time" in codes(contended(1, "processor_s", hit=0.0))


def mixed(seed: int, *, apart: float, n: int = 1000) -> Interference:
    """Let a fifth of one group compute more, and take 43 % longer."""
    rng = np.random.default_rng(seed)
    slow = rng.random(n) < 0.2
    work = np.where(slow, apart, 1.0) * rng.normal(1.0, 0.003, n)
    return estimate_interference(
        np.where(slow, 1.43, 1.0) * rng.normal(1.0, 0.01, n), {"work": work}
    )


def test_mixed_segments() -> None:
    assert fired("mixed-segments", lambda seed: mixed(seed, apart=1.05)) == 20
    assert fired("mixed-segments", lambda seed: mixed(seed, apart=1.0)) == 0
    assert "mixed-segments" in codes(mixed(1, apart=1.05, n=30_000))


def test_chance_does_not_pass_for_mixture_in_many_groups() -> None:
    def run(seed: int) -> Interference:
        made = simulated(seed, hit=0.1, percent=40.0, feature_noise=0.02)
        groups = np.arange(made.n) % 12
        return estimate_interference(made.duration_s, made.computation, nominal={"group": groups})

    assert fired("mixed-segments", run) <= 1


@pytest.mark.parametrize(("share", "warned"), [(1.0, True), (0.4, False)])
def test_seconds_must_explain_the_time_lost(share: float, warned: bool) -> None:
    # some take 7 % longer, computing all of that time or less than half of it
    def run(seed: int) -> Interference:
        rng = np.random.default_rng(seed)
        computing = rng.normal(1.0, 0.003, 1000)
        longer = np.where(rng.random(1000) < 0.3, 0.07, 0.0)
        return estimate_interference(computing + longer, {"cpu_s": computing + share * longer})

    assert fired("mixed-segments", run) == (20 if warned else 0)


@pytest.mark.parametrize("noise", [0.003, 0.01, 0.03, 0.06])
def test_noisy_features_are_no_chain(noise: float) -> None:
    def run(seed: int) -> Interference:
        return estimated(simulated(seed, feature_noise=noise))

    assert fired("chained-features", run) <= 1


@pytest.mark.parametrize(
    ("own_s", "other_s", "severity"),
    [
        pytest.param(4.0, 3.9, None, id="less"),
        pytest.param(4.0, 4.1, "warning", id="more"),
        pytest.param(0.1, 0.9, None, id="hardly-anything"),
        pytest.param("?", 4.1, "warning", id="own-unknown"),
        pytest.param(4.0, None, None, id="unknown"),
    ],
)
def test_work_of_others_is_not_measured(own_s: Any, other_s: Any, severity: Any) -> None:
    profile = SegmentProfile(
        duration_s=[1.0] * 10,
        delays={"run queue": [0.0] * 10},
        facts={"thread_cpu_s": own_s, "other_cpu_s": other_s},
    )
    found = {str(each.code): each.severity for each in profile_interference(profile).notices}
    assert found.get("delay-not-measured") == severity
