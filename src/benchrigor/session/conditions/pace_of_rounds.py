"""The pace of the machine during the rounds of a run, and its figures at full pace. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchrigor.model import (
    Analysis,
    Estimate,
    Floats,
    Kind,
    Pace,
    QuietPace,
    References,
    Round,
    quantile_named,
)
from benchrigor.model.pace import COMMAND, COMMAND_CPU, COMMAND_REST, INTERPRETER
from benchrigor.model.readings import readings_of
from benchrigor.session.conditions.stopped import was_stopped
from benchrigor.session.traces import calls_per_reading
from benchrigor.stats.estimators.command_pace import FEWEST_STARTS, Invocations, command_pace
from benchrigor.stats.estimators.headline import (
    MOST_DELAY,
    NEAR,
    between_runs,
    is_quiet,
    of_quiet_run,
    quiet_of_references,
    reducible_share,
    with_doubt,
    with_spread,
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
from benchrigor.stats.series.interval import PIECE_MEANS
from benchrigor.stats.series.undisturbed import groups_of

_MOST_WAITED = 0.005  # share of the time, up to which quantiles are as they would be without
_MOST_OF_THEM = 0.75  # of the invocations: leaving out a few of them hardly matters
_BEST = 0.1  # the fastest share of references is at full pace
_OF_COMMANDS = (COMMAND, COMMAND_CPU, COMMAND_REST)
_LEAST_S = 1e-6  # the unit in which the kernel counts
_FEWEST = {INTERPRETER: FEWEST, **dict.fromkeys(_OF_COMMANDS, FEWEST_STARTS)}


def full_pace_of(rounds: Sequence[Round], kept: Mapping[str, float]) -> dict[str, float]:
    """Return the best level of the reference, in these rounds or known before.

    Empty if too few references were measured and no level is known.
    """
    best = dict(kept)
    for kind, fewest in _FEWEST.items():
        times = [reference.seconds[kind] for reference in _references(rounds, kind)]
        if sum(time.size for time in times) >= fewest:
            fastest = float(np.quantile(np.concatenate(times), _BEST))
            best[kind] = min(fastest, best.get(kind, fastest))
    return best


def with_pace(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: str,
    *,
    quiet: QuietPace | None = None,
    sensitivity: Sensitivity | None = None,
) -> Analysis:
    """Add to the analysis of a time or a speed the pace of its rounds, and figures at other paces.

    These are a figure at full pace and, as the headline, one at the quiet pace: ``quiet``, or the
    quiet pace that the rounds show. The headline is the plain estimate if there are too few
    references or segments between them. It also is if other threads or processes did part of the
    work, since the pace is that of one thread.
    """
    is_command = analysis.kind is Kind.READINGS and analysis.metric.name == "time"
    given = _commands if is_command else _readings
    measured = given(analysis, rounds, full_s, statistic, sensitivity)
    if measured is None or (pace := measured.pace_at(full_s, None)) is None:
        return replace(analysis, headline=analysis.estimate)
    full = measured.correct(pace)
    notices = (*analysis.notices, *(full.notices if full else ()))
    delay = delay_of(rounds)
    kinds = measured.references.keys()
    if quiet is None or not kinds <= quiet.seconds.keys():
        quiet = quiet_of_references(measured.references, full_s, delay=delay)
    else:  # runs are compared by the kind of reference that both have
        quiet = replace(quiet, seconds={kind: quiet.seconds[kind] for kind in kinds})
    headline, share = measured.headline(quiet, delay)
    return replace(
        analysis,
        pace=replace(pace, quiet=quiet, reducible=share),
        at_full_pace=full,
        headline=headline,
        notices=notices,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Evidence for the pace of rounds, the same for every kind of measurement."""

    analysis: Analysis
    estimate: Estimate
    statistic: str
    references: Mapping[str, Floats]
    pace_at: Callable[[Mapping[str, float], float | None], Pace | None]
    """The pace relative to these times of the reference; the second argument replaces the usual
    standard deviation between runs."""

    def correct(self, pace: Pace) -> Estimate | None:
        """Return the figure at the pace that this one is relative to."""
        is_mean = quantile_named(self.statistic) is None
        if self.analysis.kind is Kind.PIECES or (is_mean and pace.by_piece):
            return pieces_at_full_pace(self.estimate, pace)
        return self.move_to(pace, is_mean=is_mean)

    def move_to(self, pace: Pace, *, is_mean: bool) -> Estimate:
        """Return the estimate at that pace, as a whole."""
        if self.analysis.wps is not None:  # a speed is the reciprocal of a time per work
            speed = reciprocal(at_full_pace(reciprocal(self.estimate), pace))
            return replace(speed, method=AT_FULL_PACE)
        return at_full_pace(self.estimate, pace, is_mean=is_mean)

    def headline(self, quiet: QuietPace, delay: float) -> tuple[Estimate | None, float]:
        """Return the figure at the quiet pace, and the share of its variance from readings."""
        several = self.analysis.kind is Kind.INVOCATIONS
        pace = self.pace_at(quiet.seconds, between_runs(quiet, processes=several))
        away = _away(self.references, quiet)
        if pace is None:
            return self.estimate, 1.0
        pace = with_doubt(pace)
        if delay < MOST_DELAY and abs(away) <= NEAR:
            pace = of_quiet_run(pace, away, self.estimate)
            figure = self.move_to(pace, is_mean=False)
            if self.analysis.kind is Kind.PIECES:
                figure = replace(figure, method=f"{figure.method}, {PIECE_MEANS}")
        elif (corrected := self.correct(pace)) is not None:
            figure = corrected
        else:
            return self.estimate, 1.0
        return with_spread(figure), reducible_share(figure, pace)


