"""The one type of number: a value with its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.units import digits_for

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
