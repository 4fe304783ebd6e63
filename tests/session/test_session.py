from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_cases import analysed_again
from tests.session.telling import codes, number, reason, tell

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.errors import StoreFailed, WorkloadFailed
from benchrigor.model import Code, Estimate, Options, Progress, RoundPlan, RunRecord, StopReason
from benchrigor.protocols import Recorder
from benchrigor.session import Session, default_rules
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, MemoryStore, SyntheticWorkload


class Counting:
    """Gives ten readings a round and does something odd in one of them."""

    def __init__(self, odd: int | None = None, error: BaseException | None = None) -> None:
        self.odd = odd
        self.error = error

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        if plan.index == self.odd and self.error is not None:
            raise self.error
        recorder.unit_readings("time", [1.0 + 0.01 * (i % 3) for i in range(10)])


def synthetic(clock: FakeClock) -> SyntheticWorkload:
    return SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock)


@pytest.mark.parametrize(
    ("error", "raised", "why"),
    [
        (KeyError("x"), WorkloadFailed, StopReason.WORKLOAD_FAILED),
        (KeyboardInterrupt(), KeyboardInterrupt, StopReason.INTERRUPTED),
    ],
)
def test_what_a_workload_raises_loses_no_finished_round(
    tmp_path: Path, error: BaseException, raised: type[BaseException], why: StopReason
) -> None:
    store = Journal(tmp_path / "runs.sqlite")
    with pytest.raises(raised) as caught:
        Session(seed=1, store=store).run(Counting(3, error))
    record = caught.value.record  # type: ignore[attr-defined]  # set on the way out
    assert error in {caught.value, caught.value.__cause__}
    assert (reason(record), len(record.rounds)) == (why, 3)
    assert (Code.WORKLOAD_FAILED in codes(record)) is (raised is WorkloadFailed)
    assert store.load(record.run_id).to_dict() == record.to_dict()


def test_a_stop_requested_by_a_hook_finishes_the_round() -> None:
    session: Session

    def stop_at_two(plan: RoundPlan) -> None:
        if plan.index == 2:
            session.request_stop()

    session = Session(seed=1, before_round=stop_at_two)
    record = session.run(Counting())
    assert (reason(record), len(record.rounds)) == (StopReason.STOP_REQUESTED, 3)


def test_each_round_is_kept_before_the_next_one_starts() -> None:
    store = MemoryStore()
    kept = []

    def count(_plan: RoundPlan) -> None:
        kept.append(sum(len(store.load(run["run_id"]).rounds) for run in store.runs()))

    Session(Options(max_rounds=4), seed=1, store=store, before_round=count).run(Counting())
    assert kept == [0, 1, 2, 3]


class Full(MemoryStore):
    """A store that cannot keep the third round, or the result."""

    def __init__(self, *, for_rounds: bool) -> None:
        super().__init__()
        self._for_rounds = for_rounds

    def append(self, run_id: str, finished: br.Round) -> None:
        if self._for_rounds and finished.plan.index == 2:
            raise StoreFailed("disk is full")
        super().append(run_id, finished)

    def finish(self, run_id: str, record: RunRecord) -> None:
        if not self._for_rounds:
            raise StoreFailed("disk is full")
        super().finish(run_id, record)


def test_a_round_that_the_store_cannot_keep_is_not_told() -> None:
    session = Session(seed=1, store=Full(for_rounds=True))
    with pytest.raises(StoreFailed) as caught:
        session.run(Counting())
    assert isinstance(caught.value.record, RunRecord)
    assert len(caught.value.record.rounds) == 2
    assert session.ask() is not None


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (None, StoreFailed),
        (KeyError("x"), WorkloadFailed),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_store_that_cannot_keep_the_result_hides_neither_record_nor_error(
    error: BaseException | None, raised: type[BaseException]
) -> None:
    session = Session(Options(max_rounds=3), seed=1, store=Full(for_rounds=False))
    with pytest.raises(raised) as caught:
        session.run(Counting(2, error))
    assert len(caught.value.record.rounds) == (3 if error is None else 2)  # type: ignore[attr-defined]


