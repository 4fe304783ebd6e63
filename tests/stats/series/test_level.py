"""The level of a series beside its transients, and its standard error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.stats.series.level import fit_level

TRANSIENTS = (1 / 30, 1 / 7)
COMPLETE = (*TRANSIENTS, -1 / 24)


@pytest.mark.slow
@pytest.mark.parametrize("transients", [TRANSIENTS, COMPLETE])
def test_what_transients_take_up_is_given_back(transients: tuple[float, ...]) -> None:
    rng = np.random.default_rng([1_000, 150])
    every = [autoregressive(rng, 1_000) for _ in range(150)]
    plain = [fit_level(series).long_run_variance for series in every]
    beside = [fit_level(series, transients=transients).long_run_variance for series in every]
    # The ratio has a standard error of 2 %; without giving back it is 0.85 and less.
    assert np.mean(beside) / np.mean(plain) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("transients", [(), TRANSIENTS, COMPLETE])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_level_is_that_of_least_squares(transients: tuple[float, ...], scale: float) -> None:
    n = 400
    series = scale * (3.0 + autoregressive(np.random.default_rng([n, 1]), n, 0.5))
    centres = (np.arange(n) + 0.5) / n
    # Those below 0 grow towards the end, from which they are counted.
    basis = [np.exp(-(centres if each > 0.0 else centres[::-1]) / abs(each)) for each in transients]
    design = np.vstack([np.ones(n), *basis])
    weights, (square,), _, _ = np.linalg.lstsq(design.T, series)
    fit = fit_level(series, transients=transients)
    assert fit.level == pytest.approx(weights[0])
    assert fit.variance == pytest.approx(square / (n - 1 - len(transients)))
    factor = np.linalg.inv(design @ design.T)[0, 0]
    assert fit.standard_error == pytest.approx(np.sqrt(fit.long_run_variance * factor))


def test_a_cool_down_does_not_move_the_level() -> None:
    n = 1_200
    centres = (np.arange(n) + 0.5) / n
    series = 5.0 + np.exp((centres - 1.0) * 24.0)
    assert fit_level(series, transients=COMPLETE).level == pytest.approx(5.0, abs=1e-9)
    assert fit_level(series, transients=COMPLETE).transients == (40.0, n / 7, -50.0)
    assert fit_level(series, transients=TRANSIENTS).level > 5.01


@pytest.mark.parametrize("n", [50, 100, 1_000])
@pytest.mark.parametrize("times", [5.0, 20.0])
@pytest.mark.parametrize("last", [1, 3, 9])
def test_outliers_at_the_end_put_no_level_below_all_readings(
    n: int, last: int, times: float
) -> None:
    series = np.random.default_rng([20271127, n]).normal(1.0, 0.02, n)
    series[-last:] *= times
    fit = fit_level(series, transients=COMPLETE)
    assert fit.level > series.min() - 0.02
    assert fit.transients or fit.level == pytest.approx(series.mean())


def test_outliers_anywhere_leave_the_mean_of_levels_alone() -> None:
    rng, levels = np.random.default_rng(20271128), []
    for _ in range(400):
        series = np.where(rng.random(100) < 0.03, 5.0, 1.0) * rng.normal(1.0, 0.02, 100)
        levels.append(fit_level(series, transients=COMPLETE).level)
    assert np.mean(levels) == pytest.approx(1.12, abs=3.0 * np.std(levels) / 20.0)


def test_below_thirty_readings_there_are_neither_transients_nor_autocorrelation() -> None:
    series = autoregressive(np.random.default_rng([30, 1]), 30)
    few = fit_level(series[:29], transients=TRANSIENTS)
    assert (few.transients, few.degrees_of_freedom) == ((), 28.0)
    assert few.skewness == pytest.approx(scipy_stats.skew(series[:29]) / np.sqrt(29))
    assert few.standard_error == pytest.approx(series[:29].std(ddof=1) / np.sqrt(29))
    assert fit_level(series, transients=TRANSIENTS).transients == pytest.approx((1.0, 30 / 7))
