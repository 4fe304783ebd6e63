"""The published rule: the longest segment with more than half of the readings, whole."""

from __future__ import annotations

import statistics
from itertools import pairwise

import numpy as np
import pytest
from tests.stats.told import analysed

import benchrigor as br

DRAWN = {"trim": True, "detector": "edm"}


def segment_by_hand(readings: list[float]) -> tuple[int, int] | None:
    borders = [0, *br.stats.detect_changes(readings, method="edm").indices, len(readings)]
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


@pytest.mark.parametrize("seed", range(12))
def test_the_mean_is_that_of_the_segment_by_hand(seed: int) -> None:
    series = phased(seed)
    expected, phase = (
        segment_by_hand(series.tolist()),
        br.stats.find_stable_phase(series, detector="edm"),
    )
    if expected is None:
        assert (phase.start, phase.reason.name) == (None, "NO_DOMINANT_SEGMENT")
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
    assert phase.reason.name == "LONGEST_SEGMENT"
    assert [part.label for part in phase.phases] == ["warm-up", "stable"]


def test_neighbours_that_hardly_differ_are_not_joined() -> None:
    series = np.repeat([1.004, 1.0], [40, 60]) + np.tile([0.0, 0.0001], 50)
    assert br.stats.find_stable_phase(series).start == 0
    estimate = br.stats.estimate_mean(series, **DRAWN)
    assert (estimate.value, estimate.n) == (series[40:].mean(), 60)
    # So few readings have no change, and are measured whole: also a climb.
    assert br.stats.estimate_mean(np.arange(1.0, 26.0), **DRAWN).value == 13.0


def test_a_rate_has_the_harmonic_mean_of_the_segment() -> None:
    levels = np.repeat([30.0, 20.0], [60, 440])
    series = 1.0 / (levels + np.random.default_rng(1).normal(size=levels.size))
    phase = br.stats.find_stable_phase(series, detector="edm")
    estimate = analysed(series, unit="1/s", detector="edm").estimate
    assert estimate is not None
    kept = series[phase.start : phase.stop]
    assert estimate.value == pytest.approx(statistics.harmonic_mean(kept.tolist()), rel=1e-12)


def test_the_method_names_the_averaging_of_a_long_series() -> None:
    series = np.repeat([3.0, 1.0], [1_000, 4_500])
    series += np.random.default_rng(7).normal(0.0, 0.01, series.size)
    estimate = br.stats.estimate_mean(series, **DRAWN)
    assert estimate.method.endswith(", means of 2")
    short = br.stats.estimate_mean(series[500:2_500], **DRAWN)
    assert "means" not in short.method
    pairs = br.stats.compare(series, 2.0 * series, paired=True, **DRAWN)
    assert pairs.ratio is not None
    assert pairs.ratio.method.endswith(", means of 2")
