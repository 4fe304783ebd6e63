"""How numbers and runs are written as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from benchrigor.codes import Severity
from benchrigor.control_characters import escaped
from benchrigor.units import ROUNDING, Scale, digits_for, scale_for

if TYPE_CHECKING:
    from benchrigor.model.analysis import Mode, Observed
    from benchrigor.model.decision import Decision
    from benchrigor.model.estimate import Estimate
    from benchrigor.model.notice import Notice

_LONG = 1e12  # Numbers from here on are written as powers of ten
_SMALL, _MOST_DECIMALS = 1e-3, 9  # So are smaller ones that need more decimals
_RESOLVED = 15  # Decimal digits that a floating point number holds
_TICK_S = 0.5e-9  # No clock sees less than half a nanosecond
_USUAL = "95%"  # A confidence that goes without saying
_EVEN = 0.85  # Least ratio of the distances to both ends of an interval that is shown with one ±
_WIDE = 0.5  # Relative half-widths from here on are shown as intervals
PEAK_MEMORY, MEMORY_FLOOR = "peak_memory", "peak_memory_floor"  # facts
_ABOVE_FLOOR = 1.1  # Kernels count pages in batches
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def shortened(name: str, most: int) -> str:
    """Shorten a name in its middle, since its ends distinguish it from others."""
    name = escaped(name)
    if len(name) <= most:
        return name
    last = most // 2
    return f"{name[: most - last - 1]}…{name[-last:]}"


def counted(number: float) -> str:
    """Show a count, thousands apart."""
    return f"{number:,.0f}"


def first_few(shown: Sequence[str], most: int) -> str:
    """List the first few, and say how many more there are."""
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {more} more" if more > 0 else "")


def many(number: int, noun: str) -> str:
    """Show a count with its noun, singular or plural."""
    return f"{counted(number)} {noun}{'' if number == 1 else 's'}"


def percent(share: float, *, digits: int = 3) -> str:
    """Show a share in per cent, with up to three significant digits.

    A confidence is shown with all its digits: 0.9999 is not 100%.
    """
    number = share * 100
    # Larger numbers with ``digits`` digits would end in e+02.
    return f"{counted(number)}%" if abs(number) >= 10**digits - 0.5 else f"{number:.{digits}g}%"


def show_plainly(value: float) -> str:
    """Show a reading as it was given; six digits if arithmetic made it long."""
    shown = f"{value:.12g}"
    return shown if float(shown) == value else f"{value:.6g}"


def show_value(value: float, unit: str) -> str:
    """Show a number with three significant digits, scaled to its unit."""
    scale = scale_for(value, unit)
    scaled = value * scale.factor
    # From 999.5 on three digits would round to 1e+03.
    shown = counted(scaled) if 999.5 <= abs(scaled) < _LONG else f"{scaled:.3g}"
    return f"{shown} {scale.name}".rstrip()


def show_values(values: Iterable[float], unit: str) -> list[str]:
    """Show numbers with their unit, but only if it is another one than that before."""
    shown, before = [], None
    for value in values:
        number, _, name = show_value(value, unit).partition(" ")
        shown.append(number if name == before else f"{number} {name}".rstrip())
        before = name
    return shown


def show_duration(seconds: float) -> str:
    """Show a wall time, from two minutes on in the units that people plan by."""
    if seconds < 2.0 * _MINUTE:
        return show_value(seconds, "s")
    steps = ((2.0 * _DAY, _DAY, "days"), (2.0 * _HOUR, _HOUR, "h"), (0.0, _MINUTE, "min"))
    size, name = next((unit, name) for least, unit, name in steps if seconds >= least)
    return f"{show_value(seconds / size, '')} {name}"


def show_peak_memory(facts: Mapping[str, object]) -> str:
    """Show the peak memory of a run, with "at most" if an idle process has about the same."""
    peak, floor = (float(str(facts.get(name) or 0)) for name in (PEAK_MEMORY, MEMORY_FLOOR))
    return f"{'at most ' * (peak <= floor * _ABOVE_FLOOR)}{show_value(peak, 'B')}"


def show_amount(work: float, unit: str) -> str:
    """Show an amount of work, in the unit of the speed without its "/s"."""
    name = "" if unit == "1" else escaped(unit.removesuffix("/s"))
    if name == "B":
        return show_value(work, name)
    return f"{counted(work) if 100.0 <= work < 1e9 else f'{work:.3g}'} {name}".rstrip()


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
    value, interval = show_scaled(estimate, scale, long=largest * scale.factor >= _LONG)
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
    return f"chance of a false one {percent(level)}"


def say_end(decision: Decision | None) -> str:
    """Say how a run ended; what broke it off never looks like a result."""
    if decision is None:
        return "still running"
    reason = str(decision.reason).replace("-", " ")
    planned = ("satisfied", "spent", "limit reached", "out of reach", "exhausted")
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
    """Say why there is no number."""
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
