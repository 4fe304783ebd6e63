"""Engines of two subjects in turn, and rounds of both."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchrigor.model import Delays, Round, RoundPlan
from benchrigor.session.engine import Engine, Taken
from benchrigor.session.pairs.ratio import Ratio


def comparing(**options: Any) -> Engine[Ratio]:
    """Return the engine of a ratio."""
    return Engine(Ratio(**options))


def both(
    plan: RoundPlan, old: object, new: object, *, delays: Delays | None = None, **given: Any
) -> tuple[Round, Round]:
    """Return the rounds of baseline and candidate with these readings."""
    one, two = (
        Round(
            plan=plan,
            elapsed_ns=1,
            unit_readings={"time": np.asarray(side)},
            delays=delays,
            **given,
        )
        for side in (old, new)
    )
    return one, two


def take(engine: Engine[Ratio], rounds: Sequence[tuple[Round, Round]]) -> None:
    """Give a ratio rounds that it did not ask for, and has not looked at."""
    taken = Taken(plan=RoundPlan(index=0), rounds=rounds, elapsed_ns=0)
    engine.goal.take(taken, engine)
