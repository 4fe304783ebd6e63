"""Units, directions, and how a number is scaled and written for display.

A unit is a name ("s", "B", "1/s"). Readings are stored in it; only display scales them ("0.00123 s"
is shown as "1.23 ms"), and one typical value fixes the prefix for a whole line.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchrigor.safe_text import escaped


def share_of(text: str) -> float:
    """Read a share, given as 0.02 or as 2%; ValueError names the problem with it.

    A number from 1 on needs its %: 2 is more often meant as 2% than as 200%.
    """
    digits = text.strip()
    try:
        number = float(digits.removesuffix("%"))
    except ValueError:
        raise ValueError(f"{text!r} is not a share, expected a number such as 0.02 or 2%") from None
    if digits.endswith("%"):
        return number / 100.0
    if number >= 1.0:
        percent, share = f"{number:g}%", f"{number / 100.0:g}"
        raise ValueError(f"{text!r} is {number * 100.0:g}%: write {percent} (or {share})")
    return number


LONG = 1e12  # Numbers from here on are written as powers of ten
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_PERCENT = r"([0-9]{1,2}(?:\.[0-9]{1,9})?)"
_NAMED = {"mean": ("mean", 0.0), "median": ("quantile", 0.5), "min": ("min", 0.0)}
# By the family of a statistic, how it is written with a percentage, and what this is below.
_WITH_PERCENT = {
    "quantile": (re.compile(f"p{_PERCENT}"), 100.0),
    "trimmed": (re.compile(f"trimmed {_PERCENT}%"), 50.0),
}


def statistic_of(name: object) -> tuple[str, float]:
    """Return the family of a statistic, and its share of the readings; ValueError else.

    The family is "mean", "min", "quantile", of which the share lies below it, or "trimmed", which
    leaves the share out at either end.
    """
    word = name if isinstance(name, str) else ""
    if word in _NAMED:
        return _NAMED[word]
    for family, (written, most) in _WITH_PERCENT.items():
        if (match := written.fullmatch(word)) and 0.0 < float(match[1]) < most:
            return family, float(match[1]) / 100.0
    raise ValueError(
        f"statistic is {name!r}, expected 'mean', 'median', a percentile such as 'p10', "
        "'trimmed 10%' or 'min'"
    )


# As programs write durations, also Go's.
_SECONDS_IN = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "m": 60.0, "min": 60.0}
_SECONDS_IN |= {"s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+) *([a-zA-Zµμ]*) *")
_TIME_UNIT = "|".join(sorted(_SECONDS_IN, key=len, reverse=True))
_REST = re.compile(rf"((?:(?:{_TIME_UNIT})[0-9.]+)*| )(?:{_TIME_UNIT})(?![\w/%^*])")


def seconds_of(text: str, *, bare_s: float | None = 1.0) -> float:
    """Read a duration, given as 200ms, 1.5s, 2min or 1m30s.

    ``bare_s`` is the unit of a number without one, in seconds; None refuses it. ValueError says
    the problem.

    Examples
    --------
    >>> seconds_of("200ms"), seconds_of("1m30s"), seconds_of("0.25")
    (0.2, 90.0, 0.25)
    >>> seconds_of("100", bare_s=None)
    Traceback (most recent call last):
    ...
    ValueError: 100 has no unit: write 100ms or 100s
    """
    digits = text.strip()
    if _PART.fullmatch(digits) and digits[-1] in "0123456789.":
        if bare_s is None:
            raise ValueError(f"{digits} has no unit: write {digits}ms or {digits}s")
        return float(digits) * bare_s
    return sum(number * _SECONDS_IN[unit] for number, unit in _duration_parts(text))


def time_in(unit: str, text: str) -> float:
    """Read a time that may have a unit of its own, in a unit; ValueError if it is none.

    Examples
    --------
    >>> time_in("ms", "487.5us"), time_in("s", "1m1.25s"), time_in("ms", "12.5")
    (0.4875, 61.25, 12.5)
    """
    try:
        return float(text)
    except ValueError:
        if unit not in _SECONDS_IN:
            raise
    in_unit = _SECONDS_IN[unit]
    parts = _duration_parts(text)
    return sum(number * float(f"{_SECONDS_IN[own] / in_unit:.12g}") for number, own in parts)


def has_time_unit(text: str) -> bool:
    """Return whether a text is a duration with its unit, such as 487.51us."""
    try:
        return bool(_duration_parts(text))
    except ValueError:
        return False


def rest_of_duration(behind: str) -> str:
    """Return the unit of time at the start of a text, as it follows a number; empty if none."""
    match = _REST.match(behind)
    return match[0] if match else ""


def _duration_parts(text: str) -> list[tuple[float, str]]:
    """Return numbers and their units of time; ValueError unless the text has only these."""
    parts = _PART.findall(text)
    is_whole = "".join(map("".join, parts)) == text.replace(" ", "").strip()
    if not parts or not is_whole or any(unit not in _SECONDS_IN for _, unit in parts):
        raise ValueError(f"{text!r} is not a duration, expected one such as 200ms, 1.5s or 2min")
    return [(float(number), unit) for number, unit in parts]


def time_limit_of(text: str) -> float:
    """Read a duration above 0 as seconds; "none" means no limit, infinitely many.

    ValueError names the problem.
    """
    if text.strip().lower() in {"none", "inf"}:
        return math.inf
    return positive_seconds_of(text)


def positive_seconds_of(text: str, *, bare_s: float | None = 1.0) -> float:
    """Read a duration above 0, as `seconds_of` does."""
    seconds = seconds_of(text, bare_s=bare_s)
    if not 0.0 < seconds < math.inf:
        raise ValueError(f"{text!r} is not a duration above 0, expected one such as 200ms or 2min")
    return seconds


class Direction(enum.StrEnum):
    """Which way a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"


