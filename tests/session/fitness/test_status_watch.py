from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.machine import Alarms, StatusReader
from benchrigor.model import Code, Options, Progress, Round, RunRecord, StopReason
from benchrigor.session import Session
from benchrigor.session.conditions.standing_alarms import MOST_WAIT_S
from benchrigor.session.engine import Engine
from benchrigor.session.fitness import status_watch
from benchrigor.session.fitness.status_watch import StatusWatch, watch_for
from benchrigor.testing import FakeClock, FakeSampler

MS = 1_000_000
COST_S = 0.002


class Watched:
    """A session of given rounds on a machine that a test sets, all of it in fake time."""

    def __init__(self, *, cost_s: float = COST_S, **options: Any) -> None:
        self.clock = FakeClock()
        self.machine = FakeSampler(
            {"cpu busy": 50.0, "steal": None, "storage used": 40.0}, clock=self.clock, cost_s=cost_s
        )
        self.alarms = Alarms()
        self.told: list[Progress] = []
        self.engine = Engine(Options(target=None, **options))
        reader = StatusReader(samplers=[self.machine], clock=self.clock)
        self.watch = StatusWatch(self.engine.options, self.clock, reader, self.alarms)

    def round(self, lasting_ms: float) -> Round | None:
        """Carry out a round, unless the session has ended."""
        plan = self.engine.ask()
        self.passed_ns = self.watch.before(self.engine, self.told.append)
        if plan is None or self.engine.decision is not None:
            return None
        self.clock.advance(round(lasting_ms * MS))
        done = Round(plan=plan, elapsed_ns=round(lasting_ms * MS), unit_readings={"time": [0.1]})
        finished = self.watch.after(done)
        self.engine.tell(finished)
        return finished


def machine_facts(finished: Round | None) -> dict[str, object]:
    assert finished is not None
    return {
        name.removeprefix("machine: "): value
        for name, value in finished.facts.items()
        if name.startswith("machine: ")
    }


def test_what_is_known_of_the_machine_stands_in_the_facts_of_a_round_by_its_short_names() -> None:
    watched = Watched()
    assert machine_facts(watched.round(500)) == {"span_s": 0.502, "cpu busy": 50.0}


def test_on_request_all_of_it_stands_there_with_what_is_missing_and_why() -> None:
    found = machine_facts(Watched(state=True).round(500))
    assert found["storage used"] == 40.0
    assert found["steal"] is None
    assert found["steal reason"] == "a test hides it"
    assert found["cost_s fake"] == COST_S


def test_a_reading_costs_a_hundredth_of_the_time_since_the_last_one_at_most() -> None:
    watched = Watched(budget_s=1000)
    read = [bool(machine_facts(watched.round(50))) for _ in range(100)]
    spent_s = (sum(read) + 1) * COST_S  # and the first one
    assert 0 < spent_s <= 0.01 * 100 * 0.05 + 2 * COST_S


def test_what_a_reading_between_rounds_takes_counts_for_no_round() -> None:
    watched = Watched()
    watched.round(500)
    watched.clock.advance(500 * MS)  # a pause
    watched.round(500)
    assert watched.passed_ns == COST_S * 1e9


def test_a_round_after_a_pause_is_told_of_without_the_pause() -> None:
    watched = Watched()
    watched.round(500)
    watched.clock.advance(9_000 * MS)
    assert machine_facts(watched.round(500))["span_s"] == pytest.approx(0.502)


@pytest.mark.parametrize("on_alarm", ["mark", "wait"])
def test_a_round_is_marked_by_what_stood_before_or_after_it(on_alarm: str) -> None:
    watched = Watched(on_alarm=on_alarm)
    assert "alarm full" not in machine_facts(watched.round(500))
    plan = watched.engine.ask()
    assert plan is not None
    watched.watch.before(watched.engine, None)
    watched.alarms.raise_("full", "It is full.")
    finished = watched.watch.after(Round(plan=plan, elapsed_ns=MS, unit_readings={"time": [0.1]}))
    assert machine_facts(finished)["alarm full"] == "It is full."


def test_where_nobody_asked_alarms_are_told_and_change_nothing() -> None:
    watched = Watched(budget_s=1000)
    watched.alarms.raise_("full", "It is full.")
    watched.machine.values["storage used"] = 99.0
    for _ in range(3):
        assert "alarm full" not in machine_facts(watched.round(11_000))
    assert {each.code for each in watched.alarms.standing()} == {"full", "disk-full"}
    assert watched.engine.result().session_notices == ()


def test_the_session_is_refused_before_the_next_round() -> None:
    watched = Watched(on_alarm="refuse")
    assert watched.round(500) is not None
    watched.alarms.raise_("full", "It is full.")
    assert watched.round(500) is None
    record = watched.engine.result()
    assert record.decision is not None
    assert record.decision.reason is StopReason.ALARM_STANDS
    assert [each.code for each in record.session_notices] == [Code.ALARM_STANDS]


