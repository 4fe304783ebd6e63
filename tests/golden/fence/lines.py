"""Work per second: lines through amounts and durations, and the sessions that make them."""

from __future__ import annotations

from typing import Any

import numpy as np
from shared_cases import SyntheticJob, analysed_again

from benchrigor.model import Metric, Options, RoundPlan, RunRecord
from benchrigor.session import Session
from benchrigor.stats import fit_wps
from fence.cases import case, register
from fence.plain import attempted
from fence.readings import ROOT, column, correlated
from fence.telling import Tell, Told, told

ESTIMATORS = ("ols", "weighted", "robust")
SPEED = Metric(name="speed", unit="B/s", direction="higher")


def of_several() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return amounts and durations, by name."""
    rng = np.random.default_rng(200)
    work = rng.integers(1_000, 1_000_000, 60).astype(float)
    noise = correlated(60, seed=201, cv=0.02)
    line = 0.2 + work / 1e6
    outlying = np.where(np.arange(60) % 25 == 3, 3.0, 1.0)
    return {
        "sorting": (column("sorting.csv", "work"), column("sorting.csv")),
        "line": (work, line * noise),
        "exact": (work, line),
        "quadratic": (work, 0.2 + (work / 1e6) ** 2 * noise),
        "outlying": (work, line * noise * outlying),
        "skewed": (work, line * (1.0 + 0.1 * rng.standard_exponential(60))),
        "no speed": (work, 1.0 + 0.3 * rng.standard_normal(60)),
        "four": (work[:4], (line * noise)[:4]),
        "two": (work[:2], line[:2]),
        "alike": (np.full(20, 5.0), noise[:20]),
    }


for estimator in ESTIMATORS:
    register(
        f"lines_{estimator}",
        lambda estimator=estimator: {
            name: attempted(fit_wps, *pairs, estimator=estimator)
            for name, pairs in of_several().items()
        },
    )


@case
def lines_by_subsessions() -> object:
    work = np.linspace(1_000.0, 1_000_000.0, 80)
    duration_s = 0.2 + work / 1e6 * correlated(80, seed=202, phi=0.7)
    return fit_wps(work, duration_s, method="subsessions", confidence=0.9, checks=False)


def telling(job: SyntheticJob) -> Tell:
    """Return what tells how long a job takes for the amount of a plan."""

    def tell(plan: RoundPlan) -> Told:
        duration_s = job.draw(plan)
        return Told({"readings": {"time": duration_s}, "elapsed_ns": round(1e9 * duration_s)})

    return tell


def session_of(job: SyntheticJob, **options: Any) -> RunRecord:
    """Return what a session finds of a job that is asked for various amounts."""
    return told(Session(Options(**options), (SPEED,), seed=1), telling(job))


JOB = SyntheticJob(speed=1e6, overhead_s=0.05, cv=0.03, seed=203)
QUADRATIC = SyntheticJob(speed=1e6, overhead_s=0.05, cv=0.02, seed=204, growth=2.0)
RANGE = (1_000, 2_000_000)


@case
def speed_session() -> object:
    return session_of(JOB, work=RANGE, target=0.02, budget_s=600.0)


@case
def speed_session_in_random_order() -> object:
    return session_of(JOB, work=RANGE, target=0.02, work_order="random", budget_s=600.0)


@case
def speed_session_without_a_largest_amount() -> object:
    return session_of(JOB, analysis="wps", target=0.05, budget_s=60.0)


@case
def speed_session_of_what_is_not_linear() -> object:
    return session_of(QUADRATIC, work=RANGE, target=0.01, budget_s=60.0)


@case
def speed_session_with_short_rounds() -> object:
    how = {"work": (1, 3_000_000), "short_round_s": 0.5, "budget_s": 60.0}
    return session_of(JOB, **how, target=0.001)


@case
def speed_session_whose_work_is_too_short() -> object:
    session = Session(Options(work=(1, 100)), (SPEED,), seed=1)
    refusal = attempted(told, session, telling(SyntheticJob(speed=1e9)))
    return {"refusal": refusal, "record": session.result()}


@case
def speed_session_of_what_is_mostly_overhead() -> object:
    job = SyntheticJob(speed=1e6, overhead_s=5.0, cv=0.01, seed=205)
    return session_of(job, work=(1, 500_000), target=0.02, budget_s=300.0)


@case
def speed_session_with_a_hook() -> object:
    """Takes amounts that a hook chooses instead of those of the schedule."""

    def next_work(plan: RoundPlan) -> float | None:
        return None if plan.index % 2 else 500_000 + 20_000 * plan.index

    options = Options(work=RANGE, target=0.03, budget_s=120.0)
    session = Session(options, (SPEED,), seed=1, next_work=next_work)

    def tell(plan: RoundPlan) -> Told:
        return Told({"elapsed_ns": round(1e9 * JOB.draw(plan))})

    return told(session, tell)


@case
def speed_session_that_gives_readings_as_well() -> object:
    """Has units of work that are timed one by one, and decide; also where they miss a third."""

    def session(share: float) -> RunRecord:
        def tell(plan: RoundPlan) -> Told:
            units = 0.001 * correlated(int(plan.work or 0), seed=plan.index)
            elapsed_ns = round(1e9 * (0.05 + float(units.sum())))
            return Told({"unit_readings": {"time": share * units}, "elapsed_ns": elapsed_ns})

        options = Options(work=(20, 2_000), target=0.01, budget_s=60.0)
        return told(Session(options, seed=1), tell)

    return {"alike": session(1.0), "missing": session(0.67)}


@case
def speed_session_of_units_that_vary() -> object:
    """Has a twentieth more of them in every other round."""

    def tell(plan: RoundPlan) -> Told:
        more = 1.05 if plan.index % 2 else 1.0
        units = 0.001 / more * correlated(round(more * (plan.work or 0.0)), seed=plan.index)
        elapsed_ns = round(1e9 * (0.05 + float(units.sum())))
        return Told({"unit_readings": {"time": 0.67 * units}, "elapsed_ns": elapsed_ns})

    return told(Session(Options(work=(20, 2_000), target=0.01, budget_s=60.0), seed=1), tell)


@case
def speed_of_a_recorded_run() -> object:
    """Analyses anew the rounds of a run that was recorded: new interpreters that compress."""
    stored = RunRecord.load(ROOT / "docs" / "pictures" / "work.json")
    return {"stored": stored, "anew": analysed_again(stored)}
