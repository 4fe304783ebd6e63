"""The measured quantity: a metric, or performance index."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import is_number, refuse, wrong_values
from benchrigor.model.one_line import OneLine
from benchrigor.units import Direction, Quantity, direction_of, quantity_of, statistic_of

_FROM_UNIT: Any = "auto"  # resolved when a metric is made
# The readings of a metric of kind "time", regardless of their unit.
A_DURATION = "a duration of 0 or more (a difference is described as 'other', such as ms,other)"
_AVERAGINGS = ("auto", "arithmetic", "harmonic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(OneLine):
    """A measured quantity, its unit, and the precision that it needs.

    Parameters
    ----------
    name
        Its name in rounds and reports.
    unit
        Unit of its readings ("s", "B/s", ...); empty for a bare number.
    direction
        The better direction, "lower" or "higher"; None if it is not known. "auto": by the unit,
        lower for times, bytes and allocations, higher for anything per time, else None.
    must_satisfy
        Whether the session goes on until this metric reaches its precision.
    absolute_half_width, relative_half_width
        Target half-width in ``unit``, and relative to the value; the latter replaces the target of
        the session (``math.inf`` for none). The narrower one counts. The half-width of a share is
        relative to the rarer outcome, min(p, 1 - p).
    averaging
        "arithmetic"; "harmonic" for rates over equal amounts of work: the mean is the whole work
        over the whole time, and readings must be above 0. "auto": arithmetic, except that rates
        have total work over total time: weighted by the duration of the round if rounds give one
        reading, else harmonic (if a reading is 0, readings count as taken by the clock).
    kind
        "time", "rate", "share" (readings are outcomes, 0 or 1, or shares of trials) or "other".
        "auto": by the unit; a bare number with no readings but 0 and 1 is a share.

    Examples
    --------
    >>> metric = Metric(name="throughput", unit="req/s")
    >>> str(metric.direction), str(metric.kind)
    ('higher', 'rate')
    >>> Metric(name="score", unit="points").direction is None
    True
    """

    name: str
    unit: str = ""
    direction: Direction | None = _FROM_UNIT
    must_satisfy: bool = True
    absolute_half_width: float | None = None
    relative_half_width: float | None = None
    averaging: str = "auto"
    kind: Quantity | None = _FROM_UNIT

    def __post_init__(self) -> None:
        way, kind, of = self.direction, self.kind, f"of {self.name!r}"
        ways, kinds = (None, *Direction, _FROM_UNIT), (None, *Quantity, _FROM_UNIT)
        absolute, relative = self.absolute_half_width, self.relative_half_width
        is_absolute = _is_width(absolute) and absolute != math.inf
        checks = [
            (
                "a metric's name",
                self.name,
                isinstance(self.name, str) and self.name != "",
                "a word",
            ),
            (f"unit {of}", self.unit, isinstance(self.unit, str), "a word"),
            (f"absolute_half_width {of}", absolute, is_absolute, "more than 0"),
            (f"relative_half_width {of}", relative, _is_width(relative), "more than 0"),
            (f"direction {of}", way, way in ways, "'lower', 'higher', 'auto' or None"),
            (
                f"averaging {of}",
                self.averaging,
                self.averaging in _AVERAGINGS,
                _one_of(_AVERAGINGS),
            ),
            (f"kind {of}", kind, kind in kinds, _one_of(("auto", *Quantity))),
        ]
        refuse(wrong_values(checks))
        if way == _FROM_UNIT:
            way = direction_of(self.unit)
        if kind == _FROM_UNIT:
            kind = quantity_of(self.unit)
            kind = None if kind is Quantity.OTHER and not self.unit else kind
        object.__setattr__(self, "direction", way and Direction(way))
        object.__setattr__(self, "kind", kind and Quantity(kind))

    @property
    def is_duration(self) -> bool:
        """Whether its readings are durations in seconds."""
        return self.unit == "s" and self.kind is Quantity.TIME


def _is_width(width: object) -> bool:
    return width is None or (is_number(width) and width > 0.0)


def _one_of(words: Iterable[str]) -> str:
    return " or ".join(repr(str(word)) for word in words)


_MEANINGS = {
    **{str(way): ("direction", way) for way in Direction},
    **{mean: ("averaging", mean) for mean in _AVERAGINGS[1:]},
    **{str(kind): ("kind", kind) for kind in Quantity},
    "optional": ("must_satisfy", False),
}
_WIDTH = re.compile(r"(?:±|\+-)\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(%?)")


def describe_metric(name: str, description: str = "") -> Metric:
    """Make a metric of its name and a description, ``UNIT[,WORD]...`` in any order.

    Parameters
    ----------
    name
        Its name.
    description
        A unit and words: "lower" or "higher"; "arithmetic" or "harmonic"; "time", "rate", "share"
        or "other"; "optional" (it need not be satisfied); "±2%" or "+-2%" (half-width wanted,
        relative to the value) or "±0.5" (in the unit).

    Raises
    ------
    InvalidInput
        When two words contradict each other, or there are two units.

    Examples
    --------
    >>> metric = describe_metric("rate", "req/s,harmonic,±1%")
    >>> metric.unit, metric.averaging, metric.relative_half_width, str(metric.direction)
    ('req/s', 'harmonic', 0.01, 'higher')
    """
    values: dict[str, Any] = {}
    for word in filter(None, map(str.strip, description.split(","))):
        width = _WIDTH.fullmatch(word)
        field, value = _MEANINGS.get(word, ("unit", word))
        if width is not None:
            field = "relative_half_width" if width[2] else "absolute_half_width"
            value = float(width[1]) / (100.0 if width[2] else 1.0)
        if field in values:
            raise InvalidInput(
                f"metric {name!r} is described by {description!r}, expected one {field}: UNIT and "
                f"words of {', '.join(_MEANINGS)}, ±2%, ±0.5"
            )
        values[field] = value
    if "absolute_half_width" in values:
        values.setdefault("relative_half_width", math.inf)
    return Metric(name=name, **values)


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
    try:
        family, share = statistic_of(statistic)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    if family not in ("mean", "quantile"):
        raise InvalidInput(
            f"statistic is {statistic!r}, expected 'mean', 'median' or a percentile such as 'p10'"
        )
    return share if family == "quantile" else None
