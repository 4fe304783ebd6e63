"""Segments of a series at one pace of the machine: which steps the machine made, not the code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchrigor.model.analysis import Phase, PhaseLabel, PhaseReason, StablePhase
from benchrigor.model.series import Floats
from benchrigor.stats.phases.chosen_phase import average_over_time, choose_phase
from benchrigor.stats.phases.stable_phase import is_unsettled
from benchrigor.stats.series.full_speed import SENSITIVITY, SENSITIVITY_SD
from benchrigor.stats.statistics.statistic import Policy, ReferencesAlong

_FEWEST = 5  # references in each segment
_NEAR = 2.0  # standard errors within which a step vanishes
_STEPS = (PhaseReason.STABLE, PhaseReason.NO_DOMINANT_SEGMENT)


def choose_at_one_pace(series: Floats, phase: StablePhase, policy: Policy) -> StablePhase:
    """Choose the readings to measure, after dividing them by the pace of the machine.

    A step that dividing brings within two standard errors of 1 was made by the machine, and parts
    no phases: the error has the spread of levels and references, and the uncertainty of the
    sensitivity times the change of the pace. What remains is a step of the code. A phase with
    steps of the machine is averaged over time. The sensitivity is that of most work, since what
    flickers inside segments is another change of pace than what lies between them. A segment with
    fewer than five references, or a movement that is no sequence of steps, leaves the readings as
    they are.
    """
    references = policy.references
    settled = [part for part in phase.phases if not is_unsettled(part, phase.change_points)]
    cut = None if references is None else _by_segment(series, settled, references)
    if references is None or cut is None or phase.reason not in _STEPS:
        return choose_phase(series, phase, policy)
    slope, sd = references.busy * SENSITIVITY, references.busy * SENSITIVITY_SD
    inflation = math.sqrt(phase.change_points.inflation)
    levels = [
        _Level.of(series[part.start : part.stop], log_s, inflation)
        for part, log_s in zip(settled, cut, strict=True)
    ]
    at_one_pace = series * np.exp(-slope * _along(series.size, references))
    joined = _join(at_one_pace, phase, settled, levels, (slope, sd))
    chosen = choose_phase(at_one_pace, joined, policy)
    return _as_measured(chosen, phase.phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """The logarithms of level and pace of a segment, with their standard errors."""

    level: float
    error: float
    pace: float
    pace_error: float

    @classmethod
    def of(cls, readings: Floats, log_s: Floats, inflation: float) -> _Level:
        """Take the medians of readings, and of the references between them."""
        median = float(np.median(readings))
        return cls(
            level=math.log(median),
            error=inflation * float(readings.std()) / median / math.sqrt(readings.size),
            pace=float(np.median(log_s)),
            pace_error=float(log_s.std()) / math.sqrt(log_s.size),
        )

    def is_apart(self, other: _Level, slope: float, sd: float) -> bool:
        """Whether more than the machine lies between two levels."""
        step, moved = other.level - self.level, other.pace - self.pace
        errors = (self.error, other.error, slope * self.pace_error, slope * other.pace_error)
        error = math.hypot(*errors, sd * moved)
        return abs(step - slope * moved) >= min(_NEAR * error, abs(step))


def _by_segment(
    series: Floats, segments: Sequence[Phase], references: ReferencesAlong
) -> list[Floats] | None:
    """Return the references of each segment; None if they cannot tell the machine's steps."""
    borders = [segment.start for segment in segments] + [segments[-1].stop]
    places = np.searchsorted(references.stops, borders, side="right")
    found = [references.log_s[first:stop] for first, stop in pairwise(places)]
    is_told = len(segments) > 1 and min(map(len, found)) >= _FEWEST and float(series.min()) > 0.0
    return found if is_told else None


def _along(n: int, references: ReferencesAlong) -> Floats:
    """Return the logarithm of the pace at each reading, about its mean."""
    pace = np.interp(np.arange(n) + 0.5, references.stops, references.log_s)
    centred: Floats = pace - pace.mean()
    return centred


def _join(
    series: Floats,
    phase: StablePhase,
    settled: Sequence[Phase],
    levels: Sequence[_Level],
    sensitivity: tuple[float, float],
) -> StablePhase:
    """Join segments between which only the machine changed; the longest may now hold most."""
    steps = [one.is_apart(other, *sensitivity) for one, other in pairwise(levels)]
    starts = [settled[0].start]
    starts += [part.start for part, is_step in zip(settled[1:], steps, strict=True) if is_step]
    borders = [*starts, settled[-1].stop]
    at = int(np.argmax(np.diff(borders)))
    start, stop = borders[at], borders[at + 1]
    has_most = 2 * (stop - start) > series.size
    joined = [
        Phase(
            start=first,
            stop=end,
            label=PhaseLabel.STABLE if has_most and first == start else PhaseLabel.OTHER,
            median=float(np.median(series[first:end])),
        )
        for first, end in pairwise(borders)
    ]
    ends = [part for part in phase.phases if part not in settled]
    found = replace(phase, phases=tuple(sorted([*joined, *ends], key=lambda part: part.start)))
    if not has_most:
        return found
    kept = phase.notices if phase.start is not None else ()
    return replace(found, start=start, stop=stop, reason=PhaseReason.STABLE, notices=kept)


def _as_measured(chosen: StablePhase, segments: Sequence[Phase]) -> StablePhase:
    """Return the choice with the segments as measured; average those of the machine over time."""
    starts = [part.start for part in chosen.phases]
    labels = [
        chosen.phases[int(np.searchsorted(starts, part.start, side="right")) - 1].label
        for part in segments
    ]
    parts = tuple(replace(part, label=one) for part, one in zip(segments, labels, strict=True))
    chosen = replace(chosen, phases=parts)
    if chosen.start is None or chosen.stop is None:
        return chosen
    inside = [part for part in parts if chosen.start <= part.start < chosen.stop]
    return average_over_time(chosen, chosen.stop) if len(inside) > 1 else chosen