def _away(times: Mapping[str, Floats], quiet: QuietPace) -> float:
    """Return the logarithm of the median reference over the quiet pace."""
    kind = COMMAND_CPU if COMMAND_CPU in times else INTERPRETER
    return math.log(float(np.median(times[kind])) / quiet.seconds[kind])


def are_near(rounds: Sequence[Round], pace: Pace, quiet: QuietPace) -> bool:
    """Whether rounds with this pace had the machine nearly for themselves, at the quiet pace."""
    times = {
        kind: np.concatenate([timed.seconds[kind] for timed in _references(rounds, kind)])
        for kind in pace.full_s
    }
    return delay_of(rounds) < MOST_DELAY and abs(_away(times, quiet)) <= NEAR


def delay_of(rounds: Sequence[Round]) -> float:
    """Return the share of their time that rounds waited; infinite if that was not measured."""
    delays = [round_.delays for round_ in rounds if round_.delays is not None]
    elapsed_s = sum(round_.elapsed_ns for round_ in rounds) / 1e9
    if len(delays) < len(rounds) or not elapsed_s:
        return math.inf
    waited_s = sum(float(seconds.sum()) for delay in delays for seconds in delay.seconds.values())
    return waited_s / elapsed_s


def quiet_medians(rounds: Sequence[Round], full_s: Mapping[str, float]) -> dict[str, float]:
    """Return the median reference of quiet rounds by kind; empty of busy ones."""
    times = {kind: [timed.seconds[kind] for timed in _references(rounds, kind)] for kind in _FEWEST}
    medians = {
        kind: float(np.median(np.concatenate(time)))
        for kind, time in times.items()
        if sum(map(len, time)) >= _FEWEST[kind]
    }
    return medians if is_quiet(medians, full_s, delay=delay_of(rounds)) else {}


