"""Agreement of runs: how often earlier intervals contained what later runs estimated."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import scipy

from benchrigor.model import Analysis, Estimate, RunRecord
from benchrigor.model.track_record import RunPair, Standing, Tally, TrackRecord
from benchrigor.stats.comparison.fieller_mover import Contrast, difference_of, uncertain_value
from benchrigor.stats.statistics.shares_and_quantiles import estimate_proportion

_TAIL = 0.025  # less likely counts, on one side, contradict the nominal coverage

_Key = tuple[str, ...]
_Run = tuple[str, Analysis, str | None]  # when it began, its analysis, its id


def track_record(
    pairs: Sequence[tuple[Estimate, Estimate]],
    *,
    names: Sequence[str] = (),
    host: str | None = None,
) -> TrackRecord:
    """Count how often an earlier interval contained the estimate of a later, independent run.

    The later run errs as well: an interval held if that of the difference, at its confidence,
    contains 0. Of an asymmetric interval that end counts which points towards the other run.

    Parameters
    ----------
    pairs
        Estimate of the earlier and of the later run, all at one confidence, no run in two pairs.
    names
        Subjects, one name per pair; or empty.
    host
        Name of the machine.

    Notes
    -----
    The interval of the difference is MOVER (Zou & Donner 2008), or Welch (1947) if both are
    symmetric; that of the share is Wilson (1927), 95%. The nominal coverage is tested by the
    binomial test, each tail 2.5%.

    Examples
    --------
    >>> first, second, third = (
    ...     Estimate(value=value, low=value - 1.0, high=value + 1.0, confidence=0.95, n=50,
    ...              n_effective=50.0, method="long-run-variance")
    ...     for value in (10.0, 11.2, 11.6))
    >>> record = track_record([(first, second), (first, third)])
    >>> record.held, record.pairs, round(record.low, 3), round(record.high, 3)
    (1, 2, 0.095, 0.905)
    """
    confidence = pairs[0][0].confidence
    distances = [_distance(earlier, later) for earlier, later in pairs]
    held = sum(distance <= 1.0 for distance in distances)
    share = estimate_proportion(held, len(pairs))
    return TrackRecord(
        held=held,
        pairs=len(pairs),
        low=share.low,
        high=share.high,
        confidence=confidence,
        standing=_standing(held, len(pairs), confidence),
        widening=_widening(distances, confidence),
        host=host,
        by_name=_tallies(names, distances),
    )


def track_records(pairs: Iterable[RunPair]) -> tuple[TrackRecord, ...]:
    """Count how often intervals held, for each machine and each confidence by itself.

    Parameters
    ----------
    pairs
        From `pair_runs`.

    Returns
    -------
    tuple of TrackRecord
        Those with the most pairs first.
    """
    groups: dict[tuple[str, float], list[RunPair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.host, pair.earlier.confidence].append(pair)
    records = [
        track_record(
            [(pair.earlier, pair.later) for pair in group],
            names=[pair.name for pair in group],
            host=host,
        )
        for (host, _), group in groups.items()
    ]
    return tuple(sorted(records, key=lambda record: -record.pairs))


def pair_runs(records: Iterable[RunRecord]) -> tuple[RunPair, ...]:
    """Pair runs of the same thing, in order of time, on the same machine.

    The first is paired with the second, the third with the fourth, so that the pairs are
    independent. Figures are at full speed if both runs have one. Only complete runs
    count, which met their target or found it out of reach, each with the first metric that must be
    satisfied. Runs are the same when name, subject, machine, interpreter, commit, metric,
    statistic, method, confidence, work amount and kind of rounds are.

    Parameters
    ----------
    records
        In any order.
    """
    runs: dict[_Key, list[_Run]] = defaultdict(list)
    for record in records:
        _add_run(runs, record)
    pairs = []
    for (name, host, *_), group in runs.items():
        group.sort(key=lambda run: run[0])
        for one, other in zip(group[::2], group[1::2], strict=False):  # an odd one waits
            earlier, later = _at_one_speed(one[1], other[1])
            pairs.append(
                RunPair(
                    name=name,
                    host=host,
                    earlier=earlier,
                    later=later,
                    earlier_id=one[2],
                    later_id=other[2],
                )
            )
    return tuple(pairs)


def _add_run(runs: dict[_Key, list[_Run]], record: RunRecord) -> None:
    """Add a complete run to those that it may be paired with."""
    where, analysis, decision = record.provenance, record.analysis(), record.decision
    complete = decision is not None and decision.complete
    if where is None or analysis is None or analysis.estimate is None or not complete:
        return
    metric, options = analysis.metric, record.options
    key = (
        record.name,
        str(where.host),
        json.dumps(dict(record.subject), sort_keys=True, default=str),
        where.python,
        str(where.commit),
        metric.name,
        metric.unit,
        metric.averaging,
        options.statistic,
        options.method,
        str(options.autocorrelation_limit),
        str(options.trim),
        options.detector,
        options.rounds,
        str(options.work),
        str(analysis.estimate.confidence),
    )
    runs[key].append((where.started_at, analysis, record.run_id))


def _at_one_speed(one: Analysis, other: Analysis) -> tuple[Estimate, Estimate]:
    """Return what two runs show: their figures at full speed, if both have one."""
    figures = [run.at_full_pace for run in (one, other) if run.at_full_pace is not None]
    measured = [run.estimate for run in (one, other) if run.estimate is not None]
    earlier, later = figures if len(figures) == 2 else measured
    return earlier, later


def _distance(earlier: Estimate, later: Estimate) -> float:
    """Return the difference in half-widths of its interval, towards 0; up to 1 if it held."""
    baseline, candidate = (uncertain_value(run, symmetric=False) for run in (earlier, later))
    contrast = Contrast(baseline=baseline, candidate=candidate)
    size = (earlier.n, earlier.n_effective)
    difference = difference_of(contrast, earlier.confidence, size, "held-out")
    value = difference.value
    if value == 0.0:
        return 0.0
    half_width = value - difference.low if value > 0.0 else difference.high - value
    return abs(value) / half_width if half_width > 0.0 else math.inf


def _standing(held: int, pairs: int, confidence: float) -> Standing:
    """Test the nominal coverage: Wilson's interval is too short to do so when few or all held."""
    if float(scipy.special.bdtr(held, pairs, confidence)) < _TAIL:
        return Standing.LESS
    at_least = 1.0 - float(scipy.special.bdtr(held - 1, pairs, confidence)) if held else 1.0
    return Standing.MORE if at_least < _TAIL else Standing.AS_CLAIMED


def _widening(distances: list[float], confidence: float) -> float | None:
    """Return the distance within which the nominal share of pairs lies; None with too few."""
    most = math.ceil(confidence * len(distances) - 1e-9)
    if most >= len(distances):
        return None
    widening = sorted(distances)[most - 1]
    return widening if math.isfinite(widening) else None


def _tallies(names: Sequence[str], distances: list[float]) -> tuple[Tally, ...]:
    by_name: dict[str, list[bool]] = defaultdict(list)
    for name, distance in zip(names, distances, strict=False):  # there may be no names
        by_name[name].append(distance <= 1.0)
    tallies = [Tally(name=name, held=sum(held), pairs=len(held)) for name, held in by_name.items()]
    return tuple(sorted(tallies, key=lambda tally: (tally.share, -tally.pairs)))
