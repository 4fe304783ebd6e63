"""The one line of a run: its name, its number, and the effect of the machine on it just now."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from benchrigor.control_characters import escaped
from benchrigor.model.analysis import Analysis, Kind
from benchrigor.model.decision import Decision
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import is_of_modes
from benchrigor.model.text import (
    is_broken_off,
    no_number,
    say_end,
    shortened,
    show_added,
    show_modes,
    show_observed,
    show_short,
    show_value,
    within_sentence,
)
from benchrigor.units import Quantity

LONGEST = 100  # Columns of the line
AT_FULL_SPEED = "at the full speed of this machine"
_SHORTEST_NAME, _LONGEST_NAME = 20, 40


def just_now(analysis: Analysis) -> Estimate | None:
    """Return the number with all that disturbed it, if the headline does not hold it."""
    headline, disturbed = analysis.headline, analysis.disturbed
    measured = analysis.estimate
    if disturbed is not None and disturbed.estimate is not None:
        measured = disturbed.estimate
    if headline is None or measured is None or headline.low <= measured.value <= headline.high:
        return None
    return measured


def show_just_now(analysis: Analysis) -> str:
    """Say the number as it was measured, if it differs from the headline."""
    measured = just_now(analysis)
    if measured is None:
        return ""
    return f"{show_value(measured.value, analysis.metric.unit)} just now"


def show_number(analysis: Analysis, statistic: str) -> str:
    """Show the number of an analysis, and which statistic it is unless it is the mean."""
    headline, metric = analysis.headline, analysis.metric
    if headline is None:
        return "no number"
    shown = show_short(headline, metric.unit, is_share=metric.kind is Quantity.SHARE)
    is_mean = statistic == "mean" or analysis.kind is Kind.WORK
    return shown if is_mean else f"{statistic} {shown}"


def notes_on(numbers: Iterable[str], *, corrected: str = "") -> list[str]:
    """Explain a table of numbers; ``corrected`` names its numbers at full speed, if any."""
    return [
        *([f"{corrected}: {AT_FULL_SPEED}; just now: as it ran"] if corrected else []),
        *(
            ["±: half of the 95% confidence interval"]
            if any("±" in number for number in numbers)
            else []
        ),
    ]


def run_line(
    name: str,
    analysis: Analysis | None,
    decision: Decision | None,
    *,
    is_recorded: bool = False,
    statistic: str = "mean",
    more: Sequence[str] = (),
) -> str:
    """Compose the line of a run, up to 100 columns wide; ``more`` is added if there is room.

    One that was recorded elsewhere, and took no time here, has no end.
    """
    broken = "" if is_recorded and decision is None else _broken_off(decision)
    if analysis is None:
        return _fitting(name, "no number", [say_end(decision)])
    if statistic == "min" and analysis.observed is not None:
        least = show_value(analysis.observed.least, analysis.metric.unit)
        return _fitting(name, f"min {least}", ["no interval", *more, broken])
    if analysis.headline is None:
        return _without_number(name, analysis, broken)
    overhead = "" if analysis.wps is None else show_added(analysis.wps.overhead)
    modes = show_modes(analysis.modes, analysis.metric.unit)
    modes *= any(map(is_of_modes, analysis.notices))
    asides = [modes, show_just_now(analysis), overhead, *more, broken]
    return _fitting(name, show_number(analysis, statistic), asides)


def _fitting(name: str, number: str, asides: Sequence[str]) -> str:
    """Join the parts of a line; a long name is shortened first, then asides are left out."""
    name, asides = escaped(name), [aside for aside in asides if aside]
    while True:
        tail = f"  ({'; '.join(asides)})" if asides else ""
        room = LONGEST - len(number) - len(tail) - 2
        if len(name) <= room or room >= _LONGEST_NAME or not asides:
            return f"{shortened(name, max(room, 1))}  {number}{tail}"
        if room >= _SHORTEST_NAME:
            return f"{shortened(name, room)}  {number}{tail}"
        asides.pop(-1 if len(asides) == 1 else -2)  # how it ended is last, and stays longest


def _broken_off(decision: Decision | None) -> str:
    """Say why a run broke off, or that it goes on."""
    return say_end(decision) if is_broken_off(decision) else ""


def _without_number(name: str, analysis: Analysis, broken: str) -> str:
    """Say why there is no number, and show the observed readings."""
    name, seen, unit = shortened(name, _LONGEST_NAME), analysis.observed, analysis.metric.unit
    why = within_sentence(no_number(analysis.notices)).removesuffix(".")
    why = f"{broken}: " * bool(broken) + why
    room, observed = LONGEST - len(name) - len("  no number: "), ""
    if seen is not None:
        observed = f" ({show_observed(seen, unit)})"
        if room - len(observed) < _LONGEST_NAME:
            observed = f" (median {show_value(seen.median, unit)})"
    why = textwrap.shorten(why, max(room - len(observed), 1), placeholder="…")
    return escaped(f"{name}  no number: {why}{observed}")
