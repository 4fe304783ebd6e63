"""Estimates with known intervals."""

import math
from typing import Any

from scipy import stats as scipy_stats

from benchrigor.model import Estimate


def estimated(value: float, low: float, high: float, **more: Any) -> Estimate:
    known = {"confidence": 0.95, "n": 20, "n_effective": 15.0, "method": "any"} | more
    return Estimate(value=value, low=low, high=high, **known)


def within(value: float, width: float = 0.02) -> Estimate:
    """Return an estimate that is known to a share ``width`` of itself."""
    return estimated(value, value * (1.0 - width), value * (1.0 + width))


def mean_of(
    n: int = 30,
    *,
    value: float = 1.0,
    error: float | None = None,
    sd: float = 0.1,
    confidence: float = 0.95,
    method: str = "long-run-variance",
) -> Estimate:
    """Return the estimate of the mean of n independent readings, by Student's t.

    Its standard error follows from the standard deviation ``sd`` of a reading, unless given.
    """
    error = sd / math.sqrt(n) if error is None else error
    half_width = float(scipy_stats.t.isf((1.0 - confidence) / 2.0, n - 1)) * error
    return Estimate(
        value=value,
        low=value - half_width,
        high=value + half_width,
        confidence=confidence,
        n=n,
        n_effective=float(n),
        method=method,
        standard_error=error,
        degrees_of_freedom=n - 1.0,
    )
