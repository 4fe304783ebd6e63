"""The stable phase: the longest stretch of one level, if it holds more than half the readings.

`longest_segment` takes the longest segment between change points whole, as Pilot does.
`admit_few_effective` takes a phase of few effective readings, as an estimate is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from benchrigor.errors import DetectorFailed, InvalidInput, NotEstimable
from benchrigor.model import ChangePoints, Code, Notice, Phase, StablePhase
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.model.checks import refuse, wrong_number, wrong_share, wrong_values
from benchrigor.model.notice import Severity
from benchrigor.model.readings import without_margins
from benchrigor.model.series import Floats, Ints, as_series
from benchrigor.stats.changepoints.detector import MIN_SEGMENT, detect_changes
from benchrigor.stats.changepoints.ruptures_adapter import detector_to_trim, takes_longest
from benchrigor.stats.changepoints.variance_inflation import MIN_EFFECTIVE, MIN_EFFECTIVE_TO_SEARCH
from benchrigor.stats.phases.stability_rules import (
    LongestPhase,
    effective_sample_size,
    explain_reason,
    find_reason,
    min_effective,
    movement_p_value,
    steps_beyond_noise,
)
from benchrigor.stats.series.interval import COMPLETE, estimate_level, fit_level, median_of
from benchrigor.units import counted


def longest_segment(series: Floats, points: ChangePoints) -> StablePhase:
    """Take the longest segment, the first of several, if it holds more than half of the readings.

    Pilot's rule (Li, Gupta, Miller & Long 2016, MASCOTS): segments before it are the warm-up, those
    after it the cool-down. Similar neighbours are not joined, and nothing tests the segment.
    """
    borders, n = points.borders, series.size
    sizes = np.diff(borders)
    index = int(sizes.argmax())
    reason, labels = PhaseReason.NO_DOMINANT_SEGMENT, [PhaseLabel.OTHER] * sizes.size
    if is_most := 2 * int(sizes[index]) > n:
        reason = PhaseReason.LONGEST_SEGMENT
        labels = [PhaseLabel.WARM_UP] * index + [PhaseLabel.STABLE]
        labels += [PhaseLabel.COOL_DOWN] * (sizes.size - len(labels))
    phases, notices = parts_between(series, borders, labels), tuple[Notice, ...]()
    if not is_most:
        longest = LongestPhase(
            borders=borders,
            medians=tuple(part.median for part in phases),
            index=index,
            inflation=1.0,
            slow_effective=math.inf,
        )
        notices = (explain_reason(reason, longest),)
    return StablePhase(
        start=borders[index] if is_most else None,
        stop=borders[index + 1] if is_most else None,
        reason=reason,
        phases=phases,
        change_points=points,
        notices=notices,
    )


def parts_between(
    series: Floats, borders: Sequence[int], labels: Iterable[PhaseLabel]
) -> tuple[Phase, ...]:
    """Return the phases of a series between ascending borders, with these labels."""
    return tuple(
        Phase(start=start, stop=stop, label=label, median=median_of(series[start:stop]))
        for (start, stop), label in zip(pairwise(borders), labels, strict=True)
    )


def cut_by_place(
    series: Floats,
    start: int,
    stop: int,
    reason: PhaseReason,
    *,
    cut: PhaseLabel = PhaseLabel.OTHER,
) -> StablePhase:
    """Take a stretch of a series without any search; what lies outside has the label ``cut``."""
    borders = sorted({0, start, stop, series.size})
    labels = [PhaseLabel.STABLE if first == start else cut for first in borders[:-1]]
    return StablePhase(
        start=start,
        stop=stop,
        reason=reason,
        phases=parts_between(series, borders, labels),
        change_points=ChangePoints(indices=(), n=series.size, level=None, inflation=1.0),
    )


_MAX_SEARCHED = 16_384  # readings of the second search; of a longer phase every nth
_LASTING = 10  # part of the phase that a level inside it must last: less is noise
_SHARE = 0.3  # of the level, for further changes and again for slow movement


def find_stable_phase(
    values: npt.ArrayLike,
    *,
    level: float = 0.01,
    materiality: float = 0.01,
    change_points: ChangePoints | None = None,
    detector: str = "ranks",
) -> StablePhase:
    """Find the longest stretch of one level; it is stable if it holds more than half the readings.

    Parameters
    ----------
    values
        Readings, shape (n,).
    level
        Chance of any false change point, in (0, 1); see `detect_changes`.
    materiality
        Neighbouring segments with medians that differ by less than this share of the smaller are
        one phase, unless they have different signs or one is 0. 0 joins nothing.
    change_points
        From another detector; None to find them here.
    detector
        What finds them, by its name; see `benchrigor.model.Options`. ``level`` is for "ranks".
        With "edm" nothing is joined or searched again: the longest segment counts whole.

    Returns
    -------
    StablePhase
        With the raw change points. Without a stable phase, ``start`` and ``stop`` are
        None, and ``reason`` and a Notice say why. The same for a*x, a > 0.

    Raises
    ------
    InvalidInput
        When the values or an option are invalid, or the change points are of another series.

    Notes
    -----
    The phase is searched a second time by itself, unless another detector, which promises no
    level, has found no change at all. Readings at an end that are at another level, but too few to
    call a change (`ChangePoints`), are a phase of their own. Measured shares of series called
    stable: random walks of 500 to 5000 readings 0 to 5 %, AR(1) 0.9 series of 1000 readings 100 %,
    independent readings 99 % or more. A slow cycle hardly differs from a level if the run
    holds half a period or less.

    Examples
    --------
    >>> phase = find_stable_phase([9.0] * 20 + [5.0] * 80)
    >>> phase.start, phase.stop, [str(part.label) for part in phase.phases]
    (20, 100, ['warm-up', 'stable'])
    """
    series = as_series(values)
    refuse(
        wrong_share("level", level),
        wrong_number("materiality", materiality, zero=True),
        [] if change_points is None else _wrong_points(series.size, change_points),
    )
    points, search = change_points, detector_to_trim(detector, change_points is None)
    if points is None:
        points = detect_changes(series, level=level) if search is None else search(series)
    if takes_longest(search):
        return longest_segment(series, points)
    again = points.level is not None or bool(points.indices)
    return phase_between(series, points, level=level, materiality=materiality, again=again)


def phase_between(
    whole: Floats, found: ChangePoints, *, level: float, materiality: float, again: bool
) -> StablePhase:
    """Test the longest phase between these change points; ``again`` searches it a second time.

    Readings at the ends that are too few to call a change are set apart if that is material,
    and where they are not the start of a warm-up or the end of a cool-down.
    """
    ends, points = (found.early, whole.size - found.late), found
    if found.early or found.late:
        points = found.within(*ends)
    series = whole[slice(*ends)]
    raw = _medians(series, points.borders)
    borders, medians = _join_similar(series, points.borders, raw, materiality)
    index = int(np.argmax(np.diff(borders)))
    start, stop = borders[index], borders[index + 1]
    inner = without_margins(start, stop, series.size)
    longest = LongestPhase(
        borders=tuple(borders),
        medians=tuple(medians),
        index=index,
        inflation=points.inflation,
        slow_effective=effective_sample_size(_longest_part(series, inner, points.indices)),
        raw=tuple(raw),
        joined=tuple(raw[points.borders.index(start) : points.borders.index(stop)]),
        materiality=materiality,
    )
    if longest.dominant and again:
        longest = _searched_again(series, longest, level, materiality)
    reason = find_reason(longest)
    stable = reason is PhaseReason.STABLE
    labels = _labels(medians, index) if stable else [PhaseLabel.OTHER] * len(medians)
    phase = StablePhase(
        start=start if stable else None,
        stop=stop if stable else None,
        reason=reason,
        phases=tuple(
            Phase(start=first, stop=end, label=label, median=median)
            for (first, end), label, median in zip(pairwise(borders), labels, medians, strict=True)
        ),
        change_points=points,
        notices=() if stable else (explain_reason(reason, longest),),
    )
    return phase if points is found else _with_ends(whole, found, phase, materiality)


def _with_ends(
    series: Floats, points: ChangePoints, inside: StablePhase, materiality: float
) -> StablePhase:
    """Add the readings at the ends that are too few to call a change to the phases of the others.

    They belong to a neighbour that is alike, and to a warm-up or a cool-down.
    """
    n, found = series.size, inside.of_whole(points, points.early)
    phases, ends = list(found.phases), list[Phase]()
    for first, last, at in ((0, points.early, 0), (n - points.late, n, -1)):
        if first == last:
            continue
        median, beside = median_of(series[first:last]), phases[at]
        is_alike = _relative_gap(median, beside.median) < materiality
        if is_alike or beside.label in (PhaseLabel.WARM_UP, PhaseLabel.COOL_DOWN):
            phases[at] = replace(
                beside, start=min(first, beside.start), stop=max(last, beside.stop)
            )
            continue
        ends.append(Phase(start=first, stop=last, label=PhaseLabel.OTHER, median=median))
    phases = sorted([*phases, *ends], key=lambda part: part.start)
    stable = next((part for part in phases if part.label is PhaseLabel.STABLE), None)
    return replace(
        found,
        start=None if stable is None else stable.start,
        stop=None if stable is None else stable.stop,
        phases=tuple(phases),
        notices=(*found.notices, *_too_few_to_call(ends, n)),
    )


def _too_few_to_call(ends: Sequence[Phase], n: int) -> tuple[Notice, ...]:
    """Say which readings at the ends are at another level, but too few to call a change."""
    if not ends:
        return ()
    early, late = (
        sum(end.n for end in ends if (end.stop == n) is is_late) for is_late in (False, True)
    )
    which = " and ".join(
        f"the {word} {counted(count)}"
        for word, count in (("first", early), ("last", late))
        if count
    )
    which = f"{which[0].upper()}{which[1:]}"
    case = "" if late else "start"
    return (Notice.of(Code.TOO_FEW_TO_CALL, case, which_=which, first=early, last=late),)


def is_unsettled(part: Phase, points: ChangePoints) -> bool:
    """Whether a phase is an end at another level that is too short to call a change."""
    return part.stop <= points.early or part.start >= points.n - points.late


def admit_few_effective(phase: StablePhase) -> StablePhase:
    """Admit the longest phase, with a warning, if only its effective sample size is too small.

    An interval that allows for the autocorrelation covers all the same (0.93 to 0.96 for AR(1) 0.9
    and 0.97, n = 200 to 1000). What may be a random walk, which has no level, stays refused.
    """
    index = max(range(len(phase.phases)), key=lambda place: phase.phases[place].n)
    longest = phase.phases[index]
    if phase.reason is not PhaseReason.FEW_EFFECTIVE or 2 * longest.n <= phase.change_points.n:
        return phase
    notice, *others = phase.notices
    slow_effective = notice.evidence["independent"]
    if slow_effective is not None and float(slow_effective) < min_effective(longest.n):
        return phase
    labels = [
        PhaseLabel.OTHER if is_unsettled(segment, phase.change_points) else label
        for segment, label in zip(
            phase.phases, _labels([segment.median for segment in phase.phases], index), strict=True
        )
    ]
    return replace(
        phase,
        start=longest.start,
        stop=longest.stop,
        phases=tuple(
            replace(part, label=label) for part, label in zip(phase.phases, labels, strict=True)
        ),
        notices=(replace(notice, code=Code.FEW_EFFECTIVE, severity=Severity.WARNING), *others),
    )


def _wrong_points(n: int, points: object) -> list[str]:
    if not isinstance(points, ChangePoints):
        return [f"change_points is {points!r}, expected ChangePoints or None"]
    if points.n != n:
        return [f"change_points are of a series of {points.n} values, expected {n} as in values"]
    plausible = 1.0 <= points.inflation < math.inf
    whole = all(isinstance(index, int) for index in points.indices)
    ascending = whole and all(a < b for a, b in pairwise(points.borders))
    places = f"whole numbers (int), ascending within 1 to {n - 1}"
    ends = (points.early, points.late)
    inner = points.borders[1] - points.early, points.n - points.late - points.borders[-2]
    fit = ascending and min(*ends, points.n - sum(ends) - 1, *(border - 1 for border in inner)) >= 0
    within = "counts within the first and the last segment"
    return wrong_values(
        [
            ("change_points.early, late", ends, fit, within),
            ("change_points.inflation", points.inflation, plausible, "1 or more"),
            ("change_points.indices", points.indices, ascending, places),
        ]
    )


def _join_similar(
    series: Floats, borders: tuple[int, ...], raw: list[float], materiality: float
) -> tuple[list[int], list[float]]:
    """Join the most similar neighbours first; return the borders left and medians between them."""
    kept, medians = list(borders), list(raw)
    gaps = [_relative_gap(a, b) for a, b in pairwise(medians)]
    while gaps and min(gaps) < materiality:
        at = gaps.index(min(gaps))
        # It lies between the medians of the parts, as the median of the union does.
        share = (kept[at + 1] - kept[at]) / (kept[at + 2] - kept[at])
        medians[at : at + 2] = [share * medians[at] + (1.0 - share) * medians[at + 1]]
        del kept[at + 1], gaps[at]
        for gap in (at - 1, at):
            if 0 <= gap < len(gaps):
                gaps[gap] = _relative_gap(medians[gap], medians[gap + 1])
    if len(kept) < len(borders):
        medians = _medians(series, kept)
    return kept, medians


def _medians(series: Floats, borders: Sequence[int]) -> list[float]:
    return [median_of(series[start:stop]) for start, stop in pairwise(borders)]


def _relative_gap(one: float, other: float) -> float:
    """Return the difference of two medians as a share of the smaller one."""
    if one == 0.0 or other == 0.0 or (one > 0.0) != (other > 0.0):
        return math.inf
    return abs(one - other) / min(abs(one), abs(other))


def _longest_part(series: Floats, inner: slice, indices: tuple[int, ...]) -> Floats:
    """Return the longest part without change: the steps of joined segments are not noise."""
    inside = [index for index in indices if inner.start < index < inner.stop]
    parts = pairwise([inner.start, *inside, inner.stop])
    start, stop = max(parts, key=lambda ends: ends[1] - ends[0])
    return series[start:stop]


def _searched_again(
    series: Floats, phase: LongestPhase, level: float, materiality: float
) -> LongestPhase:
    """Search the phase a second time, with its own quantiles and variance inflation."""
    if phase.effective < MIN_EFFECTIVE_TO_SEARCH:
        return phase
    start, stop = phase.borders[phase.index : phase.index + 2]
    inner = without_margins(start, stop, series.size)
    step = -(-(inner.stop - inner.start) // _MAX_SEARCHED)
    measured = series[inner][::step]
    shortest = max(MIN_SEGMENT, measured.size // _LASTING)
    changes = detect_changes(measured, level=_SHARE * level, min_segment=shortest)
    left, _ = steps_beyond_noise(measured, changes.indices)
    borders = (0, *left, measured.size)
    material, _ = _join_similar(measured, borders, _medians(measured, borders), materiality)
    thirds: list[float] = []
    if movement_p_value(series[start:stop]) < _SHARE * level:
        borders = (0, phase.size // 3, 2 * (phase.size // 3), phase.size)
        whole = series[start:stop]
        _, thirds = _join_similar(whole, borders, _medians(whole, borders), materiality)
    return replace(
        phase,
        changes=tuple(inner.start + step * place for place in material[1:-1]),
        thirds=tuple(thirds) if len(thirds) > 1 else (),
    )


def _labels(medians: list[float], stable: int) -> list[PhaseLabel]:
    """Label the phases around the stable one.

    A phase up to half as far from the stable level as one nearer to the stable phase had arrived
    there already: what lies between is a disturbance, no warm-up.
    """
    away = [abs(median - medians[stable]) for median in medians]
    before = [PhaseLabel.WARM_UP] * stable
    for at in range(stable):
        if 2.0 * away[at] <= max(away[at + 1 : stable], default=-1.0):
            before[at:] = [PhaseLabel.OTHER] * (stable - at)
            break
    behind = [PhaseLabel.OTHER] * (len(medians) - stable - 1)
    if behind and 2.0 * away[-1] > max(away[stable + 1 : -1], default=-1.0):
        behind[-1] = PhaseLabel.COOL_DOWN
    return [*before, PhaseLabel.STABLE, *behind]


SHORT = 500  # below that many readings a warm-up may stay undetected, and a Notice says so
STABLE_SHARE = 0.9  # of the series in its stable phase before a session may be satisfied
MATERIALITY = 0.01  # neighbouring phases with medians that differ by this share are never joined
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
        """Return the references along some of the readings, at ascending indices."""
        stops, first = np.unique(np.searchsorted(indices, self.stops), return_index=True)
        return replace(self, stops=stops, log_s=self.log_s[first])


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How the stable phase of a series is searched for."""

    confidence: float = 0.95
    rates: bool = False  # readings are higher if the machine is faster
    goes_on: bool = False  # more readings could follow: the last ones are not a cool-down
    references: ReferencesAlong | None = None  # of one series: the machine may have made steps
    detector: FindChanges | None = None  # None for the built-in one

    def changes_in(self, series: Floats) -> ChangePoints | None:
        """Return the change points that the detector finds; None if the built-in one is to search.

        Raises
        ------
        DetectorFailed
            When it raises an error, or returns something else, or points of another series.
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
        if wrong := _wrong_points(series.size, points):
            raise DetectorFailed(f"detector {self.detector!r}: {InvalidInput(wrong)}")
        return points

    def phase_of(self, series: Floats) -> StablePhase:
        """Find the stable phase of one series to measure.

        Raises
        ------
        DetectorFailed
            When the detector fails.
        """
        points = self.changes_in(series)
        if points is not None and takes_longest(self.detector):
            return longest_segment(series, points)
        return measured_phase(series, self, points)


def measured_part(phase: StablePhase) -> slice:
    """Return where the stable phase is, without the margins next to cuts that were found."""
    if (part := phase.measured) is None:
        raise NotEstimable(phase.notices[0])
    return part


def trimmed(series: Floats, phase: StablePhase) -> Floats:
    """Return the readings of the stable phase, see `measured_part`."""
    return series[measured_part(phase)]


def short_run(n: int, noun: str = "readings") -> tuple[Notice, ...]:
    """Warn if a warm-up may stay undetected, because there are few readings."""
    if n >= SHORT:
        return ()
    return (Notice.of(Code.SHORT_RUN, n=n, noun_=noun, wanted=SHORT),)


def moved_on(readings: int, noun: str = "readings") -> tuple[Notice, ...]:
    """Warn that the measured phase has ended."""
    return (Notice.of(Code.MOVED_ON, readings=readings, noun_=noun),)


def beyond_noise(series: Floats, points: ChangePoints) -> ChangePoints:
    """Return the change points that slow noise does not explain."""
    left, inflation = steps_beyond_noise(series, points.indices)
    if len(left) == len(points.indices):
        return points
    slow = min(inflation, max(1.0, series.size / MIN_EFFECTIVE))
    return replace(points, indices=left, inflation=max(points.inflation, slow))


def measured_phase(
    series: Floats, search: Search, points: ChangePoints | None = None
) -> StablePhase:
    """Find the stable phase to measure.

    `find_stable_phase` says what can be claimed. Unlike it, this finds no change point that slow
    noise explains, since a needless cut costs readings, and it admits a phase with few effective
    readings, with a warning.

    Neighbouring phases are joined if they differ by less than 1 % and by less than a quarter of
    the half-width of the joined phase: a bias of half the half-width lowers the coverage from
    0.95 to 0.84.
    """
    points = points or beyond_noise(series, detect_changes(series, level=CUT_LEVEL))
    again, materiality = points.level is not None or bool(points.indices), MATERIALITY
    while True:
        phase = admit_few_effective(
            phase_between(series, points, level=CUT_LEVEL, materiality=materiality, again=again)
        )
        if phase.start is None or not _are_some_joined(phase):
            return phase
        fit = fit_level(trimmed(series, phase), transients=COMPLETE)
        tolerance = estimate_level(fit, search.confidence).relative_half_width / 4.0
        if tolerance >= materiality:
            return phase
        materiality = tolerance


def _are_some_joined(phase: StablePhase) -> bool:
    """Whether some segments, or ends that are too few to call, count as one phase."""
    points = phase.change_points
    ends = (points.early > 0) + (points.late > 0)
    return len(phase.phases) <= len(points.indices) + ends
