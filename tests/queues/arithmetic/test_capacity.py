"""Room and replicas: against the plain recursion in many digits, and simulated queues.

A bound on a simulation is left by chance about once in a thousand.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats
from simulated.estimates import estimated

from benchrigor.model import Code
from benchrigor.stats import (
    suggest_buffer,
    suggest_replicas,
    unblocked_read_probability,
    unblocked_write_probability,
)

loads = st.floats(0.01, 0.97)


def places_for(load: float, variation: float, share: float, when_full: str) -> int | None:
    """Return how many items may be there at once, also in service."""
    size = suggest_buffer(
        load,
        1.0,
        process="other",
        variation=variation,
        blocked_share=share,
        when_full=when_full,
    )
    return size.capacity and size.capacity + 1


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


def shares_blocked(utilisation: float, variation: float, places: int) -> dict[str, float]:
    """Return the shares of arrivals that are lost, and that wait or make wait, in many digits."""
    with mpmath.workdps(400):
        q = departures(utilisation, variation, places + 1)
        lost, more = (
            1 - 1 / (1 / mpmath.fsum(q[:number]) + mpmath.mpf(utilisation))
            for number in (places, places + 1)
        )
        return {"lose": float(lost), "wait": float(max(q[places] / mpmath.fsum(q), more))}


@pytest.mark.parametrize(
    ("utilisation", "variations", "places"),
    [
        *(
            (utilisation, [0.0, 1e-5, 0.04, 0.5, 1.0, 3.0, 100.0], [3, 30, 90])
            for utilisation in (0.02, 0.3, 0.8, 0.99, 1.0 - 1e-7)
        ),
        (0.97, [0.0], [400]),  # where the chances go on geometrically
    ],
)
def test_a_queue_is_the_first_by_the_recursion_in_many_digits_that_is_enough(
    utilisation: float, variations: list[float], places: list[int]
) -> None:
    for variation in variations:
        for number in places:
            for when_full, share in shares_blocked(utilisation, variation, number).items():
                if share > 1e-280:
                    enough, short = (
                        places_for(utilisation, variation, share * (1.0 + off), when_full)
                        for off in (1e-10, -1e-10)
                    )
                    assert (enough, short) == (number, number + 1)


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
    wanted = shares_blocked(utilisation, variation, capacity)["wait"]
    assert scipy_stats.ttest_1samp(waited / now, wanted).pvalue > 1e-3


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
    enough = places_for(load, variation, 0.01, "wait")
    assert enough is not None
    assert abs(enough - room_needed(times, load, 0.01)) <= 1


@pytest.mark.parametrize(
    ("arrival", "service", "wanted", "replicas"),
    [
        (8.0, 10.0, 0.8, 1),
        (2.4, 1.0, 0.8, 3),
        (0.3, 0.1, 0.5, 6),
        (2.401, 1.0, 0.8, 4),
        (0.0, 5.0, 0.8, 1),
    ],
)
def test_rounding_does_not_add_a_replica(
    arrival: float, service: float, wanted: float, replicas: int
) -> None:
    assert suggest_replicas(arrival, service, utilisation=wanted).replicas == replicas


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e6), st.floats(0.05, 0.99))
def test_the_replicas_are_the_fewest_that_do(arrival: float, service: float, wanted: float) -> None:
    found = suggest_replicas(arrival, service, utilisation=wanted).replicas
    assert found is not None
    assert arrival / (found * service) <= wanted * (1.0 + 1e-8)
    assert found == 1 or arrival / ((found - 1) * service) > wanted


SURE, HUGE = estimated(100.0, 90.0, 110.0), 1.0 - 1e-9


@pytest.mark.parametrize(
    ("rates", "share", "sizes", "utilisations", "severity"),
    [
        # By the closed form of M/M/1/K 14 places block 0.9 % at a utilisation of 0.8, 13 1.2 %.
        ((80.0, 100.0), 0.01, (13, 13), (0.8, 0.8), None),
        ((0, 10.0), 0.01, (1, 1), (0.0, 0.0), None),
        ((1e-300, 1.0), 0.01, (1, 1), (0.0, 0.0), None),
        ((100.0, 100.0), 0.01, (None, None), (1.0, 1.0), "refusal"),
        ((estimated(80.0, 70.0, 95.0), SURE), 0.01, (None, 13), (0.8, 95 / 90), "warning"),
        ((80.0, estimated(100.0, -5.0, 205.0)), 0.01, (None, 13), (0.8, None), "warning"),
        ((HUGE, 1.0), 0.99e-6, (None, None), (HUGE, HUGE), "refusal"),  # beyond a million
        ((HUGE, 1.0), 1.01e-6, (989_608, 989_608), (HUGE, HUGE), None),
        ((estimated(0.5, 0.4, HUGE), 1.0), 1e-7, (None, 22), (0.5, HUGE), "warning"),
    ],
)
def test_sizes_are_as_far_as_the_rates_are_known(
    rates: tuple[Any, Any],
    share: float,
    sizes: tuple[int | None, ...],
    utilisations: tuple[float | None, ...],
    severity: str | None,
) -> None:
    size = suggest_buffer(*rates, blocked_share=share)
    assert (size.capacity, size.capacity_at_value) == sizes
    assert (size.utilisation, size.worst_utilisation) == pytest.approx(utilisations)
    assert [each.severity for each in size.notices[:-1]] == [severity] * (severity is not None)
    assert size.notices[-1].code is Code.QUEUE_MODEL


utilisations = st.floats(0.001, 0.999)


def read(utilisation: float, items: float) -> float:
    return unblocked_read_probability(utilisation=utilisation, service_rate=items, period_s=1.0)


def write(utilisation: float, items: float, capacity: int) -> float:
    return unblocked_write_probability(
        utilisation=utilisation, service_rate=items, period_s=1.0, capacity=capacity
    )


@pytest.mark.parametrize(
    ("rate", "period_s", "items"),
    [
        (100.0, 0.03, 3),
        (10.0, 0.1 + 0.2, 3),  # 3.0000000000000004
        (3.0000000001, 1.0, 3),
        (3.0001, 1.0, 4),
        (2.9999999999, 1.0, 3),
        (1e-9, 1e-3, 1),
    ],
)
def test_rounding_does_not_add_an_item(rate: float, period_s: float, items: int) -> None:
    found = unblocked_read_probability(utilisation=0.5, service_rate=rate, period_s=period_s)
    assert found == 0.5**items


@given(utilisations, st.integers(1, 40), st.integers(0, 400))
def test_chances_agree_with_many_digits(utilisation: float, items: int, more: int) -> None:
    rho = mpmath.mpf(utilisation)
    assert read(utilisation, items) == pytest.approx(float(rho**items), rel=1e-12)
    wanted = float(1 - rho ** (more + 1))
    assert write(utilisation, items, items + more) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("utilisation", "items", "capacity", "reads", "writes"),
    [
        (1.0 - 2.0**-50, 1.0, 4, 1.0 - 2.0**-50, 4 * 2.0**-50),  # nothing cancels
        (1.0, 5.0, 50, 1.0, 0.0),
        (3.0, 5.0, 50, 1.0, 0.0),
        (0.0, 5.0, 5, 0.0, 1.0),
        (0.5, 11.0, 10, 0.5**11, 0.0),
        (0.95, 512.0, 512, 0.95**512, 0.05),
    ],
)
def test_chances_at_the_ends(
    utilisation: float, items: float, capacity: int, reads: float, writes: float
) -> None:
    assert read(utilisation, items) == pytest.approx(reads, rel=1e-12)
    assert write(utilisation, items, capacity) == pytest.approx(writes, rel=1e-12)
