"""Poor runs of all kinds: no two Notices stand together that say the same thing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest
from tests.session.telling import recorded, steady

import benchrigor as br
from benchrigor.model import Code, Notice, Options
from benchrigor.session import Session, compare_runs
from benchrigor.testing import FakeClock, FakeMeter

MS = 1_000_000
CAUSES = (
    (Code.CONSTANT, Code.FEW_IN_TAIL, Code.FEW_READINGS, Code.FEW_EFFECTIVE, Code.SHORT_RUN),
    (Code.COARSE_CLOCK, Code.CLOCK_COST),
    # What whole runs have beside the causes of a single estimate.
    (Code.TOO_FEW_READINGS, Code.NO_STABLE_PHASE, Code.NO_DATA, Code.UNCLUSTERED),
    (Code.NO_DATA, Code.RED_ROUNDS, Code.DISTURBED),
)
Durations = Callable[[int, np.random.Generator], float]  # of a call, in ms


def noise(mean: float, cv: float = 0.1) -> Durations:
    return lambda _, rng: max(mean * rng.normal(1.0, cv), 1e-5)


def run(
    lasting: Durations,
    lost: Callable[[int], float] = lambda _: 0.0,
    resolution_ns: int = 1,
    **options: object,
) -> list[Notice]:
    """Run a function whose calls last as told, and lose time now and then."""
    clock = FakeClock(resolution_ns=resolution_ns)
    meter, rng, calls = FakeMeter(clock), np.random.default_rng(20261208), count()

    def job() -> None:
        call = next(calls)
        clock.advance(int(lasting(call, rng) * MS))
        meter.lose(int(lost(call) * MS))

    given = Options(**{"target": 0.01, "budget_s": 30.0, **options})  # type: ignore[arg-type]
    record = Session(given, seed=1, clock=clock, meter=meter).run(job)
    light = () if record.interference is None else record.interference.notices
    return [*record.notices, *(each for each in light if each not in record.notices)]


def file(*rounds: object) -> list[Notice]:
    return [*recorded(*rounds, target=None).notices]


def pair(lasting: float, cv: float, budget_s: float) -> list[Notice]:
    clock, draw = FakeClock(), steady(20261208, lasting * MS, cv)
    job = lambda: clock.advance(int(draw(1)[0]))  # noqa: E731  # as short as its use
    return [*br.measure_pair(job, job, clock=clock, seed=1, budget_s=budget_s).notices]


SOME, FINE = steady(20261209)(200), noise(4.0, 0.01)
RUNS: dict[str, Callable[[], list[Notice]]] = {
    "one reading": lambda: run(noise(30_000.0), budget_s=10.0),
    "two readings": lambda: run(noise(9_000.0), budget_s=25.0),
    "twenty": lambda: run(noise(1_500.0)),
    "two hundred": lambda: run(noise(150.0, 0.3)),
    "constant": lambda: run(lambda *_: 4.0),
    "constant, few": lambda: run(lambda *_: 3_000.0),
    "climbing": lambda: run(lambda call, _: 4.0 + 0.01 * call),
    "climbing, few": lambda: run(lambda call, _: 1_000.0 + 100.0 * call),
    "disturbed": lambda: run(FINE, lambda call: 4.0 * (call % 3 == 0)),
    "all red, kept": lambda: run(FINE, lambda _: 4.0),
    "all red, repeated": lambda: run(FINE, lambda _: 4.0, red_rounds="repeat", max_rounds=6),
    "some red, repeated": lambda: run(
        FINE, lambda call: 4.0 * (call // 100 % 3 == 0), red_rounds="repeat", max_rounds=12
    ),
    "a tail of few": lambda: run(noise(200.0), statistic="p99"),
    "single calls of a coarse clock": lambda: run(
        noise(4e-4), resolution_ns=16_000, budget_s=0.2, statistic="p90"
    ),
    "one round": lambda: run(FINE, rounds="restarted", max_rounds=1),
    "rounds of warm-up": lambda: run(
        lambda call, _: 40.0 - call % 500 * 0.07, rounds="restarted", max_rounds=4
    ),
    "a file of one": lambda: file([1.0]),
    "a file of 20": lambda: file(SOME[:20]),
    "a file of 200": lambda: file(SOME),
    "a short constant file": lambda: file(np.full(5, 3.0)),
    "a rising file": lambda: file(np.linspace(1.0, 2.0, 200) * (1.0 + SOME / 500.0)),
    "slow noise": lambda: file(50.0 + np.convolve(steady(2)(4_000), np.ones(900), "valid")),
    "three rounds": lambda: file(*np.split(SOME[:60], 3)),
    "few outcomes": lambda: file([0.0, 1.0, 1.0, 1.0, 0.0, 1.0]),
    "two short files": lambda: [*compare_runs(SOME[:20], SOME[20:40] + 0.1).notices],
    "two constant files": lambda: [*compare_runs(np.full(20, 2.0), np.full(20, 3.0)).notices],
    "short pairs": lambda: pair(1_000.0, 0.1, 8.0),
    "200 pairs": lambda: pair(10.0, 0.1, 4.0),
    "constant pairs": lambda: pair(1.0, 0.0, 3.0),
}
# What a user of no door, or of another one, can do.
ELSEWHERE = (
    "--",
    "rounds=",
    "Options(",
    "features",
    "label",
    "interleave",
    "reference",
    "measure longer",
    "Measure longer",
    "take more",
    "take about",
    "leave out",
    "leave such",
)


@pytest.mark.parametrize("name", RUNS)
def test_no_two_notices_have_one_cause_and_none_advises_what_its_door_does_not_have(
    name: str,
) -> None:
    by_side: dict[str, list[Code]] = {}
    for notice in RUNS[name]():
        side, colon, _ = notice.sentence.partition(": ")
        by_side.setdefault(side if colon and " " not in side else "", []).append(notice.code)
        assert not [each for each in ELSEWHERE if each in notice.sentence], notice
    for codes in by_side.values():
        assert len(codes) == len(set(codes)), codes
        for cause in CAUSES:
            assert len({*cause} & {*codes}) <= 1, codes
