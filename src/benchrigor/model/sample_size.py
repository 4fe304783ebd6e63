"""What a measurement will cost, and how well earlier ones kept their word: Plan, TrackRecord."""

from __future__ import annotations

from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice, Severity
from benchrigor.model.text import WIDTH, counted, many, percent, show_estimate, show_value, wrapped

__all__ = ["Plan", "Price"]

_LABEL = 10
_MARKS = {Severity.NOTE: "·", Severity.WARNING: "!", Severity.REFUSAL: "!"}
_NEARLY = 0.999
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What it costs to know a mean within a relative half-width.

    Parameters
    ----------
    half_width
        Relative half-width of the interval.
    n
        Readings (or invocations) that it takes in all.
    n_low, n_high
        Between which that number lies, the variance being known from a pilot only.
    seconds
        Wall time; None where the pilot's is not known.
    """

    half_width: float
    n: int
    n_low: int
    n_high: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to measure, worked out from what is known already.

    ``print(plan)`` shows it in a few lines, its Notices below.

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
        Readings (or invocations) that each side of the comparison takes.
    n_low, n_high
        Between which that number lies, the variance being known from a pilot only.
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
        Wall time that the pilot took; None where it is not known.
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
        size = many(self.pilot.n, self.counted_in)
        head = f"{show_estimate(self.pilot, self.unit)} from {size}"
        if self.pilot_seconds is not None:
            head += f" in {_duration(self.pilot_seconds)}"
        beyond = f" beyond a margin of {percent(self.margin)}" if self.margin else ""
        needed = f"{many(self.n, self.counted_in)} a side{_range(self.n_low, self.n_high)}"
        if self.seconds is not None:
            needed += f", {_duration(self.seconds)} each"
        lines = wrapped(f"{self.name}: {head}" if self.name else head)
        wish = f"a change of {percent(self.change)}{beyond} with power {percent(self.power)}"
        lines += _row("to see", wish)
        lines += _row("takes", needed)
        now = f"{size} a side: power {_chance(self.power_now)}"
        lines += _row("so far", f"{now}, smallest change seen {percent(self.change_now)}")
        lines += self._price_list()
        for notice in self.notices:
            lines += wrapped(str(notice), f"  {_MARKS[notice.severity]} ")
        return "\n".join(lines)

    def _price_list(self) -> list[str]:
        """Show one price a line, numbers below numbers; without ranges where they do not fit."""
        rows = [
            (
                f"half-width {percent(each.half_width)}:",
                many(each.n, self.counted_in),
                _range(each.n_low, each.n_high),
                "" if each.seconds is None else _duration(each.seconds),
            )
            for each in self.prices
        ]
        lines = _aligned(rows)
        if max(map(len, lines), default=0) > WIDTH:
            lines = _aligned([(width, size, "", time) for width, size, _, time in rows])
        return lines


def _row(label: str, text: str) -> list[str]:
    return wrapped(text, f"  {label:<{_LABEL}}")


def _aligned(rows: list[tuple[str, str, str, str]]) -> list[str]:
    """Set rows of half-width, size, range and time below each other, under one label."""
    width, size, span, time = (
        max((len(row[column]) for row in rows), default=0) for column in range(4)
    )
    return [
        f"  {'' if index else 'costs':<{_LABEL}}"
        f"{row[0]:<{width}} {row[1]:>{size}}{row[2]:<{span}}  {row[3]:>{time}}".rstrip()
        for index, row in enumerate(rows)
    ]


def _chance(power: float) -> str:
    """Show a chance that is close to 1 as what it is: not certain."""
    return percent(power) if power < _NEARLY else f"above {percent(_NEARLY)}"


def _range(low: int, high: int) -> str:
    return f" ({counted(low)} to {counted(high)})" if low < high else ""


def _duration(seconds: float) -> str:
    """Show a wall time, from two minutes on in the units that people plan by."""
    if seconds < 2.0 * _MINUTE:
        return show_value(seconds, "s")
    steps = ((2.0 * _DAY, _DAY, "days"), (2.0 * _HOUR, _HOUR, "h"), (0.0, _MINUTE, "min"))
    size, name = next((unit, name) for least, unit, name in steps if seconds >= least)
    return f"{show_value(seconds / size, '')} {name}"
