"""Blocking against closed forms, brute force in many digits, and simulated queues.

A bound on a simulation is left by chance about once in a thousand.
"""

import math
from functools import cache

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats

from benchrigor.errors import InvalidInput
from benchrigor.stats.service.mg1k import (
    MOST_VARIATION,
    fewest_places,
    follow,
    md1k_blocking,
    mg1k_blocking,
    mg1k_waiting,
    mm1k_blocking,
)

utilisations = st.floats(0.01, 3.0)
variations = st.sampled_from([0.0, 0.05, 0.5, 1.0, 2.0, 10.0])
places = st.integers(1, 60)
SLACK = 1e-12


@cache
def chances(utilisation: float, variation: float, count: int) -> list[mpmath.mpf]:
    """Chances of 0, 1, ... arrivals during one service, in many digits."""
    rho, spread = mpmath.mpf(utilisation), mpmath.mpf(variation)
    found = [mpmath.exp(-rho) if not variation else (1 + spread * rho) ** (-1 / spread)]
    for k in range(count):
        ratio = rho * (1 + spread * k) / (1 + spread * rho) / (k + 1)
        found.append(found[-1] * ratio)
    return found


def departures(utilisation: float, variation: float, places: int) -> list[mpmath.mpf]:
    """Solve for what departures leave behind by the plain recursion, in many digits."""
    a = chances(utilisation, variation, places)
    q = [mpmath.mpf(1)]
    for j in range(places - 1):
        earlier = mpmath.fsum(q[i] * a[j - i + 1] for i in range(1, j + 1))
        q.append((q[j] - a[j] * q[0] - earlier) / a[0])
    whole = mpmath.fsum(q)
    return [each / whole for each in q]


@pytest.mark.parametrize("utilisation", [0.05, 0.5, 0.9, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 1.5, 30.0])
@pytest.mark.parametrize("capacity", [1, 2, 7, 100, 5000])
def test_exponential_service_blocks_as_by_the_closed_form(
    utilisation: float, capacity: int
) -> None:
    with mpmath.workdps(60):
        rho = mpmath.mpf(utilisation)
        wanted = 1 / mpmath.fsum(rho ** (i - capacity) for i in range(capacity + 1))
    assert mm1k_blocking(utilisation, capacity) == pytest.approx(float(wanted), rel=1e-11, abs=0.0)


@pytest.mark.parametrize(
    "utilisation", [0.02, 0.3, 0.8, 0.99, 1.0 - 1e-7, 1.0, 1.0 + 1e-7, 1.3, 8.0]
)
@pytest.mark.parametrize("variation", [0.0, 1e-5, 0.04, 0.5, 1.0, 3.0, 100.0])
def test_blocking_agrees_with_the_recursion_in_many_digits(
    utilisation: float, variation: float
) -> None:
    with mpmath.workdps(400):
        for capacity in (1, 2, 5, 30, 90):
            pi = departures(utilisation, variation, capacity + 1)
            lost = 1 - 1 / (1 / mpmath.fsum(pi[:capacity]) * pi[0] + mpmath.mpf(utilisation))
            if lost < 1e-280:
                continue
            assert mg1k_blocking(utilisation, capacity, variation=variation) == pytest.approx(
                float(lost), rel=1e-12, abs=0.0
            )
            assert mg1k_waiting(utilisation, capacity, variation=variation) == pytest.approx(
                float(pi[capacity]), rel=1e-12, abs=0.0
            )


@pytest.mark.parametrize("utilisation", [0.3, 0.9, 1.2])
def test_constant_service_blocks_as_worked_out_by_hand(utilisation: float) -> None:
    none = math.exp(-utilisation)
    assert md1k_blocking(utilisation, 1) == pytest.approx(utilisation / (1.0 + utilisation))
    assert md1k_blocking(utilisation, 2) == pytest.approx(1.0 - 1.0 / (none + utilisation))
    # 1 + (1 - a_0)/a_0 + (q_1 (1 - a_1) - a_1)/a_0 with a_1 = rho a_0
    first = (1.0 - none) / none
    second = (first - utilisation * none * (1.0 + first)) / none
    empty = 1.0 / (1.0 + first + second)
    assert md1k_blocking(utilisation, 3) == pytest.approx(1.0 - 1.0 / (empty + utilisation))


