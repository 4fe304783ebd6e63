"""The same readings through several doors, to show where they differ and where they agree."""

from __future__ import annotations

import numpy as np

from benchrigor.model import Analysis, Estimate, Metric, Options, Round, StablePhase
from benchrigor.session import Session
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject
from benchrigor.stats import (
    compare,
    estimate_invocations,
    estimate_mean,
    estimate_quantile,
    find_stable_phase,
    trimmed,
)
from fence.cases import register
from fence.plain import attempted
from fence.readings import (
    column,
    correlated,
    drifting,
    invocations,
    skewed,
    small_steps,
    stepping,
    warming,
)
from fence.telling import Told, record_of, told

TIME = Metric(name="time", unit="s")
NEVER = 1e-9
"""A target that no series reaches, so that a session takes all that there is."""


def of_one_series(series: np.ndarray) -> dict[str, object]:
    """Ask every door that takes a series for its mean, and those that have one for its median."""
    return {
        "session, one round": analysed(series, recorded=False),
        "session, by its own schedule": scheduled(series),
        "engine of recorded readings": analysed(series, recorded=True),
        "session of the median": analysed(series, recorded=False, statistic="median"),
        "session by subsessions": analysed(series, recorded=False, method="subsessions"),
        "estimate_mean": attempted(estimate_mean, series),
        "estimate_mean, trimmed": attempted(estimate_mean, series, trim=True),
        "estimate_mean, trimmed, subsessions": attempted(
            estimate_mean, series, trim=True, method="subsessions"
        ),
        "estimate_quantile, trimmed": attempted(estimate_quantile, series, 0.5, trim=True),
        "find_stable_phase": found_phase(series),
        "compare, a side, trimmed": compared(series),
    }


def of_invocations(several: list[np.ndarray]) -> dict[str, object]:
    """Ask every door that takes one series per invocation for their mean."""
    record = record_of(
        lambda plan: Told({"unit_readings": {"time": several[plan.index]}}),
        metrics=(TIME,),
        rounds="restarted",
        max_rounds=len(several),
        target=NEVER,
    )
    return {
        "session": summary(record.analysis()),
        "estimate_invocations": attempted(estimate_invocations, several),
        "estimate_invocations, trimmed": attempted(estimate_invocations, several, trim=True),
        "compare, a side, trimmed": compared(several),
    }


def analysed(series: np.ndarray, *, recorded: bool, **options: str) -> object:
    """Tell an engine all readings in one round."""
    how = Options(target=NEVER, **options)
    engine = Engine(Subject(how, (TIME,), seed=1, recorded=recorded))
    turn = engine.ask()
    assert turn is not None
    engine.tell(Round(plan=turn.plan, elapsed_ns=0, unit_readings={"time": series}))
    return summary(engine.result().analysis())


def scheduled(series: np.ndarray) -> object:
    """Tell a session the readings as it asks for them, until there are no more."""
    session = Session(Options(target=NEVER, budget_readings=series.size), (TIME,), seed=1)
    given = iter(series.tolist())
    record = told(
        session,
        lambda plan: Told({"unit_readings": {"time": [next(given) for _ in range(plan.readings)]}}),
    )
    return summary(record.analysis())


def summary(analysis: Analysis | None) -> object:
    """Return what an analysis says of the phases, the level and what it refuses."""
    if analysis is None:
        return None
    return {
        "estimate": short(analysis.estimate),
        "phases": [(each.start, each.stop, each.reason) for each in analysis.phases],
        "kept": analysis.n_kept,
        "required": analysis.required,
        "fits": analysis.fits if len(analysis.fits) == 1 else len(analysis.fits),
        "codes": [(each.code, each.severity) for each in analysis.notices],
    }


def short(estimate: Estimate | None) -> object:
    """Return an estimate without the evidence of its notices."""
    if estimate is None:
        return None
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "n_effective": estimate.n_effective,
        "method": estimate.method,
        "codes": [(each.code, each.severity) for each in estimate.notices],
    }


def found_phase(series: np.ndarray) -> object:
    """Return the phase that can be claimed, and the plain mean of its readings."""
    phase: StablePhase = find_stable_phase(series)
    if phase.start is None:
        return phase
    return {"phase": phase, "mean": attempted(estimate_mean, trimmed(series, phase))}


def compared(side: np.ndarray | list[np.ndarray]) -> object:
    """Return what a comparison makes of a side, here held against itself."""
    found = attempted(compare, side, side, trim=True)
    return getattr(found, "baseline", found)


SERIES = {
    "inserts": lambda: column("recorded_inserts.csv"),
    "cache": lambda: column("recorded_cache.csv"),
    "quiet": lambda: column("encoding.csv", "quiet")[:1000],
    "busy": lambda: column("encoding.csv", "busy")[:1000],
    "warming": lambda: warming(1000, seed=40),
    "stepping": lambda: stepping(1000, seed=41, at=600, by=0.008),
    "small_steps": lambda: small_steps(1000, seed=46),
    "correlated": lambda: correlated(1000, seed=42, phi=0.9),
    "skewed": lambda: skewed(1000, seed=43),
    "drifting": lambda: drifting(1000, seed=44),
    "short": lambda: warming(80, seed=45),
}
for name, made in SERIES.items():
    register(f"doors_{name}", lambda made=made: of_one_series(made()))

SEVERAL = {
    "invocations": lambda: invocations("baseline"),
    "warming_invocations": lambda: [warming(400, seed=each, fading=15.0) for each in range(50, 58)],
}
for name, several in SEVERAL.items():
    register(f"doors_{name}", lambda several=several: of_invocations(several()))
