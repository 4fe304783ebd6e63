"""The stable phase as Pilot takes it: the longest segment between change points, whole."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from benchrigor.model import ChangePoints, Floats, Phase, PhaseLabel, PhaseReason, StablePhase
from benchrigor.stats.phases.stability_rules import LongestPhase, explain_reason


def longest_segment(series: Floats, points: ChangePoints) -> StablePhase:
    """Take the longest segment, the first of several, if it holds more than half of the readings.

    Pilot's rule (Li, Gupta, Miller & Long 2016, MASCOTS): segments before it are the warm-up, those
    after it the cool-down. Neighbours that are alike are not joined, and nothing tests the segment.
    """
    borders, sizes = points.borders, np.diff(points.borders)
    index = int(sizes.argmax())
    medians = [float(np.median(series[start:stop])) for start, stop in pairwise(borders)]
    dominant = 2 * int(sizes[index]) > points.n
    reason = PhaseReason.LONGEST_SEGMENT if dominant else PhaseReason.NO_DOMINANT_SEGMENT
    labels = [PhaseLabel.OTHER] * len(medians)
    if dominant:
        after = [PhaseLabel.COOL_DOWN] * (len(medians) - index - 1)
        labels = [*[PhaseLabel.WARM_UP] * index, PhaseLabel.STABLE, *after]
    found = LongestPhase(
        borders=borders,
        medians=tuple(medians),
        index=index,
        inflation=points.inflation,
        slow_effective=math.inf,
    )
    return StablePhase(
        start=borders[index] if dominant else None,
        stop=borders[index + 1] if dominant else None,
        reason=reason,
        phases=tuple(
            Phase(start=start, stop=stop, label=label, median=median)
            for (start, stop), label, median in zip(pairwise(borders), labels, medians, strict=True)
        ),
        change_points=points,
        notices=() if dominant else (explain_reason(reason, found),),
    )
