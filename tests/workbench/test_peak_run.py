"""Searches that are carried out, kept and taken up."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import numpy as np
import pytest

import benchrigor as br
from benchrigor.errors import WorkloadFailed
from benchrigor.model import codec
from benchrigor.stats import estimate_mean
from benchrigor.testing import FakeClock, MemoryStore, SimulatedServer
from benchrigor.workbench import PeakRun, PeakSearch
from benchrigor.workbench.peak_run import search_of
from benchrigor.workloads.processes import time_limits

LIMIT = br.Limit(metric="mean", at_most=0.04)
OPTIONS = {"limits": [LIMIT], "setup_s": 5.0}


class Dying(SimulatedServer):
    """A server that cannot be reached from the fourth trial on."""

    offered = 0

    def offer(self, trial: br.LoadTrial) -> br.LoadResult:
        self.offered += 1
        if self.offered > 3:
            raise WorkloadFailed("a single request failed: refused")
        return super().offer(trial)


class WithReadings(SimulatedServer):
    """A server whose trials tell how uncertain their mean is, as those of a load generator."""

    def offer(self, trial: br.LoadTrial) -> br.LoadResult:
        result = super().offer(trial)
        mean_s = result.mean_response_s or 0.0
        readings = np.random.default_rng(trial.id).exponential(mean_s, 50)
        return replace(result, response=estimate_mean(readings))


def run_of(search: PeakSearch, store: MemoryStore | None = None) -> PeakRun:
    kept = {**OPTIONS, "limits": codec.encode([LIMIT])}
    return PeakRun(search, name="peak of a queue", options=kept, store=store)


class Timed(SimulatedServer):
    """A server whose trials take longer than they tell: something is started before each."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(200.0)
        self._clock = clock

    def offer(self, trial: br.LoadTrial) -> br.LoadResult:
        self._clock.advance(15 * 10**9)
        return replace(super().offer(trial), spent_s={"run": 10.0})


def test_time_between_trials_and_before_their_run_is_of_the_budget(clock):
    search = PeakSearch(threshold_s=0.04, accuracy=1e-4, budget_s=200.0)
    run = PeakRun(search, name="queue", now_ns=clock.now_ns)
    found = run.carry_out(Timed(clock), after=lambda *_: clock.advance(20 * 10**9))
    first, *others = [dict(each.result.spent_s) for each in found.trials]
    assert first == {"decision": 0.0, "set-up": 5.0, "run": 10.0}
    assert others == [{"decision": 20.0, "set-up": 5.0, "run": 10.0}] * 5
    assert (found.status, found.cost_s) == (br.PeakStatus.BUDGET_SPENT, 190.0)


def test_after_its_last_trial_it_is_known_how_the_search_ended():
    statuses: list[br.PeakStatus | None] = []
    run = run_of(PeakSearch(**OPTIONS))
    found = run.carry_out(
        SimulatedServer(200.0), after=lambda _trial, peak: statuses.append(peak.status)
    )
    assert statuses == [None] * (len(found.trials) - 1) + [br.PeakStatus.FOUND]


@pytest.mark.slow
def test_each_trial_is_a_round_of_its_load():
    store = MemoryStore()
    run = run_of(PeakSearch(**OPTIONS), store)
    found = run.carry_out(SimulatedServer(200.0, noise=0.05))
    record = store.load(run.kept.run_id or "")
    assert [each.plan.work for each in record.rounds] == [t.asked.load for t in found.trials]
    assert record.estimate() == found.load
    assert record.decision.satisfied


@pytest.mark.slow
def test_a_stored_search_says_the_same_as_the_one_before():
    store = MemoryStore()
    run = run_of(PeakSearch(**OPTIONS), store)
    found = run.carry_out(WithReadings(200.0, noise=0.05))
    assert all(each.error > 0.0 for each in found.trials)
    again = search_of(store.load(run.kept.run_id or "")).result()
    assert [each.error for each in again.trials] == [each.error for each in found.trials]
    assert again.load == found.load


