"""A simulated stage after a queue, with a known service rate, as a monitor sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchrigor.model.checks import refuse, wrong_choice, wrong_share, wrong_values
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats

_ROUNDING_S = 1e-9
_SERVICES = ("exponential", "deterministic", "lognormal", "pareto")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StagePeriods(OneLine):
    """Periods of a stage; arrays of shape (n,).

    Parameters
    ----------
    items
        Taken from the queue in the periods.
    period_s, blocked_s
        Their widths, and how long the stage waited for items, in seconds.
    changed
        The first period after the change of rate; None without one.
    """

    items: Floats
    period_s: Floats
    blocked_s: Floats
    changed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticStage(OneLine):
    """A single server after an unbounded queue, with random arrivals.

    Parameters
    ----------
    utilisation
        Arrival rate over service rate, in (0, 1).
    service
        "exponential", "deterministic", "lognormal" or "pareto" service times.
    shape
        For "lognormal" the standard deviation of the logarithm, above 0; for "pareto" the index of
        the tail, above 1 (up to 2 the variance is infinite).
    correlation
        Between the normal scores of successive service times, in [0, 1); for items k apart its k-th
        power. Stalls stay independent.
    rate
        Items per second while it serves and does not stall.
    later
        Rate of the second half of the items, as a share of the first; arrivals change equally.
    stalled, stall
        Share of the items that take longer, and by how many service times on average (exponential).
    stretched
        Share of the periods that are longer, by half on average.
    missed
        Share of the periods with a count that misses an item.

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
    shape: float = 1.5
    correlation: float = 0.0
    rate: float = 1000.0
    later: float = 1.0
    stalled: float = 0.0
    stall: float = 20.0
    stretched: float = 0.0
    missed: float = 0.0

    def __post_init__(self) -> None:
        least = 1.0 if self.service == "pareto" else 0.0
        shape, correlation = self.shape, self.correlation
        checks = (
            (f"shape of {self.service}", shape, least < shape < math.inf, f"above {least:g}"),
            ("correlation", correlation, 0.0 <= correlation < 1.0, "from 0 to below 1"),
        )
        refuse(
            wrong_choice("service", self.service, _SERVICES),
            wrong_share("utilisation", self.utilisation),
            wrong_values(checks),
        )

    @property
    def true_rate(self) -> float:
        """Items per second of busy time, stalls included, before any change."""
        return self.rate / (1.0 + self.stalled * self.stall)

    def watch(self, items: int, *, period_s: float, rng: np.random.Generator) -> StagePeriods:
        """Serve two or more items, and count them in periods of about ``period_s``."""
        pace = np.where(np.arange(items) < items // 2, 1.0, self.later) * self.rate
        service = self._services(items, rng) / pace
        arrivals = np.cumsum(rng.exponential(1.0, items) / (self.utilisation * pace))
        # Lindley's recursion: an item starts when it has arrived and all before it are done.
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
        match self.service:
            case "lognormal":
                scores = self._scores(items, rng)
                service = np.exp(self.shape * (scores - self.shape / 2.0))
            case "pareto":
                tail = np.exp(self._exponential(items, rng) / self.shape)
                service = tail * (1.0 - 1.0 / self.shape)
            case "exponential":
                service = self._exponential(items, rng)
            case _:
                service = np.ones(items)
        stalls: Floats = (rng.random(items) < self.stalled) * rng.exponential(self.stall, items)
        return service + stalls

    def _exponential(self, items: int, rng: np.random.Generator) -> Floats:
        if self.correlation == 0.0:
            return rng.exponential(1.0, items)
        from scipy import special  # noqa: PLC0415  # as `SyntheticWorkload` has it

        # By the upper tail, since one minus a tiny tail would round to one.
        tail: Floats = -special.log_ndtr(-self._scores(items, rng))
        return tail

    def _scores(self, items: int, rng: np.random.Generator) -> Floats:
        """Draw normal scores that are autoregressive of order 1."""
        phi = self.correlation
        shocks = math.sqrt(1.0 - phi**2) * rng.standard_normal(items)
        if phi == 0.0:
            return shocks
        from scipy import signal  # noqa: PLC0415  # as `SyntheticWorkload` has it

        scores, _ = signal.lfilter([1.0], [1.0, -phi], shocks, zi=[phi * rng.standard_normal()])
        return np.asarray(scores)

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
