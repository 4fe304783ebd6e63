"""Processes measured in turn, pair by pair."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tests.session.pairs.turns import both, comparing
from tests.session.telling import codes

import benchrigor as br
from benchrigor import errors
from benchrigor.clocks import WallClock
from benchrigor.model import Code, References, RoundPlan
from benchrigor.protocols import Recorder
from benchrigor.session.engine import Engine, Taken
from benchrigor.session.pairs.ratio import Ratio
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, SyntheticWorkload
from benchrigor.workloads import CommandWorkload, InterpreterWorkload

PAIRS = 2  # of a block


def told(
    engine: Engine[Ratio], give: Callable[[Any], Any], *, elapsed_s: float = 0.4
) -> br.Comparison:
    """Tell an engine blocks of invocations until it has enough: pairs of series."""
    while (turn := engine.ask()) is not None:
        plan = turn.plan
        rounds = [
            pair if isinstance(pair[0], br.Round) else both(plan, *pair) for pair in give(plan)
        ]
        engine.tell(Taken(plan=plan, rounds=rounds, elapsed_ns=round(1e9 * elapsed_s)))
    found: br.Comparison = engine.result()
    return found


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0, 1.4])
def test_pairs_are_brought_to_one_pace_as_far_as_they_follow_it(slope):
    """The candidate is 5 % slower; the machine changes its pace between the two processes.

    The logarithm of readings follows that of the reference by ``slope``: 0 is as of a sleep.
    """

    def compared(seed):
        rng = np.random.default_rng(seed)

        def give(plan):
            paces = rng.choice([1.0, 1.8], size=(PAIRS, 2))
            means = paces**slope * [1e-4, 1.05e-4]
            series = means[..., None] * rng.normal(1.0, 0.02, (PAIRS, 2, 50))
            return [
                tuple(
                    br.Round(
                        plan=plan,
                        elapsed_ns=1,
                        unit_readings={"time": values},
                        references=References(stops=[50], seconds={"interpreter": [5e-6 * pace]}),
                    )
                    for values, pace in zip(*sides, strict=True)
                )
                for sides in zip(series, paces, strict=True)
            ]

        engine = comparing(rounds="restarted", seed=seed, budget_s=5.0)
        return told(engine, give, elapsed_s=0.2).ratio

    found = [compared(seed) for seed in range(20)]
    # Fewer hold it with a chance of 0.3 % at a share of 0.95.
    assert sum(each.low < 1.05 < each.high for each in found) >= 16
    assert max(each.relative_half_width for each in found) < 0.01


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, "equivalent"), (1.05, "worse"), (0.9, "better")]
)
def test_drift_cancels_in_pairs_of_invocations(ratio: float, verdict: str):
    rng = np.random.default_rng(2)

    def give(plan):
        drift = 1e-4 * (1.0 + 0.3 * np.sin(plan.index / 5.0))
        levels = drift * np.array([[1.0], [ratio]]) * rng.normal(1.0, 0.01, (2, PAIRS))
        return zip(*levels[..., None] * rng.normal(1.0, 0.02, (2, PAIRS, 100)), strict=True)

    found = told(comparing(rounds="restarted", seed=1, budget_s=120.0), give)
    assert (str(found.verdict), found.unit) == (verdict, "pair")
    assert found.ratio.low < ratio < found.ratio.high


def test_the_median_of_processes_of_one_reading_is_that_of_all_of_them():
    """A few runs of twice the time move each mean, and no median."""
    rng = np.random.default_rng(3)

    def give(plan):
        levels = [[0.1], [0.11]] * rng.choice((1.0, 2.0), p=(0.85, 0.15), size=(2, PAIRS))
        return zip(*(levels * rng.normal(1.0, 0.01, levels.shape))[..., None], strict=True)

    found = told(comparing(rounds="restarted", seed=1, budget_s=60.0, statistic="median"), give)
    assert (found.statistic, str(found.verdict)) == ("median", "worse")
    assert found.baseline.value == pytest.approx(0.1, rel=0.02)
    assert found.ratio.low < 1.1 < found.ratio.high < 1.13


@pytest.mark.parametrize(
    ("slow", "by_turns", "readings"),
    [
        (0, False, 100),
        (20, False, 100),
        (200, False, 500),  # it would end within the warm-up
        (0, True, 1_000),  # as long as a start
    ],
)
def test_invocations_are_short_where_nothing_asks_for_longer_ones(slow, by_turns, readings):
    """A machine changes its pace less from one short process to the next."""
    engine = comparing(rounds="restarted", seed=1)
    plan = engine.ask().plan
    series = np.random.default_rng(5).normal(1e-4, 1e-5, (4, plan.readings))
    series[:, :slow] *= 1.5
    facts = {"by_turns": by_turns}
    rounds = [both(plan, *pair, facts=facts) for pair in zip(series[:2], series[2:], strict=True)]
    elapsed_ns = round(1e9 * (float(series.sum()) + 0.4))
    engine.tell(Taken(plan=plan, rounds=rounds, elapsed_ns=elapsed_ns))
    assert engine.ask().plan.readings == pytest.approx(readings, rel=0.01)


def kept_in(store):
    """Return the runs of both sides."""
    runs = [Journal(store).load(each["run_id"]) for each in Journal(store).runs()]
    return sorted(runs, key=lambda each: str(each.subject["as"]))


def synthetic(mean: float, seed: int, clock: FakeClock) -> SyntheticWorkload:
    return SyntheticWorkload(mean=mean, restarted=True, seed=seed, clock=clock)


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
        br.measure_pair(synthetic(1e-4, 1, clock), Failing(), clock=clock, seed=1, store=store)
    assert raised.value.record.paired
    rounds = [each["rounds"] for each in Journal(store).runs()]
    assert min(rounds) == 2


def test_fresh_interpreters_of_a_pair_measure_by_turns_and_need_no_pace(tmp_path: Path):
    store = tmp_path / "runs.sqlite"
    engines: list[Engine[Ratio]] = []
    br.measure_pair(
        InterpreterWorkload("os:getcwd"),
        InterpreterWorkload("os:getpid"),
        seed=1,
        budget_s=600.0,
        store=store,
        began=engines.append,
        progress=lambda _: engines[0].request_stop(),
    )
    pairs = [*zip(*(each.rounds for each in kept_in(store)), strict=False)]
    assert pairs
    assert all(each.facts["by_turns"] for pair in pairs for each in pair)
    assert all(
        max(one.starts_ns[0], two.starts_ns[0]) < min(one.starts_ns[-1], two.starts_ns[-1])
        for one, two in pairs
        if one.unit_readings["time"].size > 100 < two.unit_readings["time"].size
    )


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a module that fresh interpreters import."""
    monkeypatch.chdir(tmp_path)
    return lambda name, code: (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))


