"""Choices that are carried out: turns are kept, and taken up again."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.model import Code, Estimate
from benchrigor.model.metric import describe_metric
from benchrigor.storage import Journal
from benchrigor.workbench import BestChoice
from benchrigor.workbench.maps.choice_run import ChoiceRun, TurnDone, recall_turns, turns_of

HOSTS = ["ash", "elm", "fir", "oak"]
PACES = dict(zip(HOSTS, [1.0, 1.3, 0.8, 1.1], strict=True))
POINTS = [{"threads": 4}, {"threads": 8}, {"threads": 16}]
METRIC = describe_metric("rate", "1/s")


@pytest.fixture
def store(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "runs.sqlite")


def a_choice(hosts: list[str] | None = None) -> BestChoice:
    return BestChoice(POINTS, hosts or HOSTS)


def done(turn: Any, *, equal: bool = False) -> TurnDone:
    """Return what a turn finds: more threads are better, or all are equal, with 5 % of noise."""
    noise = np.random.default_rng(turn.id).normal(0.0, 5.0, len(turn.points))
    estimates = []
    for point, off in zip(turn.points, noise.tolist(), strict=True):
        rate = PACES[turn.host] * (90.0 + (off if equal else float(point["threads"])))
        told = {"confidence": 0.95, "n": 9, "n_effective": 9.0, "method": "told"}
        estimates.append(Estimate(value=rate, low=0.99 * rate, high=1.01 * rate, **told))
    return TurnDone(turn=turn, estimates=tuple(estimates))


def finished(found: TurnDone) -> Future[TurnDone]:
    future: Future[TurnDone] = Future()
    future.set_result(found)
    return future


def a_run(choice: BestChoice, store: Journal | None = None) -> ChoiceRun:
    return ChoiceRun(choice, name="a server", metric=METRIC, store=store)


def test_turns_are_kept_as_they_were_told(store: Journal) -> None:
    run = a_run(a_choice(), store)
    found = run.carry_out(lambda turn: finished(done(turn)), hosts=4)
    record = store.load(str(run.kept.run_id))
    assert (found.point, found.verdict) == ({"threads": 16}, "best")
    assert sorted(each.turn.host for each in turns_of(record)) == HOSTS
    assert record.subject["kind"] == "choice"
    assert record.analyses[0].estimate == found.prediction


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 6])
def test_a_choice_that_was_cut_off_repeats_no_turn(store: Journal, cut: int) -> None:
    """It ends as one that was never cut off."""
    whole = a_run(a_choice()).carry_out(lambda turn: finished(done(turn, equal=True)), hosts=1)
    calls: list[int] = []

    def take(turn: Any) -> Future[TurnDone]:
        if len(calls) == cut:
            calls.append(-1)
            raise KeyboardInterrupt
        calls.append(turn.id)
        return finished(done(turn, equal=True))

    run = a_run(a_choice(), store)
    with pytest.raises(KeyboardInterrupt):
        run.carry_out(take, hosts=1)
    again = ChoiceRun.resume(a_choice(), store.load(str(run.kept.run_id)), store)
    assert again.carry_out(take, hosts=1) == whole
    told = [number for number in calls if number >= 0]
    assert told == [*range(len(told))]
    assert len(turns_of(store.load(str(run.kept.run_id)))) == len(told)


def test_a_host_has_one_turn_at_a_time_and_waiting_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Turns take 1 s by a clock of the test; those of the slow host take 5 s."""
    now, ends = [0.0], {}

    def take(turn: Any) -> Future[TurnDone]:
        assert turn.host not in {each.host for _, each in ends.values()}
        future: Future[TurnDone] = Future()
        ends[future] = now[0] + (5.0 if turn.host == "ash" else 1.0), turn
        return future

    def wait(running: object, **_: object) -> Done:
        future = min(ends, key=lambda each: ends[each][0])
        now[0], turn = ends.pop(future)
        cost_s = 5.0 if turn.host == "ash" else 1.0
        future.set_result(replace(done(turn, equal=True), cost_s=cost_s))
        return Done([future])

    monkeypatch.setattr("benchrigor.workbench.maps.map_run.wait", wait)
    costs: list[tuple[str, float]] = []
    run = ChoiceRun(
        a_choice(["ash", "elm"]), name="x", metric=METRIC, now_ns=lambda: round(now[0] * 1e9)
    )
    run.carry_out(take, hosts=2, after=lambda each: costs.append((each.turn.host, each.cost_s)))
    assert len(costs) > 4
    assert set(costs) == {("ash", 5.0), ("elm", 1.0)}


class Done:
    """What `concurrent.futures.wait` returns."""

    def __init__(self, futures: list[Future[TurnDone]]) -> None:
        self.done = futures


def test_turns_that_wait_for_a_lost_host_are_forgotten() -> None:
    """While ash works on its first turn, a second one of it waits."""
    lost: Future[TurnDone] = Future()
    taken: list[Any] = []

    def take(turn: Any) -> Future[TurnDone]:
        taken.append(turn)
        if turn.host != "ash":
            if len(taken) > 2:  # by now the second one of ash waits
                lost.set_result(TurnDone(turn=taken[0], lost="ash is gone"))
            return finished(done(turn))
        assert len(taken) == 1
        return lost

    found = a_run(a_choice(["ash", "elm"])).carry_out(take, hosts=2)
    assert {turn.host for turn in taken[1:]} == {"elm"}
    assert found.point == {"threads": 16}


def test_no_further_turn_is_asked_of_a_lost_host(store: Journal) -> None:
    asked: list[str] = []

    def take(turn: Any) -> Future[TurnDone]:
        asked.append(turn.host)
        is_lost = turn.host == "elm"
        return finished(TurnDone(turn=turn, lost="elm is gone") if is_lost else done(turn))

    run = a_run(a_choice(), store)
    found = run.carry_out(take, hosts=1)
    assert asked.count("elm") == 1
    assert found.point == {"threads": 16}
    record = store.load(str(run.kept.run_id))
    again = ChoiceRun.resume(a_choice(), record, store)
    assert again.record().analyses[0].estimate == found.prediction


def test_a_peak_that_was_not_reached_in_a_turn_ends_no_choice(store: Journal) -> None:
    """The turn is kept with the bound, and taken up with it."""

    def take(turn: Any) -> Future[TurnDone]:
        found = done(turn)
        if turn.id:
            return finished(found)
        estimates = (None, *found.estimates[1:])
        return finished(replace(found, estimates=estimates, better_than=(50.0, None, None)))

    run = a_run(a_choice(), store)
    found = run.carry_out(take, hosts=1)
    record = store.load(str(run.kept.run_id))
    assert turns_of(record)[0].better_than == (50.0, None, None)
    again = a_choice()
    recall_turns(again, record)
    assert again.result() == found
    assert found.notices[0].code is Code.SAMPLES_WITHOUT_NUMBER
