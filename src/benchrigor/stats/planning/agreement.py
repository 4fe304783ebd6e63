"""Held-out calibration: how often earlier intervals contained what later runs found."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence

from scipy import special

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate, RunPair, RunRecord, Standing, StopReason, Tally, TrackRecord
from benchrigor.stats.comparison.fieller_mover import Contrast, difference_of, uncertain_value
from benchrigor.stats.estimators.proportion import estimate_proportion

__all__ = ["pair_runs", "track_record", "track_records"]

_DOUBT = 0.025
"""Counts less likely than that, on one side, speak against what intervals claim."""

_Key = tuple[str, ...]
_Run = tuple[str, Estimate, str | None]
"""When it began, what it found, and its id."""


def track_record(
    pairs: Sequence[tuple[Estimate, Estimate]],
    *,
    names: Sequence[str] = (),
    host: str | None = None,
) -> TrackRecord:
    """Count how often an earlier interval contained what a later, independent run found.

    The later run errs as well, so the interval that is judged is that of the difference, at the
    confidence of the earlier one: it held if it contains 0. Of an asymmetric interval that end
    counts which points towards the other run.

    Parameters
    ----------
    pairs
        Estimate of the earlier and of the later run, all at one confidence. The pairs should be
        independent: no run in two of them.
    names
        What was measured, one name per pair; empty where nobody asks.
    host
        Name of the machine.

    Raises
    ------
    InvalidInput
        Without pairs, with pairs of several confidences, or with too few or too many names.

    Notes
    -----
    The interval of the difference is recovered from the ends of both intervals (MOVER, Zou &
    Donner 2008); where those are symmetric it is that of Welch (1947). It holds 0 for 95 in 100
    pairs of independent runs whose 95% intervals are honest. The interval of the share is that
    of Wilson (1927), 95%; whether the claim stands is told by the binomial test, each tail 2.5%.

    Examples
    --------
    >>> first = Estimate(value=10.0, low=9.0, high=11.0, confidence=0.95, n=50, n_effective=50.0,
    ...                  method="long-run-variance")
    >>> second = Estimate(value=11.2, low=10.2, high=12.2, confidence=0.95, n=50,
    ...                   n_effective=50.0, method="long-run-variance")
    >>> third = Estimate(value=11.6, low=10.6, high=12.6, confidence=0.95, n=50,
    ...                  n_effective=50.0, method="long-run-variance")
    >>> found = track_record([(first, second), (first, third)])
    >>> found.held, found.pairs, round(found.low, 3), round(found.high, 3)
    (1, 2, 0.095, 0.905)
    """
    confidence = _check(pairs, names)
    stretches = [_stretch(earlier, later) for earlier, later in pairs]
    held = sum(stretch <= 1.0 for stretch in stretches)
    share = estimate_proportion(held, len(stretches))
    return TrackRecord(
        held=held,
        pairs=len(stretches),
        low=share.low,
        high=share.high,
        confidence=confidence,
        standing=_standing(held, len(stretches), confidence),
        widening=_widening(stretches, confidence),
        host=host,
        by_name=_tallies(names, stretches),
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
        Those with the most pairs first; empty without pairs.
    """
    groups: dict[tuple[str, float], list[RunPair]] = {}
    for pair in pairs:
        groups.setdefault((pair.host, pair.earlier.confidence), []).append(pair)
    found = [
        track_record(
            [(pair.earlier, pair.later) for pair in group],
            names=[pair.name for pair in group],
            host=host,
        )
        for (host, _), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda record: -record.pairs))


def pair_runs(records: Iterable[RunRecord]) -> tuple[RunPair, ...]:
    """Pair runs of the same thing, each with the next one on the same machine.

    Runs are the same when name, subject, machine, interpreter, commit, metric, statistic, method,
    confidence, work amount and kind of rounds are. Only runs that reached their target count: the
    others claim nothing. In order of time the first is paired with the second, the third with the
    fourth: no run is in two pairs, so that the pairs are independent, and a pair once made stays
    when more runs come. Of each run the first metric that must be satisfied counts, since
    metrics of one run are not independent either.

    Parameters
    ----------
    records
        In any order; each is let go of once its estimate is read.
    """
    runs: dict[_Key, list[_Run]] = {}
    for record in records:
        for key, run in _claims(record):
            runs.setdefault(key, []).append(run)
    return tuple(
        RunPair(
            name=name,
            host=host,
            earlier=earlier,
            later=later,
            earlier_id=earlier_id,
            later_id=later_id,
        )
        for (name, host, *_), each in runs.items()
        for (_, earlier, earlier_id), (_, later, later_id) in _disjoint(each)
    )


