from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_cases import analysed_again

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.errors import StoreFailed, WorkloadFailed
from benchrigor.model import (
    Code,
    Options,
    Progress,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
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


def ended(record: RunRecord) -> StopReason | None:
    return record.decision.reason if record.decision else None


def synthetic(clock: FakeClock, seed: int = 1) -> SyntheticWorkload:
    return SyntheticWorkload(mean=0.001, cv=0.1, seed=seed, clock=clock)


def test_a_workload_that_raises_loses_no_finished_round(tmp_path: Path) -> None:
    store = Journal(tmp_path / "runs.sqlite")
    session = Session(seed=1, store=store)
    with pytest.raises(WorkloadFailed) as caught:
        session.run(Counting(3, KeyError("x")))
    record = caught.value.record
    assert isinstance(record, RunRecord)
    assert isinstance(caught.value.__cause__, KeyError)
    assert len(record.rounds) == 3
    assert ended(record) is StopReason.WORKLOAD_FAILED
    assert Code.WORKLOAD_FAILED in [notice.code for notice in record.notices]
    assert record.run_id is not None
    assert store.load(record.run_id).to_dict() == record.to_dict()


def test_a_keyboard_interrupt_passes_on_and_keeps_the_finished_rounds(tmp_path: Path) -> None:
    store = Journal(tmp_path / "runs.sqlite")
    session = Session(seed=1, store=store)
    with pytest.raises(KeyboardInterrupt) as caught:
        session.run(Counting(4, KeyboardInterrupt()))
    record = session.result()
    assert len(record.rounds) == 4
    assert ended(record) is StopReason.INTERRUPTED
    interrupted = caught.value.record  # type: ignore[attr-defined]  # set on the way out
    assert interrupted.to_dict() == record.to_dict()
    assert record.run_id is not None
    assert len(store.load(record.run_id).rounds) == 4


def test_a_workload_that_ends_gives_what_it_gave() -> None:
    clock = FakeClock()

    def forty():  # type: ignore[no-untyped-def]  # as a user writes it
        for _ in range(40):
            clock.advance(1_000_000)
            yield

    record = Session(Options(target=0.02), seed=1, clock=clock).run(forty)
    assert ended(record) is StopReason.EXHAUSTED
    assert record.readings().size == 40
    assert Code.NOT_CONVERGED in [notice.code for notice in record.notices]


@pytest.mark.parametrize("hook", ["before_round", "after_round", "progress"])
def test_a_failing_hook_is_reported_and_ends_the_session_cleanly(hook: str) -> None:
    calls = []

    def failing(argument: object) -> None:
        calls.append(argument)
        if len(calls) == 3:
            raise RuntimeError("disk of the hook is full")

    record = Session(seed=1, **{hook: failing}).run(Counting())  # type: ignore[arg-type]
    assert ended(record) is StopReason.HOOK_FAILED
    notice = next(each for each in record.notices if each.code is Code.HOOK_FAILED)
    assert hook in notice.sentence
    assert len(record.rounds) == (2 if hook == "before_round" else 3)


def test_progress_comes_once_a_round() -> None:
    seen: list[Progress] = []
    clock = FakeClock()
    record = Session(seed=1, clock=clock, progress=seen.append).run(synthetic(clock))
    assert [each.rounds for each in seen] == list(range(1, len(record.rounds) + 1))
    assert seen[-1].decision == record.decision


def test_a_stop_requested_by_a_hook_finishes_the_round() -> None:
    session: Session

    def stop_at_two(plan: RoundPlan) -> None:
        if plan.index == 2:
            session.request_stop()

    session = Session(seed=1, before_round=stop_at_two)
    record = session.run(Counting())
    assert ended(record) is StopReason.STOP_REQUESTED
    assert len(record.rounds) == 3


def test_each_round_is_kept_before_the_next_one_starts() -> None:
    store = MemoryStore()
    kept = []

    def count(_plan: RoundPlan) -> None:
        kept.append(sum(len(store.load(run["run_id"]).rounds) for run in store.runs()))

    Session(Options(max_rounds=4), seed=1, store=store, before_round=count).run(Counting())
    assert kept == [0, 1, 2, 3]


def test_a_round_that_the_store_cannot_keep_is_not_told() -> None:
    class Full(MemoryStore):
        def append(self, run_id: str, finished: br.Round) -> None:
            if finished.plan.index == 2:
                raise StoreFailed("disk is full")
            super().append(run_id, finished)

    session = Session(seed=1, store=Full())
    with pytest.raises(StoreFailed) as caught:
        session.run(Counting())
    record = caught.value.record
    assert isinstance(record, RunRecord)
    assert len(record.rounds) == 2
    assert session.ask() is not None


@pytest.mark.slow
def test_a_run_cut_off_is_taken_up_with_every_round_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    options = Options(target=0.001, budget_readings=2000)
    clock = FakeClock()
    whole = Session(options, seed=1, clock=clock).run(synthetic(clock))

    workload = synthetic(clock)
    cut = Session(options, seed=1, clock=clock, store=path)
    for _ in range(7):  # and then the process dies
        plan = cut.ask()
        assert plan is not None
        values = workload.draw(plan)
        elapsed_ns = int(values.sum() * 1e9)
        cut.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"time": values}))
    run_id = Journal(path).runs()[0]["run_id"]
    resumed = Session.resume(path, run_id, clock=clock).run(workload)
    assert [each.plan for each in resumed.rounds] == [each.plan for each in whole.rounds]
    assert resumed.readings() == pytest.approx(whole.readings())
    assert resumed.estimate() == whole.estimate()
    assert Code.RESUMED in [notice.code for notice in resumed.notices]
    assert len(Journal(path).load(run_id).rounds) == len(whole.rounds) == 8