def solved(utilisation: float, places: int) -> float:
    """Solve the embedded chain of M/D/1/K as linear equations."""
    weights = scipy_stats.poisson.pmf(np.arange(places + 1), utilisation)
    moves = np.zeros((places, places))
    for left in range(places):
        start = max(left - 1, 0)
        room = places - 1 - start
        moves[left, start : places - 1] = weights[:room]
        moves[left, places - 1] = 1.0 - weights[:room].sum()
    equations = np.vstack([moves.T - np.eye(places), np.ones(places)])
    wanted = np.concatenate([np.zeros(places), [1.0]])
    pi = np.linalg.lstsq(equations, wanted, rcond=None)[0]
    return float(1.0 - 1.0 / (pi[0] + utilisation))


@pytest.mark.parametrize("utilisation", [0.4, 0.8, 1.0, 1.4])
@pytest.mark.parametrize("capacity", [2, 4, 9, 40])
def test_constant_service_blocks_as_by_a_linear_solve(utilisation: float, capacity: int) -> None:
    wanted = solved(utilisation, capacity)
    assert md1k_blocking(utilisation, capacity) == pytest.approx(wanted, rel=1e-8, abs=1e-13)


def found_full(
    utilisation: float, variation: float, places: int, *, waits: bool, seed: int
) -> npt.NDArray[np.bool_]:
    """Simulate many queues at once, and say of each whether its last arrival found it full."""
    rng = np.random.default_rng(seed)
    runs, arrivals = 10_000, 80
    leaves = np.zeros((runs, places))
    now = np.zeros(runs)
    rows = np.arange(runs)
    full = np.zeros(runs, dtype=bool)
    for _ in range(arrivals):
        now = now + rng.exponential(1.0 / utilisation, runs)
        took = rng.gamma(1.0 / variation, variation, runs) if variation else np.ones(runs)
        full = leaves.min(axis=1) > now
        if waits:
            now = np.where(full, leaves.min(axis=1), now)
        served = np.maximum(now, leaves.max(axis=1)) + took
        slots = leaves.argmin(axis=1)
        enters = np.ones(runs, dtype=bool) if waits else ~full
        leaves[rows, slots] = np.where(enters, served, leaves[rows, slots])
    return full


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("utilisation", "variation", "capacity"),
    [(0.8, 0.0, 3), (0.6, 0.0, 2), (0.8, 1.0, 4), (0.7, 0.25, 3), (0.5, 4.0, 3), (1.2, 0.0, 4)],
)
def test_simulated_queues_are_full_as_often(
    utilisation: float, variation: float, capacity: int, waits: bool
) -> None:
    full = found_full(utilisation, variation, capacity, waits=waits, seed=73)
    formula = mg1k_waiting if waits else mg1k_blocking
    wanted = formula(utilisation, capacity, variation=variation)
    least, most = scipy_stats.binom.ppf([5e-4, 0.9995], full.size, wanted)
    assert least <= full.sum() <= most


def test_who_waits_does_so_for_the_share_of_time_that_one_place_more_would_block() -> None:
    rng = np.random.default_rng(74)
    utilisation, capacity, runs = 0.9, 3, 400
    leaves = np.zeros((runs, capacity))
    now, waited = np.zeros(runs), np.zeros(runs)
    rows = np.arange(runs)
    for _ in range(2000):
        now = now + rng.exponential(1.0 / utilisation, runs)
        room = leaves.min(axis=1)
        waited += np.maximum(room - now, 0.0)
        now = np.maximum(now, room)
        leaves[rows, leaves.argmin(axis=1)] = np.maximum(now, leaves.max(axis=1)) + 1.0
    wanted = md1k_blocking(utilisation, capacity + 1)
    assert scipy_stats.ttest_1samp(waited / now, wanted).pvalue > 1e-3


