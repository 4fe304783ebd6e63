"""The one type of number: a value with the interval in which its true value is claimed to lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchrigor.model.notice import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with the interval in which its true value is claimed to lie.

    Parameters
    ----------
    value, low, high
        The estimate and the ends of its interval, which may be asymmetric.
    confidence
        Nominal coverage, in (0, 1).
    n
        Units of inference: readings, or invocations.
    n_effective
        Independent readings that would tell as much.
    method
        How the interval was made.
    standard_error
        Standard error of the value.
    degrees_of_freedom
        Of the standard error.
    notices
        What the reader must know.

    Examples
    --------
    >>> estimate = Estimate(value=10.0, low=9.0, high=11.5, confidence=0.95, n=50,
    ...                     n_effective=41.0, method="long-run-variance")
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
    def half_width(self) -> float:
        """Half the width of the interval (its mean half-width where it is asymmetric)."""
        return (self.high - self.low) / 2.0

    @property
    def relative_half_width(self) -> float:
        """Half-width over the size of the value; infinite for a wide interval around 0."""
        if self.half_width == 0.0:
            return 0.0
        return self.half_width / abs(self.value) if self.value != 0.0 else math.inf
