"""How often a line is found to bend, growth is named, and rounds are found outlying."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.lines import CURVES, EXPONENTS, WORK

from benchrigor.model import Code, WpsFit
from benchrigor.stats import fit_wps

REPETITIONS = 50


@cache
def fits(curve: str, *, noise: float = 0.01) -> list[WpsFit]:
    rng = np.random.default_rng(1)
    level = 0.1 + CURVES[curve](WORK)
    return [fit_wps(WORK, level * (1.0 + noise * rng.normal(size=40))) for _ in range(REPETITIONS)]


@pytest.mark.parametrize("curve", CURVES)
def test_growth_is_named(curve: str) -> None:
    found = Counter(each.shape for each in fits(curve))
    assert found["other" if curve == "root" else curve] >= 45


@pytest.mark.parametrize("curve", EXPONENTS)
def test_the_interval_of_the_exponent_covers(curve: str) -> None:
    growths = [each.growth for each in fits(curve)]
    covered = sum(each.low <= EXPONENTS[curve] <= each.high for each in growths if each is not None)
    assert covered >= scipy_stats.binom.ppf(1e-3, REPETITIONS, 0.95)


def test_a_line_seldom_bends_significantly() -> None:
    found = fits("linear", noise=0.05)
    warned = sum(Code.NOT_LINEAR in {each.code for each in fit.notices} for fit in found)
    assert warned <= scipy_stats.binom.ppf(0.999, REPETITIONS, 0.01)
    bends = [fit.bend for fit in found]
    covered = sum(each.low <= 0.0 <= each.high for each in bends if each is not None)
    assert covered >= scipy_stats.binom.ppf(1e-3, REPETITIONS, 0.95)


@pytest.mark.parametrize("growing", [False, True])
def test_outlying_rounds_are_found_and_others_are_not(growing: bool) -> None:
    rng = np.random.default_rng(6)
    level = 0.3 + WORK / 1e6
    sizes = 0.03 * (level if growing else np.full(40, level.mean()))
    false = found = 0
    for _ in range(REPETITIONS):
        duration = level + sizes * rng.normal(size=40)
        false += fit_wps(WORK, duration).outliers != ()
        index = int(rng.integers(40))
        duration[index] = level[index] + 10.0 * sizes[index]
        found += index in fit_wps(WORK, duration).outliers
    assert false <= scipy_stats.binom.ppf(0.999, REPETITIONS, 0.02)
    assert found >= scipy_stats.binom.ppf(1e-3, REPETITIONS, 0.95)


@pytest.mark.parametrize("curve", ["n log n", "quadratic", "root"])
def test_rounds_along_a_smooth_curve_are_not_outlying_but_those_off_it_are(curve: str) -> None:
    rng = np.random.default_rng(11)
    level = 0.1 + CURVES[curve](WORK)
    false = found = 0
    for _ in range(30):
        duration = level * (1.0 + 0.005 * rng.normal(size=40))
        false += fit_wps(WORK, duration).outliers != ()
        duration[7] *= 1.1
        found += 7 in fit_wps(WORK, duration).outliers
    assert false <= scipy_stats.binom.ppf(0.999, 30, 0.03)
    assert found >= scipy_stats.binom.ppf(1e-3, 30, 0.95)


def test_an_interval_that_holds_both_is_linear_and_not_n_log_n() -> None:
    found = [each for each in fits("linear", noise=0.1) if each.growth is not None]
    n_log_n = 1.08
    both = [each for each in found if each.growth.low < 1.0 and each.growth.high > n_log_n]
    assert len(both) > 5
    assert {each.shape for each in both if each.growth.high - each.growth.low < 1.0} == {"linear"}