@given(utilisations, places, variations)
def test_more_room_blocks_less(utilisation: float, capacity: int, variation: float) -> None:
    chain = follow(utilisation, variation)
    assert chain.lost(capacity + 1) <= chain.lost(capacity) * (1.0 + SLACK)
    assert chain.waiting(capacity + 1) <= chain.waiting(capacity) * (1.0 + SLACK)


@given(utilisations, utilisations, places, variations)
def test_more_arrivals_are_blocked_more(
    one: float, other: float, capacity: int, variation: float
) -> None:
    low, high = (follow(each, variation) for each in sorted((one, other)))
    assert low.lost(capacity) <= high.lost(capacity) * (1.0 + SLACK)
    assert low.waiting(capacity) <= high.waiting(capacity) * (1.0 + SLACK)


@given(utilisations, places)
def test_constant_service_blocks_less_than_exponential(utilisation: float, capacity: int) -> None:
    most = mm1k_blocking(utilisation, capacity)
    assert md1k_blocking(utilisation, capacity) <= most * (1.0 + SLACK)


@given(utilisations, places, st.floats(0.0, 20.0), st.floats(0.0, 20.0))
def test_steadier_service_blocks_less(
    utilisation: float, capacity: int, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert mg1k_blocking(utilisation, capacity, variation=low) <= mg1k_blocking(
        utilisation, capacity, variation=high
    ) * (1.0 + 1e-9)


@given(utilisations, places)
def test_exponential_service_blocks_alike_whether_who_comes_waits_or_goes(
    utilisation: float, capacity: int
) -> None:
    wanted = mm1k_blocking(utilisation, capacity)
    assert mg1k_blocking(utilisation, capacity, variation=1.0) == pytest.approx(wanted, rel=1e-11)
    assert mg1k_waiting(utilisation, capacity, variation=1.0) == pytest.approx(wanted, rel=1e-11)


@given(utilisations, variations)
def test_with_one_place_only_the_mean_of_the_service_times_matters(
    utilisation: float, variation: float
) -> None:
    found = mg1k_blocking(utilisation, 1, variation=variation)
    assert found == pytest.approx(utilisation / (1.0 + utilisation))


@given(st.floats(1.05, 1e6), variations)
def test_no_room_helps_a_saturated_stage(utilisation: float, variation: float) -> None:
    least = 1.0 - 1.0 / utilisation
    assert mg1k_blocking(utilisation, 10**6, variation=variation) == pytest.approx(least, rel=1e-4)
    assert mm1k_blocking(utilisation, 10**6) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("utilisation", [1e-150, 1e-8, 40.0, 900.0, 1e9, 1e150])
@pytest.mark.parametrize("variation", [0.0, 1e-9, 0.3, 1.0, MOST_VARIATION])
@pytest.mark.parametrize("capacity", [1, 2, 300, 10**9])
def test_extremes_stay_in_range(utilisation: float, variation: float, capacity: int) -> None:
    lost = mg1k_blocking(utilisation, capacity, variation=variation)
    waits = mg1k_waiting(utilisation, capacity, variation=variation)
    assert max(0.0, 1.0 - 1.0 / utilisation) - SLACK <= lost <= 1.0
    assert 0.0 <= waits <= 1.0


def test_beyond_the_states_followed_the_series_goes_on_as_a_chain_followed_further() -> None:
    with mpmath.workdps(100):
        pi = departures(0.97, 0.0, 401)
        lost = 1 - 1 / (pi[0] / mpmath.fsum(pi[:400]) + mpmath.mpf("0.97"))
    assert follow(0.97, 0.0).states.size < 60
    assert md1k_blocking(0.97, 400) == pytest.approx(float(lost), rel=1e-12)
    assert mg1k_waiting(0.97, 400, variation=0.0) == pytest.approx(float(pi[400]), rel=1e-12)


def test_nobody_who_comes_is_nobody_blocked() -> None:
    assert mm1k_blocking(0.0, 1) == md1k_blocking(0.0, 1) == 0.0
    assert mg1k_waiting(0.0, 1, variation=0.5) == mg1k_blocking(0.0, 1, variation=0.5) == 0.0
    assert mg1k_waiting(0.0, 40, variation=0.5) == mg1k_blocking(1e-300, 40, variation=0.5) == 0.0


def arrivals_in(
    times: npt.NDArray[np.float64], load: float, count: int
) -> tuple[float, list[float]]:
    """Chances of no arrival and of 1, 2, ... or more, for equally likely service times."""
    scaled = load * times / times.mean()
    more = [float(special.gammainc(k, scaled).mean()) for k in range(1, count + 1)]
    return float(np.exp(-scaled).mean()), more


def room_needed(times: npt.NDArray[np.float64], load: float, share: float) -> int:
    """Follow the chain of any service times until few enough arrivals wait."""
    none, more = arrivals_in(times, load, 100)
    states = [1.0]
    while True:
        j = len(states) - 1
        total = more[j] + math.fsum(states[i] * more[j - i + 1] for i in range(1, j + 1))
        states.append(total / none)
        if states[-1] / math.fsum(states) <= share:
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
    found = fewest_places(follow(load, variation).waiting, 0.01, 1000)
    assert found is not None
    assert abs(found - room_needed(times, load, 0.01)) <= 1


@given(st.floats(0.01, 0.99), variations, st.floats(1e-6, 0.5))
def test_the_fewest_places_are_the_first_that_do(
    utilisation: float, variation: float, share: float
) -> None:
    blocking = follow(utilisation, variation).lost
    found = fewest_places(blocking, share, 10**6)
    assert found is not None
    assert blocking(found) <= share
    assert found == 1 or blocking(found - 1) > share


def test_the_search_for_places_ends() -> None:
    assert fewest_places(lambda count: 1.0 / count, 0.001, 999) is None
    assert fewest_places(lambda count: 1.0 / count, 0.001, 1000) == 1000
    assert fewest_places(lambda count: 1.0 / count, 1.0, 1) == 1


@pytest.mark.parametrize(
    ("utilisation", "capacity", "variation", "said"),
    [
        (math.nan, 3, 0.0, "utilisation is nan, expected a number of at least 0"),
        (-0.5, 3, 0.0, "utilisation is -0.5"),
        ("0.5", 3, 0.0, "utilisation is '0.5'"),
        (0.5, 0, 0.0, "places is 0, expected a whole number of at least 1"),
        (0.5, 3.0, 0.0, "places is 3.0"),
        (0.5, None, 0.0, "places is None"),
        (0.5, 3, -1.0, "variation is -1.0, expected a number of at least 0"),
        (0.5, 3, math.inf, "variation is inf"),
        (0.5, 3, 101.0, "variation is 101.0, expected at most 100"),
        (0.5, 3, "other", "variation is 'other'"),
    ],
)
def test_what_is_out_of_range_is_named(
    utilisation: object, capacity: object, variation: object, said: str
) -> None:
    for formula in (mg1k_blocking, mg1k_waiting):
        with pytest.raises(InvalidInput, match=said):
            formula(utilisation, capacity, variation=variation)  # type: ignore[arg-type]


def test_closed_forms_check_what_they_are_given_too() -> None:
    with pytest.raises(InvalidInput) as caught:
        mm1k_blocking(-1.0, 0)
    assert len(caught.value.problems) == 2
    with pytest.raises(InvalidInput, match="places is -3"):
        md1k_blocking(0.5, -3)
