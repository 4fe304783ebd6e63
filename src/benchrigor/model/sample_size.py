"""How much to measure, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from benchrigor.layout import Part, page, row, table, wrapped
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.text import counted, many, marked, percent, show_duration, show_estimate

_NEARLY_CERTAIN = 0.999


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
        Wall time; None where the pilot's is not known.
    """

    half_width: float
    n: int
    n_low: int
    n_high: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(OneLine):
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
        What was measured, and the unit of the pilot's value; empty where they are not known.
    seconds
        Wall time of each side; None where the pilot's is not known.
    pilot_seconds
        Wall time of the pilot; None where it is not known.
    notices
        What the reader must know, of the pilot and of the plan.
    """

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

    def __str__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        size = many(self.pilot.n, self.counted_in)
        spent = "" if self.pilot_seconds is None else f" in {show_duration(self.pilot_seconds)}"
        beyond = f" beyond a margin of {percent(self.margin)}" if self.margin else ""
        wanted = f"a change of {percent(self.change)}{beyond} with power {percent(self.power)}"
        needed = f"{many(self.n, self.counted_in)} a side"
        if self.n_low < self.n_high:
            needed += f" {_range(self.n_low, self.n_high)}"
        if self.seconds is not None:
            needed += f", {show_duration(self.seconds)} each"
        power = f"above {percent(_NEARLY_CERTAIN)}"
        if self.power_now < _NEARLY_CERTAIN:
            power = percent(self.power_now)
        now = f"{size} a side: power {power}, smallest change seen {percent(self.change_now)}"
        return page(
            [
                *wrapped(f"{name}{show_estimate(self.pilot, self.unit)} from {size}{spent}"),
                *row("to see", [wanted]),
                *row("takes", [needed]),
                *row("so far", [now]),
                *self._price_list(),
                *(line for notice in self.notices for line in marked(notice)),
            ]
        )

    def _price_list(self) -> list[Part]:
        """Show one price a line."""
        if not self.prices:
            return []
        rows = [
            (
                f"{'' if index else 'costs':<8}",
                f"half-width {percent(each.half_width)}:",
                many(each.n, self.counted_in),
                _range(each.n_low, each.n_high),
                "" if each.seconds is None else show_duration(each.seconds),
            )
            for index, each in enumerate(self.prices)
        ]
        return table(rows, "<<><>", has_names=False, indent=2)


def _range(low: int, high: int) -> str:
    return f"({counted(low)} to {counted(high)})" if low < high else ""
