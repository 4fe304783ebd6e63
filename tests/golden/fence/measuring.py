"""Functions that are measured beside a clock of their own.

None has a meter: beside one, whoever runs a function also asks how much processor time the process
really used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import benchrigor as br
from benchrigor.model import Options, RoundPlan, RunRecord
from benchrigor.session import Session
from benchrigor.testing import FakeClock, SyntheticWorkload
from fence.cases import case
from fence.plain import attempted
from fence.telling import Job

MS = 1_000_000


@case
def measure_a_mean() -> object:
    clock = FakeClock(cost_ns=40)
    return br.measure(Job(clock, 2 * MS, seed=1), name="job", target=0.005, seed=1, clock=clock)


@case
def measure_a_quantile_by_a_coarse_clock() -> object:
    """Needs several calls for each reading, and says so."""
    clock = FakeClock(resolution_ns=1000)
    job = Job(clock, 20_000, seed=2, cv=0.1)
    return br.measure(job, name="job", statistic="p90", seed=1, clock=clock)


@case
def measure_single_calls() -> object:
    clock = FakeClock()
    job = Job(clock, 3 * MS, seed=3, cv=0.15)
    return br.measure(job, name="job", statistic="median", batch=1, seed=1, clock=clock)


@case
def measure_single_calls_too_short_for_the_clock() -> object:
    clock = FakeClock(resolution_ns=100, cost_ns=60)
    job = Job(clock, 900, seed=11, cv=0.1)
    return br.measure(job, name="job", batch=1, seed=1, clock=clock)


@case
def measure_a_speed() -> object:
    """Measures the work per second of a job with a setup of half a second."""
    clock = FakeClock()

    def job(work: int) -> None:
        clock.advance(10**7 * work + 500 * MS + 10**6 * (work % 7))

    return br.measure(job, name="job", work=(0, 10_000), budget_s=3600, seed=1, clock=clock)


@case
def measure_what_gets_slower() -> object:
    clock = FakeClock()
    job = Job(clock, 10 * MS, seed=4, growth=0.02)
    return br.measure(job, name="job", budget_s=20.0, seed=1, clock=clock)


@case
def run_steps_of_a_generator() -> object:
    """Runs out of steps before it reaches its target."""
    clock = FakeClock()
    job = Job(clock, 2 * MS, seed=6)

    def steps() -> Iterator[None]:
        for _ in range(700):
            job()
            yield

    return Session(Options(target=1e-4), seed=1, clock=clock, name="steps").run(steps)


@case
def run_a_plain_function_that_nothing_restarts() -> object:
    clock = FakeClock()
    options = Options(rounds="restarted", max_rounds=6, target=1e-4)
    session = Session(options, seed=1, clock=clock, name="job")
    return session.run(Job(clock, 2 * MS, seed=7))


@case
def run_a_synthetic_workload() -> object:
    """Covers the workload of known truth itself, whose draws other cases do not use."""
    clock = FakeClock()
    workload = SyntheticWorkload(
        mean=0.002, noise="lognormal", cv=0.3, phi=0.6, seed=8, clock=clock
    )
    options = Options(target=0.02, budget_s=60.0)
    return Session(options, seed=1, clock=clock).run(workload)


@case
def run_with_hooks() -> object:
    """Calls its hooks around each round, until the last of them fails."""
    clock = FakeClock()
    seen: list[int] = []

    def before(plan: RoundPlan) -> None:
        seen.append(plan.readings)
        if plan.index == 4:
            raise RuntimeError("enough")

    session = Session(Options(target=1e-4), seed=1, clock=clock, name="job", before_round=before)
    return {"record": session.run(Job(clock, 2 * MS, seed=9)), "seen": seen}


@case
def run_that_fails() -> object:
    """Raises in its third round, and keeps the rounds before."""
    clock = FakeClock()
    job, calls = Job(clock, 2 * MS, seed=10), []

    def failing() -> None:
        job()
        calls.append(None)
        if len(calls) > 40:
            raise OSError("gone")

    session = Session(Options(), seed=1, clock=clock, name="job")
    return {"error": attempted(session.run, failing), "record": session.result()}


@case
def functions_in_turn() -> object:
    """Have as many pieces as the budget has room for."""
    found = {}
    for budget_s in (0.5, 1.1, 5.0):
        clock = FakeClock()
        jobs = {"one": Job(clock, 2 * MS, seed=12), "other": Job(clock, 3 * MS, seed=13, cv=0.1)}
        records = br.measure_many(jobs, budget_s=budget_s, seed=1, clock=clock)
        found[f"{budget_s} s"] = dict(records)
    return found


LONGER = {  # by how much a call is longer, in times of it: few pieces, and those that warm up
    "three": (3, lambda _: 0.0),
    "warm-up": (6, lambda call: 0.5 / (1.0 + 0.1 * call)),
    "unsteady": (6, lambda call: max(1.0 - call / 600, 0.0)),
}


@case
def pieces_over_the_time() -> object:
    """Three are few; of a first one without a steady level the second half counts."""
    return {name: pieced(*given) for name, given in LONGER.items()}


def pieced(pieces: int, longer: Callable[[int], float]) -> RunRecord:
    """Run a function for six seconds."""
    clock, calls = FakeClock(), count()
    job = Job(clock, 2 * MS, seed=14)

    def work() -> None:
        job()
        clock.advance(round(2 * MS * longer(next(calls))))

    options = Options(pieces=pieces, budget_s=6.0)
    return Session(options, seed=1, clock=clock, name="job").run(work)
