"""What every store must do, run over each of them alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.errors import StoreFailed
from benchrigor.model import (
    Code,
    Decision,
    Notice,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.protocols import Store
from benchrigor.session import Session
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, MemoryStore, SyntheticWorkload

NOTICE = Notice.of(Code.SHORT_RUN, n=3, noun_="readings", wanted=None)
CLOCK = FakeClock()
RESULT = Session(
    Options(budget_s=math.inf, max_rounds=2),
    name="sort a list",
    subject={"command": ["sort", "list"], "env": {"A": "1"}},
    seed=7,
    clock=CLOCK,
).run(SyntheticWorkload(mean=1e-3, cv=0.1, seed=1, clock=CLOCK))
HEADER = replace(RESULT, rounds=(), analyses=(), decision=None, session_notices=())


@pytest.fixture(params=["journal", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        with Journal(tmp_path / "runs.sqlite") as journal:
            yield journal


def a_round(index: int, values: object = (1.0, 2.5)) -> Round:
    return Round(
        plan=RoundPlan(index=index, work=10.0, readings=2, seed=index),
        elapsed_ns=1000 + index,
        unit_readings={"time": values},
        readings={"throughput": 3.25},
        facts={"inner": 4, "gc": True, "first": 0.5, "clock": "wall", "none": None},
        notices=(NOTICE,),
    )


def a_result(run_id: str, *rounds: Round) -> RunRecord:
    return replace(RESULT, rounds=rounds, session_notices=(NOTICE,), run_id=run_id)


def begin(store: Store, *rounds: Round) -> str:
    """Begin a run that has taken these rounds; return its id."""
    run_id = store.begin(HEADER)
    for each in rounds:
        store.append(run_id, each)
    return run_id


def listed(run_id: str, record: RunRecord, **more: object) -> dict[str, object]:
    """Return the row of a run that has just begun, but for ``more``."""
    assert record.provenance is not None
    row = {"run_id": run_id, "name": record.name, "started_at": record.provenance.started_at}
    row |= {"commit": record.provenance.commit, "rounds": 0, "finished": False}
    return {**row, "reason": None, "headline": "", **more}


def test_every_store_offers_the_protocol(store: Store) -> None:
    assert isinstance(store, Store)


@pytest.mark.parametrize("rounds", [(), (a_round(0), a_round(1))], ids=len)
def test_a_run_without_a_result_gives_back_its_header_and_its_rounds(
    store: Store, rounds: tuple[Round, ...]
) -> None:
    run_id = begin(store, *rounds)
    assert store.load(run_id).to_dict() == replace(HEADER, rounds=rounds, run_id=run_id).to_dict()


def test_a_finished_run_gives_back_the_same_record(store: Store) -> None:
    rounds = (a_round(0), a_round(1, [3.0]), a_round(2, range(5)))
    run_id = begin(store, *rounds)
    record = a_result(run_id, *rounds)
    store.finish(run_id, record)
    loaded = store.load(run_id)
    assert loaded.to_dict() == record.to_dict()
    assert str(loaded) == str(record)


def test_rounds_come_back_by_index_and_runs_keep_theirs_apart(store: Store) -> None:
    first = begin(store, *(a_round(index) for index in (2, 0, 10, 1)))
    second = begin(store, a_round(0, [2.0]))
    assert first != second
    assert [each.plan.index for each in store.load(first).rounds] == [0, 1, 2, 10]
    assert [each.unit_readings["time"][0] for each in store.load(second).rounds] == [2.0]


def test_a_round_is_never_counted_twice_nor_replaced(store: Store) -> None:
    run_id = begin(store, a_round(3, [1.0]))
    with pytest.raises(StoreFailed):
        store.append(run_id, a_round(3, [2.0]))
    kept = replace(HEADER, rounds=(a_round(3, [1.0]),), run_id=run_id)
    assert store.load(run_id).to_dict() == kept.to_dict()


def test_an_unknown_run_is_refused_by_its_name(store: Store) -> None:
    store.begin(HEADER)
    for use in (
        lambda: store.append("nobody", a_round(0)),
        lambda: store.finish("nobody", HEADER),
        lambda: store.load("nobody"),
    ):
        with pytest.raises(StoreFailed, match="'nobody'"):
            use()


def test_of_several_results_the_latest_counts(store: Store) -> None:
    run_id = begin(store, a_round(0))
    first = a_result(run_id, a_round(0))
    second = replace(first, decision=Decision(stop=True, reason=StopReason.STOP_REQUESTED))
    store.finish(run_id, first)
    store.finish(run_id, second)
    assert store.load(run_id).to_dict() == second.to_dict()
    assert store.runs()[0]["reason"] == "stop-requested"


def test_a_run_that_was_taken_up_again_is_unfinished_until_its_next_result(store: Store) -> None:
    run_id = begin(store, a_round(0))
    store.finish(run_id, a_result(run_id, a_round(0)))
    assert store.runs()[0]["finished"]
    store.append(run_id, a_round(1))
    assert not store.runs()[0]["finished"]
    assert store.load(run_id).decision is None
    record = a_result(run_id, a_round(0), a_round(1))
    store.finish(run_id, record)
    assert store.load(run_id).to_dict() == record.to_dict()


def test_runs_are_listed_newest_first_and_found_by_a_part_of_their_name_or_id(
    store: Store,
) -> None:
    older = begin(store, a_round(0))
    other = replace(HEADER, name="compress")
    newer = store.begin(other)
    record = a_result(older, a_round(0))
    store.finish(older, record)
    finished = {"rounds": 1, "finished": True, "headline": str(record)}
    one = listed(older, HEADER, reason="round-limit-reached", **finished)
    assert list(store.runs()) == [listed(newer, other), one]
    assert list(store.runs("a list")) == list(store.runs(older)) == [one]
    assert list(store.runs("%")) == []


NUMBERS = st.floats(-1e150, 1e150)
NAMES = st.text(min_size=1, max_size=5)
FIELDS = st.fixed_dictionaries(
    {
        "unit_readings": st.dictionaries(NAMES, st.lists(NUMBERS, min_size=1), max_size=3),
        "readings": st.dictionaries(NAMES, NUMBERS, max_size=3),
        "facts": st.dictionaries(NAMES, st.none() | st.booleans() | st.integers() | NAMES),
    }
)


def test_whatever_rounds_are_stored_the_same_come_back_bit_by_bit(store: Store) -> None:
    @given(told=st.lists(FIELDS, max_size=4))
    @settings(max_examples=20, derandomize=True, deadline=None)
    def check(told: list[dict[str, Any]]) -> None:
        rounds = [
            Round(plan=RoundPlan(index=index), elapsed_ns=index, **fields)
            for index, fields in enumerate(told)
        ]
        run_id = begin(store, *rounds)
        loaded = store.load(run_id)
        assert loaded.to_dict() == replace(HEADER, rounds=tuple(rounds), run_id=run_id).to_dict()
        for given_back, each in zip(loaded.rounds, rounds, strict=True):
            for name, series in each.unit_readings.items():
                assert given_back.unit_readings[name].tobytes() == series.tobytes()

    check()
