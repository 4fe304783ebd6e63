"""One warm-up cut and one cool-down cut for all invocations of a program.

What would bias all invocations alike does not average out over them, and what each of them hides
in its noise they show together: so that is where the cuts are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    ChangePoints,
    Code,
    Floats,
    Notice,
    Phase,
    PhaseLabel,
    PhaseReason,
    StablePhase,
    as_invocations,
)
from benchrigor.stats.phases.trimming import bearable_phase
from benchrigor.stats.series.interval import check_confidence, student_t
from benchrigor.stats.series.level import FEWEST
from benchrigor.stats.series.long_run_variance import batch_means

_LEVEL = 0.05
"""Chance of any false cut, over all windows looked at: it costs a few readings."""
_REFUSAL_LEVEL = 0.01
"""Chance of refusing steady invocations: it costs the result."""
_SPREAD_KNOWN = 5
"""From so many invocations on, their own spread judges what they have in common."""
_BEYOND_THE_USUAL = 1.25
_NOTHING = 1.0
"""Student's t of what may be taken for no difference; where in doubt, the longer cut is safer."""
_ROUNDING = 1e-12
_POINTS = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCut:
    """What does not belong to the steady state of any invocation.

    Parameters
    ----------
    start, end
        How many readings at the start and at the end of each invocation.
    level
        Chance of any false cut.
    inflation
        Long-run over marginal variance where the cut was found by change points; 1 where the
        invocations' own spread judged, which needs no such figure.
    notices
        What speaks against taking the rest for steady, though it may be measured.
    """

    start: int
    end: int
    level: float | None
    inflation: float = 1.0
    notices: tuple[Notice, ...] = ()


def common_cut(invocations: Sequence[npt.ArrayLike], *, confidence: float = 0.95) -> CommonCut:
    """Find how many readings to cut at the start and at the end of each invocation.

    Notes
    -----
    From five invocations on the invocation is the unit of inference, so that no model of
    autocorrelation is needed. Each reading is scored by its rank among those between the half and
    three quarters of its invocation (tails and slow layouts so count alike). For windows of 1, 2,
    4, ... readings the mean score is tested against 0 by Student t over the invocations
    (Bonferroni over the windows, 0.05 in all); it must also exceed 1.25 times what any window of
    that width shows where the program should be steady, so that periodic work which all
    invocations do in step is no warm-up. The cut ends with the last window that differs. No
    steady state: more than half is cut, or the first and the last third of what follows the half
    still differ, significantly (0.01) and by more than a quarter of the half-width.

    With two to four, `stats.find_stable_phase` judges their average, reading by
    reading, each relative to its own median. One is judged as by `estimate_mean`.

    No margin is added: `stats.trimmed` leaves out half as much again. Beyond
    2047 readings batch means are looked at, and the cut is a multiple of their size.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> warm_up = np.repeat([1.5, 1.0], [16, 84])
    >>> common_cut([warm_up * rng.normal(level, 0.05, 100) for level in (1.0, 1.3) * 5]).start
    16
    """
    series = as_invocations(invocations)
    check_confidence(confidence)
    return _common_cut(series, confidence)


def common_phases(
    invocations: Sequence[npt.ArrayLike], *, confidence: float = 0.95
) -> tuple[StablePhase, ...]:
    """Find the stable phase of each invocation, the same cut in all of them.

    Examples
    --------
    >>> phases = common_phases([[9.0, 9.0, 9.0, 9.0] + [5.0] * 17] * 6)
    >>> {(phase.start, phase.stop) for phase in phases}
    {(4, 21)}
    """
    series = as_invocations(invocations)
    check_confidence(confidence)
    if len(series) == 1:
        return (bearable_phase(series[0], confidence),)
    try:
        cut = _common_cut(series, confidence)
    except NotEstimable as error:
        notice = error.notice
        assert isinstance(notice, Notice)  # noqa: S101  # for the type checker: errors lie below
        return tuple(_unstable(each, notice) for each in series)
    return tuple(_stable(each, cut) for each in series)