def _readings(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: str,
    sensitivity: Sensitivity | None,
) -> _Measured | None:
    """Gather what shows the pace of readings in turn with references."""
    estimate, q = analysis.estimate, quantile_named(statistic)
    is_paced = INTERPRETER in full_s and (analysis.metric.is_duration or analysis.wps)
    if estimate is None or not is_paced:
        return None
    segments = _segments(analysis, rounds)
    if segments is None or any("other_cpu_s" in round_.facts for round_ in rounds):
        return None
    if q is not None and segments.waited > _MOST_WAITED:
        return None  # it is not known how much of a quantile is waiting
    several = analysis.kind is Kind.INVOCATIONS

    def pace_at(times: Mapping[str, float], between: float | None) -> Pace | None:
        pace = pace_of(
            segments,
            times[INTERPRETER],
            version=_version(rounds),
            q=q,
            pieces=len(analysis.phases if several else analysis.levels) or 1,
            processes=several,
            sensitivity=sensitivity,
            between=between,
        )
        if pace is not None and (analysis.wps or not _tells_invocations(analysis, pace)):
            # Segments hold durations relative to the line, or only some invocations have a level
            # and may not represent the others: such a pace gives a factor alone.
            pace = replace(pace, level=None, by_piece=())
        return pace

    return _Measured(
        analysis=analysis,
        estimate=estimate,
        statistic=statistic,
        references={INTERPRETER: np.append(segments.before, segments.after)},
        pace_at=pace_at,
    )


def _commands(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: str,
    sensitivity: Sensitivity | None,
) -> _Measured | None:
    """Gather what shows the pace of commands in turn with bare starts of the interpreter."""
    estimate, found = analysis.estimate, _invocations(rounds)
    if estimate is None or found is None or not full_s.keys() >= set(_OF_COMMANDS):
        return None

    def pace_at(times: Mapping[str, float], between: float | None) -> Pace | None:
        return command_pace(
            found,
            {kind: times[kind] for kind in _OF_COMMANDS},
            estimate.value,
            version=_version(rounds, COMMAND),
            q=quantile_named(statistic),
            sensitivity=sensitivity,
            between=between,
        )

    return _Measured(
        analysis=analysis,
        estimate=estimate,
        statistic=statistic,
        references=found.starts,
        pace_at=pace_at,
    )


def _invocations(rounds: Sequence[Round]) -> Invocations | None:
    """Gather what commands took, and the reference in turn with them; None without references."""
    timed = [round_ for round_ in rounds if "time" in round_.readings and "cpu_s" in round_.facts]
    whole = [finished for finished in timed if not was_stopped(finished)]
    paced = list(_references(whole, COMMAND))
    if not paced:
        return None
    rows = [
        (
            finished.readings["time"],
            float(finished.facts["cpu_s"] or 0.0),
            float(sum(map(np.sum, finished.delays.seconds.values()))) if finished.delays else 0.0,
            _switches(finished),
            float(finished.facts.get("waited_together_s") or 0.0),
        )
        for finished in whole
    ]
    wall, cpu, waited, switches, together = np.array(rows).T
    after = [k + 1 for k, finished in enumerate(whole) for _ in _references([finished], COMMAND)]
    return Invocations(
        wall=wall,
        cpu=np.maximum(cpu, _LEAST_S),
        waited=waited,
        switches=switches,
        starts={
            kind: np.concatenate([start.seconds[kind] for start in paced]) for kind in _OF_COMMANDS
        },
        after=np.array(after),
        together=together,
    )


def _switches(finished: Round) -> float:
    """Return how often a command gave a processor up by itself; infinite if not counted."""
    found = finished.facts.get("voluntary_switches")
    return math.inf if found is None else float(found)


def _tells_invocations(analysis: Analysis, pace: Pace) -> bool:
    """Return whether most invocations that count have a level at full pace; True of other runs."""
    if analysis.kind is not Kind.INVOCATIONS:
        return True
    told = zip(analysis.phases, pace.by_piece, strict=True) if pace.by_piece else ()
    known = [level is not None for phase, level in told if phase.start is not None]
    return sum(known) > 1 and sum(known) >= _MOST_OF_THEM * len(known)


