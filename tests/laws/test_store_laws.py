"""What every store must do, run over each of them alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.errors import StoreFailed
from benchrigor.model import (
    Analysis,
    Capability,
    ChangePoints,
    Code,
    Decision,
    Estimate,
    Metric,
    Notice,
    Options,
    Phase,
    Round,
    RoundPlan,
    RunRecord,
    StablePhase,
    StopReason,
    Subsessions,
    codec,
)
from benchrigor.model.analysis import Kind, PhaseLabel, PhaseReason
from benchrigor.model.run import Provenance
from benchrigor.model.series import as_series
from benchrigor.protocols import Store
from benchrigor.storage import Journal
from benchrigor.testing.stores import MemoryStore

TIME = Metric(name="time", unit="s")
NOTICE = Notice.warning(Code.SHORT_RUN, "Short.", n=3, x=None)
PROVENANCE = Provenance(
    host="host",
    system="Linux",
    cpu="cpu",
    cores=2,
    python="CPython 3",
    packages={"numpy": "2"},
    commit=None,
    capabilities=(Capability(name="smt", available=False, reason="hidden"),),
    started_at="2024-01-01T00:00:00+00:00",
    load_before=0.5,
)
HEADER = RunRecord(
    name="sort a list",
    options=Options(budget_s=math.inf),
    metrics=(TIME,),
    seed=7,
    rounds=(),
    analyses=(),
    provenance=PROVENANCE,
    subject={"command": ["sort", "list"], "env": {"A": "1"}},
)


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


def a_result(run_id: str, rounds: tuple[Round, ...]) -> RunRecord:
    estimate = Estimate(
        value=1.5, low=1.0, high=2.0, confidence=0.95, n=2, n_effective=2.0, method="m"
    )
    stable = StablePhase(
        start=0,
        stop=2,
        reason=PhaseReason.STABLE,
        phases=(Phase(start=0, stop=2, label=PhaseLabel.STABLE, median=1.5),),
        change_points=ChangePoints(indices=(), n=2, level=0.01, inflation=1.0),
    )
    means = as_series([1.0, 2.5])
    analysis = Analysis(
        metric=TIME,
        kind=Kind.UNIT_READINGS,
        n=2,
        n_kept=2,
        phases=(stable,),
        subsessions=Subsessions(size=1, means=means, autocorrelation=0.0, dropped=0, limit=0.1),
        estimate=estimate,
        notices=(NOTICE,),
    )
    return replace(
        HEADER,
        rounds=rounds,
        analyses=(analysis,),
        decision=Decision(stop=True, reason=StopReason.SATISFIED),
        session_notices=(NOTICE,),
        provenance=replace(PROVENANCE, load_after=0.75),
        run_id=run_id,
    )


def test_every_store_offers_the_protocol(store: Store) -> None:
    assert isinstance(store, Store)


def test_a_run_that_was_only_begun_gives_back_its_header(store: Store) -> None:
    run_id = store.begin(HEADER)
    assert store.load(run_id).to_dict() == replace(HEADER, run_id=run_id).to_dict()
    assert store.load(run_id).rounds == ()


def test_an_unfinished_run_gives_back_its_header_and_its_rounds(store: Store) -> None:
    run_id = store.begin(HEADER)
    rounds = (a_round(0), a_round(1))
    for each in rounds:
        store.append(run_id, each)
    assert store.load(run_id).to_dict() == replace(HEADER, rounds=rounds, run_id=run_id).to_dict()


def test_a_finished_run_gives_back_the_same_record(store: Store) -> None:
    run_id = store.begin(HEADER)
    rounds = (a_round(0), a_round(1, [3.0]), a_round(2, range(5)))
    for each in rounds:
        store.append(run_id, each)
    record = a_result(run_id, rounds)
    store.finish(run_id, record)
    loaded = store.load(run_id)
    assert loaded.to_dict() == record.to_dict()
    assert str(loaded) == str(record)


def test_rounds_come_back_by_index(store: Store) -> None:
    run_id = store.begin(HEADER)
    for index in (2, 0, 10, 1):
        store.append(run_id, a_round(index))
    assert [each.plan.index for each in store.load(run_id).rounds] == [0, 1, 2, 10]


def test_a_round_is_never_counted_twice_nor_replaced(store: Store) -> None:
    run_id = store.begin(HEADER)
    store.append(run_id, a_round(3, [1.0]))
    with pytest.raises(StoreFailed, match="round 3 of run"):
        store.append(run_id, a_round(3, [2.0]))
    (kept,) = store.load(run_id).rounds
    assert codec.encode(kept) == codec.encode(a_round(3, [1.0]))


def test_runs_keep_their_rounds_apart(store: Store) -> None:
    first, second = store.begin(HEADER), store.begin(HEADER)
    assert first != second
    store.append(first, a_round(0, [1.0]))
    store.append(second, a_round(0, [2.0]))
    assert store.load(first).rounds[0].unit_readings["time"][0] == 1.0
    assert store.load(second).rounds[0].unit_readings["time"][0] == 2.0


def test_an_unknown_run_is_refused_by_its_name(store: Store) -> None:
    store.begin(HEADER)
    for use in (
        lambda: store.append("nobody", a_round(0)),
        lambda: store.finish("nobody", HEADER),
        lambda: store.load("nobody").rounds,
        lambda: store.load("nobody"),
    ):
        with pytest.raises(StoreFailed, match="'nobody'"):
            use()


def test_of_several_results_the_latest_counts(store: Store) -> None:
    run_id = store.begin(HEADER)
    store.append(run_id, a_round(0))
    first = a_result(run_id, (a_round(0),))
    second = replace(first, decision=Decision(stop=True, reason=StopReason.STOP_REQUESTED))
    store.finish(run_id, first)
    store.finish(run_id, second)
    assert store.load(run_id).to_dict() == second.to_dict()
    assert store.runs()[0]["reason"] == "stop-requested"


def test_a_run_that_was_taken_up_again_is_unfinished_until_its_next_result(store: Store) -> None:
    run_id = store.begin(HEADER)
    store.append(run_id, a_round(0))
    store.finish(run_id, a_result(run_id, (a_round(0),)))
    assert store.runs()[0]["finished"]
    store.append(run_id, a_round(1))
    assert not store.runs()[0]["finished"]
    assert store.load(run_id).decision is None
    record = a_result(run_id, (a_round(0), a_round(1)))
    store.finish(run_id, record)
    assert store.load(run_id).to_dict() == record.to_dict()


def test_runs_are_listed_newest_first_with_how_they_stand(store: Store) -> None:
    older = store.begin(HEADER)
    newer = store.begin(replace(HEADER, name="compress"))
    store.append(older, a_round(0))
    record = a_result(older, (a_round(0),))
    store.finish(older, record)
    started_at = PROVENANCE.started_at
    assert list(store.runs()) == [
        {
            "run_id": newer,
            "name": "compress",
            "started_at": started_at,
            "commit": PROVENANCE.commit,
            "rounds": 0,
            "finished": False,
            "reason": None,
            "headline": "",
        },
        {
            "run_id": older,
            "name": "sort a list",
            "started_at": started_at,
            "commit": PROVENANCE.commit,
            "rounds": 1,
            "finished": True,
            "reason": "satisfied",
            "headline": str(record),
        },
    ]


def test_runs_are_found_by_a_part_of_their_name_or_id(store: Store) -> None:
    run_id = store.begin(HEADER)
    store.begin(replace(HEADER, name="compress"))
    assert [run["run_id"] for run in store.runs("a list")] == [run_id]
    assert [run["run_id"] for run in store.runs(run_id)] == [run_id]
    assert list(store.runs("%")) == []


READINGS = st.lists(
    st.floats(min_value=-1e150, max_value=1e150, allow_subnormal=True), min_size=1, max_size=8
)
NAMES = st.text(min_size=1, max_size=5)


TOLD = st.lists(
    st.tuples(
        st.dictionaries(NAMES, READINGS, max_size=3),
        st.dictionaries(NAMES, st.floats(-1e150, 1e150), max_size=3),
        st.dictionaries(NAMES, st.none() | st.booleans() | st.integers() | NAMES, max_size=3),
    ),
    max_size=4,
)


@pytest.mark.slow
def test_whatever_rounds_are_stored_the_same_come_back_bit_by_bit(store: Store) -> None:
    @given(told=TOLD)
    @settings(max_examples=20, derandomize=True, deadline=None)
    def check(told: list[tuple[dict, dict, dict]]) -> None:
        run_id = store.begin(HEADER)
        rounds = [
            Round(
                plan=RoundPlan(index=index),
                elapsed_ns=index,
                unit_readings=units,
                readings=single,
                facts=facts,
            )
            for index, (units, single, facts) in enumerate(told)
        ]
        for each in rounds:
            store.append(run_id, each)
        for given_back, each in zip(store.load(run_id).rounds, rounds, strict=True):
            assert codec.encode(given_back) == codec.encode(each)
            for name, series in each.unit_readings.items():
                assert given_back.unit_readings[name].tobytes() == series.tobytes()

    check()
