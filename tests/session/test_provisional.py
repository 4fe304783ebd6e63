"""The figure that is shown before there is an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Progress, RoundPlan
from benchrigor.protocols import Recorder
from benchrigor.session import default_rules
from benchrigor.testing import FakeClock, SyntheticWorkload


def figures(seen: list[Progress]) -> list[float]:
    return [
        each.provisional.estimate.value
        for each in seen
        if each.provisional is not None and each.provisional.estimate is not None
    ]


def test_a_slow_function_has_a_figure_after_each_call_until_it_is_estimated() -> None:
    clock, seen = FakeClock(), list[Progress]()
    durations = iter([400_000_000, 420_000_000] * 50)
    br.measure(
        lambda: clock.advance(next(durations)), progress=seen.append, budget_s=10.0, clock=clock
    )
    first = seen[0].provisional
    assert first is not None
    assert first.estimate is not None
    assert first.metric.name == "time"
    assert (first.estimate.value, first.estimate.high) == (0.4, math.inf)
    second = seen[1].provisional
    assert second is not None
    assert second.estimate is not None
    assert 0.4 < second.estimate.value < 0.42
    assert second.estimate.low < 0.41 < second.estimate.high < math.inf
    assert len(set(figures(seen))) > 5  # it moves
    assert seen[-1].analyses
    assert seen[-1].provisional is None


def test_a_fast_function_has_a_figure_at_once_and_few_are_made() -> None:
    clock, seen = FakeClock(), list[Progress]()
    rng = np.random.default_rng(1)
    br.measure(
        lambda: clock.advance(int(rng.normal(3e6, 3e5))),
        progress=seen.append,
        budget_s=10.0,
        clock=clock,
    )
    assert seen[0].elapsed_s < 1.0
    assert figures(seen)[0] == pytest.approx(0.003, rel=0.5)
    made = {id(each.provisional) for each in seen if each.provisional is not None}
    assert len(made) <= 1 + max(each.elapsed_s for each in seen) / 0.25
    assert all(each.provisional is None for each in seen if each.analyses)


class Command:
    """Rounds that give one reading each, as commands do."""

    fresh_process = True

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        self.clock.advance(5_000_000)
        recorder.reading("time", 0.005 + plan.index * 1e-5)


def test_commands_and_restarted_rounds_have_a_figure_from_the_first_on() -> None:
    clock = FakeClock()
    restarted = SyntheticWorkload(mean=0.005, cv=0.01, restarted=True, seed=1, clock=clock)
    for workload in (Command(clock), restarted):
        seen = list[Progress]()
        options = br.Options(rounds="restarted", max_rounds=6, budget_s=60.0)
        br.Session(options, seed=1, clock=clock, progress=seen.append).run(workload)
        assert len(seen) == 6
        assert len(figures(seen)) >= 5  # the last one has an estimate
        assert figures(seen)[0] == pytest.approx(0.005, rel=0.05)


def test_pairs_have_the_ratio() -> None:
    clock, seen = FakeClock(), list[Progress]()

    def taking(durations: Iterator[int]) -> object:
        return lambda: clock.advance(next(durations))

    rng = np.random.default_rng(1)
    br.measure_pair(
        taking(int(each) for each in rng.normal(100e6, 5e6, 1000)),  # type: ignore[arg-type]
        taking(int(each) for each in rng.normal(103e6, 5e6, 1000)),  # type: ignore[arg-type]
        progress=seen.append,
        budget_s=10.0,
        clock=clock,
        seed=1,
    )
    found = seen[-2].provisional
    assert found is not None
    assert found.estimate is not None
    assert found.metric.name == "ratio"
    assert found.estimate.low < 1.03 < found.estimate.high
    assert 0.0 < found.estimate.half_width < 0.1


def test_no_rule_looks_at_it() -> None:
    """A series without any spread looks perfectly known, and is not stopped for."""
    engine = br.Session(br.Options(target=0.5, budget_s=1e6), seed=1)
    for _ in range(20):
        plan = engine.ask()
        assert plan is not None
        engine.tell(br.Round(plan=plan, elapsed_ns=10**9, unit_readings={"time": [1.0]}))
    progress = engine.progress
    assert progress is not None
    assert progress.provisional is not None
    assert progress.provisional.estimate is not None
    assert progress.provisional.estimate.half_width == 0.0
    assert all(rule(progress) is None for rule in default_rules(engine.options))
