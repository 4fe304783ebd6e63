"""Units, directions, and how a number is scaled for display.

A unit is a name ("s", "B", "1/s"). Readings are stored in it; only display scales them ("0.00123 s"
is shown as "1.23 ms"), and one typical value fixes the prefix for a whole line.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass


class Direction(enum.StrEnum):
    """Which way a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A factor, and the name of the unit that it leads to."""

    factor: float
    name: str

    def show(self, number: float, digits: int) -> str:
        """Format ``number`` in this scale with ``digits`` decimals, or with an exponent."""
        if digits > _MOST_DIGITS:
            return f"{number * self.factor:.3e}"
        return f"{number * self.factor:,.{digits}f}"


_MOST_DIGITS = 9
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_DECIMAL = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def scale_for(typical: float, unit: str) -> Scale:
    """Choose the prefix in which ``typical`` has one to three digits before the point.

    Seconds are scaled down to ns; "B", "B/s", "Hz" and "…/s" are scaled up with decimal prefixes;
    every other unit is left as it is.
    """
    size = abs(typical)
    if unit == "s":
        step, name = next((row for row in _SECONDS if size >= row[0]), _SECONDS[-1])
        return Scale(factor=1.0 / step, name=name)
    if unit in {"B", "Hz"} or unit.endswith("/s"):
        step, prefix = next((row for row in _DECIMAL if size >= row[0]), _DECIMAL[-1])
        joined = unit in {"B", "Hz", "B/s", "/s"} or not prefix
        return Scale(factor=1.0 / step, name=f"{prefix}{'' if joined else ' '}{unit}")
    return Scale(factor=1.0, name=unit)


def digits_for(half_width: float, typical: float) -> int:
    """Count the decimals that show two significant digits of the half-width.

    An interval of width zero shows four significant digits of the value.
    """
    if half_width > 0.0 and math.isfinite(half_width):
        return max(0, 1 - math.floor(math.log10(half_width)))
    if typical == 0.0 or not math.isfinite(typical):
        return 1
    return max(0, 3 - math.floor(math.log10(abs(typical))))