def _references(rounds: Sequence[Round], kind: str = INTERPRETER) -> Iterator[References]:
    for round_ in rounds:
        if round_.references is not None and kind in round_.references.seconds:
            yield round_.references


def _version(rounds: Sequence[Round], kind: str = INTERPRETER) -> int:
    return next(reference.version for reference in _references(rounds, kind))


def _segments(analysis: Analysis, rounds: Sequence[Round]) -> Segments | None:
    """Gather the undisturbed readings between references, from the start of the stable phase on.

    None if references follow fewer than half of the readings: the others may take another time.
    """
    firsts, done, followed, missed = _firsts(analysis, rounds), 0, 0, 0
    rows: list[Floats] = []
    kept = np.empty(0, dtype=np.int64) if analysis.disturbed is None else analysis.disturbed.indices
    last: float | None = None  # time of the reference before
    for place, (round_, first) in enumerate(zip(rounds, firsts, strict=True)):
        values = _values(analysis, round_)
        references = next(_references([round_]), None)
        if references is None or references.stops[-1] > values.size:
            last, done = None, done + values.size
            continue
        times, edges = references.seconds[INTERPRETER], np.append(0, references.stops)
        followed, missed = followed + edges[-1], missed + values.size - edges[-1]
        counts = np.isin(np.arange(done, done + values.size), kept)
        total, whole_s, wait_s, hits = (
            np.add.reduceat(per_reading[: edges[-1]], edges[:-1])
            for per_reading in (values, *_spent(analysis, round_, values, counts))
        )
        sizes = np.diff(edges)
        wait_s = np.minimum(wait_s, whole_s)
        level = total / sizes * (1.0 - wait_s / np.where(whole_s > 0.0, whole_s, 1.0))
        busy = np.ones(sizes.size)
        if references.busy is not None:
            busy = np.minimum(references.busy / np.maximum(whole_s - wait_s, _LEAST_S), 1.0)
        several = analysis.kind is Kind.INVOCATIONS  # every round has its own process
        piece = np.full(sizes.size, float(place if several else round_.plan.piece))
        before = np.append(times[0] if last is None or several else last, times[:-1])
        row = np.stack([level, busy, before, times, whole_s, wait_s, piece, hits])
        rows.append(row[:, (done + edges[:-1] >= first) & (level > 0.0)])
        last, done = float(times[-1]), done + values.size
    if followed <= missed:
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


def _spent(
    analysis: Analysis, finished: Round, values: Floats, counts: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Return the seconds of each reading of a round, its waiting, and whether it is disturbed.

    If hardly any are undisturbed, all readings of the round count, with their waiting.
    """
    seconds = values * calls_per_reading(finished)
    if analysis.wps is not None:
        seconds = np.array([finished.duration_s])
    groups = groups_of(finished.delays, seconds)
    waited_s = np.repeat(groups.delay_s / groups.sizes, groups.sizes)
    hit = np.repeat(groups.are_hit, groups.sizes) & ~counts
    return seconds, waited_s, hit.astype(np.float64)


def _values(analysis: Analysis, finished: Round) -> Floats:
    """Return the readings of a round; of various work, its duration relative to the line."""
    if (line := analysis.wps) is not None:
        expected = line.overhead.value + line.slope.value * (finished.plan.work or 0.0)
        return np.array([finished.duration_s / expected if expected > 0.0 else 0.0])
    return readings_of(finished, analysis.metric.name)


def _firsts(analysis: Analysis, rounds: Sequence[Round]) -> list[float]:
    """Return by round the index, among all readings, of its first reading that counts."""
    chosen = analysis.disturbed
    if analysis.kind is not Kind.INVOCATIONS or not analysis.phases:
        several = analysis.kind not in (Kind.UNIT_READINGS, Kind.PIECES)
        start = 0 if several or not analysis.phases else analysis.phases[0].start or 0
        return [start if chosen is None else chosen.indices[start]] * len(rounds)
    sizes = [_values(analysis, round_).size for round_ in rounds]
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
