"""A stage behind a queue, of known service rate: what a monitor would have seen of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import Floats

__all__ = ["StagePeriods", "SyntheticStage"]

_ROUNDING_S = 1e-9
_SERVICES = ("exponential", "deterministic")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StagePeriods:
    """What was seen of a stage, period by period; arrays of shape (n,).

    Parameters
    ----------
    items
        Taken from the queue in each period.
    period_s
        Width of each, in seconds.
    blocked_s
        How long the stage waited for items in each, in seconds.
    changed
        The first period behind the change of rate; None without one.
    """

    items: Floats
    period_s: Floats
    blocked_s: Floats
    changed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticStage:
    """A single server behind an unbounded queue, with arrivals at random.

    Parameters
    ----------
    utilisation
        Arrival rate over service rate, in (0, 1).
    service
        "exponential" or "deterministic" service times.
    rate
        Items per second while it serves and does not stall.
    later
        The rate, as a share of the former, of the second half of the items; arrivals change alike.
    stalled
        Share of the items that take longer: by ``stall`` service times in the mean, exponentially.
    stall
        See ``stalled``.
    stretched
        Share of the periods that are longer, by half in the mean.
    missed
        Share of the periods whose count misses an item, as where counters are zeroed by others.

    Examples
    --------
    >>> stage = SyntheticStage(utilisation=0.5, rate=1000.0, stalled=0.001)
    >>> round(stage.true_rate, 1)
    980.4
    >>> seen = stage.watch(10_000, period_s=0.1, rng=np.random.default_rng(1))
    >>> busy_s = float(seen.period_s.sum() - seen.blocked_s.sum())
    >>> 0.48 < busy_s / float(seen.period_s.sum()) < 0.54
    True
    """

    utilisation: float
    service: str = "exponential"
    rate: float = 1000.0
    later: float = 1.0
    stalled: float = 0.0
    stall: float = 20.0
    stretched: float = 0.0
    missed: float = 0.0

    def __post_init__(self) -> None:
        if self.service not in _SERVICES:
            expected = " or ".join(map(repr, _SERVICES))
            raise InvalidInput(f"service is {self.service!r}, expected {expected}")
        if not 0.0 < self.utilisation < 1.0:
            raise InvalidInput(f"utilisation is {self.utilisation!r}, expected between 0 and 1")

    @property
    def true_rate(self) -> float:
        """Items per second of busy time, stalls included, before any change."""
        return self.rate / (1.0 + self.stalled * self.stall)

    def watch(self, items: int, *, period_s: float, rng: np.random.Generator) -> StagePeriods:
        """Serve so many items, and count them period by period.

        Parameters
        ----------
        items
            Whole number from 2 on.
        period_s
            Wanted width of a period, in seconds.
        rng
            Draws service times, arrivals and disturbances.
        """
        pace = np.where(np.arange(items) < items // 2, 1.0, self.later) * self.rate
        service = self._services(items, rng) / pace
        arrivals = np.cumsum(rng.exponential(1.0, items) / (self.utilisation * pace))
        # Lindley's recursion: an item starts when it has come and all before it are done.
        spent = np.cumsum(service) - service
        starts = np.maximum.accumulate(arrivals - spent) + spent
        done = starts + service
        borders = self._borders(float(done[-1]), period_s, rng)
        taken = np.searchsorted(starts, borders, side="right")
        counts = np.diff(taken).astype(np.float64)
        counts -= (rng.random(counts.size) < self.missed) & (counts > 0)
        half = int(np.searchsorted(taken, items // 2))
        return StagePeriods(
            items=counts,
            period_s=np.diff(borders),
            blocked_s=_idle(borders, starts, done),
            changed=None if self.later == 1.0 else half,
        )

    def _services(self, items: int, rng: np.random.Generator) -> Floats:
        """Draw service times, in units of their mean without stalls."""
        exponential = self.service == "exponential"
        service = rng.exponential(1.0, items) if exponential else np.ones(items)
        hit = rng.random(items) < self.stalled
        found: Floats = service + hit * rng.exponential(self.stall, items)
        return found

    def _borders(self, end_s: float, period_s: float, rng: np.random.Generator) -> Floats:
        number = int(end_s / period_s) + 1
        longer = (rng.random(number) < self.stretched) * rng.exponential(0.5, number)
        borders = np.concatenate([[0.0], np.cumsum(period_s * (1.0 + longer))])
        found: Floats = borders[borders <= end_s]
        return found


def _idle(borders: Floats, starts: Floats, done: Floats) -> Floats:
    """Return how long the server was idle between borders, in seconds."""
    idle_from = np.concatenate([[0.0], done[:-1]])
    knots = np.column_stack([idle_from, starts]).ravel()
    idle = np.cumsum(starts - idle_from)
    levels = np.column_stack([np.concatenate([[0.0], idle[:-1]]), idle]).ravel()
    found = np.diff(np.interp(borders, knots, levels))
    return np.where(found > _ROUNDING_S, found, 0.0)