@pytest.mark.slow
def test_a_stopped_run_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    clock = FakeClock()
    workload = synthetic(clock)
    short = Options(target=0.002, budget_readings=600)
    first = Session(short, seed=1, clock=clock, store=path).run(workload)
    assert ended(first) is StopReason.READINGS_BUDGET
    assert first.run_id is not None
    more = Options(target=0.002, budget_readings=100_000, budget_s=60.0)
    second = Session.resume(path, first.run_id, options=more, clock=clock).run(workload)
    assert ended(second) is StopReason.SATISFIED
    assert second.readings().size > 600


@pytest.mark.slow
def test_the_number_that_stood_before_a_run_was_resumed_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    clock = FakeClock()
    short = Options(target=0.0001, budget_readings=1_000)
    first = Session(short, seed=1, clock=clock, store=path).run(synthetic(clock))
    known = first.estimate()
    assert known is not None
    assert first.run_id is not None

    slower = iter(range(100_000))
    for readings in (2_000, 3_000):  # resumed twice, each time with a leak
        more = Options(target=0.0001, budget_readings=readings)
        session = Session.resume(path, first.run_id, options=more, clock=clock)
        resumed = session.run(lambda: clock.advance(1_000_000 + 150 * next(slower)))
        assert resumed.estimate() is None
        stored = Journal(path).load(first.run_id)
        for record in (resumed, stored):
            (kept,) = (each for each in record.notices if each.code is Code.EARLIER_NUMBER)
            assert kept.evidence["value"] == known.value
            assert kept.evidence["low"] == known.low

    more = Options(target=0.5, trim="none", budget_readings=4_000)
    session = Session.resume(path, first.run_id, options=more, clock=clock)
    found = session.run(lambda: clock.advance(1_000_000))
    assert found.estimate() is not None
    assert Code.EARLIER_NUMBER not in [each.code for each in found.notices]


def test_a_seed_is_drawn_and_kept_when_none_is_given() -> None:
    seeds = {Session().result().seed for _ in range(5)}
    assert len(seeds) == 5


class FullAtTheEnd(MemoryStore):
    """A store of which the disk is full when the result is to be written."""

    def finish(self, run_id: str, record: RunRecord) -> None:
        raise StoreFailed("disk is full")


def test_a_store_that_cannot_keep_the_result_hides_neither_record_nor_error() -> None:
    with pytest.raises(StoreFailed) as caught:
        Session(Options(max_rounds=3), seed=1, store=FullAtTheEnd()).run(Counting())
    assert isinstance(caught.value.record, RunRecord)
    assert len(caught.value.record.rounds) == 3
    with pytest.raises(WorkloadFailed) as failed:
        Session(seed=1, store=FullAtTheEnd()).run(Counting(2, KeyError("x")))
    assert isinstance(failed.value.record, RunRecord)
    with pytest.raises(KeyboardInterrupt):
        Session(seed=1, store=FullAtTheEnd()).run(Counting(2, KeyboardInterrupt()))


