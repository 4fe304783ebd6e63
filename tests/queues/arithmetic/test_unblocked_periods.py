from __future__ import annotations

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
