"""The undisturbed duration of a program, from several disturbed runs (method and interval ours)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.interference.process_merge import as_profiles
from benchrigor.model import Code, Estimate, Interference, Notice, SegmentProfile
from benchrigor.model.checks import refuse
from benchrigor.model.interference import Composite, CompositeGroup
from benchrigor.model.notice import Severity
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.interference.grouping import (
    MIN_IN_GROUP,
    RunExcess,
    concatenate,
    group_by_code,
    group_codes,
    volumes_as_computation,
    without_delay,
)
from benchrigor.stats.interference.one_run import MATERIAL, differing_columns, profile_interference
from benchrigor.stats.series.interval import check_confidence
from benchrigor.stats.statistics.statistic import combine_values

_MIN_RUNS = 3
# Share of the work in which a run may differ: now and then a garbage collection falls into another
# segment, or a feature to the other side of a bound
_OTHER_WORK = 0.05
# Flagged in all runs; normal noise flags 0.35 %, exponential 7 %
_TAIL_PERCENT, _TAIL_SEGMENTS = 2.0, 3


def composite_profile(profiles: Iterable[SegmentProfile], *, confidence: float = 0.95) -> Composite:
    """Estimate how long a program takes without interference, from several disturbed runs.

    Groups are common to all runs, thresholds are not. A segment beyond its threshold counts as the
    mean of the other segments of its group and run. The duration is the mean over runs. Its
    interval includes the differences between runs (placement, frequency, interference that slows
    all segments equally).

    Parameters
    ----------
    profiles
        Profiles of three or more runs of the program, in any order.
    confidence
        Nominal coverage, in (0, 1).

    Returns
    -------
    Composite
        ``duration`` and the durations of groups are Student t intervals over runs: ``n`` counts
        runs. A run with fewer than 5 segments of a group does not count for that group; with fewer
        than 3 runs left its duration is None. Segments of no group keep their duration. The
        ``groups`` with most time come first; ``runs`` are in the order given.

    Raises
    ------
    InvalidInput
        When these are not profiles of different runs with the same columns and the same work:
        segments may differ in group between runs for up to 5 % of the time.
    NotEstimable
        With fewer than three runs.

    Notes
    -----
    Interference below the threshold stays in, and a natural tail above it is left out: the bias is
    below 0.1 % with 1 % normal noise, and -1 % with exponential tails of 5 %. Runs must be
    independent: of 15 that are correlated by 0.5 with the run before, a 95 % interval covers the
    truth in 74 % of the cases.

    Examples
    --------
    >>> runs = [[1.0, 1.1, 1.0, 1.1, 5.0], [1.2, 1.3, 9.0, 1.2, 1.3], [1.1, 1.2, 1.1, 1.2, 1.15]]
    >>> composite = composite_profile(SegmentProfile(duration_s=durations) for durations in runs)
    >>> round(composite.duration.value, 2), composite.duration.n
    (5.75, 3)
    """
    check_confidence(confidence)
    runs = _check(as_profiles(profiles))
    whole = concatenate(volumes_as_computation(runs))
    codes, _ = group_codes(whole)
    groups = group_by_code(codes, fewest=1)
    features = groups.features(whole)
    medians_s = groups.medians(groups.sorted(without_delay(whole, groups.order)))
    stops = np.cumsum([run.n for run in runs])[:-1]
    group_of = np.split(np.searchsorted(groups.codes, codes), stops)
    _check_work(group_of, medians_s, features)
    interferences = tuple(profile_interference(run) for run in runs)
    cleaned = [_clean(*pair, len(features)) for pair in zip(runs, group_of, strict=True)]
    means_s = np.array([profile.means_s for profile in cleaned])

    def duration_of(group: int) -> Estimate | None:
        known = [mean for mean in means_s[:, group].tolist() if not math.isnan(mean)]
        return combine_values(known, confidence) if len(known) >= _MIN_RUNS else None

    return Composite(
        duration=combine_values([profile.total_s for profile in cleaned], confidence),
        groups=tuple(
            CompositeGroup(n=int(groups.sizes[g]), **features[g], duration=duration_of(g))
            for g in np.argsort(-medians_s * groups.sizes, kind="stable").tolist()
            if groups.sizes[g] >= MIN_IN_GROUP
        ),
        runs=interferences,
        notices=(
            *_doubtful_runs(interferences),
            *_natural_tail(interferences),
            *_note_loose_segments(cleaned),
        ),
    )


class _CleanRun(NamedTuple):
    """One run without its interference: total, time in no group, means of groups or NaN."""

    total_s: float
    unclustered_s: float
    means_s: Floats


def _check(runs: list[SegmentProfile]) -> list[SegmentProfile]:
    """Return the runs, or raise if they cannot be compared, or are too few."""
    problems: list[str] = []
    first_of: dict[str, int] = {}
    named = next((index for index, run in enumerate(runs) if run.program), 0)
    for index, run in enumerate(runs):
        name = f"profiles[{index}]"
        if run.run and first_of.setdefault(run.run, index) != index:
            problems.append(
                f"{name} is of run {run.run!r} as profiles[{first_of[run.run]}] is: give each "
                "run once, its processes merged"
            )
        if run.program and run.program != runs[named].program:
            problems.append(
                f"{name} is of program {run.program!r}, profiles[{named}] of "
                f"{runs[named].program!r}: give runs of one program"
            )
        if not run.duration_s.any():
            problems.append(f"{name}: duration_s sums to 0, expected some time")
        kinds = ("computation", "nominal")
        problems += differing_columns(name, run, "profiles[0]", runs[0], kinds)
    refuse(problems)
    if len(runs) < _MIN_RUNS:
        figures = {"invocations": len(runs), "wanted": _MIN_RUNS}
        raise NotEstimable(Notice.of(Code.FEW_INVOCATIONS, "composite", **figures))
    return runs


def _check_work(
    group_of: Sequence[Ints], medians_s: Floats, features: Sequence[dict[str, Any]]
) -> None:
    """Raise if the segments of a run are in other groups than the segments of the other runs."""
    counts = np.array([np.bincount(numbers, minlength=medians_s.size) for numbers in group_of])
    usual = np.median(counts, axis=0)
    differences_s = (counts - usual) * medians_s
    # A segment in another group is too many there and missing here: count it once.
    other_s = (np.abs(differences_s).sum(axis=1) + np.abs(differences_s.sum(axis=1))) / 2.0
    problems = []
    for index in np.flatnonzero(other_s > _OTHER_WORK * (usual @ medians_s)).tolist():
        worst = int(np.abs(differences_s[index]).argmax())
        computation, nominal = features[worst].values()
        ranges = [f"{name} {low:g} to {high:g}" for name, (low, high) in computation.items()]
        values = [f"{name} {value}" for name, value in nominal.items()]
        problems.append(
            f"profiles[{index}] did other work than the other runs: {counts[index, worst]} "
            f"segments with {', '.join([*ranges, *values]) or 'any features'}, expected about "
            f"{usual[worst]:g}: give runs of one program with one input, and record instructions "
            "or labels where CPU time separates groups"
        )
    refuse(problems)


def _clean(profile: SegmentProfile, group_of: Ints, count: int) -> _CleanRun:
    """Replace flagged segments of a run, in given groups, by the mean of their group's others."""
    run = RunExcess(replace(profile, computation={}, nominal={"group": group_of}))
    groups = run.groups
    flagged_s = run.excess + run.flagged * run.thresholds
    means_s = (groups.sums(run.ordered) - flagged_s) / (groups.sizes - run.flagged)
    all_means_s = np.full(count, np.nan)
    all_means_s[group_of[groups.order[groups.starts]]] = means_s
    loose = np.delete(np.arange(profile.n), groups.order)
    unclustered_s = float(without_delay(profile, loose).sum())
    return _CleanRun(float(means_s @ groups.sizes) + unclustered_s, unclustered_s, all_means_s)


