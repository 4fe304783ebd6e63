"""Sessions and engines that are told of rounds, and what their records say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.model import (
    Code,
    Estimate,
    Metric,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
    Turn,
)
from benchrigor.session import Session
from benchrigor.session.engine import Engine
from benchrigor.session.subject import Subject

Fields = Mapping[str, Any]
"""What a round has apart from its plan."""
Given = Fields | Round
TIME = Metric(name="time", unit="s")
Draw = Callable[[int], np.ndarray]


def engine_of(*args: Any, subject: Any = None, **given: Any) -> Engine[Subject]:
    """Return the engine of a subject that is measured alone."""
    return Engine(Subject(*args, facts=subject, **given))


def asked(session: Engine[Subject] | Session) -> RoundPlan | None:
    """Return the plan of the next round, None when there is none."""
    turn = session.ask()
    return turn.plan if isinstance(turn, Turn) else turn


def tell(session: Engine[Subject] | Session, given: Given) -> br.Decision:
    """Tell a session its next round, of a nanosecond unless something else is given."""
    plan = asked(session)
    assert plan is not None
    if not isinstance(given, Round):
        given = Round(plan=plan, **{"elapsed_ns": 1, **given})
    return session.tell(given)


def told(
    session: Engine[Subject] | Session,
    give: Callable[[RoundPlan], Given],
    *,
    after: Callable[[], object] = lambda: None,
) -> RunRecord:
    """Tell a session rounds until it ends, ``give`` for each plan."""
    while (plan := asked(session)) is not None:
        tell(session, give(plan))
        after()
        assert plan.index < 3000, "the session does not end"
    return session.result()


def units(
    draw: Draw,
    *,
    size: int | None = None,
    reading_s: float | None = 1e-3,
    name: str = "time",
    **given: Any,
) -> Callable[[RoundPlan], Fields]:
    """Give unit readings, ``size`` a round or as many as are planned.

    They last so long; as long as they say for None.
    """

    def give(plan: RoundPlan) -> Fields:
        values = draw(size or plan.readings)
        seconds = values.sum() if reading_s is None else reading_s * values.size
        return {"unit_readings": {name: values}, "elapsed_ns": round(1e9 * seconds)}

    return give


def singles(draw: Draw, *, name: str = "time") -> Callable[[RoundPlan], Given]:
    """Give one reading a round, of a millisecond."""
    return lambda _: {"readings": {name: float(draw(1)[0])}, "elapsed_ns": 1_000_000}


def steady(seed: int = 1, level: float = 1.0, cv: float = 0.1) -> Draw:
    """Return normally distributed readings, as many as are asked for."""
    rng = np.random.default_rng(seed)
    return lambda n: rng.normal(level, cv * level, n)


def following(series: np.ndarray) -> Draw:
    """Return the readings of a series, one part after the other."""
    taken = 0

    def draw(n: int) -> np.ndarray:
        nonlocal taken
        taken += n
        return series[taken - n : taken]

    return draw


def number(record: RunRecord, metric: str | None = None) -> Estimate:
    """Return the estimate of a record that has one."""
    estimate = record.estimate(metric)
    assert estimate is not None
    return estimate


def reason(record: RunRecord) -> StopReason | None:
    """Return why a session ended."""
    return record.decision.reason if record.decision else None


def codes(found: Any) -> list[Code]:
    """Return the codes of the Notices of something."""
    return [notice.code for notice in found.notices]


def recorded(*rounds: Any, metric: Metric = TIME, **options: Any) -> RunRecord:
    """Analyse recorded readings: one continuous series, or one per restarted round."""
    kind = "restarted" if len(rounds) > 1 else "continuous"
    engine = engine_of(Options(rounds=kind, **options), (metric,), name="sort", recorded=True)
    for index, values in enumerate(rounds):
        series = {metric.name: np.atleast_1d(np.asarray(values, dtype=float))}
        plan = RoundPlan(index=index, readings=series[metric.name].size)
        engine.tell(Round(plan=plan, elapsed_ns=0, unit_readings=series), asked=False)
    return engine.result()
