"""What a service rate looks like in one line."""

from __future__ import annotations

from typing import Any

import pytest
from simulated.estimates import estimated

from benchrigor.queues.data.service import RateReason, ServiceRate

ESTIMATE = estimated(1234.0, 1200.0, 1300.0, n=9, n_effective=9.0, method="any")


def rate(**given: Any) -> ServiceRate:
    known: dict[str, Any] = {
        "estimate": ESTIMATE,
        "converged": False,
        "reason": RateReason.NOT_CONVERGED,
        "method": "quantile",
        "start_s": 12.3,
        "stop_s": 45.6,
        "periods": 1000,
        "unblocked": 453,
        "used": 453,
        "period_s": 0.0333,
        "items": 9000,
    }
    return ServiceRate(**{**known, **given})


def test_a_line_says_number_window_share_and_whether_to_believe_it() -> None:
    found = rate(converged=True, reason=None, start_s=0.0)
    assert str(found) == (
        "1.234 k items/s [1.200, 1.300] 95% · 0 to 45.6 s · 45% unblocked · converged"
    )
    assert str(rate(estimate=None, reason=RateReason.NEVER_BUSY, unblocked=0)) == (
        "no rate · 12.3 to 45.6 s · 0% unblocked · never busy"
    )


def test_that_it_has_not_converged_is_said_once() -> None:
    assert rate().standing == "not converged"
    assert str(rate(estimate=None)).endswith(" · not converged")
    assert rate(reason=RateReason.FEW_ITEMS).standing == "too few items per period"


@pytest.mark.parametrize("reason", [None, *RateReason])
@pytest.mark.parametrize("stop_s", [45.6, 999.7, 86_400.0])
def test_a_line_fits_into_80_columns_and_always_holds_what_it_must(
    reason: RateReason | None, stop_s: float
) -> None:
    found = rate(converged=reason is None, reason=reason, stop_s=stop_s)
    line = str(found)
    assert len(line) <= 80
    assert "e+" not in line
    for part in ("1.234 k items/s [1.200, 1.300] 95%", " s · ", found.standing):
        assert part in line
