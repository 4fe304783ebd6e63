"""What may be estimated, called by its name."""

from __future__ import annotations

import re

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import quantile_named

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
