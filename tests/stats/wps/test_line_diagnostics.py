"""Diagnostics of a work line."""

import numpy as np
import pytest

from benchrigor.model import Code, WpsFit
from benchrigor.stats import fit_wps


def fitted(work: np.ndarray, noise: float, *, overhead: float = 1.0) -> WpsFit:
    rng = np.random.default_rng(7)
    return fit_wps(work, overhead + work * (1.0 + noise * rng.normal(size=work.size)))


def said(fit: WpsFit) -> set[Code]:
    return {notice.code for notice in fit.notices}


def shuffled(low: float, high: float, n: int = 40) -> np.ndarray:
    return np.random.default_rng(3).permutation(np.linspace(low, high, n))


def test_a_line_through_steady_rounds_has_no_notice() -> None:
    assert said(fitted(shuffled(1.0, 10.0), 0.01)) == set()


@pytest.mark.parametrize(
    ("work", "noise"),
    [(shuffled(1.0, 10.0), 0.3), (shuffled(9.0, 10.0), 0.0001), (shuffled(5.0, 10.5, 10), 0.15)],
    ids=["poor prediction", "amounts too alike", "speed hardly known"],
)
def test_poor_prediction_wide_intervals_and_similar_amounts_are_warned_of(
    work: np.ndarray, noise: float
) -> None:
    fit = fitted(work, noise)
    (notice,) = [each for each in fit.notices if each.code is Code.WPS_DOUBTFUL]
    evidence = notice.evidence
    assert evidence["spread"] == pytest.approx(work.max() / work.min())
    assert evidence["prediction_error"] == fit.prediction_error
    assert (
        fit.prediction_error > 0.1
        or float(str(evidence["relative_half_width"])) > 0.25
        or work.max() < 2.0 * work.min()
    )


def test_few_rounds_and_exact_ones_are_warned_of() -> None:
    assert Code.FEW_READINGS in said(fitted(shuffled(1.0, 10.0, 9), 0.01))
    assert Code.FEW_READINGS not in said(fitted(shuffled(1.0, 10.0, 10), 0.01))
    assert Code.CONSTANT in said(fitted(shuffled(1.0, 10.0), 0.0))


def test_noise_without_work_is_no_speed() -> None:
    rng = np.random.default_rng(1)
    fit = fit_wps(shuffled(1.0, 10.0), rng.uniform(1.0, 2.0, 40))
    assert fit.speed is None
    assert Code.NO_SPEED in said(fit)
