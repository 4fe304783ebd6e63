"""The one line that a person sees first: the number, its interval, and whether to believe it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchrigor.model.notice import Severity
from benchrigor.units import digits_for, scale_for

if TYPE_CHECKING:
    from benchrigor.model.analysis import Analysis
    from benchrigor.model.decision import Decision
    from benchrigor.model.estimate import Estimate
    from benchrigor.model.interference import Interference

__all__ = [
    "aligned",
    "counted",
    "ended",
    "false_alarms",
    "line",
    "many",
    "no_number",
    "percent",
    "shortened",
    "show_amount",
    "show_estimate",
    "show_light",
    "show_overhead",
    "show_value",
    "wrapped",
]

WIDTH = 79
"""Characters of a line."""

_LONG = 1e12
"""From there on thousands are not set apart any more, but written as a power of ten."""
_EXPONENT = 99
"""So many decimals make a scale write powers of ten."""
_TICK_S = 0.5e-9
"""Less than half a nanosecond is nothing that a clock has seen."""


def show_estimate(estimate: Estimate, unit: str) -> str:
    """Show an estimate with its unit and interval, all in one scale.

    Examples
    --------
    >>> from benchrigor.model import Estimate
    >>> estimate = Estimate(value=1.234e-5, low=1.2e-5, high=1.3e-5, confidence=0.95, n=500,
    ...                     n_effective=400.0, method="long-run-variance")
    >>> show_estimate(estimate, "s")
    '12.34 µs [12.00, 13.00] 95%'
    """
    half_width = estimate.half_width
    # A wide interval around 0 is shown in the scale of its ends.
    largest = max(abs(estimate.value), half_width if math.isfinite(half_width) else 0.0)
    scale = scale_for(largest, unit)
    digits = digits_for(half_width * scale.factor, estimate.value * scale.factor)
    if largest * scale.factor >= _LONG:
        digits = _EXPONENT
    value, low, high = (
        scale.show(each, digits) for each in (estimate.value, estimate.low, estimate.high)
    )
    name = f" {scale.name}" if scale.name else ""
    return f"{value}{name} [{low}, {high}] {percent(estimate.confidence, digits=10)}"


def show_value(value: float, unit: str) -> str:
    """Show a number with three significant digits, scaled to its unit.

    Examples
    --------
    >>> show_value(0.001234, "s"), show_value(250.0, "")
    ('1.23 ms', '250')
    """
    scale = scale_for(value, unit)
    scaled = value * scale.factor
    # From 999.5 on three digits would round to 1e+03.
    shown = counted(scaled) if 999.5 <= abs(scaled) < _LONG else f"{scaled:.3g}"
    return f"{shown} {scale.name}".rstrip()


def show_amount(work: float, unit: str) -> str:
    """Show an amount of work, in the unit of the speed without its "/s".

    Examples
    --------
    >>> show_amount(23_400_000, "B/s"), show_amount(1000, "/s"), show_amount(1e12, "lines/s")
    ('23.4 MB', '1,000', '1e+12 lines')
    """
    name = unit.removesuffix("/s")
    if name == "B":
        return show_value(work, name)
    return f"{counted(work) if 100.0 <= work < 1e9 else f'{work:.3g}'} {name}".rstrip()


def counted(number: float) -> str:
    """Show a count, thousands apart.

    Examples
    --------
    >>> counted(12), counted(1_234_567)
    ('12', '1,234,567')
    """
    return f"{number:,.0f}"


def many(number: int, noun: str) -> str:
    """Say how many there are of a thing, in the singular where it is one.

    Examples
    --------
    >>> many(1, "round"), many(1200, "reading")
    ('1 round', '1,200 readings')
    """
    return f"{counted(number)} {noun}{'' if number == 1 else 's'}"


def percent(share: float, *, digits: int = 3) -> str:
    """Show a share as per cent, with three significant digits at most.

    A confidence is shown with all its digits: 0.9999 is not 100%.

    Examples
    --------
    >>> percent(0.95), percent(0.999), percent(0.0123)
    ('95%', '99.9%', '1.23%')
    >>> percent(0.9999, digits=10), percent(12.4)
    ('99.99%', '1,240%')
    """
    number = share * 100
    # From there on so few digits would end in e+02.
    return f"{counted(number)}%" if abs(number) >= 10**digits - 0.5 else f"{number:.{digits}g}%"


def false_alarms(level: float | None) -> str:
    """Say what the finder of change points promises about false ones.

    Examples
    --------
    >>> false_alarms(0.01)
    'chance of a false one 1%'
    """
    return (
        "no promise about false ones"
        if level is None
        else f"chance of a false one {percent(level)}"
    )


def ended(decision: Decision | None) -> str:
    """Say how a run ended; what is no result never looks like one.

    Examples
    --------
    >>> from benchrigor.model import Decision, StopReason
    >>> ended(Decision(stop=True, reason=StopReason.TIME_BUDGET))
    'not converged: time budget spent'
    """
    if decision is None:
        return "still running"
    reason = str(decision.reason).replace("-", " ")
    return reason if reason == "satisfied" else f"not converged: {reason}"


def line(
    name: str,
    analysis: Analysis | None,
    decision: Decision | None,
    elapsed_s: float,
    *,
    statistic: str = "mean",
    interference: Interference | None = None,
    left_out: tuple[int, int] = (0, 0),
) -> str:
    """Compose the headline of a run: name, number, evidence, and how it ended.

    A number that is not a mean says what it is, and one of some of the rounds only, how many of
    how many were left out.

    A number that was not brought to its target says so; where there is no number, the line says
    why instead.
    """
    tail = f"{ended(decision)}, {elapsed_s:.3g} s"
    if left_out[0]:
        tail = f"{left_out[0]} of {many(left_out[1], 'round')} left out · {tail}"
    if interference is not None:
        tail = f"{show_light(interference)} · {tail}"
    if analysis is None:
        return f"{name}: no number · {tail}"
    if analysis.estimate is None:
        return f"{name}: no number: {no_number(analysis)} · {tail}"
    estimate = analysis.estimate
    shown = show_estimate(estimate, analysis.metric.unit)
    if statistic != "mean":
        shown = f"{statistic} {shown}"
    if analysis.kind == "invocations":
        evidence = f"n={many(estimate.n, 'invocation')}"
    elif analysis.wps is not None:
        evidence = f"n={many(estimate.n, 'round')}, {_overhead(analysis.wps.overhead)}"
    else:
        evidence = f"n={counted(estimate.n)} ({counted(estimate.n_effective)} effective)"
    return f"{name}: {shown} · {evidence} · {tail}"


def show_light(found: Interference) -> str:
    """Show the traffic light of a run, and what was lost where that is not little.

    Examples
    --------
    >>> from benchrigor.model import Interference, Light
    >>> found = Interference(percent=9.0, measured_percent=14.0, light=Light.RED, n=100,
    ...                      probability_high=0.98, unclustered_percent=0.0, duration_s=1.0,
    ...                      continuous_percent=None, above_median_percent=9.1,
    ...                      flagged_percent=8.0)
    >>> show_light(found)
    'red light: 23% lost'
    """
    lost = "" if found.light == "green" else f": {found.total_percent:.0f}% lost"
    doubtful = any(each.severity is not Severity.NOTE for each in found.notices)
    return f"{found.light} light{lost}{' (doubtful)' if doubtful else ''}"


def show_overhead(found: Estimate) -> str:
    """Show what each round adds to its work, with its interval."""
    return "none" if _is_nothing(found) else show_estimate(found, "s")


def _is_nothing(found: Estimate) -> bool:
    return max(abs(found.low), abs(found.high)) < _TICK_S


def no_number(analysis: Analysis) -> str:
    """Say why an analysis has no number: its refusal, else its first Notice."""
    refusals = [each for each in analysis.notices if each.severity is Severity.REFUSAL]
    said = [*refusals, *analysis.notices]
    return said[0].sentence if said else "nothing was measured"


def _overhead(found: Estimate) -> str:
    """Say in a few words what each round adds to its work; an interval around 0 says how little."""
    if _is_nothing(found):
        return "no overhead"
    if found.low <= 0.0 <= found.high:
        return f"at most {show_value(found.high, 's')} overhead each"
    if found.value < 0.0:
        return f"{show_value(-found.value, 's')} head start each"
    return f"{show_value(found.value, 's')} overhead each"


def shortened(name: str, most: int) -> str:
    """Return a name with so many characters at most; its ends tell it from others.

    Examples
    --------
    >>> shortened("parts of the product.head", 15)
    'parts o…ct.head'
    """
    if len(name) <= most:
        return name
    behind = most // 2
    return f"{name[: most - behind - 1]}…{name[-behind:]}"


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    r"""Return the rows of a table as lines, with two spaces between its columns.

    Parameters
    ----------
    rows
        Cells, as many in each row.
    sides
        For each column "<" or ">": on which side its cells begin.

    Examples
    --------
    >>> print(*aligned([("stage", "used"), ("hash", "7%")], "<>"), sep="\n")
    stage  used
    hash     7%
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def wrapped(text: str, first: str = "", width: int = WIDTH) -> list[str]:
    """Break into lines below each other; names and codes stay whole at their hyphens."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )
