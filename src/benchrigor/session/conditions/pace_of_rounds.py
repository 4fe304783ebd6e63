"""The pace of the machine during the rounds of a run, and its figures at full pace. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchrigor.model import (
    Analysis,
    Estimate,
    Floats,
    Kind,
    Pace,
    References,
    Round,
    quantile_named,
)
from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST, INTERPRETER
from benchrigor.model.readings import readings_of
from benchrigor.session.conditions.stopped import was_stopped
from benchrigor.session.traces import calls_per_reading
from benchrigor.stats.estimators.command_pace import (
    FEWEST_STARTS,
    Invocations,
    command_pace,
)
from benchrigor.stats.estimators.pace import (
    AT_FULL_PACE,
    FEWEST,
    Segments,
    Sensitivity,
    at_full_pace,
    pace_of,
    pieces_at_full_pace,
)
from benchrigor.stats.estimators.rate import reciprocal
from benchrigor.stats.series.undisturbed import groups_of

_MOST_WAITED = 0.005  # share of the time, up to which quantiles are as they would be without
_BEST = 0.1  # the fastest share of references is at full pace
_OF_COMMANDS = (COMMAND, COMMAND_CPU, COMMAND_REST)
_LEAST_S = 1e-6  # what the kernel counts in
_FEWEST = {INTERPRETER: FEWEST, **dict.fromkeys(_OF_COMMANDS, FEWEST_STARTS)}


def full_pace_of(rounds: Sequence[Round], kept: Mapping[str, float]) -> dict[str, float]:
    """Return the best level of the reference: that of these rounds, or a better one known before.

    Empty where too few references were measured and none is known.
    """
    best = dict(kept)
    for kind, fewest in _FEWEST.items():
        times = [each.seconds[kind] for each in _references(rounds, kind)]
        if sum(each.size for each in times) >= fewest:
            fastest = float(np.quantile(np.concatenate(times), _BEST))
            best[kind] = min(fastest, best.get(kind, fastest))
    return best


def with_pace(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: str,
    *,
    sensitivity: Sensitivity | None = None,
) -> Analysis:
    """Add to the analysis of a time or a speed the pace of its rounds, and what it is at full pace.

    Without an estimate, references or enough segments between them, it is returned unchanged. So it
    is where other threads or processes did part of the work: the pace is that of one thread.
    """
    estimate, full = analysis.estimate, full_s.get(INTERPRETER)
    if analysis.kind is Kind.READINGS and analysis.metric.name == "time":
        return _with_command_pace(analysis, rounds, full_s, statistic, sensitivity)
    if estimate is None or full is None or not (analysis.metric.is_duration or analysis.wps):
        return analysis
    segments = _segments(analysis, rounds)
    if segments is None or any("other_cpu_s" in each.facts for each in rounds):
        return analysis
    several = analysis.kind is Kind.INVOCATIONS
    pace = pace_of(
        segments,
        full,
        version=_version(rounds),
        q=quantile_named(statistic),
        pieces=len(analysis.phases if several else analysis.levels) or 1,
        processes=several,
        sensitivity=sensitivity,
    )
    if pace is None or (segments.waited > _MOST_WAITED and quantile_named(statistic) is not None):
        return analysis  # of a quantile with waiting nobody knows how much it is
    if analysis.wps is not None or not _tells_invocations(analysis, pace):
        # Segments hold durations over those of the line, or not all invocations have enough of
        # them, so that those that have are a choice: they tell a factor alone.
        pace = replace(pace, level=None, by_piece=())
    corrected = _corrected(estimate, pace, analysis, statistic)
    notices = (*analysis.notices, *(corrected.notices if corrected else ()))
    return replace(analysis, pace=pace, at_full_pace=corrected, notices=notices)


def _with_command_pace(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: str,
    sensitivity: Sensitivity | None,
) -> Analysis:
    """Add to the analysis of the wall time of commands what it is at full pace."""
    estimate, found = analysis.estimate, _invocations(rounds)
    of_starts = {kind: full_s[kind] for kind in _OF_COMMANDS if kind in full_s}
    if estimate is None or found is None or len(of_starts) < len(_OF_COMMANDS):
        return analysis
    pace = command_pace(
        found,
        of_starts,
        estimate.value,
        version=_version(rounds, COMMAND),
        q=quantile_named(statistic),
        sensitivity=sensitivity,
    )
    if pace is None:
        return analysis
    return replace(analysis, pace=pace, at_full_pace=at_full_pace(estimate, pace))


def _invocations(rounds: Sequence[Round]) -> Invocations | None:
    """Gather what commands took, and the reference in turn with them; None without references."""
    timed = [each for each in rounds if "time" in each.readings and "cpu_s" in each.facts]
    whole = [each for each in timed if not was_stopped(each)]
    paced = list(_references(whole, COMMAND))
    if not paced:
        return None
    rows = [
        (
            each.readings["time"],
            float(each.facts["cpu_s"] or 0.0),
            float(sum(map(np.sum, each.delays.seconds.values()))) if each.delays else 0.0,
            _switches(each),
            float(each.facts.get("waited_together_s") or 0.0),
        )
        for each in whole
    ]
    wall, cpu, waited, switches, together = np.array(rows).T
    after = [k + 1 for k, each in enumerate(whole) for _ in _references([each], COMMAND)]
    return Invocations(
        wall=wall,
        cpu=np.maximum(cpu, _LEAST_S),
        waited=waited,
        switches=switches,
        starts={
            kind: np.concatenate([each.seconds[kind] for each in paced]) for kind in _OF_COMMANDS
        },
        after=np.array(after),
        together=together,
    )


def _switches(finished: Round) -> float:
    """Return how often a command gave a processor up by itself, infinite where nobody counted."""
    found = finished.facts.get("voluntary_switches")
    return math.inf if found is None else float(found)


def _corrected(
    estimate: Estimate, pace: Pace, analysis: Analysis, statistic: str
) -> Estimate | None:
    is_mean = quantile_named(statistic) is None
    if analysis.kind is Kind.PIECES or (is_mean and pace.by_piece):
        return pieces_at_full_pace(estimate, pace)
    if analysis.wps is not None:  # a speed is the reciprocal of a time per work
        speed = reciprocal(at_full_pace(reciprocal(estimate), pace))
        return replace(speed, method=AT_FULL_PACE)
    return at_full_pace(estimate, pace, is_mean=is_mean)


def _tells_invocations(analysis: Analysis, pace: Pace) -> bool:
    """Return whether each invocation that counts has a level at full pace; True of other runs."""
    if analysis.kind is not Kind.INVOCATIONS:
        return True
    told = zip(analysis.phases, pace.by_piece, strict=True) if pace.by_piece else ()
    known = [level is not None for phase, level in told if phase.start is not None]
    return len(known) > 1 and all(known)


def _references(rounds: Sequence[Round], kind: str = INTERPRETER) -> Iterator[References]:
    for each in rounds:
        if each.references is not None and kind in each.references.seconds:
            yield each.references


def _version(rounds: Sequence[Round], kind: str = INTERPRETER) -> int:
    return next(each.version for each in _references(rounds, kind))


def _segments(analysis: Analysis, rounds: Sequence[Round]) -> Segments | None:
    """Gather the undisturbed readings between references, from the start of the stable phase on."""
    firsts, done = _firsts(analysis, rounds), 0
    rows: list[Floats] = []
    last: float | None = None  # time of the reference before
    for place, (each, first) in enumerate(zip(rounds, firsts, strict=True)):
        values = _values(analysis, each)
        references = next(_references([each]), None)
        if references is None or references.stops[-1] > values.size:
            last, done = None, done + values.size
            continue
        times, edges = references.seconds[INTERPRETER], np.append(0, references.stops)
        seconds = values * calls_per_reading(each)
        if analysis.wps is not None:
            seconds = np.array([each.duration_s])
        groups = groups_of(each.delays, seconds)
        waited_s = np.repeat(groups.delay_s / groups.sizes, groups.sizes)
        hit = np.repeat(groups.are_hit, groups.sizes)
        total, whole_s, wait_s, hits = (
            np.add.reduceat(per_reading, edges[:-1])
            for per_reading in (values, seconds, waited_s, hit.astype(np.float64))
        )
        sizes = np.diff(edges)
        wait_s = np.minimum(wait_s, whole_s)
        level = total / sizes * (1.0 - wait_s / np.where(whole_s > 0.0, whole_s, 1.0))
        busy = np.ones(sizes.size)
        if references.busy is not None:
            busy = np.minimum(references.busy / np.maximum(whole_s - wait_s, _LEAST_S), 1.0)
        several = analysis.kind is Kind.INVOCATIONS  # each of a process of its own
        piece = np.full(sizes.size, float(place if several else each.plan.piece))
        before = np.append(times[0] if last is None or several else last, times[:-1])
        row = np.stack([level, busy, before, times, whole_s, wait_s, piece, hits])
        rows.append(row[:, (done + edges[:-1] >= first) & (level > 0.0)])
        last, done = float(times[-1]), done + values.size
    if not rows:
        return None
    found = np.concatenate(rows, axis=1)
    if analysis.disturbed is not None:  # otherwise all readings count, with their waiting
        found = found[:, found[-1] == 0.0]
    level, busy, before, after, duration_s, waited, piece, _ = found
    return Segments(
        level=level,
        busy=busy,
        before=before,
        after=after,
        duration_s=duration_s,
        waited_s=waited,
        piece=piece.astype(np.int64),
    )


def _values(analysis: Analysis, finished: Round) -> Floats:
    """Return the readings of a round; of various work, its duration over that of its line."""
    if (line := analysis.wps) is not None:
        expected = line.overhead.value + line.slope.value * (finished.plan.work or 0.0)
        return np.array([finished.duration_s / expected if expected > 0.0 else 0.0])
    return readings_of(finished, analysis.metric.name)


def _firsts(analysis: Analysis, rounds: Sequence[Round]) -> list[float]:
    """Return for each round the index, in all, of the first reading that counts."""
    chosen = analysis.disturbed
    if analysis.kind is not Kind.INVOCATIONS or not analysis.phases:
        several = analysis.kind not in (Kind.UNIT_READINGS, Kind.PIECES)
        start = 0 if several or not analysis.phases else analysis.phases[0].start or 0
        return [start if chosen is None else chosen.indices[start]] * len(rounds)
    sizes = [_values(analysis, each).size for each in rounds]
    begun = np.cumsum([0, *(sizes if chosen is None else chosen.sizes(sizes))])
    phases, firsts = iter(analysis.phases), list[float]()
    for before, size in zip(begun, sizes, strict=False):
        phase = next(phases, None) if size else None  # a round that was cut may have no readings
        if phase is None or phase.start is None:
            firsts.append(math.inf)
        else:
            start = int(before) + phase.start
            firsts.append(start if chosen is None else chosen.indices[start])
    return firsts