def test_fresh_interpreters_that_fail_on_one_side_name_it_and_leave_the_pairs_before(
    tmp_path: Path, module
):
    module("works", "def work(): pass")
    code = """
        with open("starts", "a+") as file:
            file.write("x")
            file.seek(0)
            starts = len(file.read())
        def work():
            if starts == 3: raise ValueError("worn")
    """
    module("wears", code)
    functions, store = map(InterpreterWorkload, ("works:work", "wears:work")), tmp_path / "runs"
    with pytest.raises(errors.WorkloadFailed) as raised:
        br.measure_pair(*functions, seed=1, budget_s=600.0, store=store)
    assert "candidate" in str(raised.value)
    assert "worn" in str(raised.value)
    found = raised.value.record
    assert found.reason is br.StopReason.WORKLOAD_FAILED
    assert Code.WORKLOAD_FAILED in codes(found)
    old, new = kept_in(store)
    assert (len(old.rounds), len(new.rounds)) == (2, 2)
    assert {each.decision.reason for each in (old, new)} == {br.StopReason.WORKLOAD_FAILED}


def seed_of_baseline_first() -> int:
    turns = (comparing(rounds="restarted", seed=seed).ask() for seed in range(20))
    return next(seed for seed, turn in enumerate(turns) if turn.order[0] == "baseline")


def test_an_interpreter_is_ended_with_the_one_beside_it(tmp_path: Path, module):
    code = """
        import os, time
        def fail(): raise ValueError("no such luck")
        def wait():
            with open("pid", "w") as file: file.write(str(os.getpid()))
            time.sleep(600)
    """
    module("besides", code)
    functions = map(InterpreterWorkload, ("besides:fail", "besides:wait"))
    with pytest.raises(errors.WorkloadFailed):
        br.measure_pair(*functions, seed=seed_of_baseline_first(), budget_s=1200.0)
    if (tmp_path / "pid").exists():  # it had begun
        pid = int((tmp_path / "pid").read_text() or 0)
        assert not psutil.pid_exists(pid)


def test_what_an_interpreter_forked_does_not_keep_the_one_beside_it_waiting(module):
    code = """
        import os, time
        if os.fork() == 0: time.sleep(600)
        def die(): os._exit(3)
        def work(): pass
    """
    module("forked", code)
    functions = map(InterpreterWorkload, ("forked:work", "forked:die"))
    with pytest.raises(errors.WorkloadFailed):
        br.measure_pair(*functions, seed=seed_of_baseline_first(), budget_s=50.0)


def test_a_process_that_was_ended_has_none_beside_it(tmp_path: Path):
    store = tmp_path / "runs.sqlite"
    make = partial(CommandWorkload, [sys.executable, "-c", ""], clock=WallClock())
    found = br.measure_pair(make(), make(), seed=1, budget_s=5.0, store=store)
    again = br.compare_runs(*kept_in(store), paired=True)
    assert (again.ratio is None) == (found.ratio is None)
    assert again.p_value == found.p_value
