"""Interference in a session: its traffic light, and rounds that are red. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchrigor.model import (
    Analysis,
    Code,
    Floats,
    Interference,
    Kind,
    Light,
    Notice,
    Round,
    SegmentProfile,
    Severity,
)
from benchrigor.model.text import many
from benchrigor.session.traces import calls_per_reading
from benchrigor.stats.interference.grouping import MIN_IN_GROUP
from benchrigor.stats.interference.one_run import estimate_interference, profile_interference
from benchrigor.stats.interference.traffic_light import light_of

_MIN_SEGMENT_S = 2e-3  # shorter segments show what disturbs clocks rather than programs
_RECENT = 10  # earlier rounds that a round is compared with: once five are slow, slow is typical


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segments:
    """Segments of one or more rounds, one item per segment, arrays of shape (k,)."""

    duration_s: Floats
    delays: Mapping[str, Floats]  # by source; empty if none was measured
    readings: npt.NDArray[np.int64]  # in each segment: equally many mean the same work

    @property
    def delay_s(self) -> Floats:
        """Measured delay from all sources, at most the duration."""
        total: Floats = sum(self.delays.values(), start=np.zeros(self.duration_s.size))
        return np.minimum(total, self.duration_s)


def interference_of(analysis: Analysis, rounds: Sequence[Round]) -> Interference | None:
    """Estimate the interference in a session's rounds; None if they do not show it.

    Interference is estimated from the durations in the stable phase, since a warm-up is not
    interference. Without a stable phase, and where work amounts vary, it is only measured.
    """
    if analysis.kind is Kind.WORK:
        return measured_interference(rounds, None, "Work amounts vary", Severity.NOTE)
    if not analysis.metric.is_duration:
        return None
    by_round = [segments_of(each, analysis.metric.name) for each in rounds]
    stable = np.concatenate([[], *_in_stable_phase(analysis, by_round)]).astype(bool)
    if not stable.any():
        return measured_interference(rounds, analysis.metric.name, "There is no stable phase")
    nominal: dict[str, npt.NDArray[np.int64]] = {}
    if analysis.kind is Kind.INVOCATIONS:
        sizes = [each.readings.size for each in by_round]
        nominal["round"] = np.repeat(np.arange(len(sizes)), sizes)[stable]
    whole = _joined(by_round)
    duration_s = whole.duration_s[stable]
    if duration_s.sum() <= 0.0 or (duration_s.size < MIN_IN_GROUP and not whole.delays):
        return None
    interference = profile_interference(
        SegmentProfile(
            duration_s=duration_s,
            computation={"readings": whole.readings[stable]},
            nominal=nominal,
            delays={source: values[stable] for source, values in whole.delays.items()},
        )
    )
    unmeasured = _unmeasured(rounds)
    codes = {each.code for each in unmeasured}
    others = [each for each in interference.notices if each.code not in codes]
    return replace(interference, notices=(*unmeasured, *others))


def measured_interference(
    rounds: Sequence[Round],
    metric: str | None,
    why: str,
    severity: Severity = Severity.WARNING,
) -> Interference | None:
    """Return the interference by measured delay alone; None if none was measured."""
    whole = _joined([segments_of(each, metric) for each in rounds])
    if not whole.delays or whole.duration_s.sum() <= 0.0:
        return None
    each_its_own = {"segment": np.arange(whole.duration_s.size)}
    interference = profile_interference(
        SegmentProfile(duration_s=whole.duration_s, nominal=each_its_own, delays=whole.delays)
    )
    sentence = f"{why}: the light shows measured delay only, nothing was estimated."
    notice = Notice(code=Code.UNCLUSTERED, severity=severity, sentence=sentence)
    return replace(interference, notices=(*_unmeasured(rounds), notice))


def _unmeasured(rounds: Sequence[Round]) -> tuple[Notice, ...]:
    """Return the workload's last Notice that delay could not be measured, if any."""
    notices = (notice for each in rounds for notice in each.notices)
    return tuple(each for each in notices if each.code is Code.DELAY_NOT_MEASURED)[-1:]


def is_red(
    finished: Round, before: Sequence[Round], metric: str | None, *, compare_whole: bool = False
) -> bool:
    """Whether the interference in a round makes its light red.

    The measured delay counts. From the sixth round on, so does the excess over the thresholds of
    similar segments beyond the typical excess of the last ten rounds: slow moments of every round
    belong to the program. Red rounds are among the ten, so a lasting change soon becomes typical.
    ``compare_whole`` compares rounds instead of segments.
    """
    mine = segments_of(finished, metric, whole=compare_whole)
    spent_s = float(mine.duration_s.sum())
    if spent_s <= 0.0:
        return False
    share = float(mine.delay_s.sum()) / spent_s
    if len(before) >= MIN_IN_GROUP and metric is not None:
        recent = [segments_of(each, metric, whole=compare_whole) for each in before[-_RECENT:]]
        own, *others = _excess_shares([mine, *recent])
        share += max(own - float(np.median(others)), 0.0)
    return light_of(100.0 * share) is Light.RED


