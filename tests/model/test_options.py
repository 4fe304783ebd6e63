"""What options there are, and which of them fit together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Metric, Options
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
