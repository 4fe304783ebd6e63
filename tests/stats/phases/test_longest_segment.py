"""The published rule: the longest segment with more than half of the readings, whole."""

from __future__ import annotations

import statistics
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import ChangePoints
from benchrigor.session.replays.recorded_run import record_of_readings
from benchrigor.stats.phases.longest_segment import longest_segment
from benchrigor.stats.phases.trimming import trimmed

SHORTEST = 30
DRAWN = {"trim": True, "detector": "edm"}


def points_by_hand(readings: list[float]) -> list[int]:
    """Follow the published recursion: a further change has to raise the statistic by a quarter."""
    n = len(readings)
    statistic, last = [0.0] * (n + 1), [0] * (n + 1)
    for stop in range(2 * SHORTEST, n + 1):
        for split in range(SHORTEST, stop - SHORTEST + 1):
            before = last[split]
            step = statistics.median(readings[before:split])
            step -= statistics.median(readings[split:stop])
            weight = (split - before) * (stop - split) / (stop - before) ** 2
            if statistic[split] + weight * step * step > statistic[stop]:
                statistic[stop], last[stop] = statistic[split] + weight * step * step, split
        known = statistic[last[stop]]
        if last[stop] and statistic[stop] - known < 0.25 * known:
            statistic[stop], last[stop] = known, last[last[stop]]
    points, stop = [], n
    while last[stop]:
        stop = last[stop]
        points.append(stop)
    return points[::-1]


def segment_by_hand(readings: list[float]) -> tuple[int, int] | None:
    borders = [0, *points_by_hand(readings), len(readings)]
    longest = max(pairwise(borders), key=lambda segment: segment[1] - segment[0])
    return longest if 2 * (longest[1] - longest[0]) > len(readings) else None


def phased(seed: int) -> np.ndarray:
    """Return a warm-up, a dominant phase of 55 to 90 % and a cool-down, with or without memory."""
    rng = np.random.default_rng([20261128, seed])
    n, share = int(rng.integers(100, 150)), rng.uniform(0.55, 0.9)
    warm_up = int(rng.uniform(0.2, 0.8) * (1.0 - share) * n)
    levels = np.full(n, 10.0)
    levels[:warm_up] *= rng.choice([0.8, 1.2, 1.5])
    levels[warm_up + int(share * n) :] *= rng.choice([0.9, 1.1, 1.3])
    noise = rng.normal(0.0, rng.uniform(0.1, 0.3), n)
    if seed % 2:
        for index in range(1, n):
            noise[index] = 0.4 * noise[index - 1] + np.sqrt(1.0 - 0.4**2) * noise[index]
    return levels + noise


@pytest.mark.parametrize("seed", range(30))
def test_the_mean_is_that_of_the_segment_by_hand(seed: int) -> None:
    series = phased(seed)
    expected, phase = (
        segment_by_hand(series.tolist()),
        br.stats.find_stable_phase(series, detector="edm"),
    )
    if expected is None:
        assert (phase.start, phase.reason) == (None, "no dominant segment")
        with pytest.raises(br.NotEstimable):
            br.stats.estimate_mean(series, **DRAWN)
        return
    assert (phase.start, phase.stop) == expected
    assert br.stats.estimate_mean(series, **DRAWN).value == series[slice(*expected)].mean()


def test_three_fifths_are_measured_whole() -> None:
    series = np.repeat([30.0, 20.0], [40, 60]) + np.tile([0.0, 0.25], 50)
    estimate = br.stats.estimate_mean(series, **DRAWN)
    assert (estimate.value, estimate.n) == (20.125, 60)
    phase = br.stats.find_stable_phase(series, detector="edm")
    assert phase.reason == "longest segment"
    assert [part.label for part in phase.phases] == ["warm-up", "stable"]


def test_the_rule_between_given_points() -> None:
    series = np.arange(10.0)
    points = ChangePoints(indices=(2, 8), n=10, level=None, inflation=1.0)
    phase = longest_segment(series, points)
    assert (phase.start, phase.stop, trimmed(series, phase).tolist()) == (2, 8, [*range(2, 8)])
    assert [part.label for part in phase.phases] == ["warm-up", "stable", "cool-down"]
    assert [part.median for part in phase.phases] == [0.5, 4.5, 8.5]
    assert longest_segment(series, replace(points, indices=(2, 7))).start is None
    assert longest_segment(series, replace(points, indices=(5,))).start is None
    assert longest_segment(series, replace(points, indices=())).n == 10


def test_neighbours_that_hardly_differ_are_not_joined() -> None:
    series = np.repeat([1.004, 1.0], [40, 60]) + np.tile([0.0, 0.0001], 50)
    assert br.stats.find_stable_phase(series).start == 0
    estimate = br.stats.estimate_mean(series, **DRAWN)
    assert (estimate.value, estimate.n) == (series[40:].mean(), 60)


def test_few_readings_have_no_change_and_are_measured_whole() -> None:
    series = np.arange(1.0, 26.0)  # a climb, which the default method refuses
    assert br.stats.estimate_mean(series, **DRAWN).value == 13.0


def test_a_rate_has_the_harmonic_mean_of_the_segment() -> None:
    levels = np.repeat([30.0, 20.0], [60, 440])
    series = 1.0 / (levels + np.random.default_rng(1).normal(size=levels.size))
    phase = br.stats.find_stable_phase(series, detector="edm")
    record = record_of_readings(
        [series], br.Options(detector="edm"), br.Metric(name="rate", unit="1/s"), name="rates"
    )
    estimate = record.estimate()
    assert estimate is not None
    kept = series[phase.start : phase.stop]
    assert estimate.value == pytest.approx(statistics.harmonic_mean(kept.tolist()), rel=1e-12)


@pytest.mark.slow
def test_the_method_names_the_averaging_of_a_long_series() -> None:
    series = np.repeat([3.0, 1.0], [1_000, 4_500])
    series += np.random.default_rng(7).normal(0.0, 0.01, series.size)
    estimate = br.stats.estimate_mean(series, **DRAWN)
    assert estimate.method == "long-run-variance, means of 2"
    short = br.stats.estimate_mean(series[500:2_500], **DRAWN)
    assert short.method == "long-run-variance"
    pairs = br.stats.compare(series, 2.0 * series, paired=True, **DRAWN)
    assert pairs.ratio is not None
    assert pairs.ratio.method == "paired, means of 2"
