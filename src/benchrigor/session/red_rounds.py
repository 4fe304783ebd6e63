"""What a session lost to others: the light of its run, and rounds that lost too much. No I/O."""

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
from benchrigor.stats.interference.one_run import estimate_interference, profile_interference
from benchrigor.stats.interference.traffic_light import light_of

_SHORTEST_S = 2e-3
"""Shorter segments hold more of what disturbs clocks than of what disturbs programs."""
_FEWEST = 5
"""Segments, or rounds, at least, of which one can tell what is usual."""
_BESIDE = 10
"""Rounds beside which another is judged: from the fifth on, slower ones are the usual."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretched:
    """Stretches of readings, one item per stretch, arrays of shape (k,)."""

    duration_s: Floats
    delays: Mapping[str, Floats]
    """By source, what was measured to be lost; empty where nothing was measured."""
    readings: npt.NDArray[np.int64]
    """How many readings each holds: stretches of equally many are alike."""

    @property
    def delay_s(self) -> Floats:
        """Measured delay from all sources, at most the duration."""
        lost: Floats = sum(self.delays.values(), start=np.zeros(self.duration_s.size))
        capped: Floats = np.minimum(lost, self.duration_s)
        return capped


def interference_of(analysis: Analysis, rounds: Sequence[Round]) -> Interference | None:
    """Estimate what the rounds of a session lost; None where they cannot tell.

    The segments are the session's stretches of readings (see `Delays`), or readings taken
    together to two milliseconds. Only the stable phase is judged by how long they lasted, since
    what warms up is no victim of others; where there is none, and where work amounts vary, only
    measured delay is told.
    """
    if analysis.kind is Kind.WORK:
        return measured_only(rounds, None, "Work amounts vary", Severity.NOTE)
    if not analysis.metric.is_duration:
        return None
    each = [segments_of(finished, analysis.metric.name) for finished in rounds]
    kept = np.concatenate([[], *_kept(analysis, each)]).astype(bool)
    if not kept.any():
        return measured_only(rounds, analysis.metric.name, "There is no stable phase")
    nominal: dict[str, npt.NDArray[np.int64]] = {}
    if analysis.kind is Kind.INVOCATIONS:
        nominal["round"] = np.repeat(np.arange(len(each)), [part.readings.size for part in each])
    whole = _joined(each)
    if whole.duration_s[kept].sum() <= 0.0 or (kept.sum() < _FEWEST and not whole.delays):
        return None
    found = profile_interference(
        SegmentProfile(
            duration_s=whole.duration_s[kept],
            computation={"readings": whole.readings[kept]},
            nominal={name: values[kept] for name, values in nominal.items()},
            delays={source: values[kept] for source, values in whole.delays.items()},
        )
    )
    said = _said(rounds)
    others = [each for each in found.notices if each.code not in {notice.code for notice in said}]
    return replace(found, notices=(*said, *others))


def measured_only(
    rounds: Sequence[Round],
    metric: str | None,
    why: str,
    severity: Severity = Severity.WARNING,
) -> Interference | None:
    """Tell what rounds lost by measure alone, where no two of their segments are alike."""
    whole = _joined([segments_of(finished, metric) for finished in rounds])
    if not whole.delays or whole.duration_s.sum() <= 0.0:
        return None
    alone = np.arange(whole.duration_s.size)
    found = profile_interference(
        SegmentProfile(duration_s=whole.duration_s, nominal={"segment": alone}, delays=whole.delays)
    )
    notice = Notice(
        code=Code.UNCLUSTERED,
        severity=severity,
        sentence=f"{why}: only measured delay is in the light, and nothing was estimated.",
    )
    return replace(found, notices=(*_said(rounds), notice))


def _said(rounds: Sequence[Round]) -> tuple[Notice, ...]:
    """Return what the workload said of delays that it could not measure."""
    said = (notice for finished in rounds for notice in finished.notices)
    return tuple(each for each in said if each.code is Code.DELAY_NOT_MEASURED)[-1:]


def is_red(
    finished: Round, before: Sequence[Round], metric: str | None, *, alike: bool = False
) -> bool:
    """Tell whether a round lost more than a run may lose.

    Measured delay counts as it is. Beside at least five rounds before it, so does its excess over
    the thresholds of like segments, less what such rounds usually have of it: a garbage
    collection in each of them is the program's own. The last ten are looked at, whether they were
    red or not, so that a program that has changed for good is soon taken for what it is.
    """
    mine = segments_of(finished, metric, whole=alike)
    spent_s = float(mine.duration_s.sum())
    if spent_s <= 0.0:
        return False
    share = float(mine.delay_s.sum()) / spent_s
    if len(before) >= _FEWEST and metric is not None:
        others = [segments_of(each, metric, whole=alike) for each in before[-_BESIDE:]]
        own, *usual = _excesses([mine, *others])
        share += max(own - float(np.median(usual)), 0.0)
    return light_of(100.0 * share) is Light.RED


def _excesses(each: Sequence[Stretched]) -> list[float]:
    """Return, of each round, the share of its time in excess of the thresholds of them all."""
    whole = _joined(each)
    left_s, readings = whole.duration_s - whole.delay_s, whole.readings
    excess_s = np.zeros(left_s.size)
    if left_s.sum() > 0.0:
        for group in estimate_interference(left_s, {"readings": readings}).groups:
            fewest, most = group.computation["readings"]
            like = (readings >= fewest) & (readings <= most)
            excess_s[like] = np.maximum(left_s[like] - group.threshold_s, 0.0)
    stops = np.cumsum([part.duration_s.size for part in each])
    return [
        float(lost_s.sum() / max(part.duration_s.sum(), 1e-12))
        for lost_s, part in zip(np.split(excess_s, stops[:-1]), each, strict=True)
    ]


def disturbed(found: Interference | None) -> tuple[Notice, ...]:
    """Say so where a run's light is not green."""
    if found is None or found.light is Light.GREEN:
        return ()
    advice = "run it again" if found.light is Light.RED else "another run would tell more"
    own = " What is estimated may also be slow moments of the program's own."
    return (
        Notice.warning(
            Code.DISTURBED,
            f"{found.total_percent:.1f}% of the time was lost to others "
            f"({found.measured_percent:.1f}% measured, {found.percent:.1f}% estimated): "
            f"{advice}.{own if found.percent > found.measured_percent else ''}",
            percent=found.percent,
            measured_percent=found.measured_percent,
            light=found.light.value,
        ),
    )


