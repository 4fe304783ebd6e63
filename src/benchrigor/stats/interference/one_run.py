"""Interference in a single run, in per cent of its wall time (Shah et al. 2018, sections 2, 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Interference, SegmentProfile
from benchrigor.model.checks import refuse
from benchrigor.model.series import short
from benchrigor.stats.interference import diagnostics
from benchrigor.stats.interference.grouping import (
    RunExcess,
    concatenate,
    group_by_code,
    group_codes,
    volumes_as_computation,
    without_delay,
)
from benchrigor.stats.interference.traffic_light import light_of, probability_high


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
        When it is no profile, all its durations are 0, or the reference has other features.

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
    of_recording = diagnostics.of_recording(profile, estimate.duration_s)
    return replace(estimate, delays=delays, notices=(*estimate.notices, *of_recording))


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
        notices=(*diagnostics.of_run(run), *diagnostics.of_reference(matched)),
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
