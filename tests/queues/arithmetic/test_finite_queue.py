"""Blocking against the plain recursion in many digits, closed forms, and simulated queues.

A bound on a simulation is left by chance about once in a thousand.
"""

import math

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats

from benchrigor.queues.arithmetic.finite_queue import FiniteQueue, fewest_places

utilisations = st.floats(0.01, 0.9999)
variations = st.sampled_from([0.0, 0.05, 0.5, 1.0, 2.0, 10.0])


def departures(utilisation: float, variation: float, number: int) -> list[mpmath.mpf]:
    """Return the chances that departures leave 0, 1, ... behind, over that of 0, in many digits."""
    rho, spread = mpmath.mpf(utilisation), mpmath.mpf(variation)
    a = [mpmath.exp(-rho) if not variation else (1 + spread * rho) ** (-1 / spread)]
    for k in range(number):
        a.append(a[-1] * rho * (1 + spread * k) / (1 + spread * rho) / (k + 1))
    q = [mpmath.mpf(1)]
    for j in range(number - 1):
        earlier = mpmath.fsum(q[i] * a[j - i + 1] for i in range(1, j + 1))
        q.append((q[j] - a[j] * q[0] - earlier) / a[0])
    return q


def shares_blocked(utilisation: float, variation: float, capacity: int) -> tuple[float, float]:
    """Return the shares of arrivals that are lost, and that wait or make wait, in many digits."""
    with mpmath.workdps(400):
        q = departures(utilisation, variation, capacity + 1)
        lost, more = (
            1 - 1 / (1 / mpmath.fsum(q[:number]) + mpmath.mpf(utilisation))
            for number in (capacity, capacity + 1)
        )
        return float(lost), float(max(q[capacity] / mpmath.fsum(q), more))


@pytest.mark.parametrize("utilisation", [0.02, 0.3, 0.8, 0.99, 1.0 - 1e-7])
@pytest.mark.parametrize("variation", [0.0, 1e-5, 0.04, 0.5, 1.0, 3.0, 100.0])
def test_blocking_agrees_with_the_recursion_in_many_digits(
    utilisation: float, variation: float
) -> None:
    queue = FiniteQueue.of(utilisation, variation)
    for capacity in (1, 2, 5, 30, 90):
        lost, blocked = shares_blocked(utilisation, variation, capacity)
        if lost > 1e-280:
            assert queue.lost(capacity) == pytest.approx(lost, rel=1e-12, abs=0.0)
            assert queue.blocked(capacity) == pytest.approx(blocked, rel=1e-12, abs=0.0)


@pytest.mark.slow
def test_the_chances_go_on_geometrically_behind_the_listed_ones() -> None:
    queue = FiniteQueue.of(0.97, 0.0)
    assert queue.chances.size < 60
    lost, blocked = shares_blocked(0.97, 0.0, 400)
    assert queue.lost(400) == pytest.approx(lost, rel=1e-11)
    assert queue.blocked(400) == pytest.approx(blocked, rel=1e-11)


@pytest.mark.parametrize("utilisation", [0.05, 0.5, 0.9, 1.0 - 1e-9])
@pytest.mark.parametrize("capacity", [1, 2, 7, 100, 5000])
def test_exponential_service_blocks_as_by_the_closed_form(
    utilisation: float, capacity: int
) -> None:
    with mpmath.workdps(60):
        rho = mpmath.mpf(utilisation)
        wanted = float(1 / mpmath.fsum(rho ** (i - capacity) for i in range(capacity + 1)))
    queue = FiniteQueue.of(utilisation, 1.0)
    assert queue.lost(capacity) == pytest.approx(wanted, rel=1e-9)
    assert queue.blocked(capacity) == pytest.approx(wanted, rel=1e-9)


def test_before_uneven_service_the_share_of_time_spent_waiting_counts() -> None:
    rng = np.random.default_rng(74)
    utilisation, variation, capacity, runs = 0.5, 4.0, 3, 400
    leaves = np.zeros((runs, capacity))
    now, waited = np.zeros(runs), np.zeros(runs)
    rows = np.arange(runs)
    for _ in range(2000):
        now = now + rng.exponential(1.0 / utilisation, runs)
        room = leaves.min(axis=1)
        waited += np.maximum(room - now, 0.0)
        now = np.maximum(now, room)
        served = np.maximum(now, leaves.max(axis=1)) + rng.gamma(1.0 / variation, variation, runs)
        leaves[rows, leaves.argmin(axis=1)] = served
    wanted = FiniteQueue.of(utilisation, variation).blocked(capacity)
    assert scipy_stats.ttest_1samp(waited / now, wanted).pvalue > 1e-3


@pytest.mark.parametrize("utilisation", [0.0, 1e-300, 1e-8, 1.0 - 2.0**-53])
@pytest.mark.parametrize("variation", [0.0, 1e-9, 0.3, 100.0])
@pytest.mark.parametrize("capacity", [1, 2, 300, 10**6])
def test_extremes_stay_in_range(utilisation: float, variation: float, capacity: int) -> None:
    queue = FiniteQueue.of(utilisation, variation)
    assert 0.0 <= queue.lost(capacity) <= 1.0
    assert 0.0 <= queue.blocked(capacity) <= 1.0


def room_needed(times: npt.NDArray[np.float64], load: float, share: float) -> int:
    """Follow the chain of equally likely service times until few enough arrivals wait."""
    scaled = load * times / times.mean()
    more = [float(special.gammainc(k, scaled).mean()) for k in range(1, 101)]
    none = float(np.exp(-scaled).mean())
    chances = [1.0]
    while True:
        j = len(chances) - 1
        total = more[j] + math.fsum(chances[i] * more[j - i + 1] for i in range(1, j + 1))
        chances.append(total / none)
        if chances[-1] / math.fsum(chances) <= share:
            return j + 1


SHARES = (np.arange(4000) + 0.5) / 4000.0


@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    "times",
    [
        SHARES,
        1.0 - 0.5 * np.log1p(-SHARES),
        np.exp(0.6 * special.ndtri(SHARES)),
        np.where(SHARES < 0.5, 0.1, 1.9),
    ],
    ids=["uniform", "shifted exponential", "lognormal", "two-valued"],
)
def test_other_service_times_of_the_same_variation_need_the_same_room_within_one_item(
    times: npt.NDArray[np.float64], load: float
) -> None:
    variation = float(times.var() / times.mean() ** 2)
    enough = fewest_places(load, variation, 0.01, waits=True)
    assert enough is not None
    assert abs(enough - room_needed(times, load, 0.01)) <= 1


@given(st.floats(0.01, 0.99), variations, st.floats(1e-6, 0.5), st.booleans())
def test_the_fewest_places_are_the_first_that_are_enough(
    utilisation: float, variation: float, share: float, waits: bool
) -> None:
    queue = FiniteQueue.of(utilisation, variation)
    blocked = queue.blocked if waits else queue.lost
    enough = fewest_places(utilisation, variation, share, waits=waits)
    assert enough is not None
    assert blocked(enough) <= share
    assert enough == 1 or blocked(enough - 1) > share


def test_the_search_for_places_ends_at_a_million() -> None:
    assert fewest_places(1.0 - 1e-9, 1.0, 0.99e-6, waits=False) is None
    assert fewest_places(1.0 - 1e-9, 1.0, 1.01e-6, waits=False) is not None