def _excess_shares(by_round: Sequence[Segments]) -> list[float]:
    """Return the share of each round's time that exceeds the thresholds common to all rounds."""
    whole = _joined(by_round)
    undelayed_s, readings = whole.duration_s - whole.delay_s, whole.readings
    excess_s = np.zeros(undelayed_s.size)
    if undelayed_s.sum() > 0.0:
        for group in estimate_interference(undelayed_s, {"readings": readings}).groups:
            fewest, most = group.computation["readings"]
            similar = (readings >= fewest) & (readings <= most)
            excess_s[similar] = np.maximum(undelayed_s[similar] - group.threshold_s, 0.0)
    stops = np.cumsum([each.duration_s.size for each in by_round])
    return [
        float(part.sum() / max(each.duration_s.sum(), 1e-12))
        for part, each in zip(np.split(excess_s, stops[:-1]), by_round, strict=True)
    ]


def disturbed(interference: Interference | None) -> tuple[Notice, ...]:
    """Warn if the light of a run is not green."""
    if interference is None or interference.light is Light.GREEN:
        return ()
    advice = "run it again" if interference.light is Light.RED else "another run shows more"
    estimated = interference.percent > interference.measured_percent
    own = " The estimate may also be slow moments of the program itself." if estimated else ""
    return (
        Notice.warning(
            Code.DISTURBED,
            f"Interference took {interference.total_percent:.1f}% of the time "
            f"({interference.measured_percent:.1f}% measured, {interference.percent:.1f}% "
            f"estimated): {advice}.{own}",
            percent=interference.percent,
            measured_percent=interference.measured_percent,
            light=interference.light.value,
        ),
    )


def left_out(red: int, rounds: int, policy: str) -> tuple[Notice, ...]:
    """Say how many red rounds do not count, if any."""
    if not red:
        return ()
    done = "repeated" if policy == "repeat" else "dropped"
    result = "the estimate is of undisturbed rounds" if red < rounds else "no round is left"
    return (
        Notice.warning(
            Code.RED_ROUNDS,
            f"Interference took more than 15% of the time of {red} of {many(rounds, 'round')}, "
            f"which were {done}: {result}.",
            red=red,
            rounds=rounds,
            red_rounds=policy,
        ),
    )


def segments_of(finished: Round, metric: str | None, *, whole: bool = False) -> Segments:
    """Divide a round into segments: where delay was measured, or else of 2 ms at least."""
    seconds, measured = _reading_seconds(finished, metric), finished.delays
    if measured is None or measured.stops[-1] != seconds.size:
        size = max(1, math.ceil(_MIN_SEGMENT_S / max(float(np.median(seconds)), 1e-9)))
        stops, delays = np.append(np.arange(size, seconds.size, size), seconds.size), {}
    else:
        stops, delays = measured.stops, dict(measured.seconds)
    readings = np.diff(stops, prepend=0)
    duration_s = np.add.reduceat(seconds, stops - readings)
    if whole:
        duration_s, readings = duration_s.sum(keepdims=True), readings.sum(keepdims=True)
        delays = {source: values.sum(keepdims=True) for source, values in delays.items()}
    return Segments(duration_s=duration_s, delays=delays, readings=readings)


def _reading_seconds(finished: Round, metric: str | None) -> Floats:
    """Return how long each reading of a round took, all its calls together."""
    if metric is not None and metric in finished.unit_readings:
        seconds: Floats = finished.unit_readings[metric] * calls_per_reading(finished)
        return seconds
    return np.array([finished.readings.get(metric or "", finished.duration_s)])


def _joined(by_round: Sequence[Segments]) -> Segments:
    """Return the segments of all rounds, in order."""
    sources = dict.fromkeys(source for each in by_round for source in each.delays)
    return Segments(
        duration_s=np.concatenate([[], *(each.duration_s for each in by_round)]),
        delays={
            source: np.concatenate(
                [each.delays.get(source, np.zeros(each.readings.size)) for each in by_round]
            )
            for source in sources
        },
        readings=np.concatenate([[], *(each.readings for each in by_round)]).astype(np.int64),
    )


def _in_stable_phase(
    analysis: Analysis, by_round: Sequence[Segments]
) -> Iterator[npt.NDArray[np.bool_]]:
    """Tell, round by round, which segments lie wholly within a stable phase."""
    before = 0
    for index, segments in enumerate(by_round):
        stops = before + np.cumsum(segments.readings)
        if analysis.kind is Kind.UNIT_READINGS:
            before = int(stops[-1])
            phase = analysis.phases[0] if analysis.phases else None
        else:
            phase = analysis.phases[index] if index < len(analysis.phases) else None
        if analysis.kind is Kind.READINGS:
            yield np.ones(stops.size, dtype=bool)
        elif phase is None or phase.start is None or phase.stop is None:
            yield np.zeros(stops.size, dtype=bool)
        else:
            yield (stops - segments.readings >= phase.start) & (stops <= phase.stop)
