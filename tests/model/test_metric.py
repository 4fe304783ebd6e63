"""What may be estimated, called by its name, and metrics described in a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, quantile_named
from benchrigor.units import Direction, Quantity


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
