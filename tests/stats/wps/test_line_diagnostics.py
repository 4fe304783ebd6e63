"""Diagnostics of a work line."""

import numpy as np
import pytest

from benchrigor.model import Code, WpsFit
from benchrigor.stats import fit_wps


def fitted(work: np.ndarray, noise: float, *, overhead: float = 1.0) -> WpsFit:
    rng = np.random.default_rng(7)
    return fit_wps(work, overhead + work * (1.0 + noise * rng.normal(size=work.size)))


def shuffled(low: float, high: float, n: int = 40) -> np.ndarray:
    return np.random.default_rng(3).permutation(np.linspace(low, high, n))


@pytest.mark.parametrize(
    ("work", "noise"),
    [(shuffled(1.0, 10.0), 0.3), (shuffled(9.0, 10.0), 0.0001), (shuffled(5.0, 10.5, 10), 0.15)],
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
