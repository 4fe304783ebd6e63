"""Processes measured in turn, pair by pair."""

from __future__ import annotations

import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

import benchrigor as br
from benchrigor import errors
from benchrigor.clocks import WallClock
from benchrigor.model import RoundPlan
from benchrigor.protocols import Recorder
from benchrigor.session.pairs.measuring_processes import measure_processes
from benchrigor.session.pairs.pair_engine import PairEngine, PairRound
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, SyntheticWorkload
from benchrigor.workloads import CommandWorkload, InterpreterWorkload


def told(engine: PairEngine, ratio: float, *, between: float, seed: int, n: int = 100) -> None:
    """Tell an engine invocations of a candidate that takes so many times as long."""
    rng = np.random.default_rng(seed)
    while (plan := engine.ask()) is not None:
        drift = 1.0 + 0.3 * np.sin(plan.index / 5.0)

        def invocation(mean: float, drift: float = drift) -> np.ndarray:
            level = mean * drift * rng.normal(1.0, between)
            return level * rng.normal(1.0, 0.02, n)

        engine.tell(
            PairRound(
                plan=plan,
                baseline=[invocation(1e-4) for _ in range(plan.pairs)],
                candidate=[invocation(ratio * 1e-4) for _ in range(plan.pairs)],
                elapsed_ns=400_000_000,
                busy_s=4.0 * n * 1e-4,
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, "equivalent"), (1.05, "worse"), (0.9, "better")]
)
def test_drift_cancels_in_pairs_of_invocations(ratio: float, verdict: str):
    engine = PairEngine(by_round=True, seed=1, budget_s=120.0)
    told(engine, ratio, between=0.01, seed=2)
    found = engine.result()
    assert str(found.verdict) == verdict
    assert found.unit == "pair"
    assert found.ratio.low < ratio < found.ratio.high


def told_paces(engine: PairEngine, *, seed: int, slope: float) -> br.Comparison:
    """Tell pairs of a candidate 5 % slower, between whose processes the machine changes its pace.

    The logarithm of readings follows that of the reference by ``slope``: 0 is as of a sleep.
    """
    rng = np.random.default_rng(seed)
    while (plan := engine.ask()) is not None:
        paces = rng.choice([1.0, 1.8], size=(plan.pairs, 2))
        means = paces**slope * [1e-4, 1.05e-4]
        series = means[..., None] * rng.normal(1.0, 0.02, (plan.pairs, 2, 50))
        sides = {"baseline": [*series[:, 0]], "candidate": [*series[:, 1]]}
        engine.tell(PairRound(plan=plan, **sides, elapsed_ns=200_000_000, paces=5e-6 * paces))
    return engine.result()


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_pairs_are_brought_to_one_pace_as_far_as_they_follow_it(slope):
    found = [
        told_paces(PairEngine(by_round=True, seed=seed, budget_s=5.0), seed=seed, slope=slope)
        for seed in range(20)
    ]
    # Fewer hold it with a chance of 0.3 % at a share of 0.95.
    assert sum(each.ratio.low < 1.05 < each.ratio.high for each in found) >= 16
    assert max(each.ratio.relative_half_width for each in found) < 0.01


def test_the_median_of_processes_of_one_reading_is_that_of_all_of_them():
    """A few runs of twice the time move each mean, and no median."""
    engine = PairEngine(by_round=True, seed=1, budget_s=60.0, statistic="median")
    rng = np.random.default_rng(3)
    sides = {}
    while (plan := engine.ask()) is not None:
        for side, level in (("baseline", 0.1), ("candidate", 0.11)):
            slow = rng.choice((1.0, 2.0), p=(0.85, 0.15), size=plan.pairs)
            sides[side] = [[each] for each in level * slow * rng.normal(1.0, 0.01, plan.pairs)]
        engine.tell(PairRound(plan=plan, **sides, elapsed_ns=400_000_000, busy_s=0.4))
    found = engine.result()
    assert (found.statistic, str(found.verdict)) == ("median", "worse")
    assert found.baseline.value == pytest.approx(0.1, rel=0.02)
    assert found.ratio.low < 1.1 < found.ratio.high < 1.13


