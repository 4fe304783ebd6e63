"""The two models of maps: their leave-one-out predictions, and what they take of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchrigor.workbench import Factor, SurfaceMap
from benchrigor.workbench.models import fit_gaussian_process, fit_quadratic

FITS = (fit_quadratic, fit_gaussian_process)
SPACE = SurfaceMap([Factor("x", levels=range(6)), Factor("y", levels=range(4))]).space
GRID = SPACE.grid()
TERMS = np.column_stack([np.ones(len(GRID)), SPACE.terms(GRID)])
TRUE = TERMS @ np.array([5.0, 0.4, -0.3, 0.2, 0.1, -0.2])
WAVE = 0.3 * np.sin(5.0 * SPACE.coordinates(GRID)[:, 0])


def noisy(seed: int, bent: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
    noise = np.random.default_rng(seed).normal(0.0, 0.02, len(GRID))
    return TRUE + bent + noise, np.full(len(GRID), 0.02)


def test_lack_of_fit_is_seen_and_counts() -> None:
    fits, bent = (fit_quadratic(SPACE, GRID, *noisy(1, bend)) for bend in (0.0, WAVE))
    assert fits.predictions(GRID)[0] == pytest.approx(TRUE, abs=0.04)
    assert fits.p_fit > 0.001
    assert bent.p_fit < 1e-6
    assert 0.1 < bent.misfit_sd < 0.4
    assert bent.predictions(GRID)[1].min() > bent.misfit_sd


def test_left_out_samples_are_predicted_as_by_a_fit_without_them() -> None:
    logs, errors = noisy(2)
    fitted = fit_quadratic(SPACE, GRID, logs, errors * 3.0)  # no lack of fit that would differ
    assert fitted.misfit_sd == 0.0
    without = fit_quadratic(SPACE, GRID[1:], logs[1:], errors[1:] * 3.0)
    assert fitted.left_out[0] == pytest.approx(logs[0] - without.predictions(GRID[:1])[0][0])


def test_a_process_predicts_left_out_samples_as_the_formula_says() -> None:
    """By conditioning each candidate without each sample, with its kernel and the level kept."""
    logs, errors = noisy(3, WAVE)
    fitted = fit_gaussian_process(SPACE, GRID, logs, errors)
    rows = SPACE.coordinates(GRID)
    level, spread = fitted.level, fitted.spread
    shares = np.exp([one.scales.likelihood for one in fitted._candidates])  # noqa: SLF001
    shares /= shares.sum()
    for left in (0, 7, 23):
        rest, found = np.delete(np.arange(len(GRID)), left), []
        for one in fitted._candidates:  # noqa: SLF001
            covariance = spread**2 * one.scales.kernel(rows) + np.diag(errors**2)
            weights = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, left])
            off = logs[left] - level - weights @ (logs[rest] - level)
            found.append((off, covariance[left, left] - weights @ covariance[rest, left]))
        offs, variances = np.array(found).T
        assert fitted.left_out[left] == pytest.approx(shares @ offs)
        expected = shares @ (variances + offs**2) - (shares @ offs) ** 2
        assert fitted.left_out_sd[left] == pytest.approx(np.sqrt(expected))


def test_leave_one_out_errors_choose_the_model() -> None:
    for bent, name in ((0.0, "quadratic"), (WAVE, "gaussian-process")):
        logs, _ = noisy(4, bent)
        search = SurfaceMap(SPACE.factors, design="full")
        for sample in search.planned():
            value = float(np.exp(logs[GRID.index(sample.point)]))
            search.tell(sample, (value, 0.96 * value, 1.04 * value))
        surface = search.result()
        assert name in {surface.model, "quadratic"}  # of a true one both are right
        assert np.mean(np.abs(np.log(surface.intervals(GRID)[0]) - logs)) < 0.03


@pytest.mark.parametrize(("n", "coefficients"), [(24, 6), (8, 6), (5, 3), (3, None)])
def test_a_quadratic_is_as_large_as_the_samples_allow(n: int, coefficients: int | None) -> None:
    logs, errors = noisy(5)
    spread = np.random.default_rng(1).permutation(len(GRID))[:n]
    points = [GRID[index] for index in spread]
    fitted = fit_quadratic(SPACE, points, logs[spread], errors[spread])
    assert (None if fitted is None else n - fitted.freedom) == coefficients


def test_samples_known_too_badly_leave_the_others_to_decide_no_quadratic_alone() -> None:
    """Two of four samples of a plane were disturbed: the others would fit it exactly."""
    space = SurfaceMap([Factor("size", levels=[1, 2, 4, 8])]).space
    logs = np.array([0.1, 0.2, 0.4, 0.8])
    disturbed, slightly = np.array([1e-4, 0.3, 0.3, 1e-4]), np.array([1e-4, 0.3, 1e-4, 1e-4])
    assert fit_quadratic(space, space.grid(), logs, disturbed) is None
    assert fit_quadratic(space, space.grid(), logs, slightly).freedom == 2  # the plane


@pytest.mark.parametrize("fit", FITS)
def test_predictions_and_sums_of_points_have_the_moments_of_joint_ones(fit: Any) -> None:
    logs, errors = noisy(8, WAVE)
    sums = np.random.default_rng(8).normal(size=(3, len(GRID)))
    fitted = fit(SPACE, GRID[::2], logs[::2], errors[::2])
    mean, covariance = fitted.joint(GRID, np.eye(len(GRID)))
    of_sums, together = fitted.joint(GRID, sums)
    assert fitted.predictions(GRID)[0] == pytest.approx(mean)
    assert fitted.predictions(GRID)[1] ** 2 == pytest.approx(np.diag(covariance), abs=1e-9)
    assert of_sums == pytest.approx(sums @ mean)
    assert together == pytest.approx(sums @ covariance @ sums.T, abs=1e-9)


def test_of_many_points_all_count_though_some_choose_the_scales() -> None:
    space = SurfaceMap([Factor("x", levels=range(20)), Factor("y", levels=range(15))]).space
    grid, random = space.grid(), np.random.default_rng(4)
    rows = space.coordinates(grid)
    true = 5.0 + np.sin(2.0 * rows[:, 0]) + 0.5 * rows[:, 1] ** 2
    logs, errors = true + random.normal(0.0, 0.05, len(grid)), np.full(len(grid), 0.05)
    fitted = fit_gaussian_process(space, grid, logs, errors)
    mean, sd = fitted.predictions(grid)
    assert fitted.left_out.shape == (300,)
    assert np.median(sd) < 0.02  # a hundred points leave 0.023
    assert 0.7 < np.sqrt(np.mean(((mean - true) / sd) ** 2)) < 1.3