def test_a_run_cut_off_is_taken_up_with_every_round_once(tmp_path: Path) -> None:
    path, clock = tmp_path / "runs.sqlite", FakeClock()
    options = Options(target=0.001, budget_readings=2000)
    whole = Session(options, seed=1, clock=clock).run(synthetic(clock))
    workload, cut = synthetic(clock), Session(options, seed=1, clock=clock, store=path)
    for _ in range(7):  # and then the process dies
        plan = cut.ask()
        assert plan is not None
        values = workload.draw(plan)
        tell(cut, {"elapsed_ns": int(values.sum() * 1e9), "unit_readings": {"time": values}})
    run_id = Journal(path).runs()[0]["run_id"]
    resumed = Session.resume(path, run_id, clock=clock).run(workload)
    assert [each.plan for each in resumed.rounds] == [each.plan for each in whole.rounds]
    assert resumed.readings() == pytest.approx(whole.readings())
    assert resumed.estimate() == whole.estimate()
    assert len(Journal(path).load(run_id).rounds) == len(whole.rounds) == 8


def test_the_number_that_stood_before_a_run_was_resumed_is_not_lost(tmp_path: Path) -> None:
    path, clock = tmp_path / "runs.sqlite", FakeClock()
    short = Options(target=0.0001, budget_readings=1_000)
    first = Session(short, seed=1, clock=clock, store=path).run(synthetic(clock))
    assert first.run_id is not None

    slower = iter(range(100_000))
    for readings in (2_000, 3_000):  # resumed twice, each time with a leak
        more = replace(short, budget_readings=readings)
        session = Session.resume(path, first.run_id, options=more, clock=clock)
        resumed = session.run(lambda: clock.advance(1_000_000 + 150 * next(slower)))
        assert resumed.estimate() is None
        for record in (resumed, Journal(path).load(first.run_id)):
            (kept,) = (each for each in record.notices if each.code is Code.EARLIER_NUMBER)
            known = number(first)
            assert (kept.evidence["value"], kept.evidence["low"]) == (known.value, known.low)

    more = Options(target=0.5, trim="none", budget_readings=4_000)
    session = Session.resume(path, first.run_id, options=more, clock=clock)
    found = session.run(lambda: clock.advance(1_000_000))
    assert found.estimate() is not None
    assert Code.EARLIER_NUMBER not in codes(found)


def test_numbers_of_numpy_are_numbers() -> None:
    options = Options(budget_readings=np.int64(20), budget_s=np.int64(5), target=np.float32(0.5))  # type: ignore[arg-type]
    session = Session(options, seed=np.int64(3))  # type: ignore[arg-type]
    tell(session, {"elapsed_ns": np.int64(5), "readings": {"time": 1.0}})
    assert RunRecord.from_dict(session.result().to_dict()).to_dict() == session.result().to_dict()


def test_a_function_or_generator_function_of_an_amount_is_adapted(clock: FakeClock) -> None:
    amounts: list[float] = []

    def job(amount: int) -> None:
        amounts.append(amount)
        clock.advance(200_000_000 + amount * 1_000_000)

    def steps(amount: int) -> Iterator[None]:
        clock.advance(200_000_000)
        for _ in range(amount):
            clock.advance(1_000_000)
            yield

    options = Options(work=(0, 10_000), max_rounds=12)
    timed = Session(options, seed=1, clock=clock).run(job)
    stepped = Session(options, seed=1, clock=clock).run(steps)
    assert amounts == [each.plan.work for each in timed.rounds]
    assert len(set(amounts)) > 5
    durations = [each.duration_s for each in timed.rounds]
    assert durations == pytest.approx([0.2 + amount / 1000 for amount in amounts])
    sizes = [each.unit_readings["time"].size for each in stepped.rounds]
    assert sizes == [each.plan.work for each in stepped.rounds]


class Warming:
    """Gives a slow first round."""

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        rng = np.random.default_rng(plan.index)
        recorder.unit_readings("time", rng.normal(2.0 if plan.index == 0 else 1.0, 0.1, 300))


