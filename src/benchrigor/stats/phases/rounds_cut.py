"""Cuts of several series, and by place: of restarted rounds, of pieces, of a first cold reading.

Restarted rounds have the cut that all have in common, or each its own. Invocations that started
equally warm up equally: together they show a warm-up that noise hides in each.

One reading alone is not a change of level, so no search finds it. One process has one warm-up, in
its first piece. After a pause caches are cold for a moment, for an unknown time: the start is left
out by its place, never for being slow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchrigor.model import ChangePoints, Code, Notice, StablePhase
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.model.notice import Severity
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.detector import MIN_FOR_CHANGES, detect_changes
from benchrigor.stats.changepoints.variance_inflation import doubled_ranks
from benchrigor.stats.phases.stability_rules import MAX_POINTS
from benchrigor.stats.phases.stable_phase import (
    Search,
    beyond_noise,
    cut_by_place,
    measured_phase,
    parts_between,
)
from benchrigor.stats.series.interval import MIN_FOR_VARIANCE, median_of, remembered, student_t
from benchrigor.stats.series.long_run_variance import batch_means

_LEVEL = 0.05  # chance of any false cut, over all windows: a false cut costs a few readings
_REFUSAL_LEVEL = 0.01  # chance of refusing steady invocations: a false refusal costs the result
_MIN_FOR_SPREAD = 5  # from this number of invocations on, their own spread tests the common cut
_BEYOND_USUAL = 1.25
_UNCLEAR_T = 1.0  # below this Student's t, readings after the clearest step show no difference
_ROUNDING = 1e-12

Windows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCut:
    """How many readings to cut at the start and at the end of each invocation."""

    start: int
    end: int
    level: float | None
    inflation: float = 1.0  # where change points found the cut
    notices: tuple[Notice, ...] = ()


def common_phases(series: Sequence[Floats], search: Search) -> tuple[StablePhase, ...]:
    """Find the stable phase of each invocation, the same cut in all of them.

    With two to four invocations `measured_phase` finds the cut in their average, reading by
    reading. From five on the invocation is the unit of inference (`_cut_by_spread`). No margin is
    added: `trimmed` leaves one out. Beyond 2047 readings batch means are tested, and the cut is a
    multiple of their size.
    """
    if len(series) == 1:
        return (measured_phase(series[0], search),)
    cut = _common_cut(series, search)
    if isinstance(cut, Notice):
        return tuple(_unstable(values, cut) for values in series)
    return tuple(stable_between(values, cut) for values in series)


def _common_cut(series: Sequence[Floats], search: Search) -> CommonCut | Notice:
    """Find the cut by all but very short invocations, or say why there is no steady state."""
    typical = float(np.median([values.size for values in series]))
    sizes = sorted(values.size for values in series if 2 * values.size >= typical)
    spared = max(min(len(sizes) // 4, len(sizes) - _MIN_FOR_SPREAD), 0)
    long = [values for values in series if values.size >= sizes[spared]]
    if len(long) < _MIN_FOR_SPREAD:
        return _cut_by_change_points(long, search)
    return _cut_by_spread(long, typical, search)


def _cut_by_spread(series: list[Floats], typical: float, search: Search) -> CommonCut | Notice:
    """Cut what differs from the second half by a t test over invocations.

    Each reading is scored by its rank among those between the half and three quarters of its
    invocation, so tails and slow layouts weigh equally. The mean score of windows of 1, 2, 4, ...
    readings is tested against 0 (Bonferroni over the windows, 0.05 in all). It must also exceed
    1.25 times the largest mean of such a window in the reference: periodic work that all
    invocations do in step is not a warm-up. The cut ends with the last window that differs.

    There is no steady state if more than half is cut, or if the first and last third of the rest
    differ significantly (0.01) and by more than a quarter of the half-width.
    """
    count, size = len(series), min(values.size for values in series)
    batch = max(1, size // MAX_POINTS)
    forward = np.array([batch_means(values[:size], batch) for values in series])
    backward = np.array([batch_means(values[: -size - 1 : -1], batch) for values in series])
    points = forward.shape[1]
    half, quarter = points // 2, points // 4
    at_start, at_end = _windows(half), _windows(quarter)
    critical = student_t(count - 1.0, 1.0 - _LEVEL / max(len(at_start) + len(at_end), 1))
    start = _last_that_differs(forward, at_start, slice(half, points - quarter), critical)
    # The reference is next to the end, where a slow warm-up has faded most.
    reference = slice(quarter, max(3 * points // 8, quarter + 1))
    end = _last_that_differs(backward, at_end, reference, critical)
    cut = CommonCut(start=start * batch, end=end * batch, level=_LEVEL)
    if 2 * (cut.start + cut.end) > typical:
        return Notice.of(
            Code.NO_STABLE_PHASE,
            "rounds differ",
            reason=str(PhaseReason.NO_DOMINANT_SEGMENT),
            invocations=count,
            n=typical,
            start=cut.start,
            end=cut.end,
        )
    levels = np.array(
        [median_of(readings[half * batch : readings.size - cut.end]) for readings in series]
    )
    error = float(levels.std(ddof=1)) / math.sqrt(count)
    tolerance = student_t(count - 1.0, search.confidence) * error / 4.0
    return _still_moving(forward[:, half : points - end], half * batch, tolerance) or cut


def _windows(span: int) -> Windows:
    """Return (start, stop) of windows within the first ``span`` readings, shape (w, 2).

    Widths are powers of 2, at least a quarter of the distance from the start: a finer end of the
    warm-up is not needed, and few windows keep the test powerful.
    """
    windows: list[tuple[int, int]] = []
    width = 1
    while 2 * width <= max(span, 2):
        starts = range(0, min(4 * width, span - width) + 1, max(width // 2, 1))
        windows += [(start, start + width) for start in starts]
        width *= 2
    return np.array(windows, dtype=np.intp).reshape(-1, 2)


def _last_that_differs(rows: Floats, windows: Windows, reference: slice, critical: float) -> int:
    """Return where the last window ends that differs from the reference; 0 if none does.

    Its readings after its clearest step are not cut if they show no difference by themselves.
    """
    scores, step = _scores(rows, reference)
    starts, stops = windows.T
    widths = stops - starts
    sums = _sums(scores)
    studentised, means = _studentise((sums[:, stops] - sums[:, starts]) / widths, step / widths)
    steady = _sums(scores[:, reference].mean(axis=0))
    usual = np.array([np.abs(steady[w:] - steady[:-w]).max(initial=0.0) / w for w in widths])
    differs = np.abs(means) > _BEYOND_USUAL * usual + _ROUNDING
    differs &= np.abs(studentised) > critical
    if not differs.any():
        return 0
    start, stop = max(windows[differs].tolist(), key=lambda ends: (ends[1], ends[0]))
    profile = scores[:, start:stop].mean(axis=0)
    split = start + 1 + int(np.argmax(np.abs(np.cumsum(profile - profile.mean()))))
    behind = scores[:, split:stop].sum(axis=1)[:, None] / max(stop - split, 1)
    shown, _ = _studentise(behind, step / np.array([stop - start]))
    return split if abs(float(shown[0])) < _UNCLEAR_T else int(stop)


def _still_moving(rows: Floats, first: int, tolerance: float) -> Notice | None:
    """Refuse rows, which begin at reading ``first``, that still move by more than tolerated."""
    third = max(rows.shape[1] // 3, 1)
    scores, step = _scores(rows, slice(rows.shape[1] - third, None))
    studentised, _ = _studentise(scores[:, :third].mean(axis=1)[:, None], step / np.array([third]))
    before, after = np.median(rows[:, :third], axis=1), np.median(rows[:, -third:], axis=1)
    significant = abs(float(studentised[0])) > student_t(len(rows) - 1.0, 1.0 - _REFUSAL_LEVEL)
    if not significant or abs(float((after - before).mean())) <= tolerance:
        return None
    early, late = float(before.mean()), float(after.mean())
    return Notice.of(
        Code.NO_STABLE_PHASE,
        "rounds move",
        rises_=late > early,
        reason=str(PhaseReason.STILL_MOVING),
        invocations=len(rows),
        first=first,
        early=early,
        late=late,
    )


def _scores(rows: Floats, reference: slice) -> tuple[Floats, float]:
    """Score each reading by the share of its row's reference that is below it, less a half.

    Also return the smallest step of the scores: one reading of the reference, or more where a
    coarse clock makes readings equal.
    """
    ordered = np.sort(rows[:, reference], axis=1)
    size = ordered.shape[1]
    pairs = zip(ordered, rows, strict=True)
    below = np.array([doubled_ranks(known, row) for known, row in pairs])
    scores = below / (2.0 * size) - 0.5
    gaps = np.diff(np.sort(scores[:, reference], axis=1), axis=1)
    return scores, float(gaps.max(axis=1, initial=1.0 / size).mean())


def _studentise(values: Floats, steps: Floats) -> tuple[Floats, Floats]:
    """Return Student's t and the mean of each column.

    Few rows may agree by chance within one step of the scores, so the standard deviation is taken
    to be half a step at least.
    """
    means: Floats = values.mean(axis=0)
    spread = np.maximum(values.std(axis=0, ddof=1), steps / 2.0)
    studentised: Floats = means * math.sqrt(len(values)) / spread
    return studentised, means


def _sums(values: Floats) -> Floats:
    """Return running sums along the last axis, with a leading 0."""
    return np.cumsum(np.insert(values, 0, 0.0, axis=-1), axis=-1)


def _cut_by_change_points(series: list[Floats], search: Search) -> CommonCut | Notice:
    """Find the stable phase of the invocations' average, aligned at the start and at the end."""
    size = min(values.size for values in series)
    first = _stable_average([values[:size] for values in series], search)
    last = first
    if any(values.size > size for values in series):
        last = _stable_average([values[values.size - size :] for values in series], search)
    refused = next((phase for phase in (first, last) if phase.start is None), None)
    if refused is not None:
        return refused.notices[0]
    return CommonCut(
        start=first.start or 0,
        end=size - (last.stop or size),
        level=first.change_points.level,
        inflation=first.change_points.inflation,
        notices=first.notices or last.notices,
    )


