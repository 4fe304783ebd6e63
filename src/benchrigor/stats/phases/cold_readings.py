"""Readings that are cold: the first of a series, and those of a piece that came after a pause.

One reading alone is no change of level, so no search finds it. One process has one warm-up, in its
first piece. After a pause caches are cold for a moment, and nobody can tell for how long: the start
is left out by its place, never for being slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.model import ChangePoints, Code, Notice, Phase, StablePhase
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.model.series import Floats
from benchrigor.stats.phases.trimming import measured_part

_FAR = 2.0  # a start so many times as slow as all that follows is no matter of pace
_FEWEST_ALIKE = 5  # readings of which the first may be cold
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


def cold_first(series: Floats) -> Notice | None:
    """Leave a first reading out that took more than twice as long as any other of 5 or more.

    Of n readings that are alike the first is the largest once in n times, and seldom by so much:
    the rule hardly moves a mean, however many there are.
    """
    others = series[1:]
    if series.size < _FEWEST_ALIKE or not series[0] > _FAR * others.max() > 0.0:
        return None
    typical = float(np.median(others))
    if typical == 0.0:
        return None
    ratio = float(series[0]) / typical
    return Notice.note(
        Code.START_CUT,
        f"The first reading is {ratio:.3g} times as large as the median of the others and left "
        "out as cold.",
        readings=1,
        ratio=ratio,
    )


def measured_from(phase: StablePhase) -> int | None:
    """Return the first reading that counts: behind a cut, or the fiftieth part that always is."""
    return None if phase.start is None else measured_part(phase).start


def behind_cold(series: Floats, cold: Notice, rest: Sequence[StablePhase]) -> StablePhase:
    """Return the phase of all but the first reading by its place in the whole series."""
    if not rest:
        return replace(whole_piece(series, 1.0 / series.size), notices=(cold,))
    (found,) = rest
    points = found.change_points
    points = replace(
        points,
        indices=tuple(index + 1 for index in points.indices),
        n=series.size,
        early=points.early + 1,
    )
    first = Phase(start=0, stop=1, label=PhaseLabel.WARM_UP, median=float(series[0]))
    found = found.of_whole(points, 1)
    return replace(found, phases=(first, *found.phases), notices=(*found.notices, cold))
