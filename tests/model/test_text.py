"""Numbers as text: known answers, and a law of their digits."""

import re

import pytest
from simulated.estimates import estimated

from benchrigor.model.text import show_estimate


@pytest.mark.parametrize(
    ("ends", "unit", "shown"),
    [
        ((10**9 + 52.0, 5.9), "B", "1.0000000520 GB [1.0000000461, 1.0000000579]"),
        (
            (10**9 + 52.0, 5.9),
            "points",
            "1,000,000,052.0 points [1,000,000,046.1, 1,000,000,057.9]",
        ),
        ((1e13 + 52.0, 59.0), "", "1.0000000000052e+13 [9.9999999999930e+12, 1.0000000000111e+13]"),
        ((1e13, 1e12), "", "1.000e+13 [9.000e+12, 1.100e+13]"),
        ((1.5e-12, 1.1e-16), "points", "1.50000e-12 points [1.49989e-12, 1.50011e-12]"),
        ((1.5e-12, 0.0), "points", "1.500e-12 points [1.500e-12, 1.500e-12]"),
        ((1.0, 3e-16), "points", "1.000 points [1.000, 1.000]"),
        ((2.0, 0.5), "1", "2.00 [1.50, 2.50]"),
        ((3e300, 1e299), "/s", "3.000e+291 G/s [2.900e+291, 3.100e+291]"),
        ((0.0, 2.0), "s", "0.0 s [-2.0, 2.0]"),
        ((0.0005, 0.0089), "s", "0.5 ms [-8.4, 9.4]"),
    ],
)
def test_an_estimate_has_the_digits_that_its_interval_needs(
    ends: tuple[float, float], unit: str, shown: str
) -> None:
    value, half_width = ends
    found = estimated(value, value - half_width, value + half_width)
    assert show_estimate(found, unit) == f"{shown} 95%"


@pytest.mark.parametrize("unit", ["s", "req/s", "B", "points"])
@pytest.mark.parametrize("value", [1e13 / 3, 1e11 / 3, 10 / 3, -10 / 3, 1 / 3e6, 1 / 3e12])
@pytest.mark.parametrize("share", [0.0, 1e-17, 1e-16, 1e-15, 1e-12, 1e-3, 1.0, 10.0])
def test_no_estimate_is_shown_with_more_digits_than_a_number_holds(
    value: float, share: float, unit: str
) -> None:
    width = share * abs(value)
    shown = show_estimate(estimated(value, value - width, value + width), unit)
    largest = max(
        len(re.sub(r"e.*|[,.]", "", number).lstrip("0"))
        for number in re.findall(r"[0-9][0-9,.]*(?:e[-+]?[0-9]+)?", shown)
    )
    assert largest <= 16
    assert share > 1e-15 or largest <= 13
