"""How much of a run's time was lost to others, estimated from its segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Interference, SegmentProfile
from benchrigor.model.series import short
from benchrigor.stats.interference.diagnostics import doubts, recording, reference_doubts
from benchrigor.stats.interference.grouping import aggregated, codes_of, grouped, undelayed
from benchrigor.stats.interference.mad_threshold import judged
from benchrigor.stats.interference.traffic_light import light_of, probability_high

__all__ = ["estimate_interference", "profile_interference"]


def estimate_interference(
    duration_s: npt.ArrayLike,
    features: Mapping[str, npt.ArrayLike],
    *,
    nominal: Mapping[str, npt.ArrayLike] | None = None,
    delay_s: npt.ArrayLike | None = None,
    reference: SegmentProfile | None = None,
) -> Interference:
    """Estimate, from one run, per cent of its time that was lost to others.

    Segments that did the same should take the same time. What one takes beyond the median of its
    like plus 4 MAD (median absolute deviations, unscaled) counts as lost. Interference that slows
    all segments alike moves the median and does not show; a reference tells it.

    Parameters
    ----------
    duration_s
        Wall time of each segment, in seconds, shape (n,).
    features
        Computation: by name, how much each segment computed, shape (n,); values that are near
        each other (see `relative_clusters`) mean like work. Empty when all compute alike.
    nominal
        By name, what else each did, numbers or strings, shape (n,); only equal ones are alike.
    delay_s
        Seconds of each segment that were measured to be lost, shape (n,); taken off before the
        estimate, at most to 0. None where nothing was measured.
    reference
        An undisturbed run of the same program, with the same features.

    Returns
    -------
    Interference
        Per cent of the sum of ``duration_s``, of which the light is: measured and estimated.
        ``continuous_percent`` is None without a reference, or if no group of it matches.

    Raises
    ------
    InvalidInput
        When an array does not fit, a duration or a delay is negative, all durations are 0, or
        the reference has other features.

    Notes
    -----
    Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on application
    performance' (Euro-Par 2018), section 2; groups below 5 segments are left out. The time in
    them, a segment rate above 1000 per second, and whatever else makes the estimate unreliable is
    said in the notices. The paper's one failure was GAPgeofem: at 300 segments per second its
    estimates followed artefacts of the hardware counters, not the run. The continuous part is the
    paper's median displacement, group medians against those of another run.

    Examples
    --------
    >>> found = estimate_interference([1.0] * 9 + [2.0], {"flops": [5.0] * 10})
    >>> print(f"{found.percent:.2f} % of {found.duration_s:g} s: {found.light}")
    9.09 % of 11 s: yellow
    """
    problems = [
        f"{name} is {short(given)}, expected a mapping of names to arrays"
        for name, given in (("features", features), ("nominal", nominal or {}))
        if not isinstance(given, Mapping)
    ]
    if problems:
        raise InvalidInput(problems)
    try:
        profile = SegmentProfile(
            duration_s=duration_s,
            computation=features,
            nominal=nominal or {},
            delays={} if delay_s is None else {"delay_s": delay_s},
        )
    except InvalidInput as error:
        raise InvalidInput([_in_arguments(each) for each in error.problems]) from None
    return _estimated(profile, *_checked(profile, reference))


def profile_interference(
    profile: SegmentProfile, *, reference: SegmentProfile | None = None
) -> Interference:
    """Estimate, from a segment profile, per cent of the run's time that was lost to others.

    As `estimate_interference`, with the measured delays told by source. A numeric nominal
    column whose name ends in "bytes" and that has more distinct values than a tenth of the
    segments is clustered like a computation feature: as a nominal one it would leave hardly any
    segment with enough others like it.

    Parameters
    ----------
    profile
        The run.
    reference
        An undisturbed run of the same program, with the same features.

    Returns
    -------
    Interference
        As `estimate_interference` gives it, with ``delays``. What the recorder itself took is
        warned of above 4 % of the time, where ``profile.facts`` has "recording_cost_s".

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
    >>> found = profile_interference(profile)
    >>> round(found.measured_percent, 2), found.percent, [*found.delays]
    (9.09, 0.0, ['run queue'])
    """
    if not isinstance(profile, SegmentProfile):
        raise InvalidInput(f"profile is {short(profile)}, expected a SegmentProfile")
    found = _estimated(*aggregated(profile, *_checked(profile, reference)))
    shares = {
        source: 100.0 * float(np.minimum(lost, profile.duration_s).sum()) / found.duration_s
        for source, lost in profile.delays.items()
    }
    notices = (*found.notices, *recording(profile, found.duration_s))
    return replace(found, delays=shares, notices=notices)


def _in_arguments(problem: str) -> str:
    """Call a column as the caller of `estimate_interference` does."""
    for column, argument in (("computation[", "features["), ("delays['delay_s']", "delay_s")):
        if problem.startswith(column):
            return argument + problem.removeprefix(column)
    return problem


def _checked(profile: SegmentProfile, reference: object) -> tuple[SegmentProfile, ...]:
    """Check what a profile alone cannot know; return the reference, if there is one."""
    problems = []
    if not float(profile.duration_s.max()) > 0.0:
        problems.append(
            f"duration_s sums to 0 over {profile.n} segments, expected some time to take a share "
            "of: use a finer clock or longer segments"
        )
    if isinstance(reference, SegmentProfile):
        problems += [
            f"reference has the {kind} {sorted(theirs)}, expected {sorted(ours)} as the run has"
            for kind, ours, theirs in (
                ("computation features", profile.computation, reference.computation),
                ("nominal features", profile.nominal, reference.nominal),
            )
            if ours.keys() != theirs.keys()
        ]
    elif reference is not None:
        problems.append(f"reference is {short(reference)}, expected a SegmentProfile or None")
    if problems:
        raise InvalidInput(problems)
    return (reference,) if isinstance(reference, SegmentProfile) else ()


def _estimated(profile: SegmentProfile, reference: SegmentProfile | None = None) -> Interference:
    run = judged(profile)
    percent = run.percent(run.excess)
    measured = run.percent(profile.delay_s) if profile.delays else 0.0
    continuous, matched = (None, None) if reference is None else _displaced(profile, reference)
    return Interference(
        percent=percent,
        measured_percent=measured,
        light=light_of(measured + percent),
        probability_high=probability_high(measured + percent),
        unclustered_percent=run.unclustered_percent,
        continuous_percent=continuous,
        above_median_percent=run.percent(run.above_median),
        flagged_percent=100.0 * int(run.flagged.sum()) / profile.n,
        n=profile.n,
        duration_s=run.total_s,
        groups=run.described(),
        notices=(*doubts(run), *reference_doubts(matched)),
    )


def _displaced(profile: SegmentProfile, reference: SegmentProfile) -> tuple[float | None, float]:
    """Return by how many per cent the medians moved, and in what share of the time they match."""
    runs = (profile, reference)
    groups, groups_then = (grouped(codes) for codes in codes_of(runs))
    _, now, then = np.intersect1d(
        groups.codes, groups_then.codes, assume_unique=True, return_indices=True
    )
    if not now.size:
        return None, 0.0
    medians, medians_then = (
        each.medians(each.sorted(undelayed(run, each.order)))
        for run, each in zip(runs, (groups, groups_then), strict=True)
    )
    moved_s = float((medians[now] - medians_then[then]) @ groups.sizes[now])
    matched_s = float(groups.sums(profile.duration_s[groups.order])[now].sum())
    total_s = float(profile.duration_s.sum())
    return 100.0 * moved_s / total_s, 100.0 * matched_s / total_s