def passed_over(red: int, rounds: int, fate: str) -> tuple[Notice, ...]:
    """Say how many red rounds do not count, where there are any."""
    if not red:
        return ()
    done = "repeated" if fate == "repeat" else "dropped"
    means = "the number speaks of undisturbed rounds" if red < rounds else "none is left"
    return (
        Notice.warning(
            Code.RED_ROUNDS,
            f"{red} of {many(rounds, 'round')} lost more than 15% of their time to others and "
            f"were {done}: {means}.",
            red=red,
            rounds=rounds,
            red_rounds=fate,
        ),
    )


def segments_of(finished: Round, metric: str | None, *, whole: bool = False) -> Stretched:
    """Cut a round into segments: where its delays were measured, else by time."""
    seconds, delays = _seconds(finished, metric), finished.delays
    if delays is None or delays.stops[-1] != seconds.size:
        held = max(1, math.ceil(_SHORTEST_S / max(float(np.median(seconds)), 1e-9)))
        stops, lost = np.append(np.arange(held, seconds.size, held), seconds.size), {}
    else:
        stops, lost = delays.stops, dict(delays.seconds)
    readings = np.diff(stops, prepend=0)
    duration_s = np.add.reduceat(seconds, stops - readings)
    if whole:
        duration_s, readings = duration_s.sum(keepdims=True), readings.sum(keepdims=True)
        lost = {source: values.sum(keepdims=True) for source, values in lost.items()}
    return Stretched(duration_s=duration_s, delays=lost, readings=readings)


def _seconds(finished: Round, metric: str | None) -> Floats:
    """Return how long each reading of a round took, all its calls together."""
    if metric is not None and metric in finished.unit_readings:
        calls = finished.facts.get("inner_loop")
        taken: Floats = finished.unit_readings[metric] * (calls if isinstance(calls, int) else 1)
        return taken
    return np.array([finished.readings.get(metric or "", finished.duration_s)])


def _joined(each: Sequence[Stretched]) -> Stretched:
    """Return the segments of all rounds, in order."""
    sources = dict.fromkeys(source for part in each for source in part.delays)
    return Stretched(
        duration_s=np.concatenate([[], *(part.duration_s for part in each)]),
        delays={
            source: np.concatenate(
                [part.delays.get(source, np.zeros(part.readings.size)) for part in each]
            )
            for source in sources
        },
        readings=np.concatenate([[], *(part.readings for part in each)]).astype(np.int64),
    )


def _kept(analysis: Analysis, each: Sequence[Stretched]) -> Iterator[npt.NDArray[np.bool_]]:
    """Tell, per round, which segments lie wholly within a stable phase."""
    done = 0
    for index, part in enumerate(each):
        stops = done + np.cumsum(part.readings)
        if analysis.kind is Kind.UNIT_READINGS:
            phase = analysis.phases[0] if analysis.phases else None
            done = int(stops[-1])
        else:
            phase = analysis.phases[index] if index < len(analysis.phases) else None
        if analysis.kind is Kind.READINGS:
            yield np.ones(stops.size, dtype=bool)
        elif phase is None or phase.start is None or phase.stop is None:
            yield np.zeros(stops.size, dtype=bool)
        else:
            yield (stops - part.readings >= phase.start) & (stops <= phase.stop)
