"""The stable phase as Pilot takes it: the longest segment between change points, whole."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from benchrigor.model.analysis import ChangePoints, Phase, PhaseLabel, PhaseReason, StablePhase
from benchrigor.model.series import Floats
from benchrigor.stats.phases.stability_rules import LongestPhase, explain_reason


def longest_segment(series: Floats, points: ChangePoints) -> StablePhase:
    """Take the longest segment, the first of several, if it holds more than half of the readings.

    Pilot's rule (Li, Gupta, Miller & Long 2016, MASCOTS): segments before it are the warm-up, those
    after it the cool-down. Neighbours that are alike are not joined, and nothing tests the segment.
    """
    borders = points.borders
    index = int(np.diff(borders).argmax())
    medians = tuple(float(np.median(part)) for part in np.split(series, points.indices))
    longest = LongestPhase(
        borders=borders, medians=medians, index=index, inflation=1.0, slow_effective=math.inf
    )
    reason, labels = PhaseReason.NO_DOMINANT_SEGMENT, [PhaseLabel.OTHER] * len(medians)
    if longest.dominant:
        reason = PhaseReason.LONGEST_SEGMENT
        labels = [PhaseLabel.WARM_UP] * index + [PhaseLabel.STABLE]
        labels += [PhaseLabel.COOL_DOWN] * (len(medians) - len(labels))
    return StablePhase(
        start=borders[index] if longest.dominant else None,
        stop=borders[index + 1] if longest.dominant else None,
        reason=reason,
        phases=tuple(
            Phase(start=start, stop=stop, label=label, median=median)
            for (start, stop), label, median in zip(pairwise(borders), labels, medians, strict=True)
        ),
        change_points=points,
        notices=() if longest.dominant else (explain_reason(reason, longest),),
    )
