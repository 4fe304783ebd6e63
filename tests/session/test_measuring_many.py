"""Turns: the order of several sessions, and what is kept when one of them fails."""

import copy
import pickle
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from tests.session.telling import reason

import benchrigor as br
from benchrigor.errors import WorkloadFailed
from benchrigor.model import StopReason
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


def by_turns():
    """Measure three functions in six pieces each; return their records and their turns."""
    clock, calls = FakeClock(), []
    functions = {
        name: timed(clock, 100_000 * (at + 1), calls, name) for at, name in enumerate("abc")
    }
    records = br.measure_many(functions, budget_s=3.0, target=1e-9, seed=1, clock=clock)
    return records, turns_of(calls)


def test_functions_take_turns_by_pieces():
    records, turns = by_turns()
    assert list(records) == ["a", "b", "c"]
    for at, record in enumerate(records.values()):
        assert record.analysis().kind == "pieces"
        assert record.estimate().n == 6
        assert record.estimate().value == pytest.approx(1e-4 * (at + 1), rel=0.01)
        assert record.elapsed_s == pytest.approx(3.0, rel=0.02)
    assert len(turns) == 18
    assert all(sorted(turns[at : at + 3]) == ["a", "b", "c"] for at in range(0, 18, 3))
    assert len({tuple(turns[at : at + 3]) for at in range(0, 18, 3)}) > 1
    assert by_turns()[1] == turns


def test_turns_can_be_spread():
    clock, calls = FakeClock(), []
    functions = {name: timed(clock, 500_000, calls, name) for name in "ab"}
    br.measure_many(functions, budget_s=2.0, pieces=4, over_s=60.0, target=1e-9, clock=clock)
    assert clock.now_ns() / 1e9 == pytest.approx(60.5, abs=1.0)


def beside_one_that_raises(error, store):
    """Measure a function beside one that raises after two seconds; return what comes of it."""
    clock, calls = FakeClock(), []

    def raising():
        if clock.now_ns() > 2.2e9:
            raise error
        clock.advance(500_000)

    functions = {"a": timed(clock, 500_000, calls, "a"), "worn": raising}
    with pytest.raises((WorkloadFailed, KeyboardInterrupt)) as caught:
        br.measure_many(functions, budget_s=4.0, clock=clock, store=store)
    assert len(Journal(store).runs()) == 2
    assert all(each["finished"] for each in Journal(store).runs())
    return caught.value, {name: reason(each) for name, each in caught.value.records.items()}


def test_one_that_fails_does_not_stop_the_others(tmp_path):
    raised, reasons = beside_one_that_raises(ValueError("worn out"), tmp_path / "runs.sqlite")
    assert reasons["worn"] is StopReason.WORKLOAD_FAILED is not reasons["a"]
    assert raised.records["a"].estimate().n >= 4
    assert raised.records["worn"].rounds
    assert raised.record.name == "worn"


def test_an_interrupt_ends_all_and_keeps_all(tmp_path):
    raised, reasons = beside_one_that_raises(KeyboardInterrupt(), tmp_path / "runs.sqlite")
    assert isinstance(raised, KeyboardInterrupt)
    assert reasons == dict.fromkeys(("a", "worn"), StopReason.INTERRUPTED)


def test_progress_names_who_is_under_way():
    clock, seen = FakeClock(), set()
    functions = {name: timed(clock, 500_000, [], name) for name in ("first", "second")}
    br.measure_many(functions, budget_s=2.0, clock=clock, progress=lambda each: seen.add(each.name))
    assert seen == {"first", "second"}


# The dict of runs, and its text


def ranked(**times_us):
    clock = FakeClock()
    functions = {name: partial(clock.advance, 1000 * us) for name, us in times_us.items()}
    return br.measure_many(functions, budget_s=0.5, seed=1, clock=clock)


def test_runs_measured_in_turn_are_a_dict_whose_text_ranks_them():
    records = ranked(slow=300, fast=200, twin=300)
    assert isinstance(records, dict)
    assert [*records] == ["slow", "fast", "twin"]
    rows = [line.split()[:2] for line in str(records).splitlines()[3:6]]
    assert rows == [["1.", "fast"], ["2.", "slow"], ["2.", "twin"]]
    assert "\n" not in repr(records)
    for other in (copy.copy(records), pickle.loads(pickle.dumps(records))):  # noqa: S301  # ours
        assert type(other) is type(records)
        assert repr(other) == repr(records)


def test_a_run_without_a_number_stands_last_without_a_place():
    records = ranked(slow=300, fast=200)
    empty = replace(records["slow"], name="none", analyses=())
    lines = str(type(records)({"none": empty, **records})).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["1.", "2.", "none"]
    assert str(type(records)({"none": empty})).splitlines()[1].split()[0] == "none"
    assert (str(type(records)()), repr(type(records)())) == ("no runs", "no runs")
