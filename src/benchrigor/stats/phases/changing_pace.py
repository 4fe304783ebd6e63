"""Phases of a series from a machine that changed its pace during the measurement.

Such a series has several levels, and no level holds most of the readings. Their mean describes the
time of the measurement, and blocks of that time give its interval. A series that rises or falls
until its end has no lasting mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchrigor.model import (
    ChangePoints,
    Code,
    Floats,
    Notice,
    Phase,
    PhaseLabel,
    PhaseReason,
    Severity,
    StablePhase,
)
from benchrigor.model.notice import Figure
from benchrigor.model.text import counted
from benchrigor.stats.phases.stable_phase import is_unsettled
from benchrigor.stats.phases.trend import Trend, ends_of, find_far_ends, find_trend
from benchrigor.stats.phases.trimming import MATERIALITY, measured_phase
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION

_WARM_UP = 0.3  # maximum share of the readings that one step down at the start may cut
_BRIEF = 0.05  # and that any step at the start may cut
_COOL_DOWN = 0.1  # share of the readings, and of the time, that any step at the end may cut
_SLIGHT = 0.95  # paces closer to each other than this ratio make a note, not a warning
_FAR = 2.0  # a start slower than all later levels by this factor is not a matter of pace
_FARTHEST = 16.0  # levels further apart come from the work, not from the machine
_CLIMB = 0.05  # from the start to the end at least: an interval holds what moves less
_CLIMB_OF_FEW = 0.1  # of fewer than 30 readings
_MOVING = (PhaseReason.TREND, PhaseReason.STILL_MOVING)


def phase_at_any_pace(
    series: Floats,
    confidence: float,
    change_points: ChangePoints | None = None,
    *,
    rates: bool = False,
) -> StablePhase:
    """Find the stable phase to measure; else, if no trend goes to the end, take all readings.

    A phase that holds most of the readings is not taken for the whole if the rest may be another
    pace: levels that come back, a step up at the start, or one step that cuts much. A start that is
    more than twice as slow is a warm-up, however long, and so is one that fades in several steps.
    If all readings are taken, a warm-up or cool-down farther from them than they are from each
    other is still left out.

    ``rates`` are higher if the machine is faster.
    """
    phase = measured_phase(series, confidence, change_points)
    if phase.start is not None and is_one_pace(phase, rates=rates):
        return _with_doubt(phase)
    count = _warm_up(phase.phases, rates=rates)
    if count:
        return _behind_warm_up(series, confidence, phase, count, rates=rates)
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
    paced = _take_all_but_cool_down(phase, rates=rates)
    levels = [part.median for part in paced.phases if part.label is PhaseLabel.OTHER]
    if not max(levels) > _FARTHEST * min(levels) > 0.0:
        return paced
    if phase.start is None:
        return phase
    first, last = levels[0], levels[-1]
    is_far = max(first, last) > _FARTHEST * min(first, last)
    return _refuse(phase, Trend(first=first, last=last)) if is_far else paced


def few_in_order(series: Floats) -> Notice | None:
    """Refuse fewer than 30 readings that climb or fall to the end."""
    trend = find_trend(series, ()) if series.size < MIN_FOR_AUTOCORRELATION else None
    if trend is None or not _differ(trend.first, trend.last, by=_CLIMB_OF_FEW):
        return None
    return _moving(trend, reason=str(PhaseReason.TREND))


def is_one_pace(phase: StablePhase, *, rates: bool = False) -> bool:
    """Whether all that is cut is a warm-up before the stable phase, and a cool-down after it."""
    n = phase.change_points.n
    stable = next(segment for segment in phase.phases if segment.start == phase.start)
    apart = [segment for segment in phase.phases if _differ(segment.median, stable.median)]
    if any(
        segment.label is PhaseLabel.OTHER and not is_unsettled(segment, phase.change_points)
        for segment in apart
    ):
        return False
    after = [segment for segment in apart if segment.start > stable.start]
    if not _is_tail(after, phase.phases, rates=rates):
        return False
    for part in (early for early in apart if early.start < stable.start):
        slower = _times_slower(part.median, stable.median, rates=rates)
        share = part.n / n
        if not (slower > _FAR or share <= _BRIEF or (slower > 1.0 and share <= _WARM_UP)):
            return False
    return True


def _is_tail(some: Sequence[Phase], phases: Sequence[Phase], *, rates: bool) -> bool:
    """Whether some phases are at most a tenth of all, of their readings and of their time."""
    took, whole = (sum(_time(part, rates=rates) for part in group) for group in (some, phases))
    readings = sum(segment.n for segment in some)
    return took <= _COOL_DOWN * whole and readings <= _COOL_DOWN * phases[-1].stop


def _time(phase: Phase, *, rates: bool) -> float:
    """Return how long a phase lasted: its readings are durations, or rates of equal work."""
    if phase.median <= 0.0:
        return float(phase.n)
    return phase.n / phase.median if rates else phase.n * phase.median


def _differ(one: float, other: float, *, by: float = MATERIALITY) -> bool:
    """Whether two levels are materially apart."""
    return abs(one - other) > by * min(abs(one), abs(other))


def _times_slower(one: float, other: float, *, rates: bool) -> float:
    """Return how many times as slow one level is as another; 0 unless both are above 0."""
    slow, fast = (other, one) if rates else (one, other)
    return slow / fast if min(slow, fast) > 0.0 else 0.0


def _with_doubt(phase: StablePhase) -> StablePhase:
    """Say that a start which was cut may have been another pace of the machine."""
    stable = next(segment for segment in phase.phases if segment.start == phase.start)
    points = phase.change_points
    cut = [segment for segment in phase.phases if segment.start < stable.start]
    cut = [segment for segment in cut if not is_unsettled(segment, points)]
    slower = 0.0 if len(cut) != 1 else cut[0].median / stable.median if stable.median else 0.0
    if not cut or cut[0].n <= _BRIEF * points.n or not 1.0 / _FAR < slower < _FAR:
        return phase
    doubt = Notice.note(
        Code.START_CUT,
        f"The first {counted(cut[0].n)} readings are {slower:.3g} times as large and left out as a "
        "warm-up: only another run shows whether the machine had another pace then.",
        readings=cut[0].n,
        ratio=slower,
    )
    return replace(phase, notices=(*phase.notices, doubt))


def _behind_warm_up(
    series: Floats, confidence: float, phase: StablePhase, count: int, *, rates: bool
) -> StablePhase:
    """Return the readings to measure after a warm-up of that many phases."""
    start, points = phase.phases[count].start, phase.change_points
    rest = points.within(start, points.n)
    found = phase_at_any_pace(series[start:], confidence, rest, rates=rates)
    found = found.of_whole(points, start)
    warm_up = (replace(part, label=PhaseLabel.WARM_UP) for part in phase.phases[:count])
    return replace(found, phases=(*warm_up, *found.phases))


def _take_all_but_cool_down(phase: StablePhase, *, rates: bool) -> StablePhase:
    """Take all readings but a cool-down that stands apart from all before it."""
    last = _cool_down(phase.phases, 0, rates=rates)
    stop = phase.phases[last - 1].stop
    labels = [PhaseLabel.OTHER] * last + [PhaseLabel.COOL_DOWN] * (len(phase.phases) - last)
    return replace(
        phase,
        start=0,
        stop=stop,
        reason=PhaseReason.CHANGING_PACE,
        phases=tuple(
            replace(part, label=label) for part, label in zip(phase.phases, labels, strict=True)
        ),
        notices=(
            _warn_of_change([part.median for part in phase.phases[:last]], stop),
            *_of_ends(phase),
        ),
    )


def _warm_up(phases: Sequence[Phase], *, rates: bool) -> int:
    """Return how many phases at the start are a warm-up: brief, or slower than all that follows.

    A cool-down does not count among what follows.
    """
    n = phases[-1].stop
    times = [_times_slower(segment.median, 1.0, rates=rates) for segment in phases]
    for count in range(len(phases) - 1, 0, -1):
        if phases[count - 1].stop > _WARM_UP * n or min(times) <= 0.0:
            continue
        before, after = times[:count], times[count : _cool_down(phases, count, rates=rates)]
        is_brief = phases[count - 1].stop <= _BRIEF * n
        is_slower = min(before) > max(after)
        if min(before) > _FAR * max(after):
            return count
        if (is_slower or is_brief) and _stand_apart(before, after[0], after):
            return count
    return 0


def _cool_down(phases: Sequence[Phase], first: int, *, rates: bool) -> int:
    """Return the index of the first phase of the cool-down, or else the number of phases."""
    levels = [segment.median for segment in phases]
    for at in range(first + 1, len(phases)):
        is_tail = _is_tail(phases[at:], phases, rates=rates)
        if is_tail and _stand_apart(levels[at:], levels[at - 1], levels[first:at]):
            return at
    return len(phases)


def _stand_apart(some: Sequence[float], nearest: float, others: Sequence[float]) -> bool:
    """Whether levels are all above or below others, and their step to them is the largest.

    ``nearest`` is the level of the others next to them in time.
    """
    above, below = min(some) > max(others), max(some) < min(others)
    step = min(abs(place - nearest) for place in some)
    return (above or below) and step > max(others) - min(others)


def _take_all(phase: StablePhase) -> StablePhase:
    """Take all readings of slow noise: an interval that allows for it is as wide as it is slow."""
    notice = phase.notices[0]
    independent = notice.evidence["independent"]
    if independent is not None and float(independent) < 1.0:
        return phase
    sentence = (
        "The readings change so slowly that few of them are independent: the interval allows for "
        "that, and is wide."
    )
    few = Notice.warning(Code.FEW_EFFECTIVE, sentence, **notice.evidence)
    stop, notices = phase.change_points.n, (few, *_of_ends(phase))
    return replace(phase, start=0, stop=stop, reason=PhaseReason.SLOW_NOISE, notices=notices)


def _of_ends(phase: StablePhase) -> tuple[Notice, ...]:
    """Return what is said of readings at the ends that are too few to call a change."""
    return tuple(notice for notice in phase.notices if notice.code is Code.TOO_FEW_TO_CALL)


def _warn_of_change(levels: list[float], n: int) -> Notice:
    low, high = min(levels), max(levels)
    slight = len(levels) > 1 and low >= _SLIGHT * high > 0.0
    return Notice(
        code=Code.CHANGING_PACE,
        severity=Severity.NOTE if slight else Severity.WARNING,
        sentence=say_changed(low, high, f"{counted(n)} readings"),
        evidence={"changes": len(levels) - 1, "least": low, "greatest": high},
    )


def say_changed(least: float, greatest: float, over: str) -> str:
    """Say by how much the pace changed, and over which time."""
    how = "moved without clear steps" if least == greatest else "changed"
    if 0.0 < least < _SLIGHT * greatest:
        how += f" between {least / greatest:.2g} and 1 of its fastest"
    return f"Over these {over} the pace {how}: the interval is about this time, from blocks of it."


def _refuse(phase: StablePhase, trend: Trend) -> StablePhase:
    reason = phase.reason if phase.reason in _MOVING else PhaseReason.TREND
    known = phase.notices[0].evidence if phase.notices else {}
    notices = (_moving(trend, **{**known, "reason": str(reason)}),)
    return replace(phase, start=None, stop=None, reason=reason, notices=notices)


def _moving(trend: Trend, **known: Figure) -> Notice:
    known |= {"first": trend.first, "last": trend.last}
    return Notice.refusal(Code.NO_STABLE_PHASE, say_moving(trend), **known)


def say_moving(trend: Trend, unit: str = "") -> str:
    """Say why readings with a trend have no mean."""
    return f"No steady level: it {trend.way(unit)}."
