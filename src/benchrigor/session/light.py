"""What a session lost to others: the light of its run, and rounds that lost too much. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
    Severity,
)
from benchrigor.model.headline import many
from benchrigor.stats.segments import estimate_interference, light_of

__all__ = ["Stretched", "disturbed", "interference_of", "is_red", "passed_over", "segments_of"]

_SHORTEST_S = 2e-3
"""Shorter segments hold more of what disturbs clocks than of what disturbs programs."""
_FEWEST = 5
"""Segments, at least, of which a group can tell what is usual."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretched:
    """Stretches of readings, one item per stretch, arrays of shape (k,)."""

    duration_s: Floats
    delay_s: Floats
    readings: npt.NDArray[np.int64]
    """How many readings each holds: stretches of equally many are alike."""


def interference_of(analysis: Analysis, rounds: Sequence[Round]) -> Interference | None:
    """Estimate what the rounds of a session lost; None where they cannot tell.

    The segments are the session's stretches of readings (see `Delays`), or readings taken
    together to two milliseconds. Only the stable phase is judged by how long they lasted, since
    what warms up is no victim of others; where there is none, and where work amounts vary, only
    measured delay is told.

    Parameters
    ----------
    analysis
        Of a metric that is a duration, or of a speed.
    rounds
        Those that it counted.
    """
    if analysis.kind is not Kind.WORK and not analysis.metric.is_duration:
        return None
    metric = None if analysis.kind is Kind.WORK else analysis.metric.name
    each = [segments_of(finished, metric) for finished in rounds]
    measured = any(finished.delays is not None for finished in rounds)
    kept = np.concatenate([[], *_kept(analysis, each)]).astype(bool)
    nominal: dict[str, npt.NDArray[np.int64]] = {}
    if measured and not kept.any():
        kept[:] = True
        nominal["segment"] = np.arange(kept.size)
    elif analysis.kind is Kind.INVOCATIONS:
        nominal["round"] = np.repeat(np.arange(len(each)), [part.readings.size for part in each])
    duration_s, delay_s, readings = (values[kept] for values in _joined(each))
    if duration_s.sum() <= 0.0 or (duration_s.size < _FEWEST and not measured):
        return None
    found = estimate_interference(
        duration_s,
        {"readings": readings},
        nominal={name: values[kept] for name, values in nominal.items()},
        delay_s=delay_s if measured else None,
    )
    if "segment" in nominal:
        found = replace(found, notices=(_only_measured(analysis),))
    return replace(found, delays=_by_source(rounds, found.measured_percent))


def is_red(
    finished: Round, before: Sequence[Round], metric: str | None, *, alike: bool = False
) -> bool:
    """Tell whether a round lost more than a run may lose.

    Parameters
    ----------
    finished
        The round to judge: by its measured delay and, where there are others, beside them.
    before
        Those that count.
    metric
        What says how long its readings took; None where amounts vary, and only measured delay
        can tell.
    alike
        Whether rounds start anew, so that whole rounds can be compared and their parts cannot.
    """
    mine = segments_of(finished, metric, whole=alike)
    spent_s, lost_s = float(mine.duration_s.sum()), float(mine.delay_s.sum())
    if spent_s <= 0.0:
        return False
    if before and metric is not None:
        each = [mine, *(segments_of(other, metric, whole=alike) for other in before)]
        duration_s, delay_s, readings = _joined(each)
        usual = estimate_interference(duration_s, {"readings": readings}, delay_s=delay_s)
        limit_s = np.full(mine.readings.size, math.inf)
        for group in usual.groups:
            fewest, most = group.computation["readings"]
            limit_s[(mine.readings >= fewest) & (mine.readings <= most)] = group.threshold_s
        lost_s += float(np.maximum(mine.duration_s - mine.delay_s - limit_s, 0.0).sum())
    return light_of(100.0 * lost_s / spent_s) is Light.RED


