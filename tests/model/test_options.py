"""Options that fit together, and how numbers and names are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated.estimates import estimated

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, Options
from benchrigor.model.text import show_estimate
from benchrigor.units import Direction, Quantity


def test_two_percent_within_ten_seconds_is_what_is_aimed_at() -> None:
    options = Options(min_seconds=0)
    assert (options.target, options.budget_s, options.min_seconds) == (0.02, 10.0, 0)
    assert Options().min_seconds == 1.0


def test_a_number_of_thousands_of_digits_is_refused_as_others_are() -> None:
    with pytest.raises(InvalidInput):
        Options(max_rounds=10**5000)


@pytest.fixture
def described(tmp_path: Path) -> Callable[[str], Metric]:
    """Return the metric of JSON lines whose unit is described so."""

    def read(unit: str) -> Metric:
        path = tmp_path / "lines"
        path.write_text(json.dumps({"name": "x", "unit": unit, "value": 0.5}))
        return br.read_results(path)[0].metrics[0]

    return read


def test_a_metric_is_described_in_a_line(described) -> None:
    metric = described("req/s, harmonic ,±1%")
    assert (metric.unit, metric.averaging, metric.must_satisfy) == ("req/s", "harmonic", True)
    assert metric.relative_half_width == pytest.approx(0.01)
    assert (metric.direction, metric.kind) == (Direction.HIGHER, Quantity.RATE)
    assert described("req/s,lower").direction is Direction.LOWER
    assert described("share").kind is Quantity.SHARE
    with pytest.raises(InvalidInput, match="must"):
        described("req/s,optional")  # and nothing else
    metric = described("ms,+-0.5")  # replaces the target of the session
    assert (metric.absolute_half_width, metric.relative_half_width) == (0.5, float("inf"))


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
