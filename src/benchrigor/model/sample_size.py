"""How much to measure, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine, Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(OneLine):
    """What it costs to know a mean within a relative half-width.

    Parameters
    ----------
    half_width
        Relative half-width of the interval.
    n
        Readings (or invocations) in all.
    n_low, n_high
        Range of that number: the variance is known from a pilot only.
    seconds
        Wall time; None if the pilot's is not known.
    """

    half_width: float
    n: int
    n_low: int
    n_high: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Reported):
    """How much to measure, from a pilot; ``print(plan)`` shows it in a few lines.

    Parameters
    ----------
    pilot
        The estimate that the plan starts from; its confidence is that of the comparison.
    counted_in
        "reading" or "invocation": what sizes count.
    change, margin, power
        The relative change to be seen, the margin that it must be shown to exceed, and the
        chance of showing it.
    n
        Readings (or invocations) of each side of the comparison.
    n_low, n_high
        Range of that number: the variance is known from a pilot only.
    power_now
        Chance of showing the change with as many on each side as the pilot has.
    change_now
        Smallest relative change that those show with the power wanted.
    prices
        What narrower and narrower intervals of one mean cost.
    name, unit
        What was measured, and the unit of the pilot's value; empty if they are not known.
    seconds
        Wall time of each side; None if the pilot's is not known.
    pilot_seconds
        Wall time of the pilot; None if it is not known.
    notices
        What the reader must know, of the pilot and of the plan.
    """

    _page = "benchrigor.report.planning_text:plan_page"

    pilot: Estimate
    counted_in: str
    change: float
    margin: float
    power: float
    n: int
    n_low: int
    n_high: int
    power_now: float
    change_now: float
    prices: tuple[Price, ...]
    name: str = ""
    unit: str = ""
    seconds: float | None = None
    pilot_seconds: float | None = None
    notices: tuple[Notice, ...] = ()
