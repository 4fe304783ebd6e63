"""Estimators of ruptures as detectors: what they are shown, and what becomes of their answers."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
import ruptures as rpt

from benchrigor.protocols import Detector
from benchrigor.stats import find_stable_phase
from benchrigor.stats.changepoints.ruptures_adapter import RupturesDetector

STEPS = np.repeat([8.0, 0.0, -6.0], [40, 120, 40])


def noise(seed: int, n: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


class Spy:
    """An estimator that remembers what it was shown and stops at the ends it is given."""

    min_size = 3
    n_samples: int | None = None

    def __init__(self, *ends: int) -> None:
        self.ends = ends
        self.seen: list[Any] = []

    def __deepcopy__(self, memo: dict[int, object]) -> Spy:
        return self

    def fit(self, signal: np.ndarray) -> None:
        self.seen.append(signal)

    def predict(self, pen: float) -> list[np.int64]:
        self.seen.append(pen)
        return [np.int64(end) for end in self.ends]


def shown(values: object) -> np.ndarray:
    spy = Spy()
    RupturesDetector(spy)(values)
    return spy.seen[0]


@pytest.mark.parametrize(
    "detect",
    [
        RupturesDetector(rpt.Pelt(model="l2")),
        RupturesDetector(rpt.Pelt(model="l2"), pen=20.0),
        RupturesDetector(rpt.Binseg(model="l2")),
        RupturesDetector(rpt.BottomUp(model="l2")),
        RupturesDetector(rpt.Window(model="l2", width=40)),
        RupturesDetector(rpt.KernelCPD(kernel="linear")),
        RupturesDetector(rpt.KernelCPD(kernel="rbf")),
    ],
)
def test_every_estimator_finds_clear_steps(detect: RupturesDetector) -> None:
    assert isinstance(detect, Detector)
    for seed in range(3):
        found = detect(noise(seed) + STEPS)
        assert found.indices == pytest.approx((40, 160), abs=5)
        assert all(type(index) is int for index in found.indices)


@pytest.mark.parametrize("estimator", [rpt.Pelt(model="rbf"), rpt.KernelCPD(kernel="rbf")])
def test_what_was_learned_from_one_series_is_not_carried_to_the_next(estimator: Any) -> None:
    first, second = noise(1) + STEPS, np.exp(2.0 * noise(2, 150)) + np.repeat([0.0, 30.0], 75)
    detect = RupturesDetector(estimator, pen=5.0)
    detect(first)
    assert detect(second) == RupturesDetector(estimator, pen=5.0)(second)
    estimator.fit(first.reshape(-1, 1))
    assert detect(second) == RupturesDetector(type(estimator)("rbf"), pen=5.0)(second)


def test_readings_are_shown_in_standard_deviations_from_their_median() -> None:
    values = 3.0 + 2e-6 * noise(1, 5_001)
    signal = shown(values)
    assert signal.shape == (5_001, 1)
    assert signal.dtype == np.float64
    assert np.median(signal) == 0.0
    # The MAD of 5000 normal readings is good to 1.2 % of the standard deviation (1 sigma).
    assert signal.std() == pytest.approx(1.0, abs=0.04)
    # Of readings of which most are equal it is by the mean deviation.
    equal = shown(np.repeat([5.0, 6.0], [90, 10]))
    assert equal.max() == pytest.approx(1.0 / (np.sqrt(np.pi / 2.0) * 0.1))


def test_the_penalty_is_three_ln_n_unless_another_is_given() -> None:
    spy = Spy()
    RupturesDetector(spy)(np.arange(100.0))
    RupturesDetector(spy, pen=7)(np.arange(100.0))
    assert spy.seen[1::2] == [pytest.approx(3.0 * np.log(100.0)), 7]


@pytest.mark.parametrize("spread", [5e-324, 1e-300, 1e140])
def test_readings_of_any_size_are_shown_small_enough_to_be_squared(spread: float) -> None:
    values = np.tile([0.0, spread, 2.0 * spread, 3.0 * spread], 25)
    values[-1] = 1e149
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        signal = shown(values)
        assert np.isfinite((signal**2).sum())
    assert signal.max() > 0.0


@pytest.mark.parametrize("name", ["edm", "pelt"])
@pytest.mark.parametrize("n", [400, 2048, 40_000])
def test_each_finds_a_warm_up_in_series_of_any_length(name: str, n: int) -> None:
    began = time.process_time()
    warming_up = np.where(np.arange(n) < n // 10, 2.0, 1.0) + 0.1 * noise(n, n)
    points = find_stable_phase(warming_up, detector=name).change_points
    assert time.process_time() - began < 20.0  # all of 40,000 would take minutes
    assert (points.n, points.level) == (n, None)
    assert min(abs(index - n // 10) for index in points.indices) <= n // 100
    assert all(isinstance(index, int) for index in points.indices)


def test_ruptures_is_loaded_only_where_it_is_asked_for() -> None:
    code = (
        "import sys, benchrigor as br; br.Session(br.Options()); "
        "assert 'ruptures' not in sys.modules; br.Session(br.Options(detector='pelt')); "
        "assert 'ruptures' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
