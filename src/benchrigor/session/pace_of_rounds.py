"""The pace of the machine during the rounds of a run, and its figure at full speed. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
import numpy.typing as npt

from benchrigor.model import Analysis, Estimate, Pace, References, Round
from benchrigor.model.analysis import Kind
from benchrigor.model.machine import COMMAND, COMMAND_CPU, COMMAND_REST, INTERPRETER
from benchrigor.model.series import Floats
from benchrigor.session.red_rounds import was_stopped
from benchrigor.stats.figures_at_full_speed import (
    reducible_share,
)
from benchrigor.stats.pace import (
    FEWEST,
    FEWEST_STARTS,
    Invocations,
    Segments,
    Sensitivity,
    command_pace,
    pace_of,
)
from benchrigor.stats.readings.inference_units import unit_of
from benchrigor.stats.series.full_speed import fastest_level, full_speed
from benchrigor.stats.series.interval import is_wide
from benchrigor.stats.series.undisturbed import groups_of
from benchrigor.stats.statistic import Statistic, statistic_for

_MOST_WAITED = 0.005  # share of the time, up to which quantiles are as they would be without
_LEAST_WAIT = 0.1  # the share of starts that wait least show the own wait of a start
_OF_COMMANDS = (COMMAND, COMMAND_CPU, COMMAND_REST)
_LEAST_S = 1e-6  # the unit in which the kernel counts
_FEWEST = {INTERPRETER: FEWEST, **dict.fromkeys(_OF_COMMANDS, FEWEST_STARTS)}
_FEWEST_TO_KEEP = {INTERPRETER: 100}  # a twentieth of a second of references in turn


def levels_of(rounds: Sequence[Round], *, to_keep: bool = False) -> dict[str, tuple[float, float]]:
    """Return the fastest level of the reference in these rounds and its share, by kind of work.

    Kinds with too few references are left out; for other runs to build on, a
    few references of a short run are luck.
    """
    found = {}
    for kind, fewest in (_FEWEST | _FEWEST_TO_KEEP if to_keep else _FEWEST).items():
        times = [reference.seconds[kind] for reference in _references(rounds, kind)]
        if sum(time.size for time in times) >= fewest:
            whole = np.concatenate(times)
            # Waits have no level: on a busy machine they are anything.
            shortest = float(np.quantile(whole, _LEAST_WAIT)), 1.0
            found[kind] = shortest if kind == COMMAND_REST else fastest_level(whole)
    return found


def full_speed_of(
    levels: Mapping[str, tuple[float, float]], kept: Mapping[str, Sequence[tuple[float, float]]]
) -> dict[str, float]:
    """Return the time of the reference at full speed, from a run and those before it, by kind."""
    known = {
        kind: [*kept.get(kind, ()), *([levels[kind]] if kind in levels else ())]
        for kind in kept.keys() | levels.keys()
    }
    return {kind: full_speed(shown) for kind, shown in known.items() if shown}


def with_pace(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: str,
    *,
    sensitivity: Sensitivity | None = None,
    bounded: bool = True,
) -> Analysis:
    """Add the pace of its rounds to the analysis of a time or speed, and its figure at full speed.

    It is missing if there are too few references or segments between them. It is also missing if
    other threads or processes did part of the work, since the pace is of one thread. With
    ``bounded`` it agrees with the measured figure and the processor time.
    """
    estimate = analysis.estimate
    if estimate is None:  # so no round need count
        return analysis
    is_command = analysis.kind is Kind.READINGS and analysis.metric.name == "time"
    given, asked = _pace_of_readings, statistic_for(statistic)
    if is_command:
        given, rounds = _pace_of_commands, _in_stable_phase(analysis, rounds)
    pace = given(analysis, rounds, full_s, asked, sensitivity)
    if pace is None:
        return analysis
    unit = unit_of(analysis)
    figure = unit.at_full_speed(estimate, pace, is_mean=asked.is_mean)
    if figure is None or is_wide(figure):
        return replace(analysis, pace=pace)
    pace = replace(pace, reducible=reducible_share(figure, pace))
    if bounded:
        disturbed = None if analysis.disturbed is None else analysis.disturbed.estimate
        measured = [each.value for each in (estimate, disturbed) if each is not None]
        figure = unit.not_beyond(figure, measured)
    if bounded and pace.of_command:
        figure = _not_below(_processor_time(rounds, asked), figure)
        pace = replace(pace, factor=min(figure.value / estimate.value, 1.0))
    return replace(
        analysis,
        pace=pace,
        at_full_pace=figure,
        notices=(*analysis.notices, *figure.notices),
    )


def _not_below(least: float, figure: Estimate) -> Estimate:
    """Return a figure at full speed that is not below the processor time shown next to it.

    The interval holds both figures, which are equally likely.
    """
    if figure.value >= least or figure.standard_error is None:
        return figure
    error = figure.standard_error / figure.value
    error = math.hypot(error, math.log(least / figure.value) / math.sqrt(3.0))
    high = least * figure.high / figure.value
    return replace(figure, value=least, high=high, standard_error=least * error)


def _processor_time(rounds: Sequence[Round], statistic: Statistic) -> float:
    """Return the statistic of the processor times of commands."""
    spent = [float(round_.facts["cpu_s"] or 0.0) for round_ in rounds if "cpu_s" in round_.facts]
    return statistic.value_of(np.array(spent))


def _pace_of_readings(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: Statistic,
    sensitivity: Sensitivity | None,
) -> Pace | None:
    """Return the pace that references in turn with readings show."""
    unit = unit_of(analysis)
    is_paced = INTERPRETER in full_s and unit.is_paced(analysis.metric)
    if not is_paced:
        return None
    segments = _segments(analysis, rounds)
    if segments is None or any("other_cpu_s" in round_.facts for round_ in rounds):
        return None
    if not statistic.is_mean and segments.waited > _MOST_WAITED:
        return None  # it is known only how much of a mean is waiting
    pace = pace_of(
        segments,
        full_s[INTERPRETER],
        version=_version(rounds),
        statistic=statistic,
        pieces=unit.parts(analysis),
        processes=unit.restarted,
        sensitivity=sensitivity,
    )
    return pace and unit.known_levels(pace, analysis)


def _pace_of_commands(
    analysis: Analysis,
    rounds: Sequence[Round],
    full_s: Mapping[str, float],
    statistic: Statistic,
    sensitivity: Sensitivity | None,
) -> Pace | None:
    """Return the pace that bare starts of the interpreter in turn with commands show."""
    estimate, found = analysis.estimate, _invocations(rounds)
    if estimate is None or found is None or not full_s.keys() >= set(_OF_COMMANDS):
        return None
    return command_pace(
        found,
        {kind: full_s[kind] for kind in _OF_COMMANDS},
        estimate.value,
        version=_version(rounds, COMMAND),
        statistic=statistic,
        sensitivity=sensitivity,
    )


def _in_stable_phase(analysis: Analysis, rounds: Sequence[Round]) -> Sequence[Round]:
    """Return the rounds of one reading each that are in a stable phase."""
    read = [round_ for round_ in rounds if analysis.metric.name in round_.readings]
    return [*compress(read, _are_stable(analysis, len(read)))]


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


def _references(rounds: Sequence[Round], kind: str = INTERPRETER) -> Iterator[References]:
    for round_ in rounds:
        if round_.references is not None and kind in round_.references.seconds:
            yield round_.references


def _version(rounds: Sequence[Round], kind: str = INTERPRETER) -> int:
    return next(reference.version for reference in _references(rounds, kind))


def _segments(analysis: Analysis, rounds: Sequence[Round]) -> Segments | None:
    """Gather the undisturbed readings between references that are in the stable phase.

    None if references follow fewer than half of the readings: the others may take another time.
    """
    unit, done, followed, missed = unit_of(analysis), 0, 0, 0
    rows: list[Floats] = []
    kept = np.empty(0, dtype=np.int64) if analysis.disturbed is None else analysis.disturbed.indices
    last: float | None = None  # time of the reference before
    of_rounds = [unit.paced(round_, analysis) for round_ in rounds]
    are_stable = _are_stable(analysis, sum(values.size for values in of_rounds))
    for place, (round_, values) in enumerate(zip(rounds, of_rounds, strict=True)):
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
        piece = np.full(sizes.size, float(unit.series_of(round_.plan.piece, place)))
        before = np.append(times[0] if last is None or unit.restarted else last, times[:-1])
        row = np.stack([level, busy, before, times, whole_s, wait_s, piece, hits])
        is_inside = np.logical_and.reduceat(are_stable[done : done + edges[-1]], edges[:-1])
        rows.append(row[:, is_inside & (level > 0.0)])
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
    seconds = unit_of(analysis).seconds_of(finished, values)
    groups = groups_of(finished.delays, seconds)
    waited_s = np.repeat(groups.delay_s / groups.sizes, groups.sizes)
    hit = np.repeat(groups.are_hit, groups.sizes) & ~counts
    return seconds, waited_s, hit.astype(np.float64)


def _are_stable(analysis: Analysis, n: int) -> npt.NDArray[np.bool_]:
    """Return which of n readings are in a stable phase: all if none was looked for.

    One that was left out is where the one before it is. Readings after the analysis are nowhere.
    """
    if not analysis.phases:
        return np.ones(n, dtype=bool)
    places = np.arange(analysis.taken)
    if analysis.disturbed is not None:
        before = np.searchsorted(analysis.disturbed.indices, places, side="right") - 1
        places = np.maximum(before, 0)
    found = np.concatenate([phase.is_inside for phase in analysis.phases])[places]
    return np.append(found, np.zeros(n - found.size, dtype=bool))
