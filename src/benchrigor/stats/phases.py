"""The stable phase: the longest stretch of one level, if it holds more than half the readings."""

from __future__ import annotations

import math
from itertools import pairwise
from numbers import Real

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    ChangePoints,
    Code,
    Floats,
    Notice,
    Phase,
    PhaseLabel,
    PhaseReason,
    Severity,
    StablePhase,
    as_series,
)
from benchrigor.stats.changepoints import detect_changes

__all__ = ["find_stable_phase"]

_FEWEST_EFFECTIVE = 5


def find_stable_phase(
    values: npt.ArrayLike,
    *,
    level: float = 0.01,
    materiality: float = 0.01,
    change_points: ChangePoints | None = None,
) -> StablePhase:
    """Find the longest stretch of one level; it is stable if it holds more than half the readings.

    Parameters
    ----------
    values
        Readings, shape (n,).
    level
        Chance of any false change point, in (0, 1); see `detect_changes`.
    materiality
        Neighbouring segments whose medians differ by less than this share of the smaller one are
        one phase. Never applied across medians of different sign, or 0. 0 joins nothing.
    change_points
        From another detector; None to find them here.

    Returns
    -------
    StablePhase
        With the raw change points. Where there is no stable phase, ``start`` and ``stop`` are
        None, and ``reason`` and a Notice say why.

    Raises
    ------
    InvalidInput
        When the values are no readings, an option is out of range, or the change points are not
        those of a series of this length.

    Examples
    --------
    >>> found = find_stable_phase([9.0] * 20 + [5.0] * 80)
    >>> found.start, found.stop, [str(phase.label) for phase in found.phases]
    (20, 100, ['warm-up', 'stable'])
    """
    series = as_series(values)
    _check(series.size, materiality, change_points)
    if change_points is None:
        change_points = detect_changes(series, level=level)
    borders = _joined(series, change_points.borders, materiality)
    longest = int(np.argmax(np.diff(borders)))
    start, stop = borders[longest], borders[longest + 1]
    reason = _judged(stop - start, change_points)
    stable = reason is PhaseReason.STABLE
    count = len(borders) - 1
    labels = _labels(longest, count) if stable else [PhaseLabel.OTHER] * count
    phases = tuple(
        Phase(start=first, stop=end, label=label, median=_median(series[first:end]))
        for (first, end), label in zip(pairwise(borders), labels, strict=True)
    )
    return StablePhase(
        start=start if stable else None,
        stop=stop if stable else None,
        reason=reason,
        phases=phases,
        change_points=change_points,
        notices=() if stable else (_refusal(reason, stop - start, count, change_points),),
    )


def _check(n: int, materiality: float, change_points: ChangePoints | None) -> None:
    problems = []
    number = isinstance(materiality, Real) and not isinstance(materiality, bool)
    if not number or not 0.0 <= materiality < math.inf:
        problems.append(f"materiality is {materiality!r}, expected a finite number, at least 0")
    if change_points is not None and change_points.n != n:
        problems.append(
            f"change_points are of a series of {change_points.n} values, expected {n} as in values"
        )
    elif change_points is not None and any(a >= b for a, b in pairwise(change_points.borders)):
        problems.append(
            f"change_points are at {change_points.indices}, expected ascending within 1 to {n - 1}"
        )
    if problems:
        raise InvalidInput(problems)


def _joined(series: Floats, borders: tuple[int, ...], materiality: float) -> list[int]:
    """Join the most similar neighbours first, until all differ materially.

    The median of a union lies between the medians of its parts, so their weighted mean is off by
    less than the materiality; it spares a new median of all readings after each join.
    """
    kept = list(borders)
    if len(kept) == 2 or materiality == 0.0:
        return kept
    medians = [_median(part) for part in np.split(series, kept[1:-1])]
    gaps = [_gap(a, b) for a, b in pairwise(medians)]
    while gaps and min(gaps) < materiality:
        at = gaps.index(min(gaps))
        share = (kept[at + 1] - kept[at]) / (kept[at + 2] - kept[at])
        medians[at : at + 2] = [share * medians[at] + (1.0 - share) * medians[at + 1]]
        del kept[at + 1], gaps[at]
        for each in (at - 1, at):
            if 0 <= each < len(gaps):
                gaps[each] = _gap(medians[each], medians[each + 1])
    return kept


def _median(series: Floats) -> float:
    """Return the median, with one order statistic selected: four times faster than with two."""
    half = series.size // 2
    parted = np.partition(series, half)
    if series.size % 2:
        return float(parted[half])
    return (float(parted[:half].max()) + float(parted[half])) / 2.0


def _gap(one: float, other: float) -> float:
    """Difference of two medians as a share of the smaller one."""
    if one == 0.0 or other == 0.0 or (one > 0.0) != (other > 0.0):
        return math.inf
    return abs(one - other) / min(abs(one), abs(other))


def _judged(longest: int, change_points: ChangePoints) -> PhaseReason:
    """Say whether the longest segment, of so many readings, is the stable phase."""
    if 2 * longest <= change_points.n:
        return PhaseReason.NO_DOMINANT_SEGMENT
    if longest / change_points.inflation < min(_FEWEST_EFFECTIVE, longest):
        return PhaseReason.FEW_EFFECTIVE
    return PhaseReason.STABLE


def _labels(stable: int, count: int) -> list[PhaseLabel]:
    """Label ``count`` phases around the stable one."""
    behind = count - stable - 1
    last = [PhaseLabel.OTHER] * (behind - 1) + [PhaseLabel.COOL_DOWN] if behind else []
    return [PhaseLabel.WARM_UP] * stable + [PhaseLabel.STABLE, *last]


def _refusal(
    reason: PhaseReason, longest: int, segments: int, change_points: ChangePoints
) -> Notice:
    n = change_points.n
    found = f"the longest of {segments} segments" if segments > 1 else "the only segment"
    if reason is PhaseReason.NO_DOMINANT_SEGMENT:
        why = f"holds {longest / n:.0%} of the {n} readings, more than half are needed"
    else:
        why = (
            f"holds {longest} readings worth {longest / change_points.inflation:.1f} independent "
            f"ones, at least {_FEWEST_EFFECTIVE} are needed"
        )
    return Notice(
        code=Code.NO_STABLE_PHASE,
        severity=Severity.REFUSAL,
        sentence=f"There is no stable phase: {found} {why}.",
        evidence={
            "reason": str(reason),
            "n": n,
            "segments": segments,
            "longest": longest,
            "share": longest / n,
            "inflation": change_points.inflation,
        },
    )