def disturbed(found: Interference | None) -> tuple[Notice, ...]:
    """Say so where a run's light is not green."""
    if found is None or found.light is Light.GREEN:
        return ()
    advice = "run it again" if found.light is Light.RED else "another run would tell more"
    return (
        Notice(
            code=Code.DISTURBED,
            severity=Severity.WARNING,
            sentence=(
                f"{found.total_percent:.1f}% of the time was lost to others "
                f"({found.measured_percent:.1f}% measured, {found.percent:.1f}% estimated): "
                f"{advice}."
            ),
            evidence={
                "percent": found.percent,
                "measured_percent": found.measured_percent,
                "light": found.light.value,
            },
        ),
    )


def passed_over(red: int, rounds: int, fate: str) -> tuple[Notice, ...]:
    """Say how many red rounds do not count, where there are any."""
    if not red:
        return ()
    done = "repeated" if fate == "repeat" else "dropped"
    return (
        Notice(
            code=Code.RED_ROUNDS,
            severity=Severity.WARNING,
            sentence=(
                f"{red} of {many(rounds, 'round')} lost more than 15% of their time to others and "
                f"were {done}: the number speaks of undisturbed rounds."
            ),
            evidence={"red": red, "rounds": rounds, "red_rounds": fate},
        ),
    )


def segments_of(finished: Round, metric: str | None, *, whole: bool = False) -> Stretched:
    """Cut a round into segments: where its delays were measured, else by time."""
    seconds = _seconds(finished, metric)
    delays = finished.delays
    if delays is None or delays.stops[-1] != seconds.size:
        delays = None
        held = max(1, math.ceil(_SHORTEST_S / max(float(np.median(seconds)), 1e-9)))
        stops = np.append(np.arange(held, seconds.size, held), seconds.size)
        delay_s = np.zeros(stops.size)
    else:
        stops, delay_s = delays.stops, np.sum(list(delays.seconds.values()), axis=0)
    readings = np.diff(stops, prepend=0)
    duration_s = np.add.reduceat(seconds, stops - readings)
    delay_s = np.minimum(delay_s, duration_s)
    if whole:
        return Stretched(
            duration_s=duration_s.sum(keepdims=True),
            delay_s=delay_s.sum(keepdims=True),
            readings=readings.sum(keepdims=True),
        )
    return Stretched(duration_s=duration_s, delay_s=delay_s, readings=readings)


def _seconds(finished: Round, metric: str | None) -> Floats:
    """Return how long each reading of a round took, all its calls together."""
    if metric is not None and metric in finished.unit_readings:
        calls = finished.facts.get("inner_loop")
        taken: Floats = finished.unit_readings[metric] * (calls if isinstance(calls, int) else 1)
        return taken
    return np.array([finished.readings.get(metric or "", finished.duration_s)])


def _only_measured(analysis: Analysis) -> Notice:
    """Say that nothing could be estimated: no two segments are known to be alike."""
    varied = analysis.kind is Kind.WORK
    why = "Work amounts vary" if varied else "The readings have no stable phase"
    return Notice(
        code=Code.UNCLUSTERED,
        severity=Severity.NOTE if varied else Severity.WARNING,
        sentence=f"{why}: only measured delay is in the light, and nothing was estimated.",
    )


def _joined(each: Sequence[Stretched]) -> tuple[Floats, Floats, Floats]:
    """Return duration, delay and readings of the segments of all rounds."""
    return (
        np.concatenate([[], *(part.duration_s for part in each)]),
        np.concatenate([[], *(part.delay_s for part in each)]),
        np.concatenate([[], *(part.readings for part in each)]),
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


def _by_source(rounds: Sequence[Round], percent: float) -> dict[str, float]:
    """Share what was measured out among its sources, as they shared it in all rounds."""
    lost_s: dict[str, float] = {}
    for finished in rounds:
        for source, seconds in (finished.delays.seconds if finished.delays else {}).items():
            lost_s[source] = lost_s.get(source, 0.0) + float(seconds.sum())
    whole = sum(lost_s.values()) or 1.0
    return {source: percent * lost / whole for source, lost in lost_s.items()}
