"""Intervals of restarted programs cover the truth as often as they claim."""

from collections.abc import Callable

import numpy as np
import pytest

from benchrigor.errors import NotEstimable
from benchrigor.model.series import Floats
from benchrigor.stats import estimate_invocations

pytestmark = [pytest.mark.slow, pytest.mark.minutes]  # CI runs the evidence that says the same


def lottery(rng: np.random.Generator, *, warm: bool) -> list[Floats]:
    levels = np.where(rng.random(10) < 0.25, 1.3, 1.0)
    fading = np.exp(-np.arange(200) / 15.0) if warm else 0.0
    return [level * (rng.normal(1.0, 0.05, 200) + fading) for level in levels]


def normal(rng: np.random.Generator, *, warm: bool) -> list[Floats]:
    step = 0.5 * (np.arange(200) < 30) if warm else 0.0
    return [rng.normal(level, 0.05, 200) + step for level in rng.normal(1.0, 0.02, 10)]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(("draw", "truth"), [(lottery, 1.075), (normal, 1.0)])
@pytest.mark.minutes
def test_intervals_cover_the_program(
    draw: Callable[..., list[Floats]], truth: float, warm: bool
) -> None:
    rng = np.random.default_rng(8)
    held = refused = 0
    for _ in range(75):
        try:
            found = estimate_invocations(draw(rng, warm=warm), trim=True)
        except NotEstimable:
            refused += 1
            continue
        held += found.low <= truth <= found.high
    # The exact chance of the lottery is 0.94: less than 64 of 75 has probability 0.002.
    assert refused <= 3
    assert held >= 64 - refused
