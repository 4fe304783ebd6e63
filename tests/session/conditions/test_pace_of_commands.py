"""A run of commands knows what it takes at full pace, and runs of one command agree there."""

from typing import Any

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import References
from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST
from benchrigor.session.conditions.pace_of_rounds import full_pace_of
from benchrigor.session.engine import Engine

FULL = {COMMAND: 0.0102, COMMAND_CPU: 0.01, COMMAND_REST: 0.0002}


def run_of(*, slower: float, seed: int, references: bool = True, **options: Any) -> br.RunRecord:
    """Return a run of a command of 20 ms, on a machine so much slower than at full pace."""
    rng = np.random.default_rng(seed)
    given = br.Options(target=None, max_rounds=60, min_rounds=60, rounds="restarted", **options)
    engine = Engine(given, seed=1, subject={"kind": "command"})
    engine.full_pace = dict(FULL)
    while (plan := engine.ask()) is not None:
        cpu_s, start_s = (slower * each * rng.normal(1.0, 0.03) for each in (0.02, 0.01))
        rest_s = rng.exponential(0.002, 2) + 0.0002
        times = {COMMAND: start_s + rest_s[1], COMMAND_CPU: start_s, COMMAND_REST: rest_s[1]}
        timed = References(stops=[1], seconds={kind: [each] for kind, each in times.items()})
        engine.tell(
            br.Round(
                plan=plan,
                elapsed_ns=50_000_000,
                readings={"time": cpu_s + rest_s[0]},
                facts={"cpu_s": cpu_s, "voluntary_switches": 1},
                references=timed if references and plan.index % 3 == 0 else None,
            )
        )
    return engine.result()


def test_the_time_at_full_pace_stands_beside_that_measured() -> None:
    record = run_of(slower=1.4, seed=2)
    measured, at_full = record.estimate(), record.at_full_pace()
    assert measured is not None
    assert at_full is not None
    assert measured.value == pytest.approx(0.0302, rel=0.05)
    assert at_full.low < 0.0202 < at_full.high
    assert record.analyses[0].pace.mean == pytest.approx(1 / 1.4, rel=0.03)
    again = br.RunRecord.from_dict(record.to_dict())
    assert again.at_full_pace() == at_full


def test_runs_of_a_fast_and_a_slow_machine_are_not_called_different() -> None:
    comparison = br.compare_runs(run_of(slower=1.1, seed=3), run_of(slower=1.5, seed=4))
    assert comparison.verdict in (br.Verdict.UNDECIDED, br.Verdict.EQUIVALENT)
    assert comparison.ratio.value == pytest.approx(1.0, abs=0.1)


def test_without_references_there_is_none() -> None:
    assert run_of(slower=1.4, seed=5, references=False).at_full_pace() is None


def test_full_pace_is_the_best_of_this_run_and_of_those_before() -> None:
    rounds = run_of(slower=1.4, seed=6).rounds
    assert full_pace_of(rounds, FULL) == FULL
    own = full_pace_of(rounds, {})
    assert own[COMMAND_CPU] == pytest.approx(0.0135, rel=0.03)
    assert full_pace_of(rounds[:9], {}) == {}
