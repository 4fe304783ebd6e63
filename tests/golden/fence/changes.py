"""Change points, stable phases and modes."""

from __future__ import annotations

import numpy as np

from benchrigor.interference import quantise
from benchrigor.model import ChangePoints
from benchrigor.stats import ChangeDetector, detect_changes, find_stable_phase
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector
from benchrigor.stats.segment_groups import find_clusters
from fence.cases import case
from fence.readings import column, correlated, drifting, skewed, stepping, warming
from fence.sessions import LargestJump


def of_several() -> dict[str, np.ndarray]:
    """Return series with and without changes, by name."""
    return {
        "inserts": column("recorded_inserts.csv"),
        "cache": column("recorded_cache.csv"),
        "quiet": column("encoding.csv", "quiet"),
        "busy": column("encoding.csv", "busy"),
        "stepping": stepping(1500, seed=80, at=400, by=0.1),
        "there and back": np.concatenate(
            [stepping(600, seed=81, at=300), stepping(600, seed=82, at=0), correlated(300, seed=83)]
        ),
        "warming": warming(2000, seed=84),
        "correlated": correlated(2000, seed=85, phi=0.9),
        "drifting": drifting(800, seed=86),
        "skewed": skewed(800, seed=87),
        "random walk": correlated(1000, seed=88).cumsum(),
        "still moving": correlated(1000, seed=93) + np.maximum(np.arange(1000) - 900, 0) / 100.0,
        "many steps": correlated(1200, seed=94) + 0.2 * (np.arange(1200) // 120 % 4),
        "slow waves": correlated(1000, seed=95) + 0.05 * np.sin(np.arange(1000) / 25.0),
        "spread": correlated(1000, seed=96) ** np.where(np.arange(1000) < 500, 1.0, 6.0),
        "constant": np.full(100, 1.0),
        "short": correlated(15, seed=89),
    }


@case
def changes_by_ranks() -> object:
    return {name: detect_changes(series) for name, series in of_several().items()}


@case
def changes_at_other_levels() -> object:
    series = column("recorded_inserts.csv")
    return [
        detect_changes(series, level=level, min_segment=shortest)
        for level, shortest in ((0.2, 5), (0.05, 30), (0.0001, 200))
    ]


@case
def changes_by_medians() -> object:
    """Cuts by E-Divisive with medians, as published."""
    return {
        name: detect_changes(series[:500], method="edm", min_segment=10)
        for name, series in of_several().items()
    }


@case
def changes_of_a_growing_series() -> object:
    """Looks again and again while a series grows, and through the interface of ruptures."""
    series = of_several()["there and back"]
    detector, growing = ChangeDetector(), []
    for part in np.split(series, (15, 100, 400, 700)):
        detector.append(part)
        growing.append(detector.change_points())
    return {
        "growing": growing,
        "fitted": detector.fit(series.reshape(-1, 1)).predict(),
        "another estimator": RupturesDetector(LargestJump())(series),
    }


@case
def stable_phases() -> object:
    return {name: find_stable_phase(series) for name, series in of_several().items()}


@case
def stable_phases_of_given_change_points() -> object:
    series = stepping(900, seed=90, at=300, by=0.005)
    points = ChangePoints(indices=(300, 600), n=900, level=None, inflation=2.0)
    return [
        find_stable_phase(series, materiality=each, change_points=points) for each in (0.001, 0.02)
    ]


@case
def clusters_and_bins() -> object:
    durations = column("encoding.csv", "busy")
    return {
        "clusters": find_clusters(durations).labels.astype(np.int64),
        "bins": quantise(durations, 32),
    }
