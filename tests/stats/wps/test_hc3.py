import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS, WLS
from statsmodels.robust.robust_linear_model import RLM
from statsmodels.robust.scale import HuberScale

from benchrigor.stats.wps.hc3 import (
    coefficient_errors,
    noise_likelihoods,
    regress,
)

ESTIMATORS = ("ols", "weighted", "robust")
SLOPE = [[0.0, 1.0]]


def design_of(work: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(work.size), work - work.mean()])


def independent(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A line with noise that no autoregression is seen in."""
    for each in range(seed, seed + 100):
        rng = np.random.default_rng(each)
        work = rng.uniform(0.1, 1.0, n)
        duration = 0.2 + 0.8 * work + 0.01 * rng.normal(size=n)
        fit = regress(design_of(work), duration)
        if all(error.inflation == 1.0 for error in coefficient_errors(fit, np.eye(2))):
            return work, duration
    raise AssertionError("noise of every seed looks autocorrelated")


def test_the_scale_of_a_robust_fit_is_of_the_kind_that_every_statsmodels_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def estimate_scale(model: RLM, residuals: np.ndarray, *given: object) -> float:
        (scale,) = given or (model.scale_est,)  # an attribute in statsmodels 0.14
        assert isinstance(scale, HuberScale)  # which fails with a function
        return scale(model.df_resid, model.nobs, residuals)

    work, duration = independent(3, 40)
    duration[5] *= 3.0
    known = regress(design_of(work), duration, estimator="robust")
    monkeypatch.setattr(RLM, "_estimate_scale", estimate_scale)
    found = regress(design_of(work), duration, estimator="robust")
    assert found.coefficients == pytest.approx(known.coefficients)
    clean = regress(design_of(np.delete(work, 5)), np.delete(duration, 5))
    assert found.coefficients == pytest.approx(clean.coefficients, rel=0.02)


@pytest.mark.parametrize("n", [5, 12, 40])
def test_of_independent_noise_the_errors_are_hc3(n: int) -> None:
    work, duration = independent(n, n)
    known = OLS(duration, design_of(work)).fit(cov_type="HC3")
    errors = coefficient_errors(regress(design_of(work), duration), np.eye(2))
    assert [each.value for each in errors] == pytest.approx(known.params)
    assert [each.standard_error for each in errors] == pytest.approx(known.bse)


def test_a_weighted_fit_weights_by_the_inverse_square_of_the_fitted_values() -> None:
    work, duration = independent(0, 30)
    fitted = OLS(duration, design_of(work)).fit().fittedvalues
    known = WLS(duration, design_of(work), weights=fitted**-2.0).fit(cov_type="HC3")
    found = coefficient_errors(regress(design_of(work), duration, estimator="weighted"), SLOPE)[0]
    assert found.value == pytest.approx(known.params[1])
    assert found.standard_error >= known.bse[1] * (1.0 - 1e-9)


def test_the_degrees_of_freedom_are_those_of_the_matrices() -> None:
    work = np.random.default_rng(1).uniform(0.0, 1.0, 15) ** 3
    design = design_of(work)
    fit = regress(design, np.random.default_rng(2).normal(10.0, 1.0, 15))
    inverse = np.linalg.pinv(design)
    rest = np.eye(15) - design @ inverse
    inner = rest @ np.diag((inverse[1] / np.diag(rest)) ** 2) @ rest
    known = np.trace(inner) ** 2 / np.trace(inner @ inner)
    assert known < 13
    assert coefficient_errors(fit, SLOPE)[0].degrees_of_freedom == pytest.approx(known)


@pytest.mark.slow
@given(st.integers(0, 1000), st.integers(5, 30), st.sampled_from(ESTIMATORS))
def test_errors_are_never_below_hc3_and_scale_with_the_response(
    seed: int, n: int, estimator: str
) -> None:
    rng = np.random.default_rng(seed)
    design = design_of(rng.uniform(0.1, 1.0, n))
    response = 1.0 + design[:, 1] + 0.1 * rng.normal(size=n)
    fit = regress(design, response, estimator=estimator)
    found = coefficient_errors(fit, SLOPE)[0]
    scores = fit.inverse[1] * fit.residuals / (1.0 - fit.leverages)
    assert found.standard_error >= np.sqrt(scores @ scores) * (1.0 - 1e-12)
    assert found.inflation >= 1.0 - 1e-12
    doubled = coefficient_errors(regress(design, 2.0 * response, estimator=estimator), SLOPE)[0]
    assert doubled.value == pytest.approx(2.0 * found.value, rel=1e-6)
    assert doubled.standard_error == pytest.approx(2.0 * found.standard_error, rel=1e-5)


def test_a_robust_fit_limits_the_pull_of_a_far_point() -> None:
    work, duration = independent(0, 40)
    pulled = duration.copy()
    pulled[np.argmax(work)] += 1.0
    fits = {each: regress(design_of(work), pulled, estimator=each) for each in ESTIMATORS}
    assert fits["ols"].coefficients[1] > 0.9
    assert fits["robust"].coefficients[1] == pytest.approx(0.8, abs=0.02)
    assert fits["robust"].left_out.max() == pytest.approx(1.0, abs=0.05)
    errors = {each: coefficient_errors(fit, SLOPE)[0] for each, fit in fits.items()}
    assert errors["robust"].standard_error < errors["ols"].standard_error / 5.0


def test_a_robust_fit_keeps_small_noise() -> None:
    work = np.linspace(0.1, 1.0, 40)
    noise = 1e-11 * np.random.default_rng(0).normal(size=40)
    fit = regress(design_of(work), 0.2 + 0.8 * work + noise, estimator="robust")
    assert np.median(np.abs(fit.residuals)) == pytest.approx(0.6745e-11, rel=0.3)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_growth_of_noise_has_the_largest_likelihood(order: int, power: float) -> None:
    rng = np.random.default_rng(7)
    level = 0.1 + np.linspace(0.1, 1.0, 200)
    duration = level + 0.05 * level**power * rng.normal(size=200)
    likelihoods = noise_likelihoods(regress(design_of(level), duration), order=order)
    assert max(likelihoods, key=likelihoods.__getitem__) == power


@pytest.mark.slow
def test_what_is_loaded_beforehand_is_all_that_a_fit_needs() -> None:
    """Else the first look at a run would spend seconds of its budget on imports."""
    program = """
import sys
import numpy as np
from benchrigor.stats.wps.hc3 import load_statsmodels, regress

load_statsmodels()
before = set(sys.modules)
x = np.arange(9.0)
for estimator in ("ols", "weighted", "robust"):
    regress(np.column_stack([np.ones(9), x]), x + np.sin(37.0 * x), estimator=estimator)
print([name for name in set(sys.modules) - before if "." in name])
"""
    found = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert found.strip() == "[]"
