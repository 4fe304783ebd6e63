import numpy as np
import pytest
from simulated.lines import CURVES, EXPONENTS, WORK

from benchrigor.model import Code, WpsFit
from benchrigor.stats import fit_wps


def test_a_bend_is_the_growth_of_the_time_per_unit_as_a_share_of_the_slope() -> None:
    """Of duration = w + w^2, that grows from 1 + 2 * low to 1 + 2 * high."""
    work = np.linspace(0.0, 1.0, 21)[1:]
    fit = fit_wps(work, work + work**2 + 1e-6 * np.sin(1e3 * work))
    assert fit.bend is not None
    assert fit.bend.value == pytest.approx(2.0 * 0.95 / fit.slope.value, rel=1e-3)
    notice = next(each for each in fit.notices if each.code is Code.NOT_LINEAR)
    assert notice.severity == "warning"


def test_exact_curves_have_their_exponents() -> None:
    for curve, exponent in EXPONENTS.items():
        fit = fit_wps(WORK, 0.1 + CURVES[curve](WORK))
        assert fit.growth is not None
        assert fit.growth.value == pytest.approx(exponent, abs=1e-6)
        assert fit.shape == ("other" if curve == "root" else curve)
    assert fit_wps(WORK, 0.1 + CURVES["linear"](WORK)).notices[-1].code is Code.CONSTANT


def test_rounds_without_which_there_is_no_line_are_but_noted() -> None:
    """Without the last, one round alone is of another amount."""
    work = np.array([1.0] * 18 + [2.0, 2.0])
    duration = work + 1e-4 * np.random.default_rng(10).normal(size=20)
    duration[-2:] += [-0.51, -0.49]
    fit = fit_wps(work, duration)
    notice = next(each for each in fit.notices if each.code is Code.OUTLYING_ROUNDS)
    assert fit.speed is not None
    assert notice.severity == "note"
    assert notice.evidence["outliers"] == 1


# --- The errors of lines: HC3 of statsmodels, where no autoregression is seen.


ESTIMATORS = ("ols", "weighted", "robust")


@pytest.fixture
def linear_model():
    """Return that of statsmodels, which the smallest environments of tests lack."""
    return pytest.importorskip("statsmodels.regression.linear_model")


def design_of(work: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(work.size), work])


def independent(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A line with noise that no autoregression is seen in."""
    for each in range(seed, seed + 100):
        rng = np.random.default_rng(each)
        work = rng.uniform(0.1, 1.0, n)
        duration = 0.2 + 0.8 * work + 0.01 * rng.normal(size=n)
        if fit_wps(work, duration).inflation == 1.0:
            return work, duration
    raise AssertionError("noise of every seed looks autocorrelated")


@pytest.mark.parametrize("n", [5, 12, 40])
def test_of_independent_noise_the_errors_are_hc3(linear_model, n: int) -> None:
    work, duration = independent(n, n)
    known = linear_model.OLS(duration, design_of(work)).fit(cov_type="HC3")
    fit = fit_wps(work, duration)
    assert (fit.overhead.value, fit.slope.value) == pytest.approx(tuple(known.params))
    assert (fit.overhead.standard_error, fit.slope.standard_error) == pytest.approx(
        tuple(known.bse)
    )


def test_a_weighted_fit_weights_by_the_inverse_square_of_the_fitted_values(linear_model) -> None:
    work, duration = independent(0, 30)
    fitted = linear_model.OLS(duration, design_of(work)).fit().fittedvalues
    known = linear_model.WLS(duration, design_of(work), weights=fitted**-2.0).fit(cov_type="HC3")
    found = fit_wps(work, duration, estimator="weighted").slope
    assert found.value == pytest.approx(known.params[1])
    assert found.standard_error is not None
    assert found.standard_error >= known.bse[1] * (1.0 - 1e-9)


def test_the_degrees_of_freedom_are_those_of_the_matrices() -> None:
    work = 0.1 + np.random.default_rng(1).uniform(0.0, 1.0, 15) ** 3
    design = design_of(work)
    found = fit_wps(work, np.random.default_rng(2).normal(10.0, 1.0, 15)).slope
    inverse = np.linalg.pinv(design)
    rest = np.eye(15) - design @ inverse
    inner = rest @ np.diag((inverse[1] / np.diag(rest)) ** 2) @ rest
    known = np.trace(inner) ** 2 / np.trace(inner @ inner)
    assert known < 13
    assert found.degrees_of_freedom == pytest.approx(known)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_errors_scale_with_the_durations(estimator: str) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        work = rng.uniform(0.1, 1.0, 20)
        duration = 1.0 + work + 0.1 * rng.normal(size=20)
        found, doubled = (
            fit_wps(work, factor * duration, estimator=estimator, checks=False).slope
            for factor in (1.0, 2.0)
        )
        assert found.standard_error is not None
        assert doubled.value == pytest.approx(2.0 * found.value, rel=1e-6)
        assert doubled.standard_error == pytest.approx(2.0 * found.standard_error, rel=1e-5)


def test_a_robust_fit_limits_the_pull_of_a_far_point_and_keeps_small_noise() -> None:
    work, duration = independent(0, 40)
    duration[np.argmax(work)] += 1.0
    fits: dict[str, WpsFit] = {each: fit_wps(work, duration, estimator=each) for each in ESTIMATORS}
    assert fits["ols"].slope.value > 0.9
    assert fits["robust"].slope.value == pytest.approx(0.8, abs=0.02)
    assert fits["robust"].slope.half_width < fits["ols"].slope.half_width / 5.0
    noise = 1e-11 * np.random.default_rng(0).normal(size=40)
    small = [fit_wps(work, 0.2 + 0.8 * work + noise, estimator=each) for each in ESTIMATORS]
    assert small[2].slope.half_width == pytest.approx(small[0].slope.half_width, rel=0.5)
