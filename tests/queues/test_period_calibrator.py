"""Which period wins: the widest that is kept to, and that a stage goes through without waiting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues import PeriodCalibrator

Machine = Callable[[float], tuple[float, bool, float]]
"""From the period wanted to realised width, blocked and items."""


def calibrated(search: PeriodCalibrator, machine: Machine, most: int = 10_000) -> Any:
    for _ in range(most):
        period_s = search.ask()
        if period_s is None:
            break
        search.tell(*machine(period_s))
    found = search.result
    search.tell(5.0, True, 0)  # after the end nothing changes it
    assert search.result == found
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("machine", "options", "found"),
    [
        (lambda s: (s, False, 1), {"longest_s": 0.1}, 0.1),
        (lambda s: (s, s > 0.01, 5), {}, 0.008),
        (lambda s: (s + 60e-6, s > 0.05, 5), {}, 0.032),  # 60 us too long is 0.5 % of 12 ms
        (lambda s: (s + 60e-6, True, 0), {"unblocked": False}, 0.016),
        (lambda s: (s if s < 0.003 else 1.2 * s, False, 5), {}, 0.002),
        (lambda s: (1.1 * s, False, 5), {"longest_s": 0.1}, "unstable-period"),
        (lambda s: (s, True, 5), {"longest_s": 0.1}, "no-nonblocking-period"),
        (lambda s: (s + 60e-6, True, 5), {"longest_s": 0.1}, "no-nonblocking-period"),
        (lambda s: (s, False, 0), {"longest_s": 0.1}, "no-items"),
    ],
)
def test_the_widest_period_that_is_kept_to_and_stays_free_of_waiting_wins(
    machine: Machine, options: dict[str, Any], found: float | str
) -> None:
    result = calibrated(PeriodCalibrator(**options), machine)
    assert (result.period_s or result.reason) == found
    assert (result.notice is None) is isinstance(found, float)


def test_so_many_in_a_row_must_be_free() -> None:
    pattern = [False, False, False, False, True]
    turns = iter(range(10_000))
    found = calibrated(PeriodCalibrator(), lambda s: (s, pattern[next(turns) % 5], 5))
    assert found.reason == "no-nonblocking-period"
    assert (found.notice.code, found.notice.severity) == ("not-converged", "refusal")
    turns = iter(range(10_000))
    found = calibrated(PeriodCalibrator(longest_s=0.002), lambda s: (s, next(turns) % 6 == 5, 5))
    assert found.period_s == 0.002


@given(
    st.lists(
        st.tuples(st.floats(0.98, 1.02), st.booleans(), st.integers(0, 3)), min_size=1, max_size=60
    ),
    st.booleans(),
)
def test_it_ends_and_never_answers_a_period_that_was_not_kept(
    pattern: list[tuple[float, bool, int]], unblocked: bool
) -> None:
    k, tries, longest_s = 5, 12, 0.02
    outcomes = []
    for _ in range(2):
        search = PeriodCalibrator(longest_s=longest_s, tries=tries, unblocked=unblocked)
        seen: list[tuple[float, float, bool, int]] = []
        while (period_s := search.ask()) is not None:
            stretch, blocked, items = pattern[len(seen) % len(pattern)]
            seen.append((period_s, stretch, blocked, items))
            search.tell(stretch * period_s, blocked, items)
        assert len(seen) <= tries * (math.ceil(math.log2(longest_s / 0.001)) + 1)
        outcomes.append((search.result, len(seen)))
    assert outcomes[0] == outcomes[1]
    result = outcomes[0][0]
    assert result is not None
    if result.period_s is None:
        assert result.reason is not None
        return
    last = [each for each in seen if each[0] == result.period_s]
    good = [abs(s - 1.0) <= 0.005 * (1 + 1e-9) and not (b and unblocked) for _, s, b, _ in last]
    assert any(all(good[at : at + k]) for at in range(len(good) - k + 1))
