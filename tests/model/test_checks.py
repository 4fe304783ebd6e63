"""What is a number, and what is a quantity with an interval: known answers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from simulated.estimates import estimated

from benchrigor.model.checks import wrong_number, wrong_quantity

RIGHT = [1, 2.5, np.float64(3.0), np.float32(0.1), np.int64(4), Fraction(1, 3), 1e150]
WRONG = [
    *(0, -1.0, math.nan, math.inf, -math.inf, 1e151, 10**400, 1e-200, "3", None, True, 1j, [1.0]),
    *(np.float32("inf"), np.float32(0.0)),
]


@pytest.mark.parametrize("number", RIGHT)
def test_any_real_number_of_usable_size_is_one(number: object) -> None:
    assert wrong_number("rate", number) == wrong_quantity("rate", number) == []


@pytest.mark.parametrize("number", WRONG)
def test_anything_else_is_named(number: object) -> None:
    assert wrong_number("rate", number)[0].startswith("rate is ")
    assert wrong_quantity("rate", number)[0].startswith("rate is ")


def test_zero_and_tiny_numbers_are_welcome_where_they_are_asked_for() -> None:
    assert wrong_number("rate", 0, zero=True) == wrong_number("rate", 1e-300, zero=True) == []
    assert wrong_number("rate", -1e-300, zero=True) != []


@pytest.mark.parametrize(
    ("interval", "confidence"),
    [
        *(((-2.0, -1.0, 0.0), 0.9), ((math.nan, 10.0, 12.0), 0.9), ((9.0, 10.0, math.inf), 0.9)),
        *(((11.0, 10.0, 12.0), 0.9), ((9.0, 10.0, 12.0), 1.0), (("9", 10.0, 12.0), 0.9)),
    ],
)
def test_an_estimate_that_is_none_is_named(interval: tuple, confidence: float) -> None:
    low, value, high = interval
    (found,) = wrong_quantity("rate", estimated(value, low, high, confidence=confidence))
    assert found.startswith("rate")
    assert wrong_quantity("rate", estimated(0.5, -0.5, 2.0)) == []  # it may reach below 0
