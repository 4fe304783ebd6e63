"""How estimates and runs are written as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from benchrigor.codes import Severity
from benchrigor.units import (
    LONG,
    ROUNDING,
    Scale,
    digits_for,
    percent,
    scale_for,
    show_value,
    show_values,
)

if TYPE_CHECKING:
    from benchrigor.model.analysis import Mode, Observed
    from benchrigor.model.decision import Decision
    from benchrigor.model.estimate import Estimate
    from benchrigor.model.notice import Notice

_SMALL, _MOST_DECIMALS = 1e-3, 9  # So are smaller ones that need more decimals
_RESOLVED = 15  # Decimal digits that a floating point number holds
_TICK_S = 0.5e-9  # No clock sees less than half a nanosecond
_USUAL = "95%"  # A confidence that goes without saying
_EVEN = 0.85  # Least ratio of the distances to both ends of an interval that is shown with one ±
_WIDE = 0.5  # Relative half-widths from here on are shown as intervals
PEAK_MEMORY, MEMORY_FLOOR = "peak_memory", "peak_memory_floor"  # facts
_ABOVE_FLOOR = 1.1  # Kernels count pages in batches


def show_peak_memory(facts: Mapping[str, object]) -> str:
    """Show the peak memory of a run, with "at most" if an idle process has about the same."""
    peak, floor = (float(str(facts.get(name) or 0)) for name in (PEAK_MEMORY, MEMORY_FLOOR))
    return f"{'at most ' * (peak <= floor * _ABOVE_FLOOR)}{show_value(peak, 'B')}"


def show_estimate(estimate: Estimate, unit: str) -> str:
    """Show an estimate with its unit, interval and confidence, all in one scale."""
    shown = show_interval(estimate, unit)
    return shown if estimate.is_bracket else f"{shown} {percent(estimate.confidence, digits=10)}"


def show_interval(estimate: Estimate, unit: str) -> str:
    """Show an estimate with its unit and interval, next to another one of the same confidence."""
    half_width = estimate.half_width
    # A wide interval around 0 is shown in the scale of its ends.
    largest = max(abs(estimate.value), half_width if math.isfinite(half_width) else 0.0)
    scale = scale_for(largest, unit)
    value, interval = show_scaled(estimate, scale, long=largest * scale.factor >= LONG)
    name = f" {scale.name}" if scale.name else ""
    return f"{value}{name} {interval}"


def show_plus_minus(share: float) -> str:
    """Show a half-width relative to the value."""
    return f"±{percent(share, digits=2).removesuffix('%')} %"


def show_short(estimate: Estimate, unit: str, *, is_share: bool = False) -> str:
    """Show an estimate with its half-width in per cent, or with its interval.

    The interval is shown if it is lopsided or wide, and for shares, since their half-width in per
    cent would look like part of the share.
    """
    shown = show_interval(estimate, unit)
    confidence = percent(estimate.confidence, digits=10)
    suffix = "" if confidence == _USUAL or estimate.is_bracket else f" at {confidence}"
    below, above = estimate.value - estimate.low, estimate.high - estimate.value
    is_even = 0.0 < max(below, above) < math.inf and min(below, above) >= _EVEN * max(below, above)
    width = estimate.relative_half_width
    if estimate.is_bracket or is_share or width >= _WIDE or not (is_even or width == 0.0):
        return f"{shown}{suffix}"
    return f"{shown.rpartition(' [')[0]} {show_plus_minus(width)}{suffix}"


def show_scaled(estimate: Estimate, scale: Scale, *, long: bool = False) -> tuple[str, str]:
    """Show the value and the interval in a scale; long numbers with an exponent."""
    half_width, typical = (x * scale.factor for x in (estimate.half_width, estimate.value))
    digits = digits_for(half_width, typical)
    numbers = (estimate.value, estimate.low, estimate.high)
    if long or (digits > _MOST_DECIMALS and abs(typical) < _SMALL):
        digits = _mantissa_digits(half_width, typical)
        value, low, high = (f"{number * scale.factor:.{digits}e}" for number in numbers)
    else:
        # No decimals beyond the precision of a floating point number.
        whole = math.floor(math.log10(abs(typical))) if 0.0 < abs(typical) < math.inf else 0
        digits = min(digits, max(_RESOLVED - 1 - whole, 0))
        value, low, high = (scale.show(number, digits) for number in numbers)
    return value, f"[{low}, {high}]"


def _mantissa_digits(half_width: float, typical: float) -> int:
    """Count the decimals before an exponent that show two significant digits of a half-width."""
    if not (math.isfinite(half_width) and ROUNDING * abs(typical) < half_width < abs(typical)):
        return 3
    wanted = math.floor(math.log10(abs(typical))) - math.floor(math.log10(half_width)) + 1
    return min(max(wanted, 3), _RESOLVED - 1)


def show_observed(observed: Observed, unit: str) -> str:
    """Show the observed readings in a few words."""
    if observed.n == 1:
        return f"1 reading of {show_value(observed.median, unit)}"
    greatest, least = show_values((observed.greatest, observed.least), unit)
    return f"median {show_value(observed.median, unit)}, {least} to {greatest}"


def show_modes(modes: Iterable[Mode], unit: str) -> str:
    """Show the share and the value of each mode."""
    return ", ".join(
        f"{percent(mode.share, digits=2)} near {show_value(mode.value, unit)}" for mode in modes
    )


def show_chance(chance: float) -> str:
    """Show a p-value after its "p"."""
    return "<0.0001" if chance < 0.0001 else f"={chance:.2g}"


# Runs


def false_alarms(level: float | None) -> str:
    """Say how often a detector of change points may raise a false alarm."""
    if level is None:
        return "no promise about false ones"
    return f"{percent(level)} chance of a false one"


def say_end(decision: Decision | None) -> str:
    """Say how a run ended; what broke it off never looks like a result."""
    if decision is None:
        return "still running"
    if decision.satisfied:
        return "as sure as asked"
    reason = str(decision.reason).replace("-", " ")
    planned = ("spent", "limit reached", "out of reach", "exhausted")
    is_planned = reason.endswith(planned)
    return reason if is_planned else f"not converged: {reason}"


def is_broken_off(decision: Decision | None) -> bool:
    """Return whether a run broke off, or goes on: then its number is not a result."""
    return say_end(decision).startswith(("not converged", "still"))


def refusal_of(notices: Sequence[Notice]) -> Notice | None:
    """Return the Notice that explains a missing number: the first refusal, else the first."""
    refusals = [notice for notice in notices if notice.severity is Severity.REFUSAL]
    return next(iter([*refusals, *notices]), None)


def no_number(notices: Sequence[Notice]) -> str:
    """Say why the number is missing."""
    why = refusal_of(notices)
    return "nothing was measured" if why is None else why.sentence


def within_sentence(sentence: str) -> str:
    """Return a sentence that goes on after a colon."""
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def show_overhead(overhead: Estimate) -> str:
    """Show the overhead of a round, with its interval."""
    return "none" if _is_nothing(overhead) else show_estimate(overhead, "s")


def show_added(overhead: Estimate) -> str:
    """Show the overhead of a round in a few words."""
    if _is_nothing(overhead):
        return "no overhead"
    if overhead.low <= 0.0 <= overhead.high:
        return f"at most {show_value(overhead.high, 's')} overhead each"
    if overhead.value < 0.0:
        return f"{show_value(-overhead.value, 's')} head start each"
    return f"{show_value(overhead.value, 's')} overhead each"


def _is_nothing(seconds: Estimate) -> bool:
    return max(abs(seconds.low), abs(seconds.high)) < _TICK_S
