"""Poor runs of all kinds: no two Notices stand together that say the same thing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from simulated.rounds import InRoundsOf

import benchrigor as br
from benchrigor.model import Code, Metric, Notice, Options
from benchrigor.model.notice import CAUSES
from benchrigor.session import Session, compare_runs
from benchrigor.session.replays.recorded_run import record_of_readings
from benchrigor.session.session import as_workload
from benchrigor.testing import FakeClock, FakeMeter

MS = 1_000_000
# What whole runs have beside the causes of a single estimate.
OF_RUNS = (
    (Code.TOO_FEW_READINGS, Code.NO_STABLE_PHASE, Code.NO_DATA, Code.UNCLUSTERED),
    (Code.NO_DATA, Code.RED_ROUNDS, Code.DISTURBED),
)
Durations = Callable[[int, np.random.Generator], float]  # of a call, in ms


def noise(mean: float, cv: float = 0.1) -> Durations:
    return lambda _, rng: max(mean * rng.normal(1.0, cv), 1e-5)


class Job:
    """A function whose calls last as told, and lose time now and then."""

    def __init__(self, clock: FakeClock, lasting: Durations, lost: Durations, meter: FakeMeter):
        self._rng = np.random.default_rng(20261208)
        self._clock, self._lasting, self._lost, self._meter = clock, lasting, lost, meter
        self._calls = 0

    def __call__(self) -> None:
        self._clock.advance(int(self._lasting(self._calls, self._rng) * MS))
        self._meter.lose(int(self._lost(self._calls, self._rng) * MS))
        self._calls += 1


def run(
    lasting: Durations,
    lost: Durations = lambda *_: 0.0,
    resolution_ns: int = 1,
    size: int | None = None,
    **options: object,
) -> list[Notice]:
    clock = FakeClock(resolution_ns=resolution_ns)
    meter = FakeMeter(clock)
    given = {"target": 0.01, "budget_s": 30.0, **options}
    session = Session(Options(**given), seed=1, clock=clock, meter=meter)  # type: ignore[arg-type]
    job = Job(clock, lasting, lost, meter)
    record = session.run(InRoundsOf(size, as_workload(job, clock, meter=meter)) if size else job)
    light = () if record.interference is None else record.interference.notices
    return [*record.notices, *(each for each in light if each not in record.notices)]


def file(*rounds: object, **options: object) -> list[Notice]:
    chosen = Options(**{"target": None, **options})  # type: ignore[arg-type]
    return [*record_of_readings(rounds, chosen, Metric(name="t", unit="s"), name="f").notices]  # type: ignore[arg-type]


def pair(lasting: Durations, budget_s: float) -> list[Notice]:
    clock = FakeClock()
    jobs = (Job(clock, lasting, lambda *_: 0.0, FakeMeter(clock)) for _ in range(2))
    return [*br.measure_pair(*jobs, clock=clock, seed=1, budget_s=budget_s).notices]


def draws(n: int) -> np.ndarray:
    return np.random.default_rng(20261209).normal(1.0, 0.1, n)


RUNS: dict[str, Callable[[], list[Notice]]] = {
    "one reading": lambda: run(noise(30_000.0), budget_s=10.0),
    "two readings": lambda: run(noise(9_000.0), budget_s=25.0),
    "twenty": lambda: run(noise(1_500.0)),
    "two hundred": lambda: run(noise(150.0, 0.3)),
    "constant": lambda: run(lambda *_: 4.0),
    "constant, few": lambda: run(lambda *_: 3_000.0),
    "climbing": lambda: run(lambda call, _: 4.0 + 0.01 * call),
    "climbing, few": lambda: run(lambda call, _: 1_000.0 + 100.0 * call),
    "disturbed": lambda: run(noise(4.0, 0.01), lambda call, _: 4.0 * (call % 3 == 0)),
    "all red, kept": lambda: run(noise(4.0, 0.01), lambda *_: 4.0),
    "some red, repeated": lambda: run(
        noise(4.0, 0.01),
        lambda call, _: 4.0 * (call // 100 % 3 == 0),
        red_rounds="repeat",
        size=100,
        max_rounds=12,
    ),
    "all red, repeated": lambda: run(
        noise(4.0, 0.01), lambda *_: 4.0, red_rounds="repeat", max_rounds=6
    ),
    "a tail of few": lambda: run(noise(200.0), statistic="p99"),
    "single calls of a coarse clock": lambda: run(
        noise(4e-4), resolution_ns=16_000, budget_s=0.2, statistic="p90"
    ),
    "one round": lambda: run(noise(4.0, 0.01), rounds="restarted", max_rounds=1),
    "rounds of warm-up": lambda: run(
        lambda call, _: 40.0 - call % 500 * 0.07, rounds="restarted", max_rounds=4
    ),
    "a file of one": lambda: file([1.0]),
    "a file of two": lambda: file([1.0, 1.2]),
    "a file of 20": lambda: file(draws(20)),
    "a file of 200": lambda: file(draws(200)),
    "a constant file": lambda: file(np.full(40, 3.0)),
    "a short constant file": lambda: file(np.full(5, 3.0)),
    "a rising file": lambda: file(np.linspace(1.0, 2.0, 400) * (1.0 + draws(400) / 500.0)),
    "slow noise": lambda: file(50.0 + np.convolve(draws(4_000), np.ones(900), "valid")),
    "three rounds": lambda: file(*(draws(20) for _ in range(3))),
    "three rounds of warm-up": lambda: file(*(np.linspace(3.0, 1.0, 20) for _ in range(3))),
    "few outcomes": lambda: file([0.0, 1.0, 1.0, 1.0, 0.0, 1.0]),
    "two short files": lambda: [*compare_runs(draws(20), draws(20) + 0.1).notices],
    "two constant files": lambda: [*compare_runs(np.full(20, 2.0), np.full(20, 3.0)).notices],
    "short pairs": lambda: pair(noise(1_000.0), 8.0),
    "200 pairs": lambda: pair(noise(10.0), 4.0),
    "constant pairs": lambda: pair(lambda *_: 1.0, 3.0),
}


@cache
def notices_of(name: str) -> tuple[Notice, ...]:
    return tuple(RUNS[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_no_two_notices_of_one_run_have_one_cause(name: str) -> None:
    notices = notices_of(name)
    by_side: dict[str, list[Notice]] = {}
    for each in notices:
        side, colon, _ = each.sentence.partition(": ")
        by_side.setdefault(side if colon and " " not in side else "", []).append(each)
    for together in by_side.values():
        codes = [each.code for each in together]
        assert len(codes) == len(set(codes)), codes
        for cause in (*CAUSES, *OF_RUNS):
            assert len(set(cause) & set(codes)) <= 1, codes


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
def test_no_notice_advises_what_its_door_does_not_have(name: str) -> None:
    for notice in notices_of(name):
        assert not [each for each in ELSEWHERE if each in notice.sentence], notice