def _claims(record: RunRecord) -> Iterator[tuple[_Key, _Run]]:
    """Give what a run claims and under which heading; nothing for one that claims nothing."""
    where, analysis, decision = record.provenance, record.analysis(), record.decision
    satisfied = decision is not None and decision.reason is StopReason.SATISFIED
    if where is None or analysis is None or analysis.estimate is None or not satisfied:
        return
    metric, options = analysis.metric, record.options
    key = (
        record.name,
        where.host,
        json.dumps(dict(record.subject), sort_keys=True, default=str),
        where.python,
        str(where.commit),
        metric.name,
        metric.unit,
        metric.averaging,
        options.statistic,
        options.method,
        options.rounds,
        str(options.work),
        str(analysis.estimate.confidence),
    )
    yield key, (where.started_at, analysis.estimate, record.run_id)


def _disjoint(runs: list[_Run]) -> Iterator[tuple[_Run, _Run]]:
    ordered = sorted(runs, key=lambda run: run[0])
    return zip(ordered[::2], ordered[1::2], strict=False)  # the last of an odd number waits


def _stretch(earlier: Estimate, later: Estimate) -> float:
    """Return how many times as wide the intervals would just hold; at most 1 if they do."""
    found = difference_of(
        Contrast(
            baseline=uncertain_value(earlier, symmetric=False),
            candidate=uncertain_value(later, symmetric=False),
        ),
        earlier.confidence,
        (earlier.n, earlier.n_effective),
        "held-out",
    )
    gap = abs(found.value)
    reach = found.value - found.low if found.value > 0.0 else found.high - found.value
    if gap == 0.0:
        return 0.0
    return gap / reach if reach > 0.0 else math.inf


def _standing(held: int, pairs: int, confidence: float) -> Standing:
    """Test the claim: the interval of a share is too short to do so when few or all held."""
    if float(special.bdtr(held, pairs, confidence)) < _DOUBT:
        return Standing.LESS
    at_least = 1.0 - float(special.bdtr(held - 1, pairs, confidence)) if held else 1.0
    return Standing.MORE if at_least < _DOUBT else Standing.AS_CLAIMED


def _widening(stretches: list[float], confidence: float) -> float | None:
    """Return the stretch that as many pairs stay below as the intervals claim to hold."""
    most = math.ceil(confidence * len(stretches) - 1e-9)
    if most >= len(stretches):  # too few for one to fall outside
        return None
    found = sorted(stretches)[most - 1]
    return found if math.isfinite(found) else None


def _tallies(names: Sequence[str], stretches: list[float]) -> tuple[Tally, ...]:
    counts: dict[str, tuple[int, int]] = {}
    for name, stretch in zip(names, stretches, strict=False):  # there may be no names
        held, pairs = counts.get(name, (0, 0))
        counts[name] = (held + (stretch <= 1.0), pairs + 1)
    found = [Tally(name=name, held=held, pairs=pairs) for name, (held, pairs) in counts.items()]
    return tuple(sorted(found, key=lambda each: (each.share, -each.pairs)))


def _check(pairs: Sequence[tuple[Estimate, Estimate]], names: Sequence[str]) -> float:
    """Return the confidence that all pairs share."""
    if not pairs:
        raise InvalidInput("pairs is empty, expected at least one pair of runs")
    problems = []
    confidences = sorted({earlier.confidence for earlier, _ in pairs})
    if len(confidences) > 1:
        problems.append(f"pairs have confidences {confidences}, expected one for all of them")
    if names and len(names) != len(pairs):
        problems.append(
            f"there are {len(names)} names, expected one for each of {len(pairs)} pairs"
        )
    if problems:
        raise InvalidInput(problems)
    return confidences[0]
