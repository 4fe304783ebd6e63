from __future__ import annotations

import pytest

import benchrigor as br
from benchrigor.clocks import WallClock
from benchrigor.machine import StatusReader
from benchrigor.model import Options, Round
from benchrigor.session import Engine, Session
from benchrigor.session.fitness import status_watch
from benchrigor.session.fitness.status_watch import StatusWatch, watch_for
from benchrigor.testing import FakeClock, FakeSampler

MS = 1_000_000
COST_S = 0.002


class Watched:
    """A session of given rounds on a machine that a test sets, all of it in fake time."""

    def __init__(self, **options: float) -> None:
        self.clock = FakeClock()
        machine = FakeSampler(
            {"cpu busy": 50.0, "steal": None, "storage used": 40.0}, clock=self.clock, cost_s=COST_S
        )
        self.engine = Engine(Options(target=None, **options))  # type: ignore[arg-type]
        self.watch = StatusWatch(self.clock, StatusReader(samplers=[machine], clock=self.clock))

    def round(self, lasting_ms: float) -> Round:
        """Carry out a round."""
        plan = self.engine.ask()
        assert plan is not None
        self.passed_ns = self.watch.before()
        self.clock.advance(round(lasting_ms * MS))
        done = Round(plan=plan, elapsed_ns=round(lasting_ms * MS), unit_readings={"time": [0.1]})
        finished = self.watch.after(done)
        self.engine.tell(finished)
        return finished


def machine_facts(finished: Round) -> dict[str, object]:
    return {
        name.removeprefix("machine: "): value
        for name, value in finished.facts.items()
        if name.startswith("machine: ")
    }


def test_what_is_known_of_the_machine_stands_in_the_facts_of_a_round_by_its_short_names() -> None:
    watched = Watched()
    assert machine_facts(watched.round(500)) == {"span_s": 0.502, "cpu busy": 50.0}


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


def test_simulated_time_and_short_sessions_are_not_watched() -> None:
    assert watch_for(Options(), FakeClock()) is None
    assert watch_for(Options(budget_s=0.1), WallClock()) is None
    assert watch_for(Options(), WallClock()) is not None


@pytest.mark.slow
def test_a_run_tells_what_its_machine_was_like(monkeypatch) -> None:
    monkeypatch.setattr(status_watch, "_MOST_SHARE", 1e9)  # however slow a reading is here
    monkeypatch.setattr(status_watch, "_LEAST_BUDGET_S", 0.0)
    facts = Session(br.Options(target=None, budget_s=0.2), seed=1).run(lambda: None).facts
    assert facts["machine: span_s"] > 0.0