def _stable_average(rows: list[Floats], search: Search) -> StablePhase:
    """Return the stable phase of the rows' average, with Notices that say so."""
    phase = measured_phase(_average(rows), search)
    where = f" (in the average of {len(rows)} invocations)." if len(rows) > 1 else "."
    notices = tuple(
        replace(notice, sentence=notice.sentence.removesuffix(".") + where)
        for notice in phase.notices
    )
    return replace(phase, notices=notices)


def _average(rows: list[Floats]) -> Floats:
    """Average rows reading by reading, as if all had the same level."""
    aligned = np.array(rows)
    levels = np.median(aligned, axis=1, keepdims=True)
    shared = levels.mean()
    relative = aligned * (shared / levels) if levels.min() > 0.0 else aligned - levels + shared
    return np.asarray(relative.mean(axis=0))


def stable_between(series: Floats, cut: CommonCut) -> StablePhase:
    """Return the stable phase of an invocation that a cut leaves."""
    stop = series.size - cut.end
    if stop - cut.start < MIN_FOR_VARIANCE:
        too_short = Notice.of(
            Code.NO_STABLE_PHASE,
            "short round",
            wanted_=MIN_FOR_VARIANCE,
            reason=str(PhaseReason.FEW_EFFECTIVE),
            n=series.size,
            start=cut.start,
            end=cut.end,
        )
        return _unstable(series, too_short)
    borders = sorted({0, cut.start, stop, series.size})
    labels = {0: PhaseLabel.WARM_UP, stop: PhaseLabel.COOL_DOWN, cut.start: PhaseLabel.STABLE}
    return StablePhase(
        start=cut.start,
        stop=stop,
        reason=PhaseReason.STABLE,
        phases=parts_between(series, borders, [labels[first] for first in borders[:-1]]),
        change_points=ChangePoints(
            indices=tuple(borders[1:-1]), n=series.size, level=cut.level, inflation=cut.inflation
        ),
        notices=cut.notices,
    )


