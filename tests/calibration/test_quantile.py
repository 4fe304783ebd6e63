"""Intervals of quantiles cover the true one as often as they claim."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.errors import NotEstimable
from benchrigor.stats import estimate_quantile
from benchrigor.stats.estimators.order_statistics import quantile_of
from benchrigor.stats.series.level import TRANSIENTS

pytestmark = [pytest.mark.slow, pytest.mark.minutes]  # CI runs the evidence that says the same

BOTH = pytest.mark.parametrize("transients", [(), TRANSIENTS], ids=["plain", "transients"])
Series = np.ndarray
Draw = Callable[[np.random.Generator, int], Series]


def switching(rng: np.random.Generator, n: int) -> Series:
    """Two modes, 1 (55 %) and 1.9, kept for ten readings on average before a new draw."""
    fresh = rng.random(n) < 0.1
    fresh[0] = True
    drawn = np.where(rng.random(n) < 0.55, 1.0, 1.9)
    kept = np.maximum.accumulate(np.where(fresh, np.arange(n), 0))
    return drawn[kept] + rng.normal(0.0, 0.05, n)


def white(rng: np.random.Generator, n: int) -> Series:
    return rng.normal(size=n)


SWITCHING = {
    # F(x) = 0.55 Phi((x - 1) / 0.05) as far as the second mode is out of reach
    q: 1.0 + 0.05 * float(scipy_stats.norm.ppf(q / 0.55))
    for q in (0.1, 0.5)
}
NORMAL = {q: float(scipy_stats.norm.ppf(q)) for q in (0.1, 0.5, 0.9, 0.99)}


def coverage(
    draw: Draw, truth: float, q: float, transients: tuple[float, ...], repetitions: int
) -> int:
    hits = 0
    for repetition in range(repetitions):
        values = draw(np.random.default_rng([44, repetition]), 1000)
        found = quantile_of(values, q, 0.95, transients=transients)
        hits += found.low <= truth <= found.high
    return hits


@BOTH
@pytest.mark.parametrize(
    ("draw", "q", "truth"),
    [
        (white, 0.1, NORMAL[0.1]),
        (white, 0.5, NORMAL[0.5]),
        (autoregressive, 0.5, NORMAL[0.5]),
        (switching, 0.1, SWITCHING[0.1]),
        (switching, 0.5, SWITCHING[0.5]),
    ],
)
def test_the_interval_covers(
    draw: Draw, q: float, truth: float, transients: tuple[float, ...]
) -> None:
    hits = coverage(draw, truth, q, transients, 150)
    # In 1000 repetitions of other seeds the shares lay between 0.92 and 0.98.
    lowest, highest = (
        int(scipy_stats.binom.ppf(p, 150, s)) for p, s in ((1e-3, 0.93), (0.999, 0.98))
    )
    assert lowest <= hits <= highest


def test_a_tenth_of_persistent_readings_is_seldom_refused_and_then_covered() -> None:
    hits = refused = 0
    for repetition in range(200):
        values = autoregressive(np.random.default_rng([46, repetition]), 1000)
        try:
            found = estimate_quantile(values, 0.1)
        except NotEstimable:
            refused += 1
            continue
        hits += found.low <= NORMAL[0.1] <= found.high
    assert refused <= 12  # chance at a share of 0.025: 0.002
    assert hits >= 0.9 * (200 - refused)


def test_trimming_withstands_a_warm_up() -> None:
    answered, hits, widths = 0, 0, []
    for repetition in range(60):
        rng = np.random.default_rng([45, repetition])
        values = 1.0 + 0.15 * white(rng, 1000)
        warming = values + np.exp(-np.arange(1000.0) / 25.0)
        try:
            found = estimate_quantile(warming, 0.9, trim=True)
        except NotEstimable:
            continue
        answered += 1
        hits += found.low <= 1.0 + 0.15 * NORMAL[0.9] <= found.high
        widths.append(found.half_width / estimate_quantile(values, 0.9).half_width)
    assert answered >= 57
    assert hits >= answered - 9  # chance at a coverage of 0.95: 0.001
    assert 1.1 < np.median(widths) < 1.6
