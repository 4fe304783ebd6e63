"""The line through pairs of work amount and duration: a stable speed, and what each round adds."""

from __future__ import annotations

from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice

__all__ = ["WpsFit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WpsFit:
    """The line duration = overhead + work / speed, through rounds of various work amounts.

    Parameters
    ----------
    speed
        Work per second of the stable phase; its interval is that of ``slope`` turned over, so it
        is not symmetric. None where the interval of the slope holds 0.
    overhead
        Seconds that setup, warm-up and cool-down add to each round; negative where the warm-up
        is faster than the stable phase.
    slope
        Seconds per unit of work.
    n
        Rounds fitted.
    naive_speed
        All work over all time, which counts the overhead as work.
    prediction_error
        Error at a round that the line was fitted without (root mean square over all rounds),
        relative to the mean duration.
    bend
        By how much the time per unit of work grows from the smallest to the largest amount, as a
        share of the slope: 0 where duration is linear in work. None with fewer than
        four amounts or five rounds.
    growth
        Exponent p of duration = overhead + c * work^p: 1 where duration is linear in work. None
        where the rounds do not tell.
    shape
        The name of that growth: "linear", "n log n", "quadratic"; or "other".
    outliers
        Indices of the rounds, among those fitted, that lie far from the line.
    inflation
        By how much autocorrelation raises the variance of the slope, at least 1.
    merged
        Adjacent rounds summed into one before the fit; 1 for none.
    notices
        What the reader must know.
    """

    speed: Estimate | None
    overhead: Estimate
    slope: Estimate
    n: int
    naive_speed: float
    prediction_error: float
    bend: Estimate | None = None
    growth: Estimate | None = None
    shape: str | None = None
    outliers: tuple[int, ...] = ()
    inflation: float = 1.0
    merged: int = 1
    notices: tuple[Notice, ...] = ()
