"""Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.lines import bisecting, ramp

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice
from benchrigor.stats import autocorrelation, fit_wps

ESTIMATORS = ("ols", "weighted", "robust")
SPEED, OVERHEAD = 5e6, 0.4


def rounds(seed: int = 0, n: int = 40, noise: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    work = 1e7 * bisecting(n)
    return work, OVERHEAD + work / SPEED + noise * rng.normal(size=n)


def codes(notices: tuple[Notice, ...]) -> set[Code]:
    return {each.code for each in notices}


@given(st.floats(0.0, 100.0), st.integers(0, 50))
def test_time_added_to_every_round_moves_the_overhead_alone(extra: float, seed: int) -> None:
    work, duration = rounds(seed, 12)
    fit, moved = fit_wps(work, duration), fit_wps(work, duration + extra)
    assert moved.slope.value == pytest.approx(fit.slope.value, rel=1e-6)
    assert moved.overhead.value == pytest.approx(fit.overhead.value + extra, rel=1e-6)


@example([0, 20, 20, 1, 8], 0)  # a leverage that rounds to 1
@given(st.lists(st.integers(0, 20), min_size=3, max_size=15), st.integers(0, 1000))
def test_whatever_the_amounts_the_fit_is_finite_or_refused(powers: list[int], seed: int) -> None:
    work = 1e280 * 10.0 ** np.array(powers)
    duration = np.random.default_rng(seed).lognormal(0.0, 3.0, work.size)
    try:
        fit = fit_wps(work, duration)
    except NotEstimable:
        return
    for each in (fit.speed, fit.slope, fit.overhead, fit.bend, fit.growth):
        if each is not None:
            assert np.isfinite([each.value, each.low, each.high]).all()
            assert each.low <= each.value <= each.high
    assert math.isfinite(fit.naive_speed)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rounds_exactly_on_a_line_have_an_interval_without_width(estimator: str) -> None:
    work = 1e7 * bisecting(12)
    fit = fit_wps(work, OVERHEAD + work / SPEED, estimator=estimator)
    assert fit.speed is not None
    assert fit.speed.low == fit.speed.high == fit.speed.value == pytest.approx(SPEED)
    assert codes(fit.speed.notices) == {Code.CONSTANT}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("constant", [0.05, 0.0624, 2.0, 5.0, 1e9])
def test_durations_that_are_all_alike_give_no_speed(constant: float, estimator: str) -> None:
    for n in (3, 5, 12, 29, 200):
        fit = fit_wps(range(1, n + 1), [constant] * n, estimator=estimator)
        assert (fit.speed, fit.bend, fit.growth, fit.shape, fit.outliers) == (*[None] * 4, ())
        assert fit.slope.value == fit.slope.low == fit.slope.high == 0.0
        assert fit.overhead.value == pytest.approx(constant)
        said = codes(fit.notices)
        assert {Code.NO_SPEED, Code.CONSTANT} <= said
        assert said <= {Code.NO_SPEED, Code.CONSTANT, Code.FEW_READINGS, Code.RAMP}


def test_a_slight_rise_is_a_speed() -> None:
    work = 1e7 * bisecting(12)
    fit = fit_wps(work, 5.0 + 1e-11 * work / work.max())
    assert fit.slope.value * work.max() == pytest.approx(1e-11, rel=1e-3)


def test_a_speed_beyond_every_float_stays_finite() -> None:
    work, duration = rounds(n=12)
    fit = fit_wps(work / work.max() * 1e300, duration * 1e-30)
    assert fit.speed is not None
    assert 1e300 < fit.speed.low <= fit.speed.high < math.inf


def test_without_checks_nothing_else_changes() -> None:
    work, duration = rounds(noise=0.05)
    duration = duration + 2.0 * (work / 1e7) ** 2
    duration[7] += 1.0
    fit, quick = fit_wps(work, duration), fit_wps(work, duration, checks=False)
    left_out = {Code.NOT_LINEAR, Code.OUTLYING_ROUNDS}
    assert left_out <= codes(fit.notices)
    rest = tuple(each for each in fit.notices if each.code not in left_out)
    assert fit.speed is not None
    checked = {"bend": None, "growth": None, "shape": None, "outliers": ()}
    speed = replace(fit.speed, notices=rest)
    assert quick == replace(fit, speed=speed, notices=rest, **checked)


def test_the_prediction_error_is_that_of_rounds_left_out() -> None:
    work, duration = rounds(n=12, noise=0.1)
    errors = []
    for each in range(12):
        rest = fit_wps(np.delete(work, each), np.delete(duration, each))
        errors.append(duration[each] - rest.overhead.value - work[each] * rest.slope.value)
    known = np.sqrt(np.mean(np.square(errors))) / duration.mean()
    assert fit_wps(work, duration).prediction_error == pytest.approx(known)


def in_order(order: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rounds on a ramp, or those with the same noise in turn low and high."""
    work, duration = ramp(0)
    if order == "ramp":
        return work, duration
    shuffled = 0.1 + 3.9 * bisecting(100)
    return shuffled, duration - work + shuffled