def test_a_plan_is_one_block_of_four():
    engine = PairEngine(by_round=True, seed=1)
    plan = engine.ask()
    assert len(plan.order) == 4
    assert plan.order[:2] != plan.order[2:]
    assert plan.readings == 500


@pytest.mark.parametrize(("slow", "readings"), [(0, 100), (20, 100), (200, 500)])
def test_invocations_are_short_unless_they_would_end_within_the_warm_up(slow, readings):
    """A machine changes its pace less from one short process to the next."""
    engine = PairEngine(by_round=True, seed=1)
    plan = engine.ask()
    series = np.random.default_rng(5).normal(1e-4, 1e-5, (4, plan.readings))
    series[:, :slow] *= 1.5
    sides = {"baseline": [*series[:2]], "candidate": [*series[2:]]}
    engine.tell(PairRound(plan=plan, **sides, elapsed_ns=400_000_000, busy_s=series.sum()))
    assert engine.ask().readings == readings


def synthetic(mean: float, seed: int, clock: FakeClock) -> SyntheticWorkload:
    return SyntheticWorkload(mean=mean, restarted=True, seed=seed, clock=clock)


@pytest.mark.slow
def test_each_side_is_kept_as_a_run_that_names_the_other(tmp_path: Path):
    clock, store = FakeClock(), tmp_path / "runs.sqlite"
    subjects = ({"kind": "old"}, {"kind": "new"})
    options = {"clock": clock, "seed": 1, "budget_s": 1.0, "store": store}
    found = measure_processes(
        synthetic(1e-4, 1, clock), synthetic(1.1e-4, 2, clock), subjects=subjects, **options
    )
    assert str(found.verdict) == "worse"
    kept = [Journal(store).load(each["run_id"]) for each in Journal(store).runs()]
    assert sorted(each.subject["as"] for each in kept) == ["baseline", "candidate"]
    assert {each.subject["kind"] for each in kept} == {"old", "new"}
    assert len({len(each.rounds) for each in kept}) == 1
    assert all(each.decision is not None for each in kept)


class Failing:
    """A workload that fails in its third round."""

    fresh_process = True

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        if plan.index == 2:
            raise ValueError("no such luck")
        recorder.unit_readings("time", [1e-4] * plan.readings)


def test_a_side_that_fails_is_named_and_the_rounds_before_are_kept(tmp_path: Path):
    clock, store = FakeClock(), tmp_path / "runs.sqlite"
    with pytest.raises(errors.WorkloadFailed) as raised:
        measure_processes(synthetic(1e-4, 1, clock), Failing(), clock=clock, seed=1, store=store)
    assert raised.value.record.paired
    rounds = [each["rounds"] for each in Journal(store).runs()]
    assert min(rounds) == 2


@pytest.mark.slow
def test_fresh_interpreters_of_a_pair_measure_by_turns_and_need_no_pace(tmp_path: Path):
    store = tmp_path / "runs.sqlite"
    functions = InterpreterWorkload("os:getcwd"), InterpreterWorkload("os:getpid")
    engines: list[PairEngine] = []
    measure_processes(
        *functions,
        seed=1,
        budget_s=600.0,
        store=store,
        began=engines.append,
        progress=lambda _: engines[0].request_stop(),
    )
    old, new = (Journal(store).load(each["run_id"]) for each in Journal(store).runs())
    pairs = [*zip(old.rounds, new.rounds, strict=False)]
    assert pairs
    assert all(each.facts["by_turns"] for pair in pairs for each in pair)
    assert all(
        max(one.starts_ns[0], two.starts_ns[0]) < min(one.starts_ns[-1], two.starts_ns[-1])
        for one, two in pairs
        if one.unit_readings["time"].size > 100 < two.unit_readings["time"].size
    )


