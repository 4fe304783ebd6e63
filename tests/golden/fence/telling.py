"""How the cases drive sessions: by asking and telling, or by a function that moves a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model import Metric, Options, Round, RoundPlan, RunRecord
from benchrigor.session import Session
from benchrigor.testing import FakeClock

__all__ = ["Job", "Tape", "Tell", "Told", "record_of", "told"]

PER_READING_NS = 1_000_000


class Told(NamedTuple):
    """What a round gives: the fields of a `Round`, and how many there are to come."""

    fields: Mapping[str, Any]
    more: bool = True


Tell = Callable[[RoundPlan], Told]


class Tape:
    """Gives the readings of recorded series, round by round; ends where they end."""

    def __init__(self, **series: npt.ArrayLike) -> None:
        self._series = {name: np.asarray(values) for name, values in series.items()}
        self._given = 0

    def __call__(self, plan: RoundPlan) -> Told:
        """Return the next readings of each metric, as many as are wanted and there."""
        part = slice(self._given, self._given + plan.readings)
        readings = {name: values[part] for name, values in self._series.items()}
        self._given = part.stop
        size = max(values.size for values in self._series.values())
        return Told({"unit_readings": readings}, more=self._given < size)


def told(
    engine: Session, tell: Tell, *, per_reading_ns: int = PER_READING_NS, by: int | None = None
) -> RunRecord:
    """Ask, and tell what comes of it, until there is enough or nothing more to tell.

    Rounds have ``by`` readings, whatever was asked for.
    """
    while (plan := engine.ask()) is not None:
        readings = by or plan.readings
        fields, more = tell(replace(plan, readings=readings))
        if not more:
            engine.request_stop()
        elapsed_ns = per_reading_ns * readings
        engine.tell(Round(**{"plan": plan, "elapsed_ns": elapsed_ns, **fields}))
    return engine.result()


def record_of(
    tell: Tell,
    *,
    metrics: tuple[Metric, ...] | None = None,
    by: int | None = None,
    **options: Any,
) -> RunRecord:
    """Return what a session of these options finds, in which a reading takes a millisecond."""
    return told(Session(Options(**options), metrics, seed=1), tell, by=by)


class Job:
    """A function that takes normally distributed times on a clock of its own."""

    def __init__(
        self, clock: FakeClock, mean_ns: float, *, seed: int, cv: float = 0.03, growth: float = 0.0
    ) -> None:
        self._clock, self._mean_ns, self._growth, self._calls = clock, mean_ns, growth, 0
        self._factors: np.ndarray = 1.0 + cv * np.random.default_rng(seed).standard_normal(50_000)

    def __call__(self) -> None:
        """Let the time of one call pass; it grows by a share per second of the clock."""
        factor = self._factors[self._calls % self._factors.size]
        slower = 1.0 + self._growth * self._clock.now_ns() / 1e9
        self._clock.advance(round(self._mean_ns * factor * slower))
        self._calls += 1
