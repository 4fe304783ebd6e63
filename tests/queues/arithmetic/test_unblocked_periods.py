from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from benchrigor.stats import unblocked_read_probability, unblocked_write_probability

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


def unblocked_periods(utilisation: float, items: int, rng: np.random.Generator) -> list[bool]:
    """Simulate an M/M/1 queue; say of far-apart periods whether the server never waited."""
    n = 400_000
    arrivals = np.cumsum(rng.exponential(1.0 / utilisation, n))
    services = rng.exponential(1.0, n)
    # Idle time before item i is what the start of all services so far exceeds their sum.
    before = np.concatenate([[0.0], np.cumsum(services)[:-1]])
    starts = np.maximum.accumulate(arrivals - before) + before
    ends = starts + services
    # The server waits from one end to the next start.
    waits_from, waits_to = ends[:-1], starts[1:]
    gaps = waits_to > waits_from + 1e-12
    waits_from, waits_to = waits_from[gaps], waits_to[gaps]
    found = []
    for begin in np.arange(2000.0, float(ends[-1]) - 2000.0, 600.0):
        index = int(np.searchsorted(waits_to, begin))
        found.append(index == waits_to.size or bool(waits_from[index] > begin + items))
    return found


def test_the_formula_is_a_lower_bound_of_what_a_simulated_queue_does() -> None:
    found = unblocked_periods(0.8, 32, np.random.default_rng(71))
    n, seen = len(found), sum(found)
    assert seen > reference.binom.ppf(0.999, n, read(0.8, 32.0))
    least, most = reference.binom.ppf([5e-4, 0.9995], n, 0.13)
    assert least <= seen <= most