def test_a_run_cut_off_before_its_first_result_still_gives_its_readings(tmp_path: Path) -> None:
    session = Session(seed=1, store=tmp_path / "runs.sqlite")
    plan = session.ask()
    assert plan is not None
    session.tell(br.Round(plan=plan, elapsed_ns=5, readings={"time": 2.0}))
    journal = Journal(tmp_path / "runs.sqlite")
    record = journal.load(journal.runs()[0]["run_id"])
    assert record.readings().tolist() == record.readings("time").tolist() == [2.0]


def test_ask_and_tell_write_the_result_down_as_run_does(tmp_path: Path) -> None:
    session = Session(Options(max_rounds=3), seed=1, store=tmp_path / "runs.sqlite")
    while (plan := session.ask()) is not None:
        session.tell(br.Round(plan=plan, elapsed_ns=5, readings={"time": 1.0 + plan.index}))
    journal = Journal(tmp_path / "runs.sqlite")
    (run,) = journal.runs()
    assert run["finished"]
    assert journal.load(run["run_id"]).estimate() == session.result().estimate()


def test_a_session_that_got_nothing_says_so() -> None:
    def at_once():  # type: ignore[no-untyped-def]  # as a user writes it
        return
        yield

    record = Session(seed=1, clock=FakeClock(cost_ns=10)).run(at_once)
    assert record.estimate() is None
    assert Code.NO_DATA in [notice.code for notice in record.notices]


def test_a_fast_first_step_does_not_overdraw_the_budget() -> None:
    clock = FakeClock()

    def slow_after_the_first():  # type: ignore[no-untyped-def]  # as a user writes it
        yield
        while True:
            clock.advance(2 * 10**9)
            yield

    record = Session(Options(budget_s=30.0), seed=1, clock=clock).run(slow_after_the_first)
    assert record.elapsed_s < 60.0


def test_numbers_of_numpy_are_numbers() -> None:
    options = Options(budget_readings=np.int64(20), budget_s=np.int64(5), target=np.float32(0.5))  # type: ignore[arg-type]
    session = Session(options, seed=np.int64(3))  # type: ignore[arg-type]
    plan = session.ask()
    assert plan is not None
    session.tell(br.Round(plan=plan, elapsed_ns=np.int64(5), readings={"time": 1.0}))  # type: ignore[arg-type]
    assert RunRecord.from_dict(session.result().to_dict()).to_dict() == session.result().to_dict()


@pytest.mark.slow
def test_a_function_or_generator_function_of_an_amount_is_adapted() -> None:
    clock = FakeClock()
    amounts: list[float] = []

    def job(amount: int) -> None:
        amounts.append(amount)
        clock.advance(200_000_000 + amount * 1_000_000)

    def steps(amount: int):  # type: ignore[no-untyped-def]  # as a user writes it
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


def test_a_function_of_an_amount_is_called_with_the_one_amount_of_a_session() -> None:
    clock, amounts = FakeClock(), set()

    def job(amount: float) -> None:
        amounts.add(amount)
        clock.advance(3_000_000)

    record = Session(Options(work=50), seed=1, clock=clock).run(job)
    estimate = record.estimate("time")
    assert amounts == {50}
    assert estimate is not None
    assert estimate.value == pytest.approx(0.003)


def test_a_restarted_session_says_that_nothing_restarts_a_function_of_an_amount() -> None:
    clock = FakeClock()
    options = Options(work=(0, 10_000), rounds="restarted", max_rounds=12)
    record = Session(options, seed=1, clock=clock).run(lambda n: clock.advance(10**9 + n * 10**6))
    assert Code.THIS_PROCESS_ONLY in [notice.code for notice in record.notices]


