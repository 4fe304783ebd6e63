"""Which period wins: the widest that is kept to, and that a stage goes through without waiting."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.queues import PeriodCalibrator
from benchrigor.queues.data.service import RateReason
from benchrigor.queues.period_calibrator import CalibratedPeriod

Machine = Callable[[float], tuple[float, bool, float]]
"""From the period wanted to realised width, blocked and items."""


def calibrated(search: PeriodCalibrator, machine: Machine, most: int = 10_000) -> CalibratedPeriod:
    for _ in range(most):
        period_s = search.ask()
        if period_s is None:
            break
        search.tell(*machine(period_s))
    assert search.result is not None
    return search.result


def test_a_stage_that_never_waits_gets_the_longest() -> None:
    search = PeriodCalibrator(longest_s=0.1)
    assert calibrated(search, lambda s: (s, False, 1)).period_s == 0.1


def test_the_widest_that_stays_free_of_waiting_wins() -> None:
    search = PeriodCalibrator()
    found = calibrated(search, lambda s: (s, s > 0.01, 5))
    assert found == CalibratedPeriod(period_s=0.008)


def test_narrow_periods_that_sleeping_makes_unstable_are_widened() -> None:
    search = PeriodCalibrator()
    # 60 us too long is 0.5 % of 12 ms.
    found = calibrated(search, lambda s: (s + 60e-6, s > 0.05, 5))
    assert found.period_s == 0.032


def test_where_waiting_does_not_matter_the_first_stable_period_will_do() -> None:
    search = PeriodCalibrator(unblocked=False)
    assert calibrated(search, lambda s: (s + 60e-6, True, 0)).period_s == 0.016


def test_a_wider_one_that_is_unstable_does_not_undo_a_narrower_one() -> None:
    search = PeriodCalibrator()
    found = calibrated(search, lambda s: (s if s < 0.003 else 1.2 * s, False, 5))
    assert found.period_s == 0.002


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (lambda s: (1.1 * s, False, 5), RateReason.UNSTABLE_PERIOD),
        (lambda s: (s, True, 5), RateReason.NO_NONBLOCKING),
        (lambda s: (s + 60e-6, True, 5), RateReason.NO_NONBLOCKING),
        (lambda s: (s, False, 0), RateReason.NO_ITEMS),
    ],
)
def test_where_none_will_do_it_says_why(machine: Machine, reason: RateReason) -> None:
    found = calibrated(PeriodCalibrator(longest_s=0.1), machine)
    assert (found.period_s, found.reason) == (None, reason)
    assert found.notice is not None
    assert found.notice.severity == "refusal"


def test_blocking_at_a_stable_width_ends_the_search_for_wider_ones_wait_more() -> None:
    asked = []

    def machine(period_s: float) -> tuple[float, bool, float]:
        asked.append(period_s)
        return period_s, True, 5

    calibrated(PeriodCalibrator(tries=20), machine)
    assert set(asked) == {0.001}
    assert len(asked) == 20


def test_so_many_in_a_row_must_be_free() -> None:
    pattern = [False, False, False, False, True]
    turns = iter(range(10_000))
    found = calibrated(PeriodCalibrator(), lambda s: (s, pattern[next(turns) % 5], 5))
    assert found.reason is RateReason.NO_NONBLOCKING
    turns = iter(range(10_000))
    found = calibrated(PeriodCalibrator(longest_s=0.002), lambda s: (s, next(turns) % 6 == 5, 5))
    assert found.period_s == 0.002


def test_a_period_in_which_nothing_passes_is_widened_until_something_does() -> None:
    # An item every 20 ms.
    taken = {"s": 0.0}

    def machine(period_s: float) -> tuple[float, bool, float]:
        before = taken["s"]
        taken["s"] += period_s
        items = math.floor(taken["s"] / 0.02) - math.floor(before / 0.02)
        return period_s, period_s > 0.03, items

    assert calibrated(PeriodCalibrator(tries=10), machine).period_s == 0.016


def test_after_the_end_nothing_changes_it() -> None:
    search = PeriodCalibrator(longest_s=0.001)
    found = calibrated(search, lambda s: (s, False, 1))
    search.tell(5.0, True, 0)
    assert search.result == found == CalibratedPeriod(period_s=0.001)
    assert search.ask() is None


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"longest_s": 1e-9}, "longest_s is 1e-09, expected 0.001 at least"),
        ({"longest_s": math.inf}, "longest_s is inf, expected a number"),
        ({"longest_s": None}, "longest_s is None, expected a number"),
        ({"tries": "9"}, "tries is '9', expected a whole number"),
        ({"tries": 4}, "tries is 4, expected 5 at least"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        PeriodCalibrator(**options)  # type: ignore[arg-type]


def test_all_options_that_make_no_sense_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        PeriodCalibrator(longest_s="x", tries=1.5)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    "told",
    [
        (0.0,),
        (math.nan,),
        ("x",),
        (True,),
        (None,),
        (0.1, False, -1),
        (0.1, False, math.inf),
        (0.1, False, "2"),
        (0.1, False, True),
    ],
)
def test_what_cannot_have_been_seen_is_refused(told: tuple[object, ...]) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        PeriodCalibrator().tell(*told)  # type: ignore[arg-type]
