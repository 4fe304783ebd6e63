"""What may be estimated, called by its name."""

from __future__ import annotations

import re

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, quantile_named
from benchrigor.model.metric import describe_metric
from benchrigor.units import Direction, Quantity

WRONG_NAMES = (
    *("p0", "p00", "p0.0", "p100", "P10", "p1e1", "p-1", "p.5", "p5.", "p", "p10%", " p10"),
    *("p10\n", "Mean", "10", ""),
)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("mean", None),
        ("median", 0.5),
        ("p50", 0.5),
        ("p1", 0.01),
        ("p05", 0.05),
        ("p10", 0.1),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p0.1", 0.001),
    ],
)
def test_the_share_below_what_is_named(name: str, share: float | None) -> None:
    assert quantile_named(name) == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    "wrong",
    [*WRONG_NAMES, 5, 0.5, None, True, b"p10"],
)
def test_what_is_no_statistic_is_named_beside_those_there_are(wrong: object) -> None:
    expected = "expected 'mean', 'median' or a percentile such as 'p10'"
    with pytest.raises(InvalidInput, match=re.escape(f"statistic is {wrong!r}, {expected}")):
        quantile_named(wrong)


def test_a_metric_is_described_in_a_line() -> None:
    metric = describe_metric("rate", "req/s, harmonic ,±1%,optional")
    assert (metric.unit, metric.averaging, metric.must_satisfy) == ("req/s", "harmonic", False)
    assert metric.relative_half_width == pytest.approx(0.01)
    assert (metric.direction, metric.kind) == (Direction.HIGHER, Quantity.RATE)
    assert describe_metric("rate", "req/s,lower").direction is Direction.LOWER
    assert describe_metric("ok", "share").kind is Quantity.SHARE


def test_an_absolute_width_replaces_the_target_of_the_session() -> None:
    metric = describe_metric("drift", "ms,+-0.5")
    assert (metric.absolute_half_width, metric.relative_half_width) == (0.5, float("inf"))


def test_a_bare_number_has_neither_direction_nor_kind() -> None:
    metric = Metric(name="score")
    assert (metric.direction, metric.kind, metric.averaging) == (None, None, "auto")


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("req/s,lower,higher", "expected one direction"),
        ("req/s,fast", "expected one unit"),
        ("ms,±1%,±2%", "expected one relative_half_width"),
        ("ms,±0", "absolute_half_width of 'x' is 0.0, expected more than 0"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(description: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        describe_metric("x", description)
