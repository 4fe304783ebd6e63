"""A first reading that is cold: one alone is no change of level, so no search finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchrigor.model import Code, Floats, Notice, Phase, PhaseLabel, StablePhase
from benchrigor.stats.phases.pieces import whole_piece
from benchrigor.stats.phases.trimming import measured_part

_FAR = 2.0  # a start so many times as slow as all that follows is no matter of pace
_FEWEST = 5  # readings of which the first may be cold


def cold_first(series: Floats) -> Notice | None:
    """Leave a first reading out that took more than twice as long as any other of 5 or more.

    Of n readings that are alike the first is the largest once in n times, and seldom by so much:
    the rule hardly moves a mean, however many there are.
    """
    others = series[1:]
    if series.size < _FEWEST or not series[0] > _FAR * others.max() > 0.0:
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
