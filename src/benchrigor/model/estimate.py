"""The one type of number: a value with its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.units import Direction, digits_for

_MOST_DECIMALS, _LONG = 9, 1e12  # Other numbers are written as powers of ten


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(OneLine):
    """A number with its confidence interval.

    Parameters
    ----------
    value, low, high
        The estimate and the ends of its interval, which may be asymmetric.
    confidence
        Nominal coverage, in (0, 1).
    n
        Units of inference: readings, or invocations.
    n_effective
        Effective sample size.
    method
        How the interval was made.
    standard_error, degrees_of_freedom
        Standard error of the value, and its degrees of freedom.

    Examples
    --------
    >>> estimate = Estimate(value=10.0, low=9.0, high=11.5, confidence=0.95, n=50,
    ...                     n_effective=41.0, method="long-run-variance")
    >>> estimate
    10.0 [9.0, 11.5] 95%
    >>> estimate.half_width, estimate.relative_half_width
    (1.25, 0.125)
    """

    value: float
    low: float
    high: float
    confidence: float
    n: int
    n_effective: float
    method: str
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def is_bracket(self) -> bool:
        """Whether its ends are values tried on both sides, without a coverage probability."""
        return self.method == "bracket"

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2.0

    @property
    def relative_half_width(self) -> float:
        """Half-width over the size of the value; infinite for an interval around a value of 0."""
        if self.half_width == 0.0:
            return 0.0
        return self.half_width / abs(self.value) if self.value != 0.0 else math.inf

    def _line(self) -> str:
        decimals = digits_for(self.half_width, self.value)
        long = decimals > _MOST_DECIMALS or abs(self.value) >= _LONG
        form = ".4g" if long else f",.{decimals}f"
        shown = f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"
        return shown if self.is_bracket else f"{shown} {100.0 * self.confidence:.10g}%"


Quantity = float | Estimate  # a number that is known exactly, or one that was estimated


def ends(quantity: Quantity) -> tuple[float, float, float]:
    """Return the value and both ends of the interval; all are one for an exact number."""
    if isinstance(quantity, Estimate):
        return quantity.value, quantity.low, quantity.high
    return (float(quantity),) * 3


TIMES_FROM = 1.5  # Ratios from here on, and below its reciprocal, are shown in times
_DIGITS = 4
_LONG = 1e12


def show_change(ratio: Estimate, unit: str = "", direction: Direction | None = None) -> str:
    """Show a ratio as a change, with its interval: "12.2x faster [12.1, 12.3]".

    Examples
    --------
    >>> ratio = Estimate(value=1.25, low=1.2, high=1.3, confidence=0.95, n=9, n_effective=9.0,
    ...                  method="ratio")
    >>> show_change(ratio), show_change(ratio, "s")
    ('25.0% higher [+20.0%, +30.0%]', '25.0% more time [+20.0%, +30.0%]')
    """
    change, interval = change_of(ratio, unit, direction)
    return f"{change or '0%'} {interval}"


def _words(unit: str, direction: Direction | None, *, in_times: bool) -> tuple[str, str]:
    """Return the words for a larger and for a smaller candidate."""
    if unit == "s":
        return ("slower", "faster") if in_times else ("more time", "less time")
    if unit.endswith("/s") and direction is Direction.HIGHER:
        return "faster", "slower"
    return "higher", "lower"


def change_of(
    ratio: Estimate, unit: str, direction: Direction | None, *, in_words: bool = False
) -> tuple[str, str]:
    """Return the change and its interval: as a factor of the larger side, or else in per cent.

    Without a change the first is empty. In a sentence the ends of an interval around no change have
    words; in a table, which has less room, all ends in per cent have signs.
    """
    ends = (ratio.value, ratio.low, ratio.high)
    if 1.0 / TIMES_FROM < ratio.value < TIMES_FROM or not ratio.value > 0.0:
        more, less = _words(unit, direction, in_times=False)
        return _in_percent(*ends, (more, less), in_words=in_words)
    more, less = _words(unit, direction, in_times=True)
    if ratio.value < 1.0:
        value, high, low = (1.0 / end if end > 0.0 else math.inf for end in ends)
        ends = value, low, high
    size, least, most = ends
    width = (most - least) / 2.0 if math.isfinite(most) else size - least
    # One digit less than an estimate has, as users of other comparison tools expect.
    digits = min(max(digits_for(width, size) - 1, 1 if size < 100.0 else 0), _DIGITS)
    form = f",.{digits}f" if size < _LONG else ".4g"
    way, other = (more, less) if ratio.value > 1.0 else (less, more)
    shown, first, last = (_end(f"{end:{form}}", end) for end in ends)
    if in_words and least < 1.0:  # the other side is the larger one there
        least = 1.0 / least if least > 0.0 else math.inf
        ends_shown = _end(f"{least:{form}}x {other}", least), _end(f"{last}x", most)
        first, last = ends_shown if ratio.value > 1.0 else ends_shown[::-1]
    return f"{shown}x {way}", f"[{first}, {last}]"


def _in_percent(
    value: float, low: float, high: float, words: tuple[str, str], *, in_words: bool
) -> tuple[str, str]:
    more, less = words
    width = (high - low) / 2.0 if math.isfinite(high) else value - low
    changes = [100.0 * (ratio - 1.0) for ratio in (value, low, high)]
    digits = min(digits_for(100.0 * width, changes[0]), _DIGITS)
    change, *ends = (round(size, digits) for size in changes)
    is_one_way = low > 1.0 or high < 1.0

    def show_end(end: float) -> str:
        if not end or (in_words and is_one_way):
            return _end(f"{abs(end):,.{digits}f}%", end)
        side = (more if end > 0.0 else less).split(maxsplit=1)[0]
        words = f"{abs(end):,.{digits}f}% {side}"
        return _end(words if in_words else f"{end:+,.{digits}f}%", end)

    shown = f"{abs(change):,.{digits}f}% {more if change > 0.0 else less}" if change else ""
    ordered = sorted(ends, key=abs) if in_words and is_one_way else ends
    return shown, f"[{', '.join(map(show_end, ordered))}]"


def _end(shown: str, end: float) -> str:
    return shown if math.isfinite(end) else "no limit"