def _doubtful_runs(runs: Sequence[Interference]) -> Iterator[Notice]:
    """Warn of runs with a warning on their own estimate."""
    codes = [
        [notice.code for notice in run.notices if notice.severity is Severity.WARNING]
        for run in runs
    ]
    doubtful = [index for index, found in enumerate(codes) if found]
    if doubtful:
        reasons = ", ".join(dict.fromkeys(code for found in codes for code in found))
        figures = {"runs": ", ".join(map(str, doubtful)), "of": len(runs), "reasons": reasons}
        yield Notice.of(Code.DOUBTFUL_RUNS, n_=len(doubtful), **figures)


def _natural_tail(runs: Sequence[Interference]) -> Iterator[Notice]:
    """Note that segments were slow in all runs, perhaps by themselves."""
    least = min(runs, key=lambda run: run.flagged_percent)
    percent, limit = least.flagged_percent, _TAIL_PERCENT
    if percent > limit and percent * least.n >= 100.0 * _TAIL_SEGMENTS:
        yield Notice.of(Code.NATURAL_TAIL, flagged_percent=percent, limit_percent=limit)


def _note_loose_segments(cleaned: Sequence[_CleanRun]) -> Iterator[Notice]:
    """Say how much time is in segments of no group."""
    unclustered_s = sum(profile.unclustered_s for profile in cleaned)
    if unclustered_s:
        percent = 100.0 * unclustered_s / sum(profile.total_s for profile in cleaned)
        case, others = "composite" if percent > MATERIAL else "little", MIN_IN_GROUP - 1
        yield Notice.of(Code.UNCLUSTERED, case, unclustered_percent=percent, others_=others)
