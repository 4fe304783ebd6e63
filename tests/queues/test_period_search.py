"""Which period wins: the widest that is kept to, and that a stage goes through without waiting."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.queues.period_search import PeriodSearch

Machine = Callable[[float], tuple[float, bool, float]]
"""From the period wanted to realised width, blocked and items."""


def searched(machine: Machine, *, unblocked: bool = True) -> tuple[PeriodSearch, list[float]]:
    """Return a finished search, and the periods that it wanted."""
    search, wanted = PeriodSearch(unblocked=unblocked), list[float]()
    while not search.finished:
        assert search.period_s is not None
        wanted.append(search.period_s)
        search.tell(*machine(search.period_s))
    return search, wanted


@pytest.mark.parametrize(
    ("machine", "period_s"),
    [
        pytest.param(lambda s: (s, False, 1), 1.0, id="a stage that never waits"),
        pytest.param(lambda s: (s, s > 0.01, 5), 0.008, id="one that waits in wider ones"),
        # 60 us too long is 0.5 % of 12 ms.
        pytest.param(lambda s: (s + 60e-6, s > 0.05, 5), 0.032, id="a clock that is inexact"),
        pytest.param(
            lambda s: (s if s < 0.003 else 1.2 * s, False, 5), 0.002, id="drifting"
        ),
    ],
)
def test_the_widest_that_is_kept_to_and_free_of_waiting_wins(
    machine: Machine, period_s: float
) -> None:
    search, _ = searched(machine)
    assert (search.period_s, search.failure) == (period_s, None)


def test_where_waiting_does_not_matter_the_first_period_that_is_kept_to_will_do() -> None:
    search, _ = searched(lambda s: (s + 60e-6, True, 0), unblocked=False)
    assert search.period_s == 0.016


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (lambda s: (1.1 * s, False, 5), "No period up to 1 s was kept to within 0.50% 5 times"),
        (lambda s: (s, True, 5), "No period from 0.001 s on was free of waiting 5 times in a row"),
        (lambda s: (s + 60e-6, True, 5), "No period from 0.016 s on was free of waiting"),
        (lambda s: (s, False, 0), "Nothing passed in 5 periods of 1 s in a row"),
    ],
)
def test_where_none_will_do_it_says_why(machine: Machine, reason: str) -> None:
    search, _ = searched(machine)
    assert search.period_s is None
    assert str(search.failure).startswith(reason)


def test_waiting_at_a_width_that_is_kept_to_ends_the_search_for_wider_ones_wait_more() -> None:
    _, wanted = searched(lambda s: (s, True, 5))
    assert (set(wanted), len(wanted)) == ({0.001}, 200)


def test_so_many_in_a_row_must_be_free() -> None:
    turns = iter(range(10_000))
    search, _ = searched(lambda s: (s, next(turns) % 5 == 4, 5))
    assert str(search.failure).startswith("No period from 0.001 s on was free of waiting")
    turns = iter(range(10_000))
    search, _ = searched(lambda s: (s, next(turns) % 6 == 5, 5))
    assert search.period_s == 1.0


def test_a_period_in_which_nothing_passes_is_widened_until_something_does() -> None:
    # An item every 200 ms.
    taken = {"s": 0.0}

    def machine(period_s: float) -> tuple[float, bool, float]:
        before = taken["s"]
        taken["s"] += period_s
        items = math.floor(taken["s"] / 0.2) - math.floor(before / 0.2)
        return period_s, period_s > 0.3, items

    assert searched(machine)[0].period_s == 0.256


def test_after_the_end_nothing_changes_it() -> None:
    search, _ = searched(lambda s: (s, False, 1))
    for _ in range(10):
        search.tell(5.0, True, 0)
    assert (search.period_s, search.finished, search.failure) == (1.0, True, None)


@given(
    st.lists(
        st.tuples(st.floats(0.98, 1.02), st.booleans(), st.integers(0, 3)), min_size=1, max_size=60
    ),
    st.booleans(),
)
def test_it_ends_and_never_answers_a_period_that_was_not_kept(
    pattern: list[tuple[float, bool, int]], unblocked: bool
) -> None:
    seen: list[tuple[float, float, bool]] = []

    def machine(period_s: float) -> tuple[float, bool, float]:
        stretch, blocked, items = pattern[len(seen) % len(pattern)]
        seen.append((period_s, stretch, blocked))
        return stretch * period_s, blocked, items

    search, wanted = searched(machine, unblocked=unblocked)
    assert len(wanted) <= 200 * (math.ceil(math.log2(1.0 / 0.001)) + 1)
    if search.period_s is None:
        assert search.failure is not None
        return
    last = [each for each in seen if each[0] == search.period_s]
    good = [abs(s - 1.0) <= 0.005 * (1 + 1e-9) and not (b and unblocked) for _, s, b in last]
    assert any(all(good[at : at + 5]) for at in range(len(good) - 4))
