"""What options there are, and which of them fit together."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated.estimates import estimated

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, Options, quantile_named
from benchrigor.model.checks import wrong_number, wrong_quantity
from benchrigor.units import Direction, Quantity


@pytest.mark.parametrize(
    ("trim", "shares"),
    [
        *(("none", (0.0, 0.0)), ("auto", None), (0.1, (0.1, 0.1)), (0, (0.0, 0.0))),
        ([0.2, 0], (0.2, 0)),
    ],
)
def test_what_is_cut_can_be_said(trim: Any, shares: tuple[float, float] | None) -> None:
    assert Options(trim=trim).cut_shares == shares


def test_two_percent_within_ten_seconds_is_what_is_aimed_at() -> None:
    options = Options(min_seconds=0)
    assert (options.target, options.budget_s, options.min_seconds) == (0.02, 10.0, 0)
    assert Options().min_seconds == 1.0


def test_a_number_of_thousands_of_digits_is_refused_as_others_are() -> None:
    with pytest.raises(InvalidInput):
        Options(max_rounds=10**5000)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        *(("mean", None), ("median", 0.5), ("p50", 0.5), ("p1", 0.01), ("p05", 0.05)),
        *(("p10", 0.1), ("p99", 0.99), ("p99.9", 0.999), ("p0.1", 0.001)),
    ],
)
def test_the_share_below_what_is_named(name: str, share: float | None) -> None:
    assert quantile_named(name) == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    "wrong", ["p00", "p0.0", "p1e1", "p-1", "p5.", "p", " p10", "Mean", "10", 0.5]
)
def test_what_is_no_statistic_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        quantile_named(wrong)


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


def test_a_bare_number_has_neither_direction_nor_kind() -> None:
    metric = Metric(name="score")
    assert (metric.direction, metric.kind, metric.averaging) == (None, None, "auto")


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