def test_a_stored_run_is_analysed_by_the_detector_that_it_names(tmp_path: Path) -> None:
    options = Options(detector="pelt", max_rounds=4, target=1e-9)
    store = tmp_path / "runs"
    record = Session(options, store=store, clock=FakeClock(), seed=1).run(Warming())
    assert record.run_id is not None
    stored = Journal(store).load(record.run_id)
    for analysis in (each.analyses[0] for each in (record, stored, analysed_again(stored))):
        (phase,) = analysis.phases
        assert (phase.change_points.indices, phase.change_points.level) == ((300,), None)
        assert analysis.fits == record.analyses[0].fits
    more = replace(options, max_rounds=5)
    resumed = Session.resume(store, record.run_id, options=more, clock=FakeClock())
    (phase,) = resumed.run(Warming()).analyses[0].phases
    assert (phase.change_points.n, phase.change_points.level) == (1500, None)


# The least seconds on the wall clock


class Wall(FakeClock, WallClock):
    """A wall clock that moves only when it is told to."""


def spanning(clock: FakeClock, *, rules: Any = None, **given: Any) -> RunRecord:
    session = Session(Options(target=0.5, **given), seed=1, clock=clock, rules=rules)
    record = session.run(SyntheticWorkload(mean=1e-4, cv=0.1, seed=1, clock=clock))
    assert reason(record) is StopReason.SATISFIED
    return record


def test_readings_span_the_least_seconds_on_the_wall_clock_only() -> None:
    for record in (spanning(FakeClock()), spanning(Wall(), min_seconds=0)):
        assert record.readings().size == 750
    assert 1.0 <= spanning(Wall()).elapsed_s < 1.6  # a look at each time and a half
    assert 3.0 <= spanning(Wall(), min_seconds=3.0).elapsed_s < 4.6


def test_rules_of_ones_own_wait_for_the_least_seconds_too() -> None:
    rules = [lambda _: None, *default_rules(Options(target=0.5))]
    assert spanning(Wall(), rules=rules).elapsed_s >= 1.0


def test_a_run_taken_up_again_spans_the_least_seconds_in_all_and_foresees_them() -> None:
    clock, store, left = Wall(), MemoryStore(), []

    def note(progress: Progress) -> None:
        if progress.fresh and progress.decision is None and progress.readings_needed == 0:
            left.append((progress.elapsed_s, progress.seconds_left))

    workload = SyntheticWorkload(mean=1e-4, cv=0.1, seed=1, clock=clock)
    options = Options(target=0.5, budget_s=0.3)
    first = Session(options, seed=1, clock=clock, store=store).run(workload)
    assert reason(first) is StopReason.TIME_BUDGET
    assert first.run_id is not None
    longer = Options(target=0.5)
    again = Session.resume(store, first.run_id, options=longer, clock=clock, progress=note)
    second = again.run(workload)
    assert reason(second) is StopReason.SATISFIED
    assert 1.0 <= second.elapsed_s < 1.6
    assert left
    assert [seconds for _, seconds in left] == pytest.approx([1.0 - spent for spent, _ in left])


# The figure that is shown before there is an estimate


def rough(progress: Progress) -> Estimate | None:
    """Return the figure that is shown before there is an estimate."""
    return None if progress.provisional is None else progress.provisional.estimate


def figures(seen: list[Progress]) -> list[float]:
    return [figure.value for figure in map(rough, seen) if figure is not None]


def test_a_slow_function_has_a_figure_after_each_call_until_it_is_estimated() -> None:
    clock, seen = FakeClock(), list[Progress]()
    durations = iter([400_000_000, 420_000_000] * 50)
    br.measure(
        lambda: clock.advance(next(durations)), progress=seen.append, budget_s=10.0, clock=clock
    )
    first, second = map(rough, seen[:2])
    assert first is not None
    assert second is not None
    assert (first.value, first.high) == (0.4, math.inf)
    assert 0.4 < second.value < 0.42
    assert second.low < 0.41 < second.high < math.inf
    assert len(set(figures(seen))) > 5  # it moves
    assert seen[-1].analyses
    assert seen[-1].provisional is None


def test_no_rule_looks_at_it() -> None:
    """A series without any spread looks perfectly known, and is not stopped for."""
    engine = br.Session(br.Options(target=0.5, budget_s=1e6), seed=1)
    for _ in range(20):
        tell(engine, {"elapsed_ns": 10**9, "unit_readings": {"time": [1.0]}})
    progress = engine.progress
    assert progress is not None
    figure = rough(progress)
    assert figure is not None
    assert figure.half_width == 0.0
    assert all(rule(progress) is None for rule in default_rules(engine.options))