@pytest.mark.slow
def test_what_is_finished_is_kept_and_taken_up():
    store, server = MemoryStore(), Dying(200.0, noise=0.05)
    run = run_of(PeakSearch(**OPTIONS), store)
    with pytest.raises(WorkloadFailed) as caught:
        run.carry_out(server)
    assert len(caught.value.record.rounds) == 3
    kept = store.load(run.kept.run_id or "")
    assert len(kept.rounds) == 3
    search = search_of(kept)
    taken_up = PeakRun.resumed(search, kept, store)
    found = taken_up.carry_out(SimulatedServer(200.0, noise=0.05, seed=2))
    assert found.status is br.PeakStatus.FOUND
    assert [each.asked.id for each in found.trials] == list(range(len(found.trials)))
    whole = store.load(run.kept.run_id or "")
    assert len(whole.rounds) == len(found.trials) > 3


@pytest.mark.slow
def test_a_search_that_was_taken_up_asks_what_it_would_have_asked():
    straight = PeakSearch(**OPTIONS)
    server = SimulatedServer(300.0, noise=0.1)
    recalled = PeakSearch(**OPTIONS)
    while (trial := straight.ask()) is not None:
        assert recalled.ask() == trial
        result = server.offer(trial)
        straight.tell(trial, result)
        recalled = PeakSearch(**OPTIONS)
        for each in straight.result().trials:
            recalled.recall(each.asked, each.result)
    assert recalled.ask() is None


def test_a_trial_that_was_repeated_is_not_repeated_when_the_search_is_taken_up():
    straight, recalled = PeakSearch(**OPTIONS), PeakSearch(**OPTIONS)
    for lag_s in (1.0, 0.0):
        trial = straight.ask()
        assert trial is not None
        straight.tell(trial, br.LoadResult(mean_response_s=0.01, lag_p99_s=lag_s))
    invalid, repeated = straight.result().trials
    assert invalid.invalid
    assert repeated.asked.load == invalid.asked.load
    for each in (invalid, repeated):
        recalled.recall(each.asked, each.result)
    assert recalled.ask() == straight.ask()


@pytest.mark.slow
def test_results_keep_all_they_have():
    class Crashing:
        def offer(self, trial: br.LoadTrial) -> br.LoadResult:
            return br.LoadResult(
                mean_response_s=None if trial.load > 100 else 0.01,
                crashed=trial.load > 100,
                metrics={"depth": 3.0},
                failures={"status 500": 2},
                sent=round(1.5 * trial.load) + 4,
                failed=2,
                lag_p99_s=0.001,
                spent_s={"run": 1.5, "teardown": 0.5},
            )

    store = MemoryStore()
    run = run_of(PeakSearch(**OPTIONS), store)
    found = run.carry_out(Crashing())
    again = search_of(store.load(run.kept.run_id or "")).result()
    assert [each.result for each in again.trials] == [each.result for each in found.trials]
    assert again.cost_s == found.cost_s >= 2.0 * len(found.trials)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer signals")
def test_a_trial_that_hangs_ends_the_search_and_finished_ones_are_kept(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(time_limits, "_GRACE_S", 0.2)

    class Hanging(SimulatedServer):
        def offer(self, trial: br.LoadTrial) -> br.LoadResult:
            if trial.id == 2:
                time.sleep(600.0)
            return replace(super().offer(trial), spent_s={"run": 1.0})

    search, store = PeakSearch(threshold_s=0.04, budget_s=4.0), MemoryStore()
    run = run_of(search, store)
    begun = time.monotonic()
    found = run.carry_out(Hanging(200.0))
    assert time.monotonic() - begun < 300.0
    assert found.status is br.PeakStatus.BUDGET_SPENT
    assert len(found.trials) == 2
    assert found.notices
    assert len(store.load(run.kept.run_id or "").rounds) == 2
