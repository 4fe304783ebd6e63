"""Sessions and engines that are told of rounds, and what their records say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.model import Code, Estimate, Round, RoundPlan, RunRecord, StopReason
from benchrigor.session import Engine, Session

Given = Mapping[str, Any]
"""The fields of a round, apart from its plan."""
Draw = Callable[[int], np.ndarray]


def tell(session: Engine | Session, given: Given) -> br.Decision:
    """Tell a session its next round, of a nanosecond unless something else is given."""
    plan = session.ask()
    assert plan is not None
    return session.tell(Round(plan=plan, **{"elapsed_ns": 1, **given}))


def told(
    session: Engine | Session,
    give: Callable[[RoundPlan], Given],
    *,
    after: Callable[[], object] = lambda: None,
) -> RunRecord:
    """Tell a session rounds until it ends, ``give`` for each plan."""
    while (plan := session.ask()) is not None:
        tell(session, give(plan))
        after()
        assert plan.index < 3000, "the session does not end"
    return session.result()


def units(
    draw: Draw,
    *,
    size: int | None = None,
    reading_s: float = 1e-3,
    name: str = "time",
    **given: Any,
) -> Callable[[RoundPlan], Given]:
    """Give unit readings that last so long, ``size`` a round or as many as are planned."""

    def give(plan: RoundPlan) -> Given:
        values = draw(size or plan.readings)
        elapsed_ns = round(1e9 * reading_s * len(values))
        return {"unit_readings": {name: values}, "elapsed_ns": elapsed_ns}

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
