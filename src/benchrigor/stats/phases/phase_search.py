"""The stable phase of a series that an estimate is made of.

Readings that are cold: the first of a series, and those of a piece that came after a pause.

One reading alone is no change of level, so no search finds it. One process has one warm-up, in its
first piece. After a pause caches are cold for a moment, and nobody can tell for how long: the start
is left out by its place, never for being slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchrigor.errors import DetectorFailed, InvalidInput, NotEstimable
from benchrigor.model import ChangePoints, Code, Notice, Phase, StablePhase
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.changepoints.detector import detect_changes
from benchrigor.stats.changepoints.ruptures_adapter import takes_longest
from benchrigor.stats.changepoints.variance_inflation import MIN_EFFECTIVE
from benchrigor.stats.phases.stability_rules import steps_beyond_noise
from benchrigor.stats.phases.stable_phase import (
    admit_few_effective,
    find_stable_phase,
    longest_segment,
    phase_between,
)
from benchrigor.stats.series.interval import estimate_level
from benchrigor.stats.series.level import COMPLETE, fit_level

SHORT = 500  # below that many readings a warm-up may stay undetected, and a Notice says so
STABLE_SHARE = 0.9  # of the series in its stable phase before a session may be satisfied
MATERIALITY = 0.01  # neighbouring phases whose medians differ by this share are never joined
FindChanges = Callable[[Floats], ChangePoints]

CUT_LEVEL = 0.01  # chance of a change point in steady readings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferencesAlong:
    """Times of fixed work between the readings of a series; arrays of shape (k,).

    Parameters
    ----------
    stops
        Index after the last reading before each, ascending.
    log_s
        Logarithms of their seconds.
    busy
        Share of the readings during which a processor worked: only that part follows the pace.
    """

    stops: Ints
    log_s: Floats
    busy: float = 1.0

    def of(self, indices: Ints) -> ReferencesAlong:
        """Return the references along some of the readings, whose indices ascend."""
        stops, first = np.unique(np.searchsorted(indices, self.stops), return_index=True)
        return replace(self, stops=stops, log_s=self.log_s[first])


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How the stable phase of a series is searched for."""

    confidence: float = 0.95
    rates: bool = False  # readings are higher if the machine is faster
    goes_on: bool = False  # more readings could follow: the last ones are no cool-down
    references: ReferencesAlong | None = None  # of one series: the machine may have made steps
    detector: FindChanges | None = None  # None for the built-in one

    @property
    def takes_longest(self) -> bool:
        """Whether the longest segment of each series counts whole, as published."""
        return takes_longest(self.detector)

    def changes_in(self, series: Floats) -> ChangePoints | None:
        """Return the change points that the detector finds; None if the built-in one is to search.

        Raises
        ------
        DetectorFailed
            When it raises an error, or returns something else.
        """
        if self.detector is None:
            return None
        try:
            points = self.detector(series)
        except Exception as error:
            raise DetectorFailed(
                f"detector {self.detector!r} raised {error!r} on {series.size} readings"
            ) from error
        if not isinstance(points, ChangePoints):
            raise DetectorFailed(
                f"detector {self.detector!r} returned {points!r}, expected ChangePoints"
            )
        return points

    def phase_of(self, series: Floats, points: ChangePoints | None = None) -> StablePhase:
        """Find the stable phase of one series to measure, by its change points if they are known.

        Raises
        ------
        DetectorFailed
            When the detector fails, or its change points are not those of the series.
        """
        points = points or self.changes_in(series)
        if points is not None and self.takes_longest:
            return longest_segment(series, points)
        try:
            return measured_phase(series, self, points)
        except InvalidInput as error:
            raise DetectorFailed(f"detector {self.detector!r}: {error}") from error


def measured_part(phase: StablePhase) -> slice:
    """Return where the stable phase is, without the margins next to cuts that were found."""
    if (part := phase.measured) is None:
        raise NotEstimable(phase.notices[0])
    return part