def seed_of_baseline_first() -> int:
    plans = (PairEngine(by_round=True, seed=seed).ask() for seed in range(20))
    return next(seed for seed, plan in enumerate(plans) if plan.order[0] == "baseline")


@pytest.mark.slow
def test_an_interpreter_is_ended_with_the_one_beside_it(tmp_path: Path, monkeypatch):
    code = """
        import os, time
        def fail(): raise ValueError("no such luck")
        def wait():
            with open("pid", "w") as file: file.write(str(os.getpid()))
            time.sleep(600)
    """
    (tmp_path / "besides.py").write_text(textwrap.dedent(code))
    monkeypatch.chdir(tmp_path)
    functions = InterpreterWorkload("besides:fail"), InterpreterWorkload("besides:wait")
    with pytest.raises(errors.WorkloadFailed):
        measure_processes(*functions, seed=seed_of_baseline_first(), budget_s=1200.0)
    if (tmp_path / "pid").exists():  # it had begun
        pid = int((tmp_path / "pid").read_text() or 0)
        assert not psutil.pid_exists(pid)


@pytest.mark.slow
def test_what_an_interpreter_forked_does_not_keep_the_one_beside_it_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    code = """
        import os, time
        if os.fork() == 0: time.sleep(600)
        def die(): os._exit(3)
        def work(): pass
    """
    (tmp_path / "forked.py").write_text(textwrap.dedent(code))
    monkeypatch.chdir(tmp_path)
    functions = InterpreterWorkload("forked:work"), InterpreterWorkload("forked:die")
    with pytest.raises(errors.WorkloadFailed):
        measure_processes(*functions, seed=seed_of_baseline_first(), budget_s=50.0)


@pytest.mark.parametrize(("by_turns", "readings"), [(False, 100), (True, 1_000)])
def test_who_measures_by_turns_does_so_for_as_long_as_a_start(by_turns: bool, readings: int):
    engine = PairEngine(by_round=True, seed=1)
    plan = engine.ask()
    series = np.random.default_rng(5).normal(1e-4, 1e-5, (4, plan.readings))
    sides = {"baseline": [*series[:2]], "candidate": [*series[2:]]}
    busy_s = float(series.sum())
    elapsed_ns = round(1e9 * (busy_s + 4 * 0.1))
    told = PairRound(plan=plan, **sides, elapsed_ns=elapsed_ns, busy_s=busy_s, by_turns=by_turns)
    engine.tell(told)
    assert engine.ask().readings == pytest.approx(readings, rel=0.01)


@pytest.mark.slow
def test_both_runs_are_compared_again_invocation_by_invocation(tmp_path: Path):
    clock, store = FakeClock(), tmp_path / "runs.sqlite"
    options = {"clock": clock, "seed": 1, "budget_s": 2.0, "store": store}
    found = measure_processes(synthetic(1e-4, 1, clock), synthetic(1.02e-4, 2, clock), **options)
    kept = [Journal(store).load(each["run_id"]) for each in Journal(store).runs()]
    old, new = sorted(kept, key=lambda each: str(each.subject["as"]))
    again = br.compare_runs(old, new, paired=True)
    assert again.unit == found.unit == "pair"
    assert again.ratio is not None
    assert (again.ratio.low, again.ratio.high) == (found.ratio.low, found.ratio.high)


@pytest.mark.slow
def test_a_process_that_was_ended_has_none_beside_it(tmp_path: Path):
    store = tmp_path / "runs.sqlite"
    make = partial(CommandWorkload, [sys.executable, "-c", ""], clock=WallClock())
    found = measure_processes(make(), make(), seed=1, budget_s=5.0, store=store)
    kept = [Journal(store).load(each["run_id"]) for each in Journal(store).runs()]
    old, new = sorted(kept, key=lambda each: str(each.subject["as"]))
    again = br.compare_runs(old, new, paired=True)
    assert (again.ratio is None) == (found.ratio is None)
    assert again.p_value == found.p_value
