"""The change points and phases of recorded readings, as an analysis of them finds these."""

from __future__ import annotations

from dataclasses import replace

from benchrigor.model import ChangePoints, Floats, Kind, StablePhase
from benchrigor.session.analysis_chain import Material, cut
from benchrigor.stats.changepoints.detector import detect_changes
from benchrigor.stats.changepoints.named_detector import detector_named
from benchrigor.stats.estimators.estimation import Policy, trim
from benchrigor.stats.phases.stable_phase import find_stable_phase
from benchrigor.stats.phases.trimming import beyond_noise


def phases_of(material: Material, *, level: float, min_segment: int) -> list[StablePhase]:
    """Return the phases of each series, with all the change points found in it by itself.

    The phases leave out steps that slow noise explains, as those of an analysis do. Restarted
    rounds are cut alike where an analysis does so. A series that is too short for an analysis to
    search is searched all the same.
    """
    named = detector_named(material.options.detector, min_segment)
    points = [
        detect_changes(series, level=level, min_segment=min_segment)
        if named is None
        else named(series)
        for series in material.series
    ]
    several = material.kind is Kind.INVOCATIONS and len(material.series) > 1
    if several and named is None:
        phases = trim(material.series, material.policy)
    else:
        phases = tuple(
            _phase(series, found if named else beyond_noise(series, found), material.policy)
            for series, found in zip(material.series, points, strict=True)
        )
    return [
        replace(phase, change_points=found) for phase, found in zip(phases, points, strict=True)
    ]


def _phase(series: Floats, points: ChangePoints, policy: Policy) -> StablePhase:
    (phase,) = cut(series, policy, lambda _: points) or (
        find_stable_phase(series, change_points=points),
    )
    return phase
