"""Turns: the order of several sessions, and what is kept when one of them fails."""

from itertools import pairwise

import numpy as np
import pytest

import benchrigor as br
from benchrigor.errors import WorkloadFailed
from benchrigor.model import StopReason
from benchrigor.session.turns.rotation import next_order
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock


def timed(clock, ns, calls, name):
    """Return a function that moves the clock, and notes when it was called."""

    def call():
        calls.append((name, clock.now_ns()))
        clock.advance(ns + 7 * (len(calls) % 11))

    return call


def turns_of(calls):
    """Return the names in the order in which their pieces came."""
    names = [name for name, _ in calls]
    return [names[0], *(after for before, after in pairwise(names) if after != before)]


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 5, 12, 60])
def test_half_a_turn_lies_between_two_pieces_of_one(n):
    rng, before = np.random.default_rng(n), [str(each) for each in range(n)]
    places = {name: [] for name in before}
    for _ in range(200):
        order = next_order(before, rng)
        assert sorted(order) == sorted(before)
        for name in order:
            gap = n - before.index(name) + order.index(name)
            assert gap > n / 2
            places[name].append(order.index(name))
        before = order
    if n > 2:  # of two, one is always first
        means = np.array([np.mean(each) for each in places.values()])
        assert np.abs(means - (n - 1) / 2).max() < 0.25 * n


@pytest.mark.slow
def test_functions_take_turns_by_pieces():
    clock, calls = FakeClock(), []
    functions = {
        name: timed(clock, 100_000 * (at + 1), calls, name) for at, name in enumerate("abc")
    }
    records = br.measure_many(functions, budget_s=3.0, target=1e-9, seed=1, clock=clock)
    assert list(records) == ["a", "b", "c"]
    for at, record in enumerate(records.values()):
        assert record.analysis().kind == "pieces"
        assert record.estimate().n == 6
        assert record.estimate().value == pytest.approx(1e-4 * (at + 1), rel=0.01)
        assert record.elapsed_s == pytest.approx(3.0, rel=0.02)
    turns = turns_of(calls)
    assert len(turns) == 18
    assert all(sorted(turns[at : at + 3]) == ["a", "b", "c"] for at in range(0, 18, 3))
    assert len({tuple(turns[at : at + 3]) for at in range(0, 18, 3)}) > 1
    again = []
    clock = FakeClock()
    same = {name: timed(clock, 100_000 * (at + 1), again, name) for at, name in enumerate("abc")}
    br.measure_many(same, budget_s=3.0, target=1e-9, seed=1, clock=clock)
    assert turns_of(again) == turns


def test_turns_can_be_spread():
    clock, calls = FakeClock(), []
    functions = {name: timed(clock, 500_000, calls, name) for name in "ab"}
    br.measure_many(functions, budget_s=2.0, pieces=4, over_s=60.0, target=1e-9, clock=clock)
    assert clock.now_ns() / 1e9 == pytest.approx(60.5, abs=1.0)


def test_one_that_fails_does_not_stop_the_others(tmp_path):
    clock, calls = FakeClock(), []

    def failing():
        if clock.now_ns() > 2e9:
            raise ValueError("worn out")
        clock.advance(500_000)

    functions = {"a": timed(clock, 500_000, calls, "a"), "worn": failing}
    with pytest.raises(WorkloadFailed, match="worn out") as caught:
        br.measure_many(functions, budget_s=4.0, clock=clock, store=tmp_path / "runs.sqlite")
    records = caught.value.records
    assert records["a"].estimate().n >= 4
    assert records["worn"].decision.reason is StopReason.WORKLOAD_FAILED
    assert records["worn"].rounds
    assert caught.value.record is records["worn"] or caught.value.record.name == "worn"
    assert len(Journal(tmp_path / "runs.sqlite").runs()) == 2


def test_an_interrupt_ends_all_and_keeps_all(tmp_path):
    clock, calls = FakeClock(), []

    def interrupting():
        clock.advance(500_000)
        if clock.now_ns() > 2.2e9:
            raise KeyboardInterrupt

    functions = {"a": timed(clock, 500_000, calls, "a"), "stopped": interrupting}
    with pytest.raises(KeyboardInterrupt) as caught:
        br.measure_many(functions, budget_s=4.0, clock=clock, store=tmp_path / "runs.sqlite")
    records = caught.value.records
    assert set(records) == {"a", "stopped"}
    assert {each.decision.reason for each in records.values()} == {StopReason.INTERRUPTED}
    assert all(each["finished"] for each in Journal(tmp_path / "runs.sqlite").runs())


def test_progress_names_who_is_under_way():
    clock, seen = FakeClock(), set()
    functions = {name: timed(clock, 500_000, [], name) for name in ("first", "second")}
    br.measure_many(functions, budget_s=2.0, clock=clock, progress=lambda each: seen.add(each.name))
    assert seen == {"first", "second"}


@pytest.mark.parametrize(
    ("budget_s", "pieces"), [(10.0, 6), (1.2, 6), (1.0, 5), (0.5, 4), (0.12, 2), (0.06, 1)]
)
def test_short_budgets_have_fewer_pieces(budget_s, pieces):
    clock = FakeClock()
    functions = {name: lambda: clock.advance(2_000_000) for name in "ab"}
    records = br.measure_many(functions, budget_s=budget_s, target=1e-9, seed=1, clock=clock)
    assert len({each.plan.piece for each in records["a"].rounds}) == pieces
