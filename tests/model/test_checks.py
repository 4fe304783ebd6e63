import math
import re
from fractions import Fraction

import numpy as np
import pytest

from benchrigor.model import Estimate
from benchrigor.model.checks import wrong_number, wrong_quantity, wrong_share, wrong_whole


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
    assert wrong_number("rate", number) == wrong_quantity("rate", number) == []


@pytest.mark.parametrize(
    "number",
    [0, -1.0, math.nan, math.inf, -math.inf, 1e151, 10**400, 1e-200, "3", None, True, 1j, [1.0]],
)
def test_anything_else_is_named(number: object) -> None:
    assert wrong_number("rate", number)[0].startswith("rate is ")
    assert wrong_quantity("rate", number)[0].startswith("rate is ")


def test_zero_and_tiny_numbers_are_welcome_where_they_are_asked_for() -> None:
    assert wrong_number("rate", 0, zero=True) == wrong_number("rate", 1e-300, zero=True) == []
    assert wrong_number("rate", -1e-300, zero=True) == [
        "rate is -1e-300, expected a number from 0 to 1e+150"
    ]


def test_where_a_quantity_is_wanted_the_message_offers_an_estimate() -> None:
    assert wrong_quantity("rate", "fast") == [
        "rate is 'fast', expected a number above 0 (1e-150 to 1e+150), or an Estimate"
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": -1.0, "low": -2.0}, "rate.value is -1.0, expected a number above 0"),
        ({"low": math.nan}, r"rate is 10.0 in \[nan, 12.0\]"),
        ({"high": math.inf}, "inf"),
        ({"low": 11.0}, r"\[11.0, 12.0\], expected a finite interval"),
        ({"confidence": 1.0}, "rate.confidence is 1.0, expected a number between 0 and 1"),
        ({"low": "9"}, r"in \['9', 12.0\], expected a finite interval"),
    ],
)
def test_an_estimate_that_is_none_is_named(given: dict[str, object], said: str) -> None:
    (found,) = wrong_quantity("rate", estimate(**given))  # type: ignore[arg-type]
    assert re.search(said, found)


def test_an_interval_may_reach_below_0() -> None:
    assert wrong_quantity("rate", estimate(0.5)) == []


def test_whole_numbers_start_at_1() -> None:
    assert wrong_whole("servers", 1) == wrong_whole("servers", np.int32(3)) == []
    assert wrong_whole("servers", 0) == ["servers is 0, expected a whole number of at least 1"]
    assert wrong_whole("servers", 2.0) != [] != wrong_whole("servers", True)


def test_a_share_lies_between_0_and_1() -> None:
    assert wrong_share("share", 0.5) == wrong_share("share", 1e-9) == []
    for share in (0.0, 1.0, math.nan, "1%", None):
        assert wrong_share("share", share)[0].startswith("share is ")


def test_narrow_floats_of_numpy_are_judged_by_their_value() -> None:
    assert wrong_number("rate", np.float32(0.1)) == []
    assert wrong_number("rate", np.float32("inf")) != []
    assert wrong_number("rate", np.float32(0.0)) != []