def _unstable(series: Floats, notice: Notice) -> StablePhase:
    return StablePhase(
        start=None,
        stop=None,
        reason=PhaseReason(str(notice.evidence["reason"])),
        phases=parts_between(series, (0, series.size), [PhaseLabel.OTHER]),
        change_points=ChangePoints(indices=(), n=series.size, level=_LEVEL, inflation=1.0),
        notices=(notice,),
    )


_BY_CHANCE, _FEW = 0.1, 2  # about one in fifty steady rounds seems to change
# Neither warm-ups nor cool-downs are looked for in the middle. If more than one round does change
# there, and more than an eighth of those that change, it is the machine that changes.
_MIDDLE, _MOST_IN_MIDDLE = (0.5, 0.75), 0.125
_MOST_POINTS = 2_048  # of a round; a longer one is averaged to means of neighbours


def cut_rounds(series: Sequence[Floats], search: Search) -> tuple[StablePhase, ...]:
    """Cut all invocations in one way, or each by itself if only that leaves most of them.

    On a busy machine the start of every round is faster, which is not a warm-up of the workload.
    """
    common = common_phases(series, search)
    if len(common) == 1:
        return common
    if any(phase.start is not None for phase in common):
        return _cut_changing_rounds(series, common, search)
    own = tuple(measured_phase(readings, search) for readings in series)
    if 2 * sum(phase.n >= MIN_FOR_VARIANCE for phase in own) <= len(own):
        return common
    sentence = "The rounds have no steady state in common: each is cut by itself."
    warning = replace(common[0].notices[0], severity=Severity.WARNING, sentence=sentence)
    return tuple(
        replace(phase, notices=(warning,)) if phase.start is not None else phase for phase in own
    )


