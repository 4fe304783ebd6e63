"""Which readings of a series the number is made of: one rule for every entry point.

The longest phase, if it holds more than half of the readings (seed: Pilot's dominant segment).
Levels that come back are the machine's: their mean is that of the time of the measurement, with an
interval from blocks of that time. A series that rises or falls to its end has no lasting mean.

`choose_at_one_pace` tells by the references which steps the machine made, not the code, and joins
the segments between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchrigor.model import Code, Notice, Phase, StablePhase
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.model.notice import Evidence
from benchrigor.model.series import Floats
from benchrigor.stats.phases.stability_rules import Trend, ends_of, find_far_ends, find_trend
from benchrigor.stats.phases.stable_phase import (
    MATERIALITY,
    ReferencesAlong,
    Search,
    is_unsettled,
    measured_phase,
    parts_between,
)
from benchrigor.stats.series.full_speed import SENSITIVITY, SENSITIVITY_SD
from benchrigor.stats.series.interval import MIN_FOR_AUTOCORRELATION
from benchrigor.units import counted

_WARM_UP = 0.3  # maximum share of the readings that a slower start may hold
_BRIEF = 0.05  # and that any start may hold
_FAR = 2.0  # a start slower than all later levels by this factor is not a matter of pace
_TAIL = 0.1  # share of the readings, and of the time, of an end that is a cool-down in any case
_NEAR = 2.0  # standard errors within which a segment is at the level of the longest
_SLIGHT = 0.95  # paces closer to each other than this ratio make a note, not a warning
_FARTHEST = 16.0  # levels further apart come from the work, not from the machine
_CLIMB = 0.05  # from the start to the end at least: an interval holds what moves less
_CLIMB_OF_FEW = 0.1  # of fewer than 30 readings
_MOVING = (PhaseReason.TREND, PhaseReason.STILL_MOVING)


def choose_phase(series: Floats, phase: StablePhase, search: Search) -> StablePhase:
    """Choose the readings that the number is made of, given the longest phase.

    1. No segment holds more than half: the mean over time after a warm-up, or a refusal.
    2. More than a tenth follow the longest segment, and move: a refusal.
    3. A segment is back at the level of the longest: the mean over time, unless it is part of a
       warm-up.
    4. Otherwise the longest segment; both ends are cut, and a Notice says so.

    A series that ``goes_on`` cannot have cooled down: readings after its longest segment count,
    in the mean over time. Rates are higher if the machine is faster.
    """
    if phase.start is None:
        return _behind_warm_up(series, phase, search)
    before, after = _outside(phase)
    level = _level(phase)
    if (trend := _moves_away(series, after, level)) is not None:
        return _refuse(phase, replace(trend, first=level))
    is_back = _comes_back(series, after, level, phase)
    if not is_back and _comes_back(series, before[::-1], level, phase):
        is_back = not _is_warm_up(before, level, series.size, rates=search.rates)
    if is_back:
        return _behind_warm_up(series, phase, search)
    if search.goes_on and after:
        return average_over_time(_cut_ends(phase, before, after, goes_on=True), series.size)
    return _cut_ends(phase, before, after)


def few_in_order(series: Floats) -> Notice | None:
    """Refuse fewer than 30 readings that climb or fall to the end."""
    trend = find_trend(series, ()) if series.size < MIN_FOR_AUTOCORRELATION else None
    if trend is None or not _differ(trend.first, trend.last, by=_CLIMB_OF_FEW):
        return None
    return say_moving(trend, {"reason": str(PhaseReason.TREND)})


def _outside(phase: StablePhase) -> tuple[list[Phase], list[Phase]]:
    """Return the segments before and after the stable one, without ends too short to call."""
    settled = [part for part in phase.phases if not is_unsettled(part, phase.change_points)]
    before = [part for part in settled if part.stop <= (phase.start or 0)]
    return before, [part for part in settled if part.start >= (phase.stop or 0)]


def _level(phase: StablePhase) -> float:
    return next(part.median for part in phase.phases if part.start == phase.start)


def _moves_away(series: Floats, after: Sequence[Phase], level: float) -> Trend | None:
    """Find a movement away from the level, if more than a tenth of the readings follow."""
    if sum(segment.n for segment in after) <= _TAIL * series.size:
        return None
    first = after[0].start
    trend = find_trend(series[first:], [segment.start - first for segment in after[1:]])
    is_away = trend is not None and abs(trend.last - level) > abs(trend.first - level)
    return trend if is_away else None


def _comes_back(series: Floats, outward: Iterable[Phase], level: float, phase: StablePhase) -> bool:
    """Whether a segment beyond one at another level is back at the level."""
    left = False
    for segment in outward:
        spread = float(series[segment.start : segment.stop].std())
        error = spread * (phase.change_points.inflation / segment.n) ** 0.5
        if abs(segment.median - level) > max(MATERIALITY * abs(level), _NEAR * error):
            left = True
        elif left:
            return True
    return False


def _is_warm_up(before: Sequence[Phase], level: float, n: int, *, rates: bool) -> bool:
    """Whether a start is brief, or slower wherever it is not at the level and not too long."""
    share = before[-1].stop / n
    apart = [segment.median for segment in before if _differ(segment.median, level)]
    slower = min(_times_slower(median, level, rates=rates) for median in apart)
    return share <= _BRIEF or slower > _FAR or (slower > 1.0 and share <= _WARM_UP)


def _cut_ends(
    phase: StablePhase, before: list[Phase], after: list[Phase], *, goes_on: bool = False
) -> StablePhase:
    """Take the longest segment, label the others, and say which are cut and how far they are."""
    behind = PhaseLabel.OTHER if goes_on else PhaseLabel.COOL_DOWN
    labels = {segment.start: PhaseLabel.WARM_UP for segment in before}
    labels |= {segment.start: behind for segment in after}
    cut = (
        _say_cut(phase, before, Code.START_CUT),
        None if goes_on else _say_cut(phase, after, Code.END_CUT),
    )
    return replace(
        phase,
        phases=tuple(
            replace(part, label=labels.get(part.start, part.label)) for part in phase.phases
        ),
        notices=(*phase.notices, *(notice for notice in cut if notice is not None)),
    )


def _say_cut(phase: StablePhase, end: Sequence[Phase], code: Code) -> Notice | None:
    """Say how many readings an end holds, and by which ratio they differ.

    A cool-down of more than a tenth of the readings is a warning: it may be what matters.
    """
    if not end:
        return None
    readings, level = sum(segment.n for segment in end), _level(phase)
    mean = sum(segment.n * segment.median for segment in end) / readings
    ratio = mean / level if level and mean / level > 0.0 else None
    how = "at another level" if ratio is None else f"{ratio:.3g} times as large"
    is_long = code is Code.END_CUT and readings > _TAIL * phase.change_points.n
    case = "long" if is_long else ""
    return Notice.of(code, case, readings=readings, ratio=ratio, how_=how)


def _behind_warm_up(series: Floats, phase: StablePhase, search: Search) -> StablePhase:
    """Cut a warm-up that stands apart, and average what follows over time unless it is steady."""
    count, cool_down = _ends_apart(phase.phases, search)
    if not count:
        return _over_time(series, phase, cool_down)
    start, points = phase.phases[count].start, phase.change_points
    rest = series[start:]
    found = measured_phase(rest, search, points.within(start, points.n))
    if found.start is None or not _is_steady(found):
        found = _over_time(rest, found, _ends_apart(found.phases, search)[1])
    found = found.of_whole(points, start)
    warm_up = (replace(part, label=PhaseLabel.WARM_UP) for part in phase.phases[:count])
    return replace(found, phases=(*warm_up, *found.phases))


def _is_steady(phase: StablePhase) -> bool:
    level = _level(phase)
    before, after = _outside(phase)
    return not any(_differ(segment.median, level) for segment in (*before, *after))


def _over_time(series: Floats, phase: StablePhase, cool_down: int) -> StablePhase:
    """Take all readings but a cool-down, unless they move to their end or their levels are far."""
    trend = find_trend(series, [segment.start for segment in phase.phases[1:]])
    if trend is not None or phase.reason in _MOVING:
        ends = trend or ends_of(series)
        if _differ(ends.first, ends.last, by=_CLIMB):
            return _refuse(phase, ends)
    if (far := find_far_ends(series)) is not None:
        return _refuse(phase, far)
    if phase.reason is PhaseReason.RANDOM_WALK:
        return phase
    if phase.reason is PhaseReason.FEW_EFFECTIVE:
        return _take_all(phase)
    labels = [PhaseLabel.OTHER] * cool_down
    labels += [PhaseLabel.COOL_DOWN] * (len(phase.phases) - cool_down)
    parts = zip(phase.phases, labels, strict=True)
    labelled = tuple(replace(part, label=label) for part, label in parts)
    return average_over_time(
        replace(phase, start=0, phases=labelled), phase.phases[cool_down - 1].stop
    )


def average_over_time(phase: StablePhase, stop: int) -> StablePhase:
    """Average over time what lies between the start of the phase and ``stop``."""
    start = phase.start or 0
    levels = [part.median for part in phase.phases if start <= part.start < stop]
    cut = [one for one in phase.notices if one.code in (Code.START_CUT, Code.END_CUT)]
    over = f"{counted(stop - start)} readings"
    changed = say_changed(min(levels), max(levels), len(levels) - 1, over)
    paced = replace(
        phase,
        stop=stop,
        reason=PhaseReason.CHANGING_PACE,
        notices=(changed, *cut, *_of_ends(phase)),
    )
    if not max(levels) > _FARTHEST * min(levels) > 0.0:
        return paced
    if phase.reason is not PhaseReason.STABLE:
        return replace(phase, start=None, stop=None)
    first, last = levels[0], levels[-1]
    is_far = max(first, last) > _FARTHEST * min(first, last)
    return _refuse(phase, Trend(first=first, last=last)) if is_far else paced


def _ends_apart(phases: Sequence[Phase], search: Search) -> tuple[int, int]:
    """Return how many segments at the start are a warm-up, and the first of a cool-down, or k.

    A warm-up is brief, or slower than all others but a cool-down. A series that goes on has no
    cool-down.
    """
    medians = np.array([segment.median for segment in phases])
    counts = np.array([segment.n for segment in phases], dtype=np.float64)
    stops = np.cumsum(counts) / counts.sum()
    is_positive, stop = float(medians.min()) > 0.0, medians.size
    times = 1.0 / medians if search.rates and is_positive else medians
    if not search.goes_on:
        middle = int(np.searchsorted(np.append(0.0, stops[:-1]), _WARM_UP))
        spent = counts * times if is_positive else counts
        stop = _first_apart(medians, middle, np.maximum(_shares(counts), _shares(spent)))
    if not is_positive or stop < 2:
        return 0, stop
    least, most = (end.accumulate(times)[: stop - 1] for end in (np.minimum, np.maximum))
    after_least, after_most = (
        end.accumulate(times[1:stop][::-1])[::-1] for end in (np.minimum, np.maximum)
    )
    span, share = after_most - after_least, stops[: stop - 1]
    slower = (least > after_most) & (least - times[1:stop] > span)
    faster = (most < after_least) & (times[1:stop] - most > span)
    is_warm_up = (least > _FAR * after_most) | slower | (faster & (share <= _BRIEF))
    ends = np.flatnonzero(is_warm_up & (share <= _WARM_UP)) + 1
    return (int(ends[-1]) if ends.size else 0), stop


def _shares(amounts: Floats) -> Floats:
    """Return which share of the whole each segment and all after it hold."""
    behind: Floats = np.cumsum(amounts[::-1])[::-1] / amounts.sum()
    return behind


def _first_apart(medians: Floats, middle: int, shares: Floats) -> int:
    """Return the first segment of an end of up to a tenth that stands apart from the middle.

    All its levels are above, or below, those from the middle on, and their step is the largest.
    """
    for signed in (medians, -medians):
        inside = signed[middle:]
        if inside.size < 2:
            break
        most, least = np.maximum.accumulate(inside)[:-1], np.minimum.accumulate(inside)[:-1]
        behind = np.minimum.accumulate(inside[::-1])[::-1][1:]
        step = behind - inside[:-1]
        is_apart = (behind > most) & (step > most - least) & (shares[middle + 1 :] <= _TAIL)
        if is_apart.any():
            return middle + 1 + int(np.argmax(is_apart))
    return medians.size


def _differ(one: float, other: float, *, by: float = MATERIALITY) -> bool:
    """Whether two levels are materially apart."""
    return abs(one - other) > by * min(abs(one), abs(other))


def _times_slower(one: float, other: float, *, rates: bool) -> float:
    """Return how many times as slow one level is as another; 0 unless both are above 0."""
    slow, fast = (other, one) if rates else (one, other)
    return slow / fast if min(slow, fast) > 0.0 else 0.0


def _take_all(phase: StablePhase) -> StablePhase:
    """Take all readings of slow noise: an interval that allows for it is as wide as it is slow."""
    notice = phase.notices[0]
    independent = notice.evidence["independent"]
    if independent is not None and float(independent) < 1.0:
        return phase
    few = Notice.of(Code.FEW_EFFECTIVE, "slow", **notice.evidence)
    stop, notices = phase.change_points.n, (few, *_of_ends(phase))
    return replace(phase, start=0, stop=stop, reason=PhaseReason.SLOW_NOISE, notices=notices)


def _of_ends(phase: StablePhase) -> tuple[Notice, ...]:
    """Return Notices of readings at the ends that are too few to call a change."""
    return tuple(notice for notice in phase.notices if notice.code is Code.TOO_FEW_TO_CALL)


def say_changed(least: float, greatest: float, changes: int, over: str) -> Notice:
    """Say by how much the pace changed, and over which time."""
    how = "moved without clear steps" if least == greatest else "changed"
    if 0.0 < least < _SLIGHT * greatest:
        how += f" between {least / greatest:.2g} and 1 of its fastest"
    figures = {"changes": changes, "least": least, "greatest": greatest}
    slight = changes > 0 and least >= _SLIGHT * greatest > 0.0
    case = "slight" if slight else ""
    return Notice.of(Code.CHANGING_PACE, case, over_=over, how_=how, **figures)


def _refuse(phase: StablePhase, trend: Trend) -> StablePhase:
    reason = phase.reason if phase.reason in _MOVING else PhaseReason.TREND
    known = phase.notices[0].evidence if phase.notices else {}
    notices = (say_moving(trend, {**known, "reason": str(reason)}),)
    return replace(phase, start=None, stop=None, reason=reason, notices=notices)


def say_moving(trend: Trend, known: Evidence, unit: str = "") -> Notice:
    """Say why readings with a trend have no mean."""
    known = {**known, "first": trend.first, "last": trend.last}
    return Notice.of(Code.NO_STABLE_PHASE, "no level", way_=trend.way(unit), **known)


_FEWEST = 5  # references in each segment
_STEPS = (PhaseReason.STABLE, PhaseReason.NO_DOMINANT_SEGMENT)


def choose_at_one_pace(series: Floats, phase: StablePhase, search: Search) -> StablePhase:
    """Choose the readings to measure, after dividing them by the pace of the machine.

    A step that dividing brings within two standard errors of 1 was made by the machine, and parts
    no phases: the error has the spread of levels and references, and the uncertainty of the
    sensitivity times the change of the pace. What remains is a step of the code. A phase with steps
    of the machine is averaged over time. The sensitivity is as for most work, since what flickers
    inside segments is another change of pace than what lies between them. A segment with fewer than
    five references, or a movement that is not a sequence of steps, leaves the readings as they are.
    """
    references = search.references
    settled = [part for part in phase.phases if not is_unsettled(part, phase.change_points)]
    cut = None if references is None else _by_segment(series, settled, references)
    if references is None or cut is None or phase.reason not in _STEPS:
        return choose_phase(series, phase, search)
    slope, sd = references.busy * SENSITIVITY, references.busy * SENSITIVITY_SD
    inflation = math.sqrt(phase.change_points.inflation)
    levels = [
        _Level.of(series[part.start : part.stop], log_s, inflation)
        for part, log_s in zip(settled, cut, strict=True)
    ]
    at_one_pace = series * np.exp(-slope * _along(series.size, references))
    joined = _join(at_one_pace, phase, settled, levels, (slope, sd))
    chosen = choose_phase(at_one_pace, joined, search)
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
    """Return the references of each segment; None if they cannot show the machine's steps."""
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
    labels = [
        PhaseLabel.STABLE if has_most and first == start else PhaseLabel.OTHER for first in starts
    ]
    joined = parts_between(series, borders, labels)
    ends = [part for part in phase.phases if part not in settled]
    found = replace(phase, phases=tuple(sorted([*joined, *ends], key=lambda part: part.start)))
    if not has_most:
        return found
    kept = phase.notices if phase.start is not None else ()
    return replace(found, start=start, stop=stop, reason=PhaseReason.STABLE, notices=kept)


def _as_measured(chosen: StablePhase, segments: Sequence[Phase]) -> StablePhase:
    """Return the choice with the segments as measured; average the machine's over time."""
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
