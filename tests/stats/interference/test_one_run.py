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
    light_of,
    probability_high,
    profile_interference,
)
from benchrigor.stats.interference.clustering import find_clusters

Simulate = Callable[..., SegmentProfile]


def estimated(run: SegmentProfile) -> Interference:
    return estimate_interference(run.duration_s, run.computation)


def codes(found: Interference) -> set[str]:
    return {str(notice.code) for notice in found.notices}


# --- the paper's figures, and examples by hand


@pytest.mark.parametrize(
    ("percent", "probability"), [(7.5, 0.21), (11.25, 0.5), (15.0, 0.79), (-4e3, 0.0), (4e3, 1.0)]
)
def test_probability_of_high_interference(percent: float, probability: float) -> None:
    assert probability_high(percent) == pytest.approx(probability, abs=0.005)


@pytest.mark.parametrize(
    ("percent", "light"),
    [
        (0.0, "green"),
        (7.499, "green"),
        (7.5, "yellow"),
        (15.0, "yellow"),
        (15.001, "red"),
    ],
)
def test_the_light_changes_at_its_limits(percent: float, light: str) -> None:
    assert light_of(percent) == light


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
    assert "unclustered-segments" in codes(found)


def test_the_group_with_most_excess_comes_first() -> None:
    found = estimate_interference(
        [1.0] * 9 + [2.0] + [1.0] * 9 + [5.0], {}, nominal={"k": [0] * 10 + [1] * 10}
    )
    assert [group.excess_s for group in found.groups] == [4.0, 1.0]


def test_measured_delay_is_taken_off_first() -> None:
    delay_s = [0.0, 0.0, 0.0, 0.0, 18.0]
    found = estimate_interference([10.0, 11.0, 12.0, 13.0, 30.0], {}, delay_s=delay_s)
    assert found.percent == 0.0
    assert found.measured_percent == pytest.approx(100.0 * 18.0 / 76.0)
    assert found.light == "red"
    assert found.groups[0].duration_s == 76.0
    clipped = estimate_interference([1.0] * 5, {}, delay_s=[0.0, 0.0, 0.0, 0.0, 9.0])
    assert clipped.measured_percent == 20.0


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


@pytest.mark.slow
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


def test_accuracy_where_the_method_applies(simulated: Simulate) -> None:
    accuracy = []
    for seed in range(60):
        run = simulated(seed, percent=40.0 * seed / 59.0)
        found = estimated(run)
        truth = 100.0 * run.evidence["lost_s"].sum() / found.duration_s
        accuracy.append(1.0 - abs(probability_high(truth) - found.probability_high))
        assert codes(found) == {"no-reference"}
    assert np.median(accuracy) >= 0.99
    assert np.quantile(accuracy, 0.05) >= 0.97


@pytest.mark.parametrize(
    ("noise", "limit"),
    [("normal", 0.01), ("lognormal", 0.05), ("exponential tail", 0.6), ("t(2)", 1.0)],
)
def test_an_undisturbed_run_has_lost_nothing(noise: str, limit: float, simulated: Simulate) -> None:
    assert max(estimated(simulated(seed, noise=noise)).percent for seed in range(20)) < limit


@pytest.mark.parametrize("slower", [1.0, 1.1])
def test_what_slows_all_alike_shows_against_a_reference_alone(
    slower: float, simulated: Simulate
) -> None:
    run = simulated(2)
    found = estimate_interference(slower * run.duration_s, run.computation, reference=simulated(1))
    assert found.percent < 1.0
    assert found.continuous_percent == pytest.approx(100.0 * (1.0 - 1.0 / slower), abs=0.2)
    assert codes(found) == set()


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


def test_features_of_both_runs_are_clustered_together() -> None:
    # apart in the run, but values of the reference lie between
    run = {"duration_s": [1.0] * 10, "computation": {"w": [100.0] * 5 + [115.0] * 5}}
    between = {"duration_s": [0.5] * 10, "computation": {"w": [107.0] * 10}}
    found = profile_interference(SegmentProfile(**run), reference=SegmentProfile(**between))
    assert len(found.groups) == 2
    assert found.continuous_percent == 50.0


# --- profiles


def test_a_profile_tells_its_delays_by_source() -> None:
    profile = SegmentProfile(
        duration_s=[1.0] * 10,
        delays={"run queue": [0.5] * 2 + [0.0] * 8, "steal": [0.75] + [0.0] * 8 + [4.0]},
    )
    found = profile_interference(profile)
    assert found.delays == {"run queue": 10.0, "steal": 17.5}
    assert found.measured_percent == 25.0
    assert "delay-not-measured" not in codes(found)


# --- the door