def test_a_session_writes_nothing_where_nobody_listens(capfd: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    Session(Options(target=0.05), seed=1, clock=clock).run(synthetic(clock))
    assert capfd.readouterr() == ("", "")


class Warming:
    """Gives a slow first round."""

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        rng = np.random.default_rng(plan.index)
        recorder.unit_readings("time", rng.normal(2.0 if plan.index == 0 else 1.0, 0.1, 300))


@pytest.mark.slow
def test_a_stored_run_is_analysed_by_the_detector_that_it_names(tmp_path: Path) -> None:
    options = Options(detector="pelt", max_rounds=4, target=1e-9)
    store = tmp_path / "runs"
    record = Session(options, store=store, clock=FakeClock(), seed=1).run(Warming())
    assert record.run_id is not None
    stored = Journal(store).load(record.run_id)
    cut_off = analysed_again(stored)
    for analysis in (record.analyses[0], stored.analyses[0], cut_off.analyses[0]):
        (phase,) = analysis.phases
        assert (phase.change_points.indices, phase.change_points.level) == ((300,), None)
        assert analysis.fits == record.analyses[0].fits
    compared = br.compare_runs(stored, replace(stored, name="again"))
    assert compared.baseline is not None
    assert compared.baseline.value == record.analyses[0].fits[0].level
    more = replace(options, max_rounds=5)
    resumed = Session.resume(store, record.run_id, options=more, clock=FakeClock())
    (phase,) = resumed.run(Warming()).analyses[0].phases
    assert (phase.change_points.n, phase.change_points.level) == (1500, None)


# The least seconds on the wall clock


class Wall(FakeClock, WallClock):
    """A wall clock that moves only when it is told to."""


def on(clock: FakeClock, **given: Any) -> Session:
    return Session(Options(**{"target": 0.5, **given}), seed=1, clock=clock)


@pytest.mark.slow
def test_readings_span_the_least_seconds_on_the_wall_clock_only() -> None:
    fast = {"mean": 1e-4, "cv": 0.1, "seed": 1}
    found = {}
    for name, clock, given in (
        ("wall", Wall(), {}),
        ("three", Wall(), {"min_seconds": 3.0}),
        ("none", Wall(), {"min_seconds": 0}),
        ("fake", FakeClock(), {}),
    ):
        session = on(clock, **given)
        found[name] = session.run(SyntheticWorkload(clock=clock, **fast))  # type: ignore[arg-type]
        assert ended(found[name]) is StopReason.SATISFIED
    assert found["fake"].readings().size == found["none"].readings().size == 750
    assert found["fake"].elapsed_s < 0.1
    assert 1.0 <= found["wall"].elapsed_s < 1.6  # a look at each time and a half
    assert 3.0 <= found["three"].elapsed_s < 4.6


def test_rounds_that_are_told_need_not_span_any_seconds() -> None:
    rng, session = np.random.default_rng(1), Session(Options(target=0.5), seed=1)
    while (plan := session.ask()) is not None:
        values = rng.normal(1.0, 0.1, plan.readings)
        session.tell(Round(plan=plan, elapsed_ns=1_000, unit_readings={"time": values}))
    record = session.result()
    assert ended(record) is StopReason.SATISFIED
    assert record.readings().size == 750


def test_rules_of_ones_own_wait_for_the_least_seconds_too() -> None:
    options = Options(target=0.5)
    rules = [lambda _: None, *default_rules(options)]
    clock = Wall()
    session = Session(options, seed=1, clock=clock, rules=rules)
    record = session.run(SyntheticWorkload(mean=1e-4, cv=0.1, seed=1, clock=clock))
    assert ended(record) is StopReason.SATISFIED
    assert record.elapsed_s >= 1.0


@pytest.mark.slow
def test_the_time_left_is_at_least_what_the_wall_clock_asks_for() -> None:
    clock, left = Wall(), []

    def note(progress: Progress) -> None:
        if progress.fresh and progress.decision is None and progress.readings_needed == 0:
            left.append((progress.elapsed_s, progress.seconds_left))

    session = Session(Options(target=0.5), seed=1, clock=clock, progress=note)
    session.run(SyntheticWorkload(mean=1e-4, cv=0.1, seed=1, clock=clock))
    assert left
    assert [seconds for _, seconds in left] == pytest.approx([1.0 - spent for spent, _ in left])


@pytest.mark.slow
def test_a_run_taken_up_again_spans_the_least_seconds_in_all() -> None:
    clock, store = Wall(), MemoryStore()
    workload = SyntheticWorkload(mean=1e-4, cv=0.1, seed=1, clock=clock)
    options = Options(target=0.5, budget_s=0.3)
    first = Session(options, seed=1, clock=clock, store=store).run(workload)
    assert ended(first) is StopReason.TIME_BUDGET
    assert first.run_id is not None
    again = Session.resume(store, first.run_id, options=Options(target=0.5), clock=clock)
    second = again.run(workload)
    assert ended(second) is StopReason.SATISFIED
    assert 1.0 <= second.elapsed_s < 1.6
