"""Interference in a session: its traffic light, and rounds that are red. No I/O.

Also rounds during which the process was stopped, by a signal or with its machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchrigor.model import Analysis, Code, Interference, Notice, Round
from benchrigor.model.notice import Severity
from benchrigor.model.segments import ELSEWHERE, KNOWN_FROM, Light
from benchrigor.model.series import Floats
from benchrigor.stats.interference import light_of, probability_high
from benchrigor.stats.readings.asked_readings import Unit
from benchrigor.stats.segment_groups import MIN_IN_GROUP
from benchrigor.stats.series.undisturbed import STOPPED, rest_of


def with_stops(rounds: Sequence[Round], unit: Unit) -> tuple[Round, ...]:
    """Add to the delays of rounds the time for which their process was stopped."""
    if not rounds:
        return ()
    stopped = unit.stops_of([_gaps(round_) for round_ in rounds])
    return tuple(
        _with_delay(finished, stopped_s) if stopped_s.any() else finished
        for finished, stopped_s in zip(rounds, stopped, strict=True)
    )


def _gaps(finished: Round) -> tuple[Floats, Floats]:
    """Return the time of a group of readings that is neither work nor delay, and its duration."""
    delays = finished.delays
    if delays is None or delays.duration_s is None:
        return np.zeros(0), np.zeros(0)
    return rest_of(delays, delays.duration_s), delays.duration_s


def _with_delay(finished: Round, stopped_s: Floats) -> Round:
    """Return a round with this delay as well."""
    delays = finished.delays
    if delays is None:
        return finished
    before = delays.seconds.get(STOPPED, np.zeros(stopped_s.size))
    seconds = {**delays.seconds, STOPPED: before + stopped_s}
    return replace(finished, delays=replace(delays, seconds=seconds))


def was_stopped(finished: Round) -> bool:
    """Return whether a signal stopped the process of a round that has one time alone."""
    delays = finished.delays
    if delays is None or finished.n_readings != 1:
        return False
    return bool(np.any(delays.seconds.get(STOPPED, 0.0)))


def report_stops(interference: Interference | None) -> tuple[Notice, ...]:
    """Say how long the process stood still."""
    share = 0.0 if interference is None else interference.delays.get(STOPPED, 0.0) / 100.0
    if interference is None or not share:
        return ()
    lost_s = share * interference.duration_s
    return (Notice.of(Code.STOPPED, stopped_s=lost_s, share_=share),)


_MIN_SEGMENT_S = 2e-3  # shorter segments show what disturbs clocks rather than programs
_WHY_UNKNOWN = {
    "shared": "other threads of the process may have had the processor that it waited for",
    "unseen": "work was done in child processes or threads that ended unseen",
    "elsewhere": ELSEWHERE,
    "unmeasured": "in some rounds nothing measured how long the work waited for a processor",
}
_ROUNDED = 1.0 + 1e-6  # sums of readings are rounded otherwise than clock times
_RECENT = 10  # earlier rounds that a round is compared with: once five are slow, slow is typical


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segments:
    """Segments of one or more rounds, one item per segment, arrays of shape (k,)."""

    duration_s: Floats
    delays: Mapping[str, Floats]  # by source; empty if none was measured
    readings: npt.NDArray[np.int64]  # per segment: equal numbers mean equal work
    known_s: Floats  # for how much of the duration delay was measured

    @property
    def delay_s(self) -> Floats:
        """Measured delay from all sources, at most the duration."""
        total: Floats = sum(self.delays.values(), start=np.zeros(self.duration_s.size))
        return np.minimum(total, self.duration_s)


def measured_interference(rounds: Sequence[Round]) -> Interference | None:
    """Return the interference in rounds by measured delay; None if nothing shows any.

    It refers to the wall time, for every metric. Long readings are not evidence: the program
    itself may cause them.
    """
    if not any(round_.delays is not None or _was_sought(round_) for round_ in rounds):
        return None
    by_round = [segments_of(round_) for round_ in rounds]
    whole = _join(by_round)
    spent_s = float(whole.duration_s.sum())
    if spent_s <= 0.0:
        return None

    def share(delay_s: Floats) -> float:
        return 100.0 * float(np.minimum(delay_s, whole.duration_s).sum()) / spent_s

    measured = share(whole.delay_s)
    interference = Interference(
        percent=0.0,
        measured_percent=measured,
        light=light_of(measured),
        probability_high=probability_high(measured),
        unclustered_percent=100.0,
        continuous_percent=None,
        above_median_percent=0.0,
        flagged_percent=0.0,
        n=whole.duration_s.size,
        duration_s=spent_s,
        delays={source: share(delay_s) for source, delay_s in whole.delays.items()},
    )
    return _as_known(interference, rounds, by_round)


def _as_known(
    interference: Interference, rounds: Sequence[Round], by_round: Sequence[Segments]
) -> Interference:
    """Say for how much of the time delay is known; below 90 % the light is unknown, and why."""
    unknown_s = dict.fromkeys(_WHY_UNKNOWN, 0.0)
    for finished, segments in zip(rounds, by_round, strict=True):
        why = "elsewhere" if _was_sought(finished) else "unmeasured"
        if finished.delays is not None:
            why = "unseen" if finished.delays.own is None else "shared"
        unknown_s[why] += float((segments.duration_s - segments.known_s).sum())
    known_s = sum(float(round_.known_s.sum()) for round_ in by_round)
    known = min(100.0 * known_s / interference.duration_s, 100.0)
    if known >= KNOWN_FROM:
        return replace(interference, known_percent=known)
    why = max(unknown_s, key=unknown_s.__getitem__)
    figures = {"known_percent": known, "wanted_percent": KNOWN_FROM}
    case = "unmeasured" if why == "unmeasured" else "partly"
    notice = Notice.of(Code.DELAY_NOT_MEASURED, case, why_=_WHY_UNKNOWN[why], **figures)
    return replace(interference, light=Light.UNKNOWN, known_percent=known, notices=(notice,))


def _was_sought(finished: Round) -> bool:
    """Whether a meter looked at a round in vain."""
    return any(notice.code is Code.DELAY_NOT_MEASURED for notice in finished.notices)


def is_red(
    finished: Round, before: Sequence[Round], *, compare_whole: bool = False, varies: bool = False
) -> bool:
    """Whether the interference in a round makes its light red.

    The measured delay counts. From the sixth round on, so does the excess over the thresholds of
    similar segments beyond the typical excess of the last ten rounds: slow moments of every round
    belong to the program. Red rounds are among the ten, so a lasting change soon becomes typical.
    ``compare_whole`` compares rounds instead of segments. If the work amount ``varies``, the
    delay alone counts.
    """
    mine = segments_of(finished, whole=compare_whole)
    spent_s = float(mine.duration_s.sum())
    if spent_s <= 0.0:
        return False
    share = float(mine.delay_s.sum()) / spent_s
    if len(before) >= MIN_IN_GROUP and not varies:
        recent = [segments_of(earlier, whole=compare_whole) for earlier in before[-_RECENT:]]
        own, *others = _excess_shares([mine, *recent])
        share += max(own - float(np.median(others)), 0.0)
    return light_of(100.0 * share) is Light.RED


def _excess_shares(by_round: Sequence[Segments]) -> list[float]:
    """Return for every round the share of time beyond the thresholds common to all rounds."""
    from benchrigor.stats.interference import estimate_interference  # noqa: PLC0415  # only to judge rounds

    whole = _join(by_round)
    undelayed_s, readings = whole.duration_s - whole.delay_s, whole.readings
    excess_s = np.zeros(undelayed_s.size)
    if undelayed_s.sum() > 0.0:
        for group in estimate_interference(undelayed_s, {"readings": readings}).groups:
            fewest, most = group.computation["readings"]
            similar = (readings >= fewest) & (readings <= most)
            excess_s[similar] = np.maximum(undelayed_s[similar] - group.threshold_s, 0.0)
    stops = np.cumsum([round_.duration_s.size for round_ in by_round])
    return [
        float(part.sum() / max(round_.duration_s.sum(), 1e-12))
        for part, round_ in zip(np.split(excess_s, stops[:-1]), by_round, strict=True)
    ]


def check_light(
    interference: Interference | None, analyses: Sequence[Analysis]
) -> Interference | None:
    """Take back a green or yellow light of a run without an estimate, or with few readings.

    A red light stays: it is evidence of lost time and needs no estimate.
    """
    if interference is None or interference.light not in (Light.GREEN, Light.YELLOW):
        return interference
    wanted = [analysis for analysis in analyses if analysis.metric.must_satisfy] or [*analyses]
    if wanted and wanted[0].estimate is not None and wanted[0].n >= MIN_IN_GROUP:
        return interference
    return replace(interference, light=Light.UNKNOWN)


def is_disturbed(interference: Interference) -> bool:
    """Whether the measured interference means a yellow or red light, even if that is unknown."""
    return interference.is_measured and light_of(interference.measured_percent) is not Light.GREEN


def warn_of_loss(
    interference: Interference | None, analyses: Sequence[Analysis]
) -> tuple[Notice, ...]:
    """Warn if the light of a run is not green, or would not be if it were known."""
    if interference is None or not is_disturbed(interference):
        return ()
    figures = {
        "measured_percent": interference.measured_percent,
        "light": interference.light.value,
    }
    who, advised = _takers(interference), advice(interference, analyses)
    return (Notice.of(Code.DISTURBED, who_=who, advice_=advised, **figures),)


def _takers(interference: Interference) -> str:
    return (
        "A stop of the process, and other work," if STOPPED in interference.delays else "Other work"
    )


def advice(interference: Interference, analyses: Sequence[Analysis]) -> str:
    """Say what to do about a disturbed run, unless its disturbed readings are left out."""
    wanted = [a for a in analyses if a.metric.must_satisfy and a.estimate is not None]
    if wanted and all(analysis.disturbed is not None for analysis in wanted):
        return "the number is of undisturbed readings"
    is_red = Light.RED in {interference.light, light_of(interference.measured_percent)}
    return "run it again" if is_red else "run it again to be sure"


def with_light(
    notices: Sequence[Notice], interference: Interference | None, rounds: Sequence[Round]
) -> tuple[Notice, ...]:
    """Say why the light of the run is unknown, in place of the Notice of its last round.

    If delay was unmeasured in a small part of the time only, the light is known all the same, and
    only the rounds keep their Notices.
    """
    of_light = () if interference is None else interference.notices
    why = [notice for notice in of_light if notice.code is Code.DELAY_NOT_MEASURED]
    why = [notice for notice in why if notice.severity is not Severity.NOTE]
    unseen_ns = sum(round_.elapsed_ns for round_ in rounds if _was_sought(round_))
    most_ns = (1.0 - KNOWN_FROM / 100.0) * sum(round_.elapsed_ns for round_ in rounds)
    is_told = bool(why) or unseen_ns <= most_ns
    others = (note for note in notices if not (is_told and note.code is Code.DELAY_NOT_MEASURED))
    return (*others, *why)


def say_left_out(red: int, rounds: int) -> tuple[Notice, ...]:
    """Say how many red rounds do not count, if any."""
    if not red:
        return ()
    case = "" if red < rounds else "all"
    return (Notice.of(Code.RED_ROUNDS, case, red=red, rounds=rounds, red_rounds="repeat"),)


def segments_of(finished: Round, *, whole: bool = False) -> Segments:
    """Divide a round's wall time into segments: as delay was measured, or else of 2 ms.

    A round is one segment if its readings are not its wall time, part by part.
    """
    measured, seconds = finished.delays, _reading_seconds(finished)
    duration_s = None if measured is None else measured.duration_s
    if measured is not None and (duration_s is not None or measured.stops[-1] == seconds.size):
        stops = measured.stops
    else:
        measured = None
        size = max(1, math.ceil(_MIN_SEGMENT_S / max(float(np.median(seconds)), 1e-9)))
        stops = np.append(np.arange(size, seconds.size, size), seconds.size)
    if duration_s is None:
        duration_s = np.add.reduceat(seconds, np.append(0, stops[:-1]))
    readings = np.diff(stops, prepend=0) if stops.size > 1 else np.array([finished.n_readings])
    delays = {} if measured is None else dict(measured.seconds)
    known_s = np.zeros(stops.size) if measured is None else duration_s
    if measured is not None and measured.known is not None:
        known_s = duration_s * measured.known
    if measured is not None and measured.known is not None and measured.own is None:
        # A small unmeasured part waited in proportion; the delay of a large one is unknown.
        unseen = np.where(100.0 * measured.known >= KNOWN_FROM, measured.known, 1.0)
        delays = {source: values / unseen for source, values in delays.items()}
    if measured is not None and measured.own is not None:
        # Delay by the program itself is neither work nor delay by others: that is a lower limit.
        part = 1.0 - np.minimum(measured.own / np.maximum(duration_s, 1e-9), 1.0)
        duration_s, known_s = duration_s * part, known_s * part
    if whole:
        duration_s, readings, known_s = (
            column.sum(keepdims=True) for column in (duration_s, readings, known_s)
        )
        delays = {source: values.sum(keepdims=True) for source, values in delays.items()}
    return Segments(duration_s=duration_s, delays=delays, readings=readings, known_s=known_s)


def _reading_seconds(finished: Round) -> Floats:
    """Return the wall time of a round by its readings, or as a whole if they do not show it."""
    whole_ns = finished.elapsed_ns if finished.ran_ns is None else finished.ran_ns
    seconds: Floats = finished.unit_readings.get("time", np.zeros(0)) * finished.calls_per_reading
    if not seconds.size and "time" in finished.readings:
        seconds = np.array([finished.readings["time"]])
    # Delay measured reading by reading fits the readings; recorded ones have no other time.
    # Otherwise something else may be called "time", or printed by the program.
    n_measured = 0 if finished.delays is None else finished.delays.stops[-1]
    is_own = not finished.elapsed_ns or seconds.size == n_measured > 1
    is_own = is_own or seconds.sum() <= _ROUNDED * finished.elapsed_ns / 1e9
    return seconds if seconds.size and is_own else np.array([whole_ns / 1e9])


def _join(by_round: Sequence[Segments]) -> Segments:
    """Return the segments of all rounds, in order."""
    sources = dict.fromkeys(source for round_ in by_round for source in round_.delays)
    return Segments(
        duration_s=np.concatenate([[], *(round_.duration_s for round_ in by_round)]),
        delays={
            source: np.concatenate(
                [round_.delays.get(source, np.zeros(round_.readings.size)) for round_ in by_round]
            )
            for source in sources
        },
        readings=np.concatenate([[], *(round_.readings for round_ in by_round)]).astype(np.int64),
        known_s=np.concatenate([[], *(round_.known_s for round_ in by_round)]),
    )
