"""What of a series may be measured: the stable phase, with no more joined than the level bears."""

from __future__ import annotations

from dataclasses import replace

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    ChangePoints,
    Code,
    Floats,
    Notice,
    StablePhase,
)
from benchrigor.stats.changepoints.detector import detect_changes
from benchrigor.stats.phases.stable_phase import (
    despite_few,
    find_stable_phase,
    judged_phase,
    without_margin,
)
from benchrigor.stats.phases.stationarity import steps_beyond_noise
from benchrigor.stats.series.interval import estimate_level
from benchrigor.stats.series.level import fit_level
from benchrigor.stats.series.transients import COMPLETE

SHORT = 500
"""Below so many readings an unknown warm-up is not dependably removed, and a Notice says so."""
STABLE_SHARE = 0.8
"""Of a series, so much must be its stable phase before a session may be satisfied."""
FEWEST_CUT = 20
"""Two segments of ten: no change point can be found in fewer readings."""
MATERIALITY = 0.01
"""Relative difference of medians from which on neighbouring phases are never one."""
CUT_LEVEL = 0.01
"""Chance of a change point in steady readings."""

_LEAST_EFFECTIVE = 20


def measured_part(phase: StablePhase) -> slice:
    """Return where the stable phase lies, without the margins next to the cuts."""
    if phase.start is None or phase.stop is None:
        raise NotEstimable(phase.notices[0])
    return without_margin(phase.start, phase.stop, phase.change_points.n)


def trimmed(series: Floats, phase: StablePhase) -> Floats:
    """Return the readings of the stable phase, see `measured_part`."""
    return series[measured_part(phase)]


def short_run(n: int, noun: str = "readings") -> tuple[Notice, ...]:
    """Warn of so few readings that a warm-up may stay unseen; nothing where there are enough."""
    if n >= SHORT:
        return ()
    notice = Notice.warning(
        Code.SHORT_RUN,
        f"{n} {noun}: below {SHORT}, a warm-up may stay unseen and bias them.",
        n=n,
        wanted=SHORT,
    )
    return (notice,)


def moved_on(readings: int, noun: str = "readings") -> tuple[Notice, ...]:
    """Warn that the phase that was measured is over."""
    notice = Notice.warning(
        Code.MOVED_ON,
        f"The last {readings} {noun} lie on another level: what was measured is over.",
        readings=readings,
    )
    return (notice,)


def measured_phase(
    series: Floats, materiality: float, change_points: ChangePoints | None = None
) -> StablePhase:
    """Find the phase that an estimate is made of.

    Other than `find_stable_phase`, which says what can be claimed, it finds no change point that
    slow noise explains, for to cut where there is no step takes readings that the interval needs;
    and a phase with too few effective readings is admitted, see `despite_few`.
    """
    if change_points is None:
        points = _beyond_noise(series)
        found = judged_phase(series, points, level=CUT_LEVEL, materiality=materiality, again=True)
    else:
        found = find_stable_phase(series, materiality=materiality, change_points=change_points)
    return despite_few(found)


def _beyond_noise(series: Floats) -> ChangePoints:
    points = detect_changes(series, level=CUT_LEVEL)
    left, inflation = steps_beyond_noise(series, points.indices)
    if len(left) == len(points.indices):
        return points
    slow = min(inflation, max(1.0, series.size / _LEAST_EFFECTIVE))
    return replace(points, indices=left, inflation=max(points.inflation, slow))


def bearable_phase(
    series: Floats, confidence: float, change_points: ChangePoints | None = None
) -> StablePhase:
    """Find the phase to measure, with no more joined into it than its level bears.

    Neighbouring phases are one where they differ by less than 1 %, then, while any are, by less
    than a quarter of the half-width that came of it: a bias of half the half-width would already
    lower the coverage from 0.95 to 0.84.
    """
    materiality = MATERIALITY
    phase = measured_phase(series, materiality, change_points)
    while phase.start is not None and len(phase.phases) <= len(phase.change_points.indices):
        fit = fit_level(trimmed(series, phase), transients=COMPLETE)
        bearable = estimate_level(fit, confidence).relative_half_width / 4.0
        if bearable >= materiality:
            break
        materiality = bearable
        phase = measured_phase(series, materiality, phase.change_points)
    return phase
