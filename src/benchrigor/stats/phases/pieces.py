"""Which readings of a piece count: of a part of a run that came after a pause.

One process has one warm-up, in its first piece. After a pause caches are cold for a moment, and
nobody can tell for how long: the start is left out by its place, never for being slow.
"""

from __future__ import annotations

import numpy as np

from benchrigor.model import ChangePoints, Floats, Phase, PhaseLabel, PhaseReason, StablePhase

_FEWEST = 3  # of fewer readings each is needed
_AT_START = 0.01  # of the readings


def whole_piece(series: Floats) -> StablePhase:
    """Take a piece whole but for its first reading, or its first hundredth."""
    n = series.size
    start = max(1, int(_AT_START * n)) if n >= _FEWEST else 0
    labels = {0: PhaseLabel.WARM_UP} if start else {}
    phases = (
        Phase(
            start=first,
            stop=stop,
            label=labels.get(first, PhaseLabel.STABLE),
            median=float(np.median(series[first:stop])),
        )
        for first, stop in ((0, start), (start, n))
        if first < stop
    )
    return StablePhase(
        start=start,
        stop=n,
        reason=PhaseReason.WHOLE,
        phases=tuple(phases),
        change_points=ChangePoints(indices=(), n=n, level=None, inflation=1.0),
    )