class Quantity(enum.StrEnum):
    """What kind of quantity a metric is."""

    TIME = "time"
    RATE = "rate"  # Per time: its mean is total work over total time
    SHARE = "share"  # Of trials that succeed, from 0 to 1
    OTHER = "other"


_PER_TIME = re.compile(
    r"""(.*(/|\bper\b)\ *([mnuµμ]?s|secs?|seconds?|min|minutes?|h|hrs?|hours?|days?)  # req/s
        |.*\b(s|sec|min)(\^?-1|⁻¹)                                                   # s^-1
        |[kKMGT]?(Hz|[Bb]ps|flops?|FLOPS|FLOP/s)|[kKMGT]?i?(rps|qps|tps|fps|iops|IOPS|RPS|QPS|TPS|FPS))
    """,
    re.VERBOSE,
)
_TIME = re.compile(r"[mnuµμp]?s|[mnuµμ]?secs?|(micro|milli|nano)?seconds?|min|minutes?|h|hours?")
_SPENT = re.compile(r"[kKMGTP]?i?B|[Bb]ytes?|alloc(ation)?s?")


def quantity_of(unit: str) -> Quantity:
    """Return the quantity that a unit stands for, "other" if that is not clear.

    Examples
    --------
    >>> [str(quantity_of(unit)) for unit in ("ms", "ns/op", "req/s", "MHz", "points")]
    ['time', 'time', 'rate', 'rate', 'other']
    """
    if _PER_TIME.fullmatch(unit.strip()):
        return Quantity.RATE
    return Quantity.TIME if _TIME.fullmatch(_numerator(unit)) else Quantity.OTHER


def direction_of(unit: str) -> Direction | None:
    """Return the better direction if the unit makes it clear: time, memory, counts of allocations.

    Of anything per time more is better.

    Examples
    --------
    >>> [direction_of(unit) and str(direction_of(unit)) for unit in ("ms", "MiB", "op/s", "points")]
    ['lower', 'lower', 'higher', None]
    """
    quantity = quantity_of(unit)
    if quantity is Quantity.RATE:
        return Direction.HIGHER
    plain = quantity is Quantity.TIME or _SPENT.fullmatch(_numerator(unit)) is not None
    return Direction.LOWER if plain else None


def _numerator(unit: str) -> str:
    """Return the unit before the slash: "ns" for "ns/op"."""
    return unit.partition("/")[0].strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A factor, and the name of the unit that it leads to."""

    factor: float
    name: str

    def show(self, number: float, digits: int) -> str:
        """Format ``number`` in this scale with ``digits`` decimals."""
        return f"{number * self.factor:,.{digits}f}"


_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_DECIMAL = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def scale_for(typical: float, unit: str) -> Scale:
    """Choose the prefix in which ``typical`` has one to three digits before the point.

    Seconds are scaled down to ns; "B", "B/s", "Hz" and "…/s" are scaled up with decimal prefixes;
    every other unit is left as it is. The unit 1, of plain numbers, has no name.
    """
    size, unit = abs(typical), escaped(unit)
    if unit == "s":
        step, name = next((row for row in _SECONDS if size >= row[0]), _SECONDS[-1])
        return Scale(factor=1.0 / step, name=name)
    if unit in {"B", "Hz"} or unit.endswith("/s"):
        step, prefix = next((row for row in _DECIMAL if size >= row[0]), _DECIMAL[-1])
        joined = unit in {"B", "Hz", "B/s", "/s"} or not prefix
        return Scale(factor=1.0 / step, name=f"{prefix}{'' if joined else ' '}{unit}")
    return Scale(factor=1.0, name="" if unit == "1" else unit)


ROUNDING = 1e-14  # relative difference that floating point arithmetic makes of equal numbers


def digits_for(half_width: float, typical: float) -> int:
    """Count the decimals that show two significant digits of the half-width.

    An interval of zero width, or of rounding errors alone, shows four significant digits
    of the value, or fewer if the rest are zeros.
    """
    if half_width > ROUNDING * abs(typical) and math.isfinite(half_width):
        return max(0, 1 - math.floor(math.log10(half_width)))
    if typical == 0.0 or not math.isfinite(typical):
        return 1
    places = max(0, 3 - math.floor(math.log10(abs(typical))))
    if half_width > 0.0:
        return places
    return len(f"{typical:.{places}f}".partition(".")[2].rstrip("0"))


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
    shown = counted(scaled) if 999.5 <= abs(scaled) < LONG else f"{scaled:.3g}"
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


def show_amount(work: float, unit: str) -> str:
    """Show an amount of work, in the unit of the speed without its "/s"."""
    name = "" if unit == "1" else escaped(unit.removesuffix("/s"))
    if name == "B":
        return show_value(work, name)
    return f"{counted(work) if 100.0 <= work < 1e9 else f'{work:.3g}'} {name}".rstrip()
