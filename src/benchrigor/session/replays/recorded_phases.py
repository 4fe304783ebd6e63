"""The change points and phases of recorded readings, as an analysis of them finds these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy.typing as npt

from benchrigor.model import ChangePoints, Code, Metric, Options, RunRecord, StablePhase
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.model.notice import one_each
from benchrigor.model.series import Floats, as_series
from benchrigor.protocols import Detector
from benchrigor.session.replays.recorded_run import record_of_readings
from benchrigor.stats.changepoints.detector import detect_changes
from benchrigor.stats.changepoints.ruptures_adapter import detector_named
from benchrigor.stats.phases.stable_phase import find_stable_phase
from benchrigor.stats.phases.trimming import beyond_noise


def record_with_changes(
    rounds: Sequence[Floats],
    options: Options,
    metric: Metric,
    *,
    name: str,
    level: float,
    min_segment: int | None,
) -> RunRecord:
    """Analyse recorded readings by these change points; all phases of a series hold all of them.

    The phases leave out steps that slow noise explains, as in any analysis. Restarted rounds are
    cut in the same way if an analysis does so. A series that is too short for the search of an
    analysis is searched too, and is stable only if it has an estimate.
    """
    named = detector_named(options.detector, min_segment)
    detect = named or partial(detect_changes, level=level, min_segment=min_segment)

    def detect_beyond_noise(values: npt.ArrayLike) -> ChangePoints:
        return beyond_noise(as_series(values), detect(values))

    own = detect_beyond_noise if len(rounds) == 1 else None
    detector: Detector | None = named or own
    record = record_of_readings(rounds, options, metric, name=name, detector=detector)
    (analysis,) = record.analyses
    all_points = [detect(series) for series in rounds]
    phases: Sequence[StablePhase] = analysis.phases
    if len(phases) != len(rounds):
        phases = [
            find_stable_phase(series, change_points=points)
            for series, points in zip(rounds, all_points, strict=True)
        ]
        phases = phases if analysis.estimate else list(map(_unstable, phases))
    if len(rounds) == 1:
        new = [notice for notice in phases[0].notices if notice not in analysis.notices]
        ends = [notice for notice in new if notice.code is Code.TOO_FEW_TO_CALL]
        phases = [replace(phases[0], notices=one_each((*analysis.notices, *ends)))]
    phases = tuple(
        replace(phase, change_points=points)
        for phase, points in zip(phases, all_points, strict=True)
    )
    return replace(record, analyses=(replace(analysis, phases=phases),))


def _unstable(phase: StablePhase) -> StablePhase:
    """Return the phases of readings that have no estimate."""
    stable = phase.reason is PhaseReason.STABLE
    return replace(
        phase,
        start=None,
        stop=None,
        reason=PhaseReason.FEW_EFFECTIVE if stable else phase.reason,
        phases=tuple(replace(part, label=PhaseLabel.OTHER) for part in phase.phases),
    )