def _cut_changing_rounds(
    series: Sequence[Floats], common: tuple[StablePhase, ...], search: Search
) -> tuple[StablePhase, ...]:
    """Cut rounds by themselves that change inside the common cut, if more do than by chance.

    Half of the rounds may have a cool-down, or each a warm-up of its own length. Where rounds
    change in their middle too, the machine changes its pace, which is part of the mean.
    """
    changes = [_changes(readings, cut) for readings, cut in zip(series, common, strict=True)]
    low, high = _MIDDLE
    in_middle = sum(any(low < place < high for place in places) for places in changes)
    own = {
        index: phase
        for index, (readings, places, cut) in enumerate(zip(series, changes, common, strict=True))
        if places and (phase := _own_phase(readings, cut, search)) is not None
    }
    if len(own) <= max(_BY_CHANCE * len(series), _FEW) or in_middle > max(
        _MOST_IN_MIDDLE * len(own), 1
    ):
        return common
    note = Notice.of(Code.CUT_ONE_BY_ONE, rounds=len(own), all_=len(series))
    phases = (own.get(index, cut) for index, cut in enumerate(common))
    return tuple(replace(phase, notices=(*phase.notices, note)) for phase in phases)


def _own_phase(readings: Floats, cut: StablePhase, search: Search) -> StablePhase | None:
    """Cut a round by itself, or else the rest after the common cut; None if neither is stable.

    A warm-up of its own may leave no phase of the whole that holds most readings.
    """
    own = measured_phase(readings, search)
    if own.reason is PhaseReason.STABLE:
        return own
    inside = measured_phase(readings[cut.start : cut.stop], search)
    if inside.start is None or inside.stop is None or inside.reason is not PhaseReason.STABLE:
        return None
    before, n = cut.start or 0, readings.size
    shorter = CommonCut(
        start=before + inside.start, end=n - before - inside.stop, level=inside.change_points.level
    )
    return stable_between(readings, shorter)


def _changes(readings: Floats, cut: StablePhase) -> list[float]:
    """Return where a round changes beyond slow noise inside a cut, as shares of the round."""
    inside = readings[cut.start : cut.stop]
    batch = -(-inside.size // _MOST_POINTS)
    means = batch_means(inside, batch)
    if means.size < MIN_FOR_CHANGES:
        return []
    points = _points_beyond_noise(means)
    ends = [points.early] * bool(points.early) + [means.size - points.late] * bool(points.late)
    places = [*points.indices, *ends]
    return [(batch * place + (cut.start or 0)) / readings.size for place in places]


@remembered
def _points_beyond_noise(means: Floats) -> ChangePoints:
    return beyond_noise(means, detect_changes(means))


_FAR = 2.0  # a start slower by this factor than all that follows is not a matter of pace
_FEWEST_ALIKE = 5  # readings, the first of them perhaps cold
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
    return cut_by_place(series, start, n, PhaseReason.WHOLE, cut=PhaseLabel.WARM_UP)


def cold_first(series: Floats) -> Notice | None:
    """Leave a first reading out that took more than twice as long as any other of 5 or more.

    Of n equal readings the first is the largest once in n times, and seldom by this much:
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
    """Return the first reading that counts: after a cut, or the fiftieth part that always is."""
    return None if phase.measured is None else int(phase.measured.start)


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
    first = parts_between(series, (0, 1), [PhaseLabel.WARM_UP])
    found = found.of_whole(points, 1)
    return replace(found, phases=(*first, *found.phases), notices=(*found.notices, cold))


def phase_by_shares(series: Floats, shares: tuple[float, float]) -> StablePhase:
    """Cut these shares of the readings at the start and at the end, whole readings rounded down."""
    n = series.size
    at_start, at_end = (math.floor(share * n + 1e-9) for share in shares)  # 0.29 * 100 is 28.99...
    start, stop = min(at_start, n - 1), max(n - at_end, at_start + 1)
    return cut_by_place(series, start, stop, PhaseReason.AS_ASKED)