def trimmed(series: Floats, phase: StablePhase) -> Floats:
    """Return the readings of the stable phase, see `measured_part`."""
    return series[measured_part(phase)]


def short_run(n: int, noun: str = "readings") -> tuple[Notice, ...]:
    """Warn if a warm-up may stay undetected, because there are so few readings."""
    if n >= SHORT:
        return ()
    return (Notice.of(Code.SHORT_RUN, n=n, noun_=noun, wanted=SHORT),)


def moved_on(readings: int, noun: str = "readings") -> tuple[Notice, ...]:
    """Warn that the measured phase has ended."""
    return (Notice.of(Code.MOVED_ON, readings=readings, noun_=noun),)


def phase_at_materiality(
    series: Floats, materiality: float, change_points: ChangePoints | None = None
) -> StablePhase:
    """Find the stable phase to measure, given the largest difference of phases that are joined.

    `find_stable_phase` says what can be claimed. Unlike it, this finds no change point that slow
    noise explains, since a needless cut costs readings, and it admits a phase with few effective
    readings, with a warning.
    """
    if change_points is None:
        points = beyond_noise(series, detect_changes(series, level=CUT_LEVEL))
        phase = phase_between(series, points, level=CUT_LEVEL, materiality=materiality, again=True)
    else:
        phase = find_stable_phase(series, materiality=materiality, change_points=change_points)
    return admit_few_effective(phase)


def beyond_noise(series: Floats, points: ChangePoints) -> ChangePoints:
    """Return the change points that slow noise does not explain."""
    left, inflation = steps_beyond_noise(series, points.indices)
    if len(left) == len(points.indices):
        return points
    slow = min(inflation, max(1.0, series.size / MIN_EFFECTIVE))
    return replace(points, indices=left, inflation=max(points.inflation, slow))


def phase_by_shares(series: Floats, shares: tuple[float, float]) -> StablePhase:
    """Cut these shares of the readings at the start and at the end, whole readings rounded down."""
    n = series.size
    at_start, at_end = (math.floor(share * n + 1e-9) for share in shares)  # 0.29 * 100 is 28.99...
    start, stop = min(at_start, n - 1), max(n - at_end, at_start + 1)
    borders = sorted({0, start, stop, n})
    phases = [
        Phase(
            start=first,
            stop=end,
            label=PhaseLabel.STABLE if first == start else PhaseLabel.OTHER,
            median=float(np.median(series[first:end])),
        )
        for first, end in pairwise(borders)
    ]
    return StablePhase(
        start=start,
        stop=stop,
        reason=PhaseReason.AS_ASKED,
        phases=tuple(phases),
        change_points=ChangePoints(indices=(), n=n, level=None, inflation=1.0),
    )


def measured_phase(
    series: Floats, search: Search, change_points: ChangePoints | None = None
) -> StablePhase:
    """Find the stable phase to measure.

    Neighbouring phases are joined if they differ by less than 1 % and by less than a quarter of
    the half-width of the joined phase: a bias of half the half-width lowers the coverage from
    0.95 to 0.84.
    """
    materiality = MATERIALITY
    phase = phase_at_materiality(series, materiality, change_points)
    while phase.start is not None and _are_some_joined(phase):
        fit = fit_level(trimmed(series, phase), transients=COMPLETE)
        tolerance = estimate_level(fit, search.confidence).relative_half_width / 4.0
        if tolerance >= materiality:
            break
        materiality = tolerance
        phase = phase_at_materiality(series, materiality, phase.change_points)
    return phase


def _are_some_joined(phase: StablePhase) -> bool:
    """Whether some segments, or ends that are too few to call, count as one phase."""
    points = phase.change_points
    ends = (points.early > 0) + (points.late > 0)
    return len(phase.phases) <= len(points.indices) + ends


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
    half = Notice.of(Code.START_CUT, "piece", readings=int(_UNSTEADY * series.size))
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
    return Notice.of(Code.START_CUT, "cold", readings=1, ratio=float(series[0]) / typical)


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
