"""Figures at the full speed of the machine, from the pace at which they were measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchrigor.model import Code, Estimate, Notice, Pace
from benchrigor.stats.pace import UNLIKE, limits_otherwise, of_machine
from benchrigor.stats.series.full_speed import ASSUMED
from benchrigor.stats.series.interval import PIECE_MEANS, satterthwaite, student_t

AT_FULL_SPEED = "at full speed"


def at_full_speed(estimate: Estimate, pace: Pace, *, is_mean: bool = True) -> Estimate:
    """Return an estimate of a time, measured at this pace, as it would be at full speed.

    A mean is the level of the segments there, if they have one; what else is estimated changes as
    their mean does. On the logarithmic scale, the variance has the error of blocks of segments, the
    uncertainty of the sensitivity times the distance that it bridges, and a component between runs.
    A quantile has its own error in place of the blocks' if it is greater.
    """
    own = pace.error
    if not is_mean and estimate.value:
        t = student_t(max(estimate.n_effective - 1.0, 1.0), estimate.confidence)
        own = max(own, estimate.relative_half_width / t)
    freedom = max(pace.blocks - 1.0, 1.0)
    value = estimate.value * pace.factor
    if is_mean and pace.level is not None:
        value = pace.level
    return _interval(estimate, value, own, freedom, pace)


def _interval(estimate: Estimate, value: float, own: float, freedom: float, pace: Pace) -> Estimate:
    """Return a value at full speed with all errors, ``own`` with its degrees of freedom."""
    others = math.hypot(pace.away * pace.sensitivity_sd, pace.between)
    error = math.hypot(own, others)
    freedom = satterthwaite((own, others), (freedom, ASSUMED))
    reach = math.exp(student_t(freedom, estimate.confidence) * error)
    return replace(
        estimate,
        value=value,
        low=value / reach,
        high=value * reach,
        method=AT_FULL_SPEED,
        standard_error=value * error,
        degrees_of_freedom=freedom,
        notices=_unlike(pace),
    )


def pieces_at_full_speed(estimate: Estimate, pace: Pace) -> Estimate | None:
    """Return the estimate of a run in pieces, from their levels at full speed.

    The part that the reference does not explain is in the differences between the levels; their
    mean has Student's t. None with fewer than two.
    """
    at_full = np.array([level for level in pace.by_piece if level is not None])
    count = at_full.size
    if count < 2:
        return None
    value = float(at_full.mean())
    own = float(at_full.std(ddof=1)) / math.sqrt(count) / value
    found = _interval(replace(estimate, n=count), value, own, count - 1.0, pace)
    return replace(found, n_effective=float(count), method=f"{AT_FULL_SPEED}, {PIECE_MEANS}")


def at_sensitivity(
    figure: Estimate, pace: Pace, to_full: tuple[float, float], *, is_speed: bool
) -> tuple[Estimate, Pace]:
    """Return a figure at full speed, and its pace, by another sensitivity to the distance.

    ``to_full`` is the sensitivity of whole readings, and its standard deviation.
    """
    away, (value, sd) = of_machine(pace.fastest_reference or 0.0)[0], to_full
    if not away or not figure.standard_error or figure.value <= 0.0:
        return figure, pace
    ratio = math.exp((pace.to_full - value) * away)
    change = away**2 * (sd**2 - pace.to_full_sd**2)
    error = math.sqrt(max((figure.standard_error / figure.value) ** 2 + change, pace.error**2))
    moved = figure.value / ratio if is_speed else figure.value * ratio
    reach = math.exp(student_t(figure.degrees_of_freedom or ASSUMED, figure.confidence) * error)
    pace = replace(
        pace,
        to_full=value,
        to_full_sd=sd,
        factor=pace.factor * ratio,
        level=None if pace.level is None else pace.level * ratio,
        between=math.sqrt(max(pace.between**2 + change, 0.0)),
    )
    found = replace(figure, value=moved, low=moved / reach, high=moved * reach)
    return replace(found, standard_error=moved * error), pace


def reducible_share(figure: Estimate, pace: Pace) -> float:
    """Return the share of the variance of a figure at this pace that more readings reduce.

    The rest is the uncertainty of the correction, and how far runs differ.
    """
    if not figure.standard_error or figure.value <= 0.0:
        return 1.0
    lasting = math.hypot(pace.away * pace.sensitivity_sd, pace.between)
    return max(1.0 - (lasting * figure.value / figure.standard_error) ** 2, 0.0)


def is_unlike(pace: Pace) -> bool:
    """Whether something else limits work than the pace of the interpreter."""
    slope, sd = pace.sensitivity, pace.sensitivity_sd
    return pace.busy >= UNLIKE and limits_otherwise(slope / pace.busy, sd / pace.busy)


def _unlike(pace: Pace) -> tuple[Notice, ...]:
    """Say where work is limited by something else than the pace of the interpreter."""
    if not is_unlike(pace):
        return ()
    figures = {"sensitivity": pace.sensitivity, "sensitivity_sd": pace.sensitivity_sd}
    tenth, sd = 0.1 * pace.sensitivity, 0.1 * pace.sensitivity_sd
    return (Notice.of(Code.REFERENCE_UNLIKE, tenth_=tenth, sd_=sd, **figures),)