def _common_cut(series: tuple[Floats, ...], confidence: float) -> CommonCut:
    typical = float(np.median([each.size for each in series]))
    sizes = sorted(each.size for each in series if 2 * each.size >= typical)
    spared = max(min(len(sizes) // 4, len(sizes) - _SPREAD_KNOWN), 0)
    telling = [each for each in series if each.size >= sizes[spared]]
    if len(telling) < _SPREAD_KNOWN:
        return _by_change_points(telling, confidence)
    return _by_spread(telling, typical, confidence)


def _by_spread(series: list[Floats], typical: float, confidence: float) -> CommonCut:
    count, size = len(series), min(each.size for each in series)
    batch = max(1, size // _POINTS)
    forward = np.array([batch_means(each[:size], batch) for each in series])
    backward = np.array([batch_means(each[: -size - 1 : -1], batch) for each in series])
    points = forward.shape[1]
    half, quarter = points // 2, points // 4
    heads, tails = _windows(half), _windows(quarter)
    least = student_t(count - 1.0, 1.0 - _LEVEL / max(len(heads) + len(tails), 1))
    start = _last_that_differs(forward, heads, slice(half, points - quarter), least)
    # Next to the tail, where a slow warm-up has faded most.
    near = slice(quarter, max(3 * points // 8, quarter + 1))
    end = _last_that_differs(backward, tails, near, least)
    cut = CommonCut(start=start * batch, end=end * batch, level=_LEVEL)
    if 2 * (cut.start + cut.end) > typical:
        raise NotEstimable(_too_much(count, typical, cut))
    levels = np.array([np.median(each[half * batch : each.size - cut.end]) for each in series])
    error = float(levels.std(ddof=1)) / math.sqrt(count)
    bearable = student_t(count - 1.0, confidence) * error / 4.0
    _check_steady(forward[:, half : points - end], half * batch, bearable)
    return cut


def _windows(span: int) -> npt.NDArray[np.intp]:
    """Return (start, stop) of windows within the first ``span`` readings, shape (w, 2).

    Their widths are powers of 2, each at least a quarter of the way to its window: where a warm-up
    ends need not be known more exactly than that, and so they are few.
    """
    found = []
    width = 1
    while 2 * width <= max(span, 2):
        starts = range(0, min(4 * width, span - width) + 1, max(width // 2, 1))
        found += [(start, start + width) for start in starts]
        width *= 2
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def _last_that_differs(
    rows: Floats, windows: npt.NDArray[np.intp], reference: slice, least: float
) -> int:
    """Return where the last window ends that differs from the reference; 0 when none does.

    What that window holds behind its clearest step is not cut if it shows nothing by itself.
    """
    scores, step = _scores(rows, reference)
    starts, stops = windows.T
    widths = stops - starts
    sums = _sums(scores)
    studentised, means = _studentised((sums[:, stops] - sums[:, starts]) / widths, step / widths)
    steady = _sums(scores[:, reference].mean(axis=0))
    usual = np.array([np.abs(steady[w:] - steady[:-w]).max(initial=0.0) / w for w in widths])
    differs = np.abs(means) > _BEYOND_THE_USUAL * usual + _ROUNDING
    differs &= np.abs(studentised) > least
    if not differs.any():
        return 0
    start, stop = max(windows[differs].tolist(), key=lambda ends: (ends[1], ends[0]))
    profile = scores[:, start:stop].mean(axis=0)
    split = start + 1 + int(np.argmax(np.abs(np.cumsum(profile - profile.mean()))))
    behind = scores[:, split:stop].sum(axis=1)[:, None] / max(stop - split, 1)
    shown, _ = _studentised(behind, step / np.array([stop - start]))
    return split if abs(float(shown[0])) < _NOTHING else int(stop)


def _check_steady(rows: Floats, first: int, bearable: float) -> None:
    """Raise NotEstimable when rows, which begin at reading ``first``, still move unbearably."""
    third = max(rows.shape[1] // 3, 1)
    scores, step = _scores(rows, slice(rows.shape[1] - third, None))
    studentised, _ = _studentised(scores[:, :third].mean(axis=1)[:, None], step / np.array([third]))
    early, late = np.median(rows[:, :third], axis=1), np.median(rows[:, -third:], axis=1)
    surely = abs(float(studentised[0])) > student_t(len(rows) - 1.0, 1.0 - _REFUSAL_LEVEL)
    if surely and abs(float((late - early).mean())) > bearable:
        raise NotEstimable(_moving(len(rows), first, float(early.mean()), float(late.mean())))


def _scores(rows: Floats, reference: slice) -> tuple[Floats, float]:
    """Score each reading by the share of its row's reference that lies below it, less a half.

    Also returns by how much scores move at least: one reading of the reference, or the readings
    of the same value where a coarse clock makes them.
    """
    scores = np.empty(rows.shape)
    steps = []
    for row, into in zip(rows, scores, strict=True):
        ordered = np.sort(row[reference])
        below = np.searchsorted(ordered, row) + np.searchsorted(ordered, row, side="right")
        into[:] = below / (2.0 * ordered.size) - 0.5
        gaps = np.diff(np.unique(into[reference]))
        steps.append(float(gaps.max(initial=1.0 / ordered.size)))
    return scores, float(np.mean(steps))


def _studentised(values: Floats, steps: Floats) -> tuple[Floats, Floats]:
    """Return Student's t of each column, and the columns' means.

    Few rows may agree by chance within one step of the scores: half a step is the least standard
    deviation that is believed.
    """
    means: Floats = values.mean(axis=0)
    spread = np.maximum(values.std(axis=0, ddof=1), steps / 2.0)
    studentised: Floats = means * math.sqrt(len(values)) / spread
    return studentised, means


def _sums(values: Floats) -> Floats:
    """Return running sums along the last axis, with a leading 0."""
    return np.cumsum(np.insert(values, 0, 0.0, axis=-1), axis=-1)


def _by_change_points(series: list[Floats], confidence: float) -> CommonCut:
    """Find the stable phase of the invocations' average, aligned at the start and at the end."""
    size = min(each.size for each in series)
    head = _stable_average([each[:size] for each in series], confidence)
    tail = head
    if any(each.size > size for each in series):
        tail = _stable_average([each[each.size - size :] for each in series], confidence)
    return CommonCut(
        start=head.start or 0,
        end=size - (tail.stop or size),
        level=head.change_points.level,
        inflation=head.change_points.inflation,
        notices=head.notices or tail.notices,
    )


def _stable_average(rows: list[Floats], confidence: float) -> StablePhase:
    """Return the stable phase of the rows' average, or raise NotEstimable with its Notice."""
    phase = bearable_phase(_average(rows), confidence)
    where = f" (in the average of {len(rows)} invocations)." if len(rows) > 1 else "."
    notices = tuple(
        replace(notice, sentence=notice.sentence.removesuffix(".") + where)
        for notice in phase.notices
    )
    if phase.start is None:
        raise NotEstimable(notices[0])
    return replace(phase, notices=notices)


def _average(rows: list[Floats]) -> Floats:
    """Average rows reading by reading, as if all had the same level."""
    aligned = np.array(rows)
    levels = np.median(aligned, axis=1, keepdims=True)
    shared = levels.mean()
    relative = aligned * (shared / levels) if levels.min() > 0.0 else aligned - levels + shared
    return np.asarray(relative.mean(axis=0))


def _stable(series: Floats, cut: CommonCut) -> StablePhase:
    stop = series.size - cut.end
    if stop - cut.start < FEWEST:
        return _unstable(series, _too_short(series.size, cut))
    borders = sorted({0, cut.start, stop, series.size})
    labels = {0: PhaseLabel.WARM_UP, stop: PhaseLabel.COOL_DOWN, cut.start: PhaseLabel.STABLE}
    return StablePhase(
        start=cut.start,
        stop=stop,
        reason=PhaseReason.STABLE,
        phases=tuple(_phase(series, first, end, labels[first]) for first, end in pairwise(borders)),
        change_points=ChangePoints(
            indices=tuple(borders[1:-1]),
            n=series.size,
            level=cut.level,
            inflation=cut.inflation,
        ),
        notices=cut.notices,
    )


def _unstable(series: Floats, notice: Notice) -> StablePhase:
    return StablePhase(
        start=None,
        stop=None,
        reason=PhaseReason(str(notice.evidence["reason"])),
        phases=(_phase(series, 0, series.size, PhaseLabel.OTHER),),
        change_points=ChangePoints(indices=(), n=series.size, level=_LEVEL, inflation=1.0),
        notices=(notice,),
    )


def _phase(series: Floats, start: int, stop: int, label: PhaseLabel) -> Phase:
    return Phase(start=start, stop=stop, label=label, median=float(np.median(series[start:stop])))


def _too_much(count: int, typical: float, cut: CommonCut) -> Notice:
    return _refusal(
        PhaseReason.NO_DOMINANT_SEGMENT,
        f"{count} invocations have no steady state in common: of {typical:g} readings "
        f"the first {cut.start} and the last {cut.end} differ from the rest, at most half may.",
        {"invocations": count, "n": typical, "start": cut.start, "end": cut.end},
    )


def _moving(count: int, first: int, early: float, late: float) -> Notice:
    return _refusal(
        PhaseReason.STILL_MOVING,
        f"{count} invocations have no steady state in common: after their first {first} readings "
        f"they still {'rise' if late > early else 'fall'}, from {early:.4g} to {late:.4g}.",
        {"invocations": count, "first": first, "early": early, "late": late},
    )


def _too_short(n: int, cut: CommonCut) -> Notice:
    return _refusal(
        PhaseReason.FEW_EFFECTIVE,
        f"The invocation holds {n} readings, of which the cuts common to all take {cut.start} at "
        f"the start and {cut.end} at the end: fewer than {FEWEST} are left.",
        {"n": n, "start": cut.start, "end": cut.end},
    )


def _refusal(reason: PhaseReason, sentence: str, evidence: dict[str, int | float]) -> Notice:
    return Notice.refusal(Code.NO_STABLE_PHASE, sentence, **{"reason": str(reason), **evidence})