def test_it_waits_until_the_alarm_is_cleared_and_says_so() -> None:
    watched = Watched(on_alarm="wait")
    watched.alarms.raise_("full", "It is full.")
    ticks = iter(range(5))
    watched.clock.sleep_ns = lambda ns: (  # type: ignore[method-assign]
        watched.clock.advance(ns),
        watched.alarms.clear("full") if next(ticks) == 3 else None,
    )
    finished = watched.round(500)
    assert [each.alarms for each in watched.told] == 4 * [("full",)]
    assert watched.told[0].waiting_s == MOST_WAIT_S > watched.told[-1].waiting_s > 0.0
    assert "alarm full" not in machine_facts(finished)
    assert watched.passed_ns >= 4 * 200 * MS


def test_all_rounds_together_wait_for_a_minute_and_are_marked_then() -> None:
    watched = Watched(on_alarm="wait", budget_s=1000)
    watched.alarms.raise_("full", "It is full.")
    waits = []
    for _ in range(3):
        assert machine_facts(watched.round(500))["alarm full"] == "It is full."
        waits.append(watched.passed_ns / 1e9)
    assert MOST_WAIT_S <= waits[0] < MOST_WAIT_S + 1.0
    assert max(waits[1:]) < 0.1
    (notice,) = watched.engine.result().session_notices
    assert notice.evidence == {"alarm": "full", "marked": 3, "rounds": 3}


def test_who_waits_obeys_a_request_to_stop() -> None:
    watched = Watched(on_alarm="wait")
    watched.alarms.raise_("full", "It is full.")
    watched.told = type("Told", (list,), {"append": lambda *_: watched.engine.request_stop()})()
    assert watched.round(500) is None
    assert watched.engine.decision is not None
    assert watched.engine.decision.reason is StopReason.STOP_REQUESTED


def test_a_display_that_raises_ends_the_wait_and_the_session() -> None:
    watched = Watched(on_alarm="wait")
    watched.alarms.raise_("full", "It is full.")
    watched.told = type("Told", (list,), {"append": lambda *_: 1 / 0})()
    assert watched.round(500) is None
    assert watched.engine.decision is not None
    assert watched.engine.decision.reason is StopReason.HOOK_FAILED


def test_simulated_time_and_short_sessions_are_not_watched_unless_somebody_asks() -> None:
    wall = br.Options(budget_s=0.1), WallClock()
    assert watch_for(br.Options(state=True), FakeClock(), None) is None
    assert watch_for(*wall, None) is None
    assert watch_for(*wall, Alarms()) is not None
    assert watch_for(br.Options(budget_s=0.1, state=True), wall[1], None) is not None


def test_a_function_in_one_thread_raises_no_alarm_of_its_own() -> None:
    watch = watch_for(Options(on_alarm="refuse"), WallClock(), None)
    assert watch is not None
    alarms = watch._alarms  # noqa: SLF001  # nobody else is given them
    assert alarms is not None
    assert "under-used" not in {each.code for each in alarms.thresholds}
    assert "throttling" in {each.code for each in alarms.thresholds}


@pytest.fixture
def measured() -> Callable[..., RunRecord]:
    """Run a session by the wall clock."""

    def run(alarms: Alarms | None = None, **options: Any) -> RunRecord:
        given = {"target": None, "budget_s": 0.2, **options}
        return Session(br.Options(**given), seed=1, alarms=alarms).run(lambda: None)

    return run


@pytest.mark.slow
def test_a_run_tells_what_its_machine_was_like(measured, monkeypatch) -> None:
    monkeypatch.setattr(status_watch, "_MOST_SHARE", 1e9)  # however slow a reading is here
    found = measured(state=True).facts
    assert found["machine: memory total"] > 1e6
    assert found["machine: span_s"] > 0.0


@pytest.mark.slow
def test_the_facts_and_options_of_a_record_survive_being_stored(measured, tmp_path) -> None:
    alarms = Alarms()
    alarms.raise_("full", "It is full.")
    record = measured(alarms, on_alarm="mark")
    record.save(tmp_path / "run.json")
    loaded = RunRecord.load(tmp_path / "run.json")
    assert loaded.options == record.options
    assert loaded.rounds[0].facts["machine: alarm full"] == "It is full."
    data = record.to_dict()
    del data["options"]["on_alarm"], data["options"]["state"]  # of a record from before
    assert RunRecord.from_dict(data).options.on_alarm is None


def test_a_session_of_a_plain_function_is_refused_by_alarms_of_its_own(measured) -> None:
    alarms = Alarms()
    alarms.raise_("full", "It is full: remove files.")
    record = measured(alarms, on_alarm="refuse")
    assert record.rounds == ()
    assert "alarm stands" in str(record)
    assert Code.ALARM_STANDS in {each.code for each in record.notices}


def test_alarms_of_another_kind_are_refused() -> None:
    with pytest.raises(br.InvalidInput, match=r"alarms is \['hot'\], expected machine.Alarms"):
        Session(alarms=["hot"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [("on_alarm", "ignore"), ("on_alarm", True), ("state", 1), ("state", None)]
)
def test_other_options_are_refused(name: str, value: object) -> None:
    with pytest.raises(br.InvalidInput, match=f"{name} is {value!r}, expected "):
        Options(**{name: value})  # type: ignore[arg-type]
