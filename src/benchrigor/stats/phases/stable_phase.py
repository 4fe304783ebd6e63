"""The stable phase: the longest stretch of one level, if it holds more than half the readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Real

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    ChangePoints,
    Code,
    Floats,
    Phase,
    PhaseLabel,
    PhaseReason,
    Severity,
    StablePhase,
    as_series,
)
from benchrigor.model.checks import wrong_share
from benchrigor.stats.changepoints.detector import detect_changes
from benchrigor.stats.phases.stability_rules import Findings, judge, least_independent, refusal
from benchrigor.stats.phases.stationarity import (
    chance_of_movement,
    independent_readings,
    steps_beyond_noise,
)

__all__ = ["despite_few", "find_stable_phase", "judged_phase", "without_margin"]

_MOST_SEARCHED = 16_384
_FEWEST_SEARCHED = 40
"""Effective readings below which false change points are more frequent than stated."""
_COLD = 10
_SHORTEST = 10
_LASTING = 10
"""Part of the phase that a level inside it must last: what comes and goes faster is noise, which
the long-run variance knows."""
_SHARE = 0.3
"""Of the level, spent on further changes and again on slow movement: a phase was found by then."""


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
        None, and ``reason`` and a Notice say why. The same for a*x, a > 0.

    Raises
    ------
    InvalidInput
        When the values are no readings, an option is out of range, or the change points are not
        those of a series of this length.

    Notes
    -----
    The rules are those of `stats.phases.stability_rules`. The phase is searched once more by
    itself, whoever found it, but where another detector has found no change at all. Measured shares
    of series called stable: random walks of 500 to 5000 readings 0 to 5 % (more where they stay
    within the materiality), AR(1) 0.9 series of 1000 readings 100 %, independent readings (n = 20
    to 10000) 99 % or more. A slow cycle of which the run holds half a period or less is hardly
    told from a level.

    Examples
    --------
    >>> found = find_stable_phase([9.0] * 20 + [5.0] * 80)
    >>> found.start, found.stop, [str(phase.label) for phase in found.phases]
    (20, 100, ['warm-up', 'stable'])
    """
    series = as_series(values)
    _check(series.size, level, materiality, change_points)
    points = detect_changes(series, level=level) if change_points is None else change_points
    again = change_points is None or bool(points.indices)
    return judged_phase(series, points, level=level, materiality=materiality, again=again)


def judged_phase(
    series: Floats, points: ChangePoints, *, level: float, materiality: float, again: bool
) -> StablePhase:
    """Judge the longest phase between these change points, see `find_stable_phase`.

    With ``again`` it is searched once more by itself. Where another detector has found no change
    at all, its word counts.
    """
    borders, medians, raw = _joined(series, points.borders, materiality)
    longest = int(np.argmax(np.diff(borders)))
    start, stop = borders[longest], borders[longest + 1]
    inner = without_margin(start, stop, series.size)
    found = Findings(
        borders=tuple(borders),
        medians=tuple(medians),
        longest=longest,
        inflation=points.inflation,
        independent=independent_readings(_unbroken(series, inner, points.indices)),
        raw=raw,
        joined=raw[slice(*(points.borders.index(each) for each in (start, stop)))],
        materiality=materiality,
    )
    if found.dominant and again:
        found = _searched_again(series, found, level, materiality)
    reason = judge(found)
    stable = reason is PhaseReason.STABLE
    labels = _labels(medians, longest) if stable else [PhaseLabel.OTHER] * len(medians)
    return StablePhase(
        start=start if stable else None,
        stop=stop if stable else None,
        reason=reason,
        phases=tuple(
            Phase(start=first, stop=end, label=label, median=median)
            for (first, end), label, median in zip(pairwise(borders), labels, medians, strict=True)
        ),
        change_points=points,
        notices=() if stable else (refusal(reason, found),),
    )


def despite_few(phase: StablePhase) -> StablePhase:
    """Admit the longest phase where nothing but too few effective readings speaks against it.

    Nobody can claim that it is stable, but an interval that allows for so few covers all the same
    (0.93 to 0.96 for AR(1) 0.9 and 0.97, n = 200 to 1000); a Notice takes the refusal's place.
    """
    longest = max(range(len(phase.phases)), key=lambda each: phase.phases[each].n)
    held = phase.phases[longest]
    if phase.reason is not PhaseReason.FEW_EFFECTIVE or 2 * held.n <= phase.change_points.n:
        return phase
    independent = phase.notices[0].evidence["independent"]
    if independent is not None and float(independent) < least_independent(held.n):
        return phase  # it may be a random walk, which has no level
    labels = _labels([each.median for each in phase.phases], longest)
    (notice,) = phase.notices
    return replace(
        phase,
        start=held.start,
        stop=held.stop,
        phases=tuple(
            replace(each, label=label) for each, label in zip(phase.phases, labels, strict=True)
        ),
        notices=(replace(notice, code=Code.FEW_EFFECTIVE, severity=Severity.WARNING),),
    )


