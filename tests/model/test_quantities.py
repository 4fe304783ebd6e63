import math
import re
from fractions import Fraction

import numpy as np
import pytest

from benchrigor.model import Estimate
from benchrigor.model.pipeline import no_number, no_quantity, no_whole


def estimate(value: float = 10.0, **given: object) -> Estimate:
    known: dict[str, object] = {
        "low": value - 1.0,
        "high": value + 2.0,
        "confidence": 0.9,
        "n": 30,
        "n_effective": 20.0,
        "method": "any",
    }
    return Estimate(value=value, **{**known, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [1, 2.5, np.float64(3.0), np.int64(4), Fraction(1, 3), 1e150])
def test_any_real_number_of_usable_size_is_one(number: object) -> None:
    assert no_number(number, "rate") == no_quantity(number, "rate") == ()


@pytest.mark.parametrize(
    "number",
    [0, -1.0, math.nan, math.inf, -math.inf, 1e151, 10**400, 1e-200, "3", None, True, 1j, [1.0]],
)
def test_anything_else_is_named(number: object) -> None:
    assert no_number(number, "rate")[0].startswith("rate is ")
    assert no_quantity(number, "rate")[0].startswith("rate is ")


def test_zero_and_tiny_numbers_are_welcome_where_they_are_asked_for() -> None:
    assert no_number(0, "rate", zero=True) == no_number(1e-300, "rate", zero=True) == ()
    assert no_number(-1e-300, "rate", zero=True) == (
        "rate is -1e-300, expected a number of at least 0",
    )


def test_what_is_no_quantity_is_told_that_an_estimate_would_do() -> None:
    assert no_quantity("fast", "rate") == (
        "rate is 'fast', expected a number above 0 or an Estimate",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": -1.0, "low": -2.0}, "rate.value is -1.0, expected a number above 0"),
        ({"low": math.nan}, r"rate is 10.0 in \[nan, 12.0\]"),
        ({"high": math.inf}, "inf"),
        ({"low": 11.0}, r"\[11.0, 12.0\], expected a value within"),
        ({"confidence": 1.0}, "rate.confidence is 1.0, expected between 0 and 1"),
        ({"low": "9"}, "expected numbers in it"),
    ],
)
def test_an_estimate_that_is_none_is_named(given: dict[str, object], said: str) -> None:
    (found,) = no_quantity(estimate(**given), "rate")  # type: ignore[arg-type]
    assert re.search(said, found)


def test_an_interval_may_reach_below_0() -> None:
    assert no_quantity(estimate(0.5), "rate") == ()


def test_whole_numbers_are_counted_from_the_least() -> None:
    assert no_whole(3, "servers") == no_whole(np.int32(3), "servers", least=3) == ()
    assert no_whole(2, "servers", least=3) == (
        "servers is 2, expected a whole number of at least 3",
    )
    assert no_whole(2.0, "servers") != () != no_whole(True, "servers")
