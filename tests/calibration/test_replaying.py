"""Replayed sessions hold the final value as often as they claim; plain t does not."""

import pytest
from scipy import stats
from simulated.series import noise

from benchrigor.session import replay

pytestmark = pytest.mark.slow


def test_intervals_of_sessions_hold_and_those_of_plain_t_do_not() -> None:
    held = {"benchrigor": 0, "plain t": 0}
    for seed in range(75):
        shown = replay(noise(1500, seed=seed, phi=0.5), judges=list(held), target=0.03)
        for each in shown.rulings:
            held[each.name] += each.held is True
    # 0.95 of 75 within a chance of 1e-4; plain t stops on a lucky small variance.
    assert stats.binom.cdf(held["benchrigor"], 75, 0.95) > 1e-4
    assert held["plain t"] < 0.8 * 75
