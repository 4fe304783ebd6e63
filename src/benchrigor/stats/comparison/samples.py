"""One side of a comparison: what may be given for it, and what it comes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Floats, Notice, StablePhase, as_series
from benchrigor.stats.estimators.invocations import METHOD as INVOCATIONS
from benchrigor.stats.estimators.invocations import combine_values, rejected_notices
from benchrigor.stats.estimators.mean import estimate_mean
from benchrigor.stats.estimators.proportion import FEWEST_IN_TAIL
from benchrigor.stats.estimators.quantile import estimate_quantile, quantile_value
from benchrigor.stats.phases.common_warm_up import common_phases
from benchrigor.stats.phases.trimming import trimmed
from benchrigor.stats.series.level import FEWEST, fit_level
from benchrigor.stats.series.transients import TRANSIENTS
from benchrigor.stats.wps.work_line import WPS
from benchrigor.units import Direction

__all__ = [
    "Given",
    "Values",
    "attempt",
    "check_margin",
    "direction_named",
    "estimate_given",
    "estimate_values",
    "invocation_values",
    "read_given",
    "thin_tails",
    "unit_of",
]

T = TypeVar("T")

Values = npt.ArrayLike | Sequence[npt.ArrayLike] | Estimate
"""What a caller may give: a series, a sequence of them (one per invocation), an Estimate."""

Given = Floats | tuple[Floats, ...] | Estimate
"""The same, checked; a sequence of one series is that series."""


def read_given(values: Values, name: str) -> Given:
    """Check what was given for one side.

    Parameters
    ----------
    values
        A 1-D series, a sequence of series (or a 2-D array, one row per invocation), or an
        Estimate.
    name
        How errors call the side.

    Raises
    ------
    InvalidInput
        With one sentence for each series that is none.
    """
    if isinstance(values, Estimate):
        if not (math.isfinite(values.value) and -math.inf < values.low <= values.high < math.inf):
            raise InvalidInput(
                f"{name} is an estimate of {values.value!r} [{values.low!r}, {values.high!r}], "
                "expected finite numbers, the lower end first"
            )
        return values
    several = _several(values)
    if several is None:
        return as_series(values, name=name)
    problems: list[str] = []
    found = []
    for index, each in enumerate(several):
        try:
            found.append(as_series(each, name=f"{name}[{index}]"))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return found[0] if len(found) == 1 else tuple(found)


def direction_named(direction: object) -> Direction:
    """Return which way is better, or raise InvalidInput unless it is "lower" or "higher"."""
    for known in Direction:
        if known == direction:
            return known
    raise InvalidInput(f"direction is {direction!r}, expected 'lower' or 'higher'")


def check_margin(margin: object) -> float:
    """Return a margin, or raise InvalidInput unless it is a finite number of at least 0."""
    number = isinstance(margin, Real) and not isinstance(margin, bool)
    if not number or not 0.0 <= float(margin) < math.inf:  # type: ignore[arg-type]  # a number
        raise InvalidInput(f"margin is {margin!r}, expected a finite number of at least 0")
    return float(margin)  # type: ignore[arg-type]  # likewise


def attempt(problems: list[str], check: Callable[..., T], *values: object) -> T | None:
    """Call a check, and add what it complains about to the problems found so far."""
    try:
        return check(*values)
    except InvalidInput as error:
        problems += error.problems
        return None


def unit_of(given: Given) -> str:
    """Name what is counted: "invocation", "reading", or "round" of various work."""
    if isinstance(given, Estimate):
        if given.method.startswith(WPS):
            return "round"
        return "invocation" if given.method == INVOCATIONS else "reading"
    return "invocation" if isinstance(given, tuple) else "reading"


def estimate_given(given: Given, q: float | None, confidence: float, *, trim: bool) -> Estimate:
    """Estimate the mean, or the quantile ``q``, of one side.

    Parameters
    ----------
    given
        From `read_given`; an Estimate is returned as it is.
    q
        Share below the quantile, in (0, 1); None for the mean.
    confidence
        Nominal coverage, in (0, 1).
    trim
        Remove the non-stable phases of each series first.

    Raises
    ------
    NotEstimable
        When the readings allow no number.
    """
    if isinstance(given, Estimate):
        return given
    if isinstance(given, tuple):
        return estimate_values(invocation_values(given, q, confidence, trim=trim), confidence)
    if q is None:
        return estimate_mean(given, confidence=confidence, trim=trim)
    return estimate_quantile(given, q, confidence=confidence, trim=trim)


def invocation_values(
    invocations: tuple[Floats, ...], q: float | None, confidence: float, *, trim: bool
) -> list[float | None]:
    """Return the mean or quantile of each invocation; None for one without a stable phase."""
    phases = common_phases(invocations, confidence=confidence) if trim else None
    return [
        _value(series, q, None if phases is None else phases[index])
        for index, series in enumerate(invocations)
    ]


def estimate_values(values: Sequence[float | None], confidence: float) -> Estimate:
    """Combine the values of invocations into an estimate over invocations.

    Parameters
    ----------
    values
        From `invocation_values`.
    confidence
        Nominal coverage, in (0, 1).

    Raises
    ------
    NotEstimable
        When fewer than two invocations have a value.
    """
    kept = [value for value in values if value is not None]
    rejected = rejected_notices(len(values) - len(kept), len(values))
    if len(kept) < FEWEST:
        raise NotEstimable(rejected[0])
    found = combine_values(kept, confidence)
    return replace(found, notices=(*rejected, *found.notices))


def thin_tails(given: Given, q: float | None) -> tuple[Notice, ...]:
    """Say when invocations are too short for a quantile: its estimate is off by a bias then."""
    if q is None or not isinstance(given, tuple):
        return ()
    shortest = min(series.size for series in given)
    in_tail = shortest * min(q, 1.0 - q)
    if in_tail >= FEWEST_IN_TAIL:
        return ()
    notice = Notice.warning(
        Code.FEW_IN_TAIL,
        f"The shortest invocation has {shortest} readings, {in_tail:.2g} of them beyond the "
        f"{q * 100:g}% quantile: below {FEWEST_IN_TAIL} the quantile is biased.",
        n=shortest,
        in_tail=in_tail,
        wanted=FEWEST_IN_TAIL,
    )
    return (notice,)


def _value(series: Floats, q: float | None, phase: StablePhase | None) -> float | None:
    """Return the mean or quantile of the stable phase, or of all readings where none is given."""
    transients = TRANSIENTS if phase is not None else ()
    try:
        kept = trimmed(series, phase) if phase is not None else series
        if q is not None:
            return quantile_value(kept, q, transients=transients)
        return fit_level(kept, transients=transients).level if transients else float(kept.mean())
    except NotEstimable:
        return None


def _several(values: object) -> Sequence[object] | None:
    """Return the values if they are several series rather than one: the first item tells."""
    if isinstance(values, np.ndarray):
        return list(values) if values.ndim == 2 and values.size else None
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        return None
    first = values[0]
    return values if hasattr(first, "__len__") and not isinstance(first, str | bytes) else None
