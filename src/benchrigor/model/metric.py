"""What is measured: a metric, or performance index."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import is_number, refuse, wrong_values
from benchrigor.units import Direction

_AVERAGINGS = ("arithmetic", "harmonic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What is measured, in which unit, and how well it must be known.

    Parameters
    ----------
    name
        Its name in rounds and reports.
    unit
        Unit of its readings ("s", "B/s", ...); empty for a bare number.
    direction
        Which way is better.
    must_satisfy
        Whether the session goes on until this metric is known well enough.
    averaging
        "arithmetic"; or "harmonic" for rates over equal amounts of work, whose mean is the whole
        work over the whole time (readings must be above 0).
    absolute_half_width
        Half-width wanted, in ``unit``; beside or instead of the relative target of the session
        (when both are given, the narrower one counts).

    Examples
    --------
    >>> Metric(name="time", unit="s").direction
    <Direction.LOWER: 'lower'>
    """

    name: str
    unit: str = ""
    direction: Direction = Direction.LOWER
    must_satisfy: bool = True
    absolute_half_width: float | None = None
    averaging: str = "arithmetic"

    def __post_init__(self) -> None:
        name, width, way, mean = self.name, self.absolute_half_width, self.direction, self.averaging
        is_width = width is None or (is_number(width) and 0.0 < width < math.inf)
        of = f"of {name!r}"
        checks = [
            ("a metric's name", name, isinstance(name, str) and name != "", "a word"),
            (f"unit {of}", self.unit, isinstance(self.unit, str), "a word"),
            (f"absolute_half_width {of}", width, is_width, "more than 0"),
            (f"direction {of}", way, way in list(Direction), "'lower' or 'higher'"),
            (f"averaging {of}", mean, mean in _AVERAGINGS, "'arithmetic' or 'harmonic'"),
        ]
        refuse(wrong_values(checks))
        object.__setattr__(self, "direction", Direction(self.direction))

    @property
    def is_duration(self) -> bool:
        """Whether its readings are durations, which cannot be negative."""
        return self.unit == "s"


_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,9})?)")


def quantile_named(statistic: object) -> float | None:
    """Return the share of readings below a quantile; None for the mean.

    Parameters
    ----------
    statistic
        "mean", "median", or "p" and a percentage above 0 and below 100: "p10", "p99.9".

    Raises
    ------
    InvalidInput
        For anything else.

    Examples
    --------
    >>> quantile_named("mean"), quantile_named("median"), quantile_named("p99")
    (None, 0.5, 0.99)
    """
    word = statistic if isinstance(statistic, str) else ""
    if word == "mean":
        return None
    if word == "median":
        return 0.5
    match = _PERCENTILE.fullmatch(word)
    if match is None or float(match[1]) == 0.0:
        raise InvalidInput(
            f"statistic is {statistic!r}, expected 'mean', 'median' or a percentile such as 'p10'"
        )
    return float(match[1]) / 100.0