def without_margin(start: int, stop: int, n: int) -> slice:
    """Return what is measured of the stable phase of a series of n readings.

    A change point lies where a transient sinks into the noise; its tail goes on. So half as many
    readings again as were cut are left out at each end, up to a quarter of the phase. Where
    nothing was cut at the start, a few cold readings may stand there, too few to be found: the
    first ten are left out, or the fiftieth part of a short series.
    """
    most = (stop - start) // 4
    early = start // 2 if start else min(_COLD, n // 50)
    return slice(start + min(early, most), stop - min((n - stop) // 2, most))


def _check(n: int, level: float, materiality: float, change_points: object) -> None:
    problems = wrong_share("level", level)
    number = isinstance(materiality, Real) and not isinstance(materiality, bool)
    if not number or not 0.0 <= materiality < math.inf:
        problems.append(f"materiality is {materiality!r}, expected a finite number, at least 0")
    if isinstance(change_points, ChangePoints):
        problems += _wrong_points(n, change_points)
    elif change_points is not None:
        problems.append(f"change_points is {change_points!r}, expected ChangePoints or None")
    if problems:
        raise InvalidInput(problems)


def _wrong_points(n: int, found: ChangePoints) -> list[str]:
    if found.n != n:
        return [f"change_points are of a series of {found.n} values, expected {n} as in values"]
    problems = []
    number = isinstance(found.inflation, Real) and not isinstance(found.inflation, bool)
    if not number or not 1.0 <= found.inflation < math.inf:
        problems.append(f"change_points have inflation {found.inflation!r}, expected 1 or more")
    if not all(isinstance(each, int) for each in found.indices):
        problems.append(f"change_points are at {found.indices!r}, expected whole numbers (int)")
    elif any(a >= b for a, b in pairwise(found.borders)):
        problems.append(
            f"change_points are at {found.indices}, expected ascending within 1 to {n - 1}"
        )
    return problems


def _joined(
    series: Floats, borders: tuple[int, ...], materiality: float
) -> tuple[list[int], list[float], tuple[float, ...]]:
    """Join the most similar neighbours first, until all differ materially.

    Returns the borders left, the medians between them, and the medians there were before.

    The median of a union lies between the medians of its parts, so their weighted mean is off by
    less than the materiality; it spares a new median of all readings after each join.
    """
    raw = _medians(series, borders)
    kept, medians = list(borders), list(raw)
    gaps = [_gap(a, b) for a, b in pairwise(medians)]
    while gaps and min(gaps) < materiality:
        at = gaps.index(min(gaps))
        share = (kept[at + 1] - kept[at]) / (kept[at + 2] - kept[at])
        medians[at : at + 2] = [share * medians[at] + (1.0 - share) * medians[at + 1]]
        del kept[at + 1], gaps[at]
        for each in (at - 1, at):
            if 0 <= each < len(gaps):
                gaps[each] = _gap(medians[each], medians[each + 1])
    if len(kept) < len(borders):
        medians = list(_medians(series, kept))
    return kept, medians, raw


def _medians(series: Floats, borders: Sequence[int]) -> tuple[float, ...]:
    return tuple(_median(series[start:stop]) for start, stop in pairwise(borders))


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


def _unbroken(series: Floats, inner: slice, indices: tuple[int, ...]) -> Floats:
    """Return the longest stretch without change: the steps of joined segments are no noise."""
    inside = [each for each in indices if inner.start < each < inner.stop]
    stretches = pairwise([inner.start, *inside, inner.stop])
    start, stop = max(stretches, key=lambda ends: ends[1] - ends[0])
    return series[start:stop]


def _searched_again(series: Floats, found: Findings, level: float, materiality: float) -> Findings:
    """Look inside the phase once more, for changes and for slow movement that are material.

    Its own quantiles and its own inflation show more than those of the whole series. Changes are
    searched where the phase would be measured, for what moves in the margins does no harm; of a
    long phase in every k-th reading, which is ample.
    """
    if found.effective < _FEWEST_SEARCHED:
        return found
    start, stop = found.borders[found.longest : found.longest + 2]
    inner = without_margin(start, stop, series.size)
    step = -(-(inner.stop - inner.start) // _MOST_SEARCHED)
    measured = series[inner][::step]
    shortest = max(_SHORTEST, measured.size // _LASTING)
    changes = detect_changes(measured, level=_SHARE * level, min_segment=shortest)
    left, _ = steps_beyond_noise(measured, changes.indices)
    material, _, _ = _joined(measured, (0, *left, measured.size), materiality)
    thirds: list[float] = []
    if chance_of_movement(series[start:stop]) < _SHARE * level:
        third = found.held // 3
        _, thirds, _ = _joined(series[start:stop], (0, third, 2 * third, found.held), materiality)
    return replace(
        found,
        changes=tuple(inner.start + step * each for each in material[1:-1]),
        thirds=tuple(thirds) if len(thirds) > 1 else (),
    )


def _labels(medians: list[float], stable: int) -> list[PhaseLabel]:
    """Label the phases around the stable one.

    A phase at most half as far from the stable level as another that parts it from the stable
    phase had arrived there already: what lies between is a disturbance, no warm-up.
    """
    away = [abs(median - medians[stable]) for median in medians]
    before = [PhaseLabel.WARM_UP] * stable
    for at in range(stable):
        if 2.0 * away[at] <= max(away[at + 1 : stable], default=-1.0):
            before[at:] = [PhaseLabel.OTHER] * (stable - at)
            break
    behind = [PhaseLabel.OTHER] * (len(medians) - stable - 1)
    if behind and 2.0 * away[-1] > max(away[stable + 1 : -1], default=-1.0):
        behind[-1] = PhaseLabel.COOL_DOWN
    return [*before, PhaseLabel.STABLE, *behind]