@pytest.mark.parametrize("order", ["ramp", "bisecting"])
def test_subsessions_leave_the_line_to_all_rounds(order: str) -> None:
    work, duration = in_order(order)
    fit, plain = fit_wps(work, duration, method="subsessions"), fit_wps(work, duration)
    assert fit.merged > 1
    assert (fit.n, fit.slope.n, fit.slope.method) == (100, 100, "wps-subsessions")
    assert (fit.slope.value, fit.overhead.value) == (plain.slope.value, plain.overhead.value)
    # In turn low and high amounts meet the same noise, so that it cancels; on a ramp it adds up.
    ratio = fit.slope.half_width / plain.slope.half_width
    assert (0.2 < ratio < 1.0) if order == "bisecting" else (0.6 < ratio < 1.6)
    assert (fit.inflation > 2.0) == (order == "ramp")


def test_the_standard_error_is_how_the_line_moves_without_each_subsession() -> None:
    work, duration = ramp(0)
    fit = fit_wps(work, duration, method="subsessions", confidence=0.9)
    groups = np.minimum(np.arange(100) // fit.merged, 100 // fit.merged - 1)
    lines = [np.polyfit(work[groups != each], duration[groups != each], 1) for each in set(groups)]
    moves = np.array(lines) - np.polyfit(work, duration, 1)
    count = len(moves)
    slope, overhead = np.sqrt((count - 1) / count * np.sum(moves**2, axis=0))
    assert fit.slope.standard_error == pytest.approx(slope, rel=1e-9)
    assert fit.overhead.standard_error == pytest.approx(overhead, rel=1e-9)
    assert fit.slope.degrees_of_freedom == count - 2


@pytest.mark.parametrize("order", ["ramp", "bisecting"])
def test_merged_subsessions_are_the_line_through_mean_pairs(order: str) -> None:
    work, duration = in_order(order)
    fit = fit_wps(work, duration, method="merged-subsessions")
    assert (fit.n, fit.slope.method) == (100, "wps-merged-subsessions")
    assert fit.merged > 1
    h = 100 // fit.merged
    pairs = [each[: h * fit.merged].reshape(h, -1).mean(axis=1) for each in (work, duration)]
    expected = scipy_stats.linregress(*pairs)
    assert fit.slope.value == pytest.approx(expected.slope)
    assert fit.slope.standard_error == pytest.approx(expected.stderr)
    assert fit.overhead.standard_error == pytest.approx(expected.intercept_stderr)
    assert fit.slope.degrees_of_freedom == h - 2
    times = (duration / work)[: h * fit.merged].reshape(h, -1).mean(axis=1)
    assert abs(autocorrelation(times)) <= 0.1


@pytest.mark.parametrize("few", [4, 20])
def test_shuffled_rounds_of_two_amounts_are_no_ramp(few: int) -> None:
    rng = np.random.default_rng(6)
    work = np.repeat([1.0, 2.0], [few, 40 - few])
    orders = [rng.permutation(work) for _ in range(200)]
    durations = 1.0 + 0.01 * rng.normal(size=40)
    fits = [fit_wps(each, each + durations, checks=False) for each in orders]
    assert sum(Code.RAMP in codes(each.notices) for each in fits) <= 1
