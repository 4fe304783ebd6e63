"""Interference of a run in per cent of its time, after Shah, Mueller, Wolf et al. (Euro-Par 2018).

The paper is 'Estimating the impact of external interference on application performance'. Its
method, by section:

- `segment_groups` (2): amounts of computation count as one if their relative distance is below 0.1;
  segments with the same clusters and nominal features form a group of 5 or more; the time of a
  segment beyond median + 4 MAD of its group is interference;
- here (2, 3): the sum of it in per cent of the wall time; medians against a reference; green,
  yellow, red, and the probability of high interference;
- `benchrigor.interference.profiles` (2): profiles in bounded memory, and of several processes.

Ours: measured delay is taken off first, and added for the light, and Notices tell what makes an
estimate unreliable, with limits from simulations; `profiles` joins several runs (future work in
section 5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Interference, Notice, SegmentProfile
from benchrigor.model.checks import refuse
from benchrigor.model.segments import Light
from benchrigor.model.series import Floats, Ints, as_series, short
from benchrigor.stats.segment_groups import (
    MIN_IN_GROUP,
    Labels,
    RunExcess,
    combination_codes,
    concatenate,
    group_by_code,
    group_codes,
    volumes_as_computation,
    without_delay,
)

YELLOW_FROM, RED_ABOVE = 7.5, 15.0  # limits in per cent of the wall time
_STEEPNESS, _MIDDLE = 0.35, (YELLOW_FROM + RED_ABOVE) / 2.0


def light_of(percent: float) -> Light:
    """Return the light of a share of interference: green below 7.5 %, red above 15 %, else yellow.

    Raises
    ------
    InvalidInput
        When it is not a finite number.

    Examples
    --------
    >>> str(light_of(7.5))
    'yellow'
    """
    share = float(as_series([percent], name="percent")[0])
    if share < YELLOW_FROM:
        return Light.GREEN
    return Light.RED if share > RED_ABOVE else Light.YELLOW


def probability_high(percent: float) -> float:
    """Return the probability that a run with this share of interference is highly interfered.

    p(x) = 1 / (1 + exp(-0.35 (x - 11.25))) (Shah et al. 2018, section 3).

    Raises
    ------
    InvalidInput
        When it is not a finite number.

    Examples
    --------
    >>> [round(probability_high(percent), 2) for percent in (7.5, 11.25, 15.0)]
    [0.21, 0.5, 0.79]
    """
    share = float(as_series([percent], name="percent")[0])
    return float(scipy.special.expit(_STEEPNESS * (share - _MIDDLE)))


MATERIAL = 10.0  # per cent of the time from which on something deserves a warning
# Of groups of 10 and 15 segments, 1.4 and 0.6 % of 800 simulated runs are off by more than 0.1 in
# accuracy, some of them by 0.9; of 20, 25 and 30 none is
_ENOUGH_IN_GROUP = 20
_MAX_PER_SECOND = 1000.0
# A group has many flagged segments above a quarter, unless a fifth hit, the most that leaves the
# median alone, explains them: by 2.33 standard deviations, one group in a hundred
_MANY_FLAGGED, _HIT, _HIT_SIGMAS = 0.25, 0.2, 2.33
# Quantiles of durations between which a median that was hit leaves a gap, up to half and up to nine
# tenths of the segments hit; what few segments add to the limit; the fewest segments
_GAPS = (((0.05, 0.25, 0.6), 25.0, 20), ((0.02, 0.07, 0.25), 100.0, 100))
# Gap over the spread below it: 0.5 to 2.7 (median over groups of 500) with normal, lognormal,
# exponential and t(2) noise, above 3.5 + 25/sqrt(n) in up to one group in a hundred; 17 to 29
# with 45 to 90 % of the segments hit by delays of 50 times the noise
_GAP = 3.5
_MIN_GAP = 0.05  # of the duration; the slow half lies no farther away
# Per cent of the time in excess; the probability that a flagged segment computes more than another
# must be beyond 0.3 to 0.7. At most 100 groups are tested: by chance one run in a hundred warns.
_MIXED_EXCESS, _MIXED_RANK, _MIXED_SIGMAS = 1.0, 0.2, 4.0
# Instructions of equal segments vary by 1 %. Sleeping takes 1 to 6 % more processor time, 1 % of
# the time slept: only what explains half of the time is work.
_MIXED_DIFFERENCE, _MIXED_TIME = 0.02, 0.5
# Per cent of the time: features spread evenly over a factor of 1.5 have 40 to 50 % in pieces cut
# off, processor times of a few kinds of work on a busy machine up to 26 %
_MAX_CHAINED = 30.0
# Between probabilities of high interference: with 1 % noise no run of 800 is warned of; of those
# off by more than 0.1 with lognormal noise of 5 % 70 of 71, with gamma noise of 10 % 135 of 141
_WIDE = 0.07
_SPLIT = 1.0
_MIN_MATCHED = 50.0
_MAX_RECORDING = 4.0


def of_run(run: RunExcess) -> Iterator[Notice]:
    """Yield what makes the estimate unreliable, as far as the run itself shows it."""
    n, wanted = run.profile.n, MIN_IN_GROUP
    if n < wanted:
        yield Notice.of(Code.FEW_SEGMENTS, n=n, wanted=wanted)
        return
    yield from _small_groups(run)
    yield from _warn_of_many_hits(run)
    yield from _warn_of_moved_median(run)
    yield from _mixed_segments(run)
    yield from _chained_features(run)
    yield from _wide_groups(run)
    yield from _processor_time(run)


def of_reference(matched_percent: float | None) -> Iterator[Notice]:
    """Yield what limits the continuous part, by the time in groups of both runs, if there are."""
    matched, wanted = matched_percent, _MIN_MATCHED
    if matched is None:
        yield Notice.of(Code.NO_REFERENCE)
    elif matched < wanted:
        yield Notice.of(Code.REFERENCE_DIFFERS, matched_percent=matched, wanted_percent=wanted)


def of_recording(profile: SegmentProfile, total_s: float) -> Iterator[Notice]:
    """Yield Notices of how the recording of a profile affects the estimate."""
    other_s, own_s = _fact(profile, "other_cpu_s"), _fact(profile, "thread_cpu_s")
    if other_s > own_s and 100.0 * other_s > MATERIAL * total_s:
        yield Notice.of(Code.DELAY_NOT_MEASURED, other_cpu_s=other_s, thread_cpu_s=own_s)
    elif not profile.delays:
        yield Notice.of(Code.DELAY_NOT_MEASURED, "nowhere")
    cost, most = 100.0 * _fact(profile, "recording_cost_s") / total_s, _MAX_RECORDING
    if cost > most:
        yield Notice.of(Code.RECORDING_COST, recording_percent=cost, limit_percent=most)


def _fact(profile: SegmentProfile, name: str) -> float:
    value = profile.facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _small_groups(run: RunExcess) -> Iterator[Notice]:
    """Warn of groups of few segments, of segments in no group, and of too many in a second."""
    wanted, limit, most = _ENOUGH_IN_GROUP, MATERIAL, _MAX_PER_SECOND
    small = run.percent(run.durations[run.groups.sizes < wanted])
    if small > limit:
        yield Notice.of(Code.FEW_SEGMENTS, "groups", time_percent=small, wanted=wanted)
    loose, others = run.unclustered_percent, MIN_IN_GROUP - 1
    if loose > limit:
        yield Notice.of(
            Code.UNCLUSTERED, unclustered_percent=loose, limit_percent=limit, others_=others
        )
    rate = run.profile.n / run.total_s
    if rate > most:
        yield Notice.of(Code.HIGH_SEGMENT_RATE, per_second=rate, limit=most)


def _warn_of_many_hits(run: RunExcess) -> Iterator[Notice]:
    """Warn if more segments were hit than leave the median alone."""
    n, flagged = run.groups.sizes.sum(), run.flagged.sum()
    percent = run.percent(run.durations[_is_many(run.flagged, run.groups.sizes)])
    if percent > MATERIAL or _is_many(flagged, n):
        share = 100.0 * float(flagged / n)
        yield Notice.of(Code.MANY_FLAGGED, flagged_percent=share, time_percent=percent, limit_=_HIT)


def _is_many(flagged: Ints, n: Ints) -> npt.NDArray[np.bool_]:
    by_chance = _HIT_SIGMAS * np.sqrt(_HIT * (1.0 - _HIT) * n)
    return np.asarray(flagged > np.maximum(_MANY_FLAGGED * n, _HIT * n + by_chance))


def _warn_of_moved_median(run: RunExcess) -> Iterator[Notice]:
    """Warn where half of a group or more was hit, so that its median is a disturbed duration.

    Then a gap lies between two quantiles, far wider than the undisturbed part below it; smooth
    noise, however skewed, has none.
    """
    sizes = run.groups.sizes
    moved = np.zeros(sizes.size, dtype=bool)
    for shares, few, fewest in _GAPS:
        low, usual, beyond = (run.groups.quantiles(run.ordered, share) for share in shares)
        limit = (_GAP + few / np.sqrt(sizes)) * (usual - low)
        gap = beyond - usual > np.maximum(limit, _MIN_GAP * usual)
        moved |= gap & (sizes >= fewest)
    percent = run.percent(run.durations[moved])
    if percent > MATERIAL:
        groups = int(np.count_nonzero(moved))
        yield Notice.of(Code.MEDIAN_MOVED, time_percent=percent, groups=groups)


def _mixed_segments(run: RunExcess) -> Iterator[Notice]:
    """Warn where flagged segments computed more, or less, than the rest of their group."""
    groups = run.groups
    mixed: dict[str, set[int]] = {}
    for g in np.flatnonzero(100.0 * run.excess > _MIXED_EXCESS * run.total_s).tolist():
        start = groups.starts[g]
        members = groups.order[start : start + groups.sizes[g]]
        durations = without_delay(run.profile, members)
        flags = durations > run.thresholds[g]
        if not flags.any():
            continue
        longer_s = float(np.median(durations[flags]) - np.median(durations[~flags]))
        for name, values in run.profile.computation.items():
            some, rest = values[members[flags]], values[members[~flags]]
            least = _MIXED_TIME * longer_s if name.endswith("_s") else -np.inf
            if _is_material(some, rest, least) and _is_significant(some, rest):
                mixed.setdefault(name, set()).add(g)
    if mixed:
        concerned = sorted(set.union(*mixed.values()))
        count, percent = len(concerned), run.percent(run.excess[concerned])
        names = ", ".join(mixed)
        yield Notice.of(Code.MIXED_SEGMENTS, features=names, groups=count, excess_percent=percent)


def _is_material(some: Floats, rest: Floats, least: float) -> bool:
    """Whether medians differ by more than 2 %, and by as much as is needed to explain the time."""
    usual = float(np.median(rest))
    more = float(np.median(some)) - usual
    return more >= least and abs(more) > _MIXED_DIFFERENCE * abs(usual)


def _is_significant(some: Floats, rest: Floats) -> bool:
    """Whether some values rank above, or below, the rest (Mann and Whitney's U)."""
    ordered = np.sort(rest)
    pairs = sum(float(np.searchsorted(ordered, some, side).mean()) for side in ("left", "right"))
    sigma = float(np.sqrt((some.size + rest.size + 1) / (12.0 * some.size * rest.size)))
    return abs(pairs / (2.0 * rest.size) - 0.5) > max(_MIXED_RANK, _MIXED_SIGMAS * sigma)


def _chained_features(run: RunExcess) -> Iterator[Notice]:
    """Warn where chains were cut into pieces that all hold much time.

    A class that loses a noisy end leaves the rest in one piece.
    """
    worst, name = 0.0, ""
    for feature, clusters in zip(run.profile.computation, run.clusters, strict=True):
        if clusters.chained:
            pieces = np.bincount(clusters.labels, weights=run.profile.duration_s)
            cut_off = pieces.sum() - _sum_of_largest(pieces, clusters.chains)
            worst, name = max((worst, name), (run.percent(cut_off), feature))
    if worst > _MAX_CHAINED:
        yield Notice.of(Code.CHAINED, feature=name, cut_off_percent=worst)


def _sum_of_largest(seconds: npt.NDArray[Any], kinds: Labels) -> float:
    """Return the sum over kinds of the largest item of each."""
    largest = np.zeros(int(kinds.max(initial=0)) + 1)
    np.maximum.at(largest, kinds, seconds)
    return float(largest.sum())


def _wide_groups(run: RunExcess) -> Iterator[Notice]:
    """Warn where it matters whether the excess counts from the threshold or from the median."""
    measured, percent = run.measured_percent, run.percent(run.excess)
    above = run.percent(run.excess_over_median)
    if probability_high(measured + above) - probability_high(measured + percent) > _WIDE:
        yield Notice.of(Code.WIDE_GROUPS, percent=percent, above_median_percent=above)


def _processor_time(run: RunExcess) -> Iterator[Notice]:
    """Note that groups differ in processor time alone, which interference raises too."""
    seconds = [name for name in run.profile.computation if name.endswith("_s")]
    others = [
        clusters.labels
        for name, clusters in zip(run.profile.computation, run.clusters, strict=True)
        if name not in seconds
    ]
    firsts = run.groups.order[run.groups.starts]
    columns = (values[firsts] for values in (*others, *run.profile.nominal.values()))
    kinds = combination_codes(columns, firsts.size)
    percent = 100.0 - run.percent(_sum_of_largest(run.durations, kinds))
    if seconds and percent > _SPLIT:
        names = ", ".join(seconds)
        yield Notice.of(Code.PROCESSOR_TIME, features=names, split_percent=percent)


def estimate_interference(
    duration_s: npt.ArrayLike,
    features: Mapping[str, npt.ArrayLike],
    *,
    nominal: Mapping[str, npt.ArrayLike] | None = None,
    delay_s: npt.ArrayLike | None = None,
    reference: SegmentProfile | None = None,
) -> Interference:
    """Estimate from one run what share of its time is interference.

    Segments with the same features should take the same time. The time of a segment beyond the
    median of its group plus 4 MAD (median absolute deviations, unscaled) is interference. What
    slows all segments equally moves the median, and shows only against a reference.

    Parameters
    ----------
    duration_s
        Wall time of each segment, in seconds, shape (n,).
    features
        Computation: by name, how much each segment computed, shape (n,). Values near each other
        (by 10 % of the smaller one) are the same work. Empty when all segments compute the same.
    nominal
        By name, what else each segment did, numbers or strings, shape (n,). Only equal values
        are the same work.
    delay_s
        Measured delay of each segment in seconds, shape (n,); taken off before the estimate, at
        most to 0. None if nothing was measured.
    reference
        An undisturbed run of the same program, with the same features.

    Returns
    -------
    Interference
        Measured and estimated, in per cent of the sum of ``duration_s``; the light stands on
        their sum. ``continuous_percent`` is None without a reference, or if no group matches.

    Raises
    ------
    InvalidInput
        When an array does not fit, a duration or a delay is negative, all durations are 0, or
        the reference has other features.

    Notes
    -----
    Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on application
    performance' (Euro-Par 2018), section 2; the continuous part is their median displacement.
    Groups of fewer than 5 segments are left out.

    Examples
    --------
    >>> estimate = estimate_interference([1.0] * 9 + [2.0], {"flops": [5.0] * 10})
    >>> print(f"{estimate.percent:.2f} % of {estimate.duration_s:g} s: {estimate.light}")
    9.09 % of 11 s: yellow
    """
    problems = [
        f"{name} is {short(columns)}, expected a mapping of names to arrays"
        for name, columns in (("features", features), ("nominal", nominal or {}))
        if not isinstance(columns, Mapping)
    ]
    refuse(problems)
    delays = {} if delay_s is None else {"delay_s": delay_s}
    try:
        profile = SegmentProfile(
            duration_s=duration_s, computation=features, nominal=nominal or {}, delays=delays
        )
    except InvalidInput as error:
        as_arguments = (
            re.sub(r"^computation\b", "features", problem) for problem in error.problems
        )
        raise InvalidInput(
            argument.replace("delays['delay_s']", "delay_s") for argument in as_arguments
        ) from None
    _check(profile, reference)
    return _estimate(profile, reference)


def profile_interference(
    profile: SegmentProfile, *, reference: SegmentProfile | None = None
) -> Interference:
    """Estimate from a segment profile what share of the run's time is interference.

    As `estimate_interference`, with the measured delays by source. A numeric nominal column whose
    name ends in "bytes", with more distinct values than a tenth of the segments, is clustered
    like computation. A Notice says if recording took more than 4 % of the time.

    Parameters
    ----------
    profile
        The run.
    reference
        An undisturbed run of the same program, with the same features.

    Raises
    ------
    InvalidInput
        When it is not a profile, all its durations are 0, or the reference has other features.

    Examples
    --------
    >>> from benchrigor.model import SegmentProfile
    >>> profile = SegmentProfile(
    ...     duration_s=[1.0] * 9 + [2.0], delays={"run queue": [0.0] * 9 + [1.0]}
    ... )
    >>> estimate = profile_interference(profile)
    >>> round(estimate.measured_percent, 2), estimate.percent, [*estimate.delays]
    (9.09, 0.0, ['run queue'])
    """
    if not isinstance(profile, SegmentProfile):
        raise InvalidInput(f"profile is {short(profile)}, expected a SegmentProfile")
    _check(profile, reference)
    runs = [profile] if reference is None else [profile, reference]
    estimate = _estimate(*volumes_as_computation(runs))
    delays = {
        source: 100.0 * float(np.minimum(delay, profile.duration_s).sum()) / estimate.duration_s
        for source, delay in profile.delays.items()
    }
    recorded = of_recording(profile, estimate.duration_s)
    return replace(estimate, delays=delays, notices=(*estimate.notices, *recorded))


def _check(profile: SegmentProfile, reference: object) -> None:
    """Raise where a run has no time, or a reference does not fit it."""
    problems = []
    if not profile.duration_s.any():
        problems.append(
            f"duration_s sums to 0 over {profile.n} segments, expected some time to take a share "
            "of: use a finer clock or longer segments"
        )
    if reference is not None and not isinstance(reference, SegmentProfile):
        problems.append(f"reference is {short(reference)}, expected a SegmentProfile or None")
    elif reference is not None:
        kinds = ("computation", "nominal")
        problems += differing_columns("reference", reference, "the run", profile, kinds)
    refuse(problems)


def _estimate(profile: SegmentProfile, reference: SegmentProfile | None = None) -> Interference:
    run = RunExcess(profile)
    percent, measured = run.percent(run.excess), run.measured_percent
    continuous, matched = (None, None) if reference is None else _displacement(profile, reference)
    return Interference(
        percent=percent,
        measured_percent=measured,
        light=light_of(measured + percent),
        probability_high=probability_high(measured + percent),
        unclustered_percent=run.unclustered_percent,
        continuous_percent=continuous,
        above_median_percent=run.percent(run.excess_over_median),
        flagged_percent=100.0 * int(run.flagged.sum()) / profile.n,
        n=profile.n,
        duration_s=run.total_s,
        groups=run.segment_groups(),
        notices=(*of_run(run), *of_reference(matched)),
    )


def _displacement(profile: SegmentProfile, reference: SegmentProfile) -> tuple[float | None, float]:
    """Return the displacement of medians, and the time in groups of both runs, in per cent.

    Sum over the groups of both of (median - median in the reference) * size, over the wall time.
    """
    codes, _ = group_codes(concatenate([profile, reference]))
    groups, in_reference = group_by_code(codes[: profile.n]), group_by_code(codes[profile.n :])
    _, here, there = np.intersect1d(
        groups.codes, in_reference.codes, assume_unique=True, return_indices=True
    )
    if not here.size:
        return None, 0.0
    medians, reference_medians = (
        each.medians(each.sorted(without_delay(run, each.order)))
        for run, each in ((profile, groups), (reference, in_reference))
    )
    displaced_s = float((medians[here] - reference_medians[there]) @ groups.sizes[here])
    matched_s = float(groups.sums(profile.duration_s[groups.order])[here].sum())
    total_s = float(profile.duration_s.sum())
    return 100.0 * displaced_s / total_s, 100.0 * matched_s / total_s


def differing_columns(
    name: str, profile: SegmentProfile, other: str, theirs: SegmentProfile, kinds: Iterable[str]
) -> list[str]:
    """Say which columns one profile has and the other has not."""
    problems = []
    for kind in kinds:
        here, there = (sorted(getattr(run, kind)) for run in (profile, theirs))
        if here != there:
            advice = "record the same in all, or leave out what some lack"
            problems.append(f"{name} has {kind} {here}, {other} {there}: {advice}")
    return problems
