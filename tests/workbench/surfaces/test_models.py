"""The two models of maps: their leave-one-out predictions, and what they take of the samples."""

from collections.abc import Callable

import numpy as np
import pytest

from benchrigor.workbench import Factor, SurfaceMap
from benchrigor.workbench.surfaces.factors import Space
from benchrigor.workbench.surfaces.gaussian_process import fit_gaussian_process
from benchrigor.workbench.surfaces.quadratic import fit_quadratic

SPACE = Space([Factor("x", levels=range(6)), Factor("y", levels=range(4))])
GRID = SPACE.grid()
TERMS = np.column_stack([np.ones(len(GRID)), SPACE.terms(GRID)])
TRUE = np.array([5.0, 0.4, -0.3, 0.2, 0.1, -0.2])


def noisy(
    seed: int, error: float = 0.02, bend: Callable[[np.ndarray], np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    bent = 0.0 if bend is None else bend(SPACE.coordinates(GRID))
    return TERMS @ TRUE + bent + rng.normal(0.0, error, len(GRID)), np.full(len(GRID), error)


def wave(rows: np.ndarray) -> np.ndarray:
    waves: np.ndarray = 0.3 * np.sin(5.0 * rows[:, 0])
    return waves


def test_a_quadratic_is_found_again_and_fits() -> None:
    fitted = fit_quadratic(SPACE, GRID, *noisy(1))
    assert fitted.predictions(GRID)[0] == pytest.approx(TERMS @ TRUE, abs=0.04)
    assert fitted.p_fit > 0.001


def test_lack_of_fit_is_seen_and_counts() -> None:
    fitted = fit_quadratic(SPACE, GRID, *noisy(1, bend=wave))
    assert fitted.p_fit < 1e-6
    assert 0.1 < fitted.misfit_sd < 0.4
    assert fitted.predictions(GRID)[1].min() > fitted.misfit_sd


def test_the_chance_of_a_false_lack_of_fit_is_its_level() -> None:
    found = [fit_quadratic(SPACE, GRID, *noisy(seed)) for seed in range(100)]
    low = sum(each is not None and each.p_fit < 0.1 for each in found)
    assert 2 <= low <= 20


def test_left_out_samples_are_predicted_as_by_a_fit_without_them() -> None:
    logs, errors = noisy(2)
    fitted = fit_quadratic(SPACE, GRID, logs, errors * 3.0)  # no lack of fit that would differ
    assert fitted.misfit_sd == 0.0
    rest = np.arange(1, len(GRID))
    without = fit_quadratic(SPACE, GRID[1:], logs[rest], errors[rest] * 3.0)
    assert fitted.left_out[0] == pytest.approx(logs[0] - without.predictions(GRID[:1])[0][0])


def test_a_process_predicts_left_out_samples_as_the_formula_says() -> None:
    """By conditioning each candidate without each sample, with its kernel and the level kept."""
    logs, errors = noisy(3, bend=wave)
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
    for bend, name in ((None, "quadratic"), (wave, "gaussian-process")):
        logs, _ = noisy(4, bend=bend)
        search = SurfaceMap(SPACE.factors, design="full")
        while (sample := search.ask()) is not None:
            value = float(np.exp(logs[GRID.index(sample.point)]))
            search.tell(sample, (value, 0.96 * value, 1.04 * value))
        surface = search.result()
        assert surface.model == name or bend is None  # of a true quadratic both are right
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
    space = Space([Factor("size", levels=[1, 2, 4, 8])])
    points = space.grid()
    logs = np.array([0.1, 0.2, 0.4, 0.8])
    disturbed = np.array([1e-4, 0.3, 0.3, 1e-4])
    assert fit_quadratic(space, points, logs, disturbed) is None
    slightly = np.array([1e-4, 0.3, 1e-4, 1e-4])
    fitted = fit_quadratic(space, points, logs, slightly)
    assert fitted.freedom == 2  # the plane


def test_a_sample_that_is_known_badly_moves_predictions_little() -> None:
    logs, errors = noisy(6)
    logs[5] += 1.0
    errors[5] = 2.0
    for fit in (fit_quadratic, fit_gaussian_process):
        fitted = fit(SPACE, GRID, logs, errors)
        assert fitted.predictions(GRID)[0][5] == pytest.approx((TERMS @ TRUE)[5], abs=0.1)


def test_predictions_are_the_margins_of_joint_ones() -> None:
    logs, errors = noisy(7, bend=wave)
    for fit in (fit_quadratic, fit_gaussian_process):
        fitted = fit(SPACE, GRID[::2], logs[::2], errors[::2])
        mean, covariance = fitted.joint(GRID)
        assert fitted.predictions(GRID)[0] == pytest.approx(mean)
        assert fitted.predictions(GRID)[1] ** 2 == pytest.approx(np.diag(covariance), abs=1e-9)


def test_sums_of_points_have_the_moments_that_those_of_the_points_give() -> None:
    logs, errors = noisy(8, bend=wave)
    sums = np.random.default_rng(8).normal(size=(3, len(GRID)))
    for fit in (fit_quadratic, fit_gaussian_process):
        fitted = fit(SPACE, GRID[::2], logs[::2], errors[::2])
        (mean, covariance), (of_sums, together) = fitted.joint(GRID), fitted.joint(GRID, sums)
        assert of_sums == pytest.approx(sums @ mean)
        assert together == pytest.approx(sums @ covariance @ sums.T, abs=1e-9)


def test_of_many_points_all_count_though_some_choose_the_scales() -> None:
    space = Space([Factor("x", levels=range(20)), Factor("y", levels=range(15))])
    grid, random = space.grid(), np.random.default_rng(4)
    rows = space.coordinates(grid)
    true = 5.0 + np.sin(2.0 * rows[:, 0]) + 0.5 * rows[:, 1] ** 2
    logs, errors = true + random.normal(0.0, 0.05, len(grid)), np.full(len(grid), 0.05)
    fitted = fit_gaussian_process(space, grid, logs, errors)
    mean, sd = fitted.predictions(grid)
    standardised = (mean - true) / sd
    assert fitted.left_out.shape == (300,)
    assert np.median(sd) < 0.02  # a hundred points leave 0.023
    assert 0.7 < np.sqrt(np.mean(standardised**2)) < 1.3
