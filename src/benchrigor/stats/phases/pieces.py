"""Which readings of a piece count, a part of a run that may have come after a pause.

One process has one warm-up, in its first piece. After a pause caches are cold for a moment, and
nobody can tell for how long: the start is left out by its place, never for being slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.model import (
    ChangePoints,
    Code,
    Floats,
    Notice,
    Phase,
    PhaseLabel,
    PhaseReason,
    StablePhase,
)

_FEWEST = 3  # of fewer readings each is needed
_AT_START = 0.01  # of the readings
_UNSTEADY = 0.5


def first_piece(series: Floats, found: Sequence[StablePhase]) -> StablePhase:
    """Return the stable phase of a first piece; else take its second half, if it is unsteady.

    Whether its level moves because it warms up, or the machine changes its pace, is not known.
    """
    if not found:
        return whole_piece(series)
    (phase,) = found
    if phase.start is not None:
        return replace(phase, notices=())  # they are about the interval of one series
    sentence = "The first piece has no steady level: only its second half counts."
    half = Notice.note(Code.START_CUT, sentence, readings=int(_UNSTEADY * series.size))
    return replace(whole_piece(series, _UNSTEADY), notices=(half,))


def whole_piece(series: Floats, share: float = _AT_START) -> StablePhase:
    """Take a piece whole but for its first reading, or this share of them at its start."""
    n = series.size
    start = max(1, int(share * n)) if n >= _FEWEST else 0
    parts = ((0, start, PhaseLabel.WARM_UP), (start, n, PhaseLabel.STABLE))
    phases = (
        Phase(start=first, stop=stop, label=label, median=float(np.median(series[first:stop])))
        for first, stop, label in parts
        if first < stop
    )
    return StablePhase(
        start=start,
        stop=n,
        reason=PhaseReason.WHOLE,
        phases=tuple(phases),
        change_points=ChangePoints(indices=(), n=n, level=None, inflation=1.0),
    )
