"""From several disturbed runs of one program, how long it takes undisturbed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import (
    Code,
    Composite,
    CompositeGroup,
    Estimate,
    Floats,
    Interference,
    Notice,
    SegmentProfile,
    Severity,
)
from benchrigor.model.text import many
from benchrigor.stats.estimators.estimation import combine_values
from benchrigor.stats.interference.clustering import Indices
from benchrigor.stats.interference.grouping import FEWEST, Groups, aggregated, codes_of, grouped
from benchrigor.stats.interference.mad_threshold import judged
from benchrigor.stats.interference.one_run import profile_interference
from benchrigor.stats.interference.process_merge import profiles_among
from benchrigor.stats.series.interval import check_confidence

__all__ = ["composite_profile"]

_FEWEST_RUNS = 3
_UNLIKE = 0.05
"""Share of the work in which a run may differ from the usual one: now and then a collection of
garbage falls into another segment, or a feature to the other side of a bound."""
_MATERIAL = 10.0
_NOISE, _FEWEST_SLOW = 2.0, 3
"""Per cent of the segments: normal noise flags 0.35 %, exponential noise 7 %."""


def composite_profile(profiles: Iterable[SegmentProfile], *, confidence: float = 0.95) -> Composite:
    """Estimate how long a program takes without interference, from runs that all had some.

    Each run is judged by itself, as `profile_interference` does, in groups that all runs have in
    common. A segment that took longer than usual counts as much as the others of its group and
    run do on average. What is left differs from run to run (placement, frequency, neighbours that
    slow all segments alike); of that the mean is taken, and the interval tells of it.

    Parameters
    ----------
    profiles
        One of each run of the program, in any order, at least three.
    confidence
        Nominal coverage, in (0, 1).

    Returns
    -------
    Composite
        ``duration`` and the durations of groups are Student t intervals over runs: ``n`` counts
        runs. A run with fewer than 5 segments of a group does not count for that group; with fewer
        than 3 runs left its duration is None. Segments of no group count as they are. The
        ``groups`` that usually take most time come first; ``runs`` are in the order given.

    Raises
    ------
    InvalidInput
        When these are no profiles of different runs with the same columns and the same work: runs
        may differ by 5 % of the time in which groups their segments are.
    NotEstimable
        With fewer than three runs.

    Notes
    -----
    Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on application
    performance' (Euro-Par 2018), section 5, have a composite profile as future work; what it is,
    and the interval, are ours. Interference below the threshold stays in, and what of a natural
    tail lies above it is left out: in simulations with 1 % normal noise the bias is below 0.1 %,
    with exponential tails of 5 % it is -1 %, twice the half-width of 15 runs. Runs must be
    independent: of 15 that are correlated by 0.5 with the run before, a 95 % interval holds the
    truth in 74 % of the cases, with 0.9 in 30 %.

    Examples
    --------
    >>> runs = [[1.0, 1.1, 1.0, 1.1, 5.0], [1.2, 1.3, 9.0, 1.2, 1.3], [1.1, 1.2, 1.1, 1.2, 1.15]]
    >>> found = composite_profile(SegmentProfile(duration_s=each) for each in runs)
    >>> round(found.duration.value, 2), found.duration.n
    (5.75, 3)
    """
    check_confidence(confidence)
    given = _checked(profiles)
    plain = aggregated(*given)
    codes = codes_of(plain)
    pooled = grouped(np.concatenate(codes), fewest=1)
    places = [np.searchsorted(pooled.codes, each) for each in codes]
    groups = _described(plain, pooled)
    clean = np.concatenate([each.duration_s - each.delay_s for each in plain])[pooled.order]
    usual_s = pooled.medians(pooled.sorted(clean))
    _check_work(places, usual_s, groups)
    runs = tuple(profile_interference(each) for each in given)
    cleaned = [_cleaned(*each, len(groups)) for each in zip(plain, places, strict=True)]
    means = np.array([each.means for each in cleaned])
    return Composite(
        duration=combine_values([each.total_s for each in cleaned], confidence),
        groups=tuple(
            replace(groups[g], duration=_estimated(means[:, g], confidence))
            for g in np.argsort(-usual_s * pooled.sizes, kind="stable").tolist()
            if groups[g].n >= FEWEST
        ),
        runs=runs,
        notices=(*_unreliable(runs), *_tails(runs), *_unclustered(cleaned)),
    )


@dataclass(frozen=True, slots=True)
class _Cleaned:
    """One run without what it lost.

    Parameters
    ----------
    total_s
        How long it would have taken.
    unclustered_s
        What of it is in segments of no group, as they are.
    means
        How long one segment of each group takes, shape (g,); NaN where there are too few.
    """

    total_s: float
    unclustered_s: float
    means: Floats


def _checked(profiles: Iterable[SegmentProfile]) -> list[SegmentProfile]:
    given = profiles_among(profiles)
    problems = _misfits(given)
    if problems:
        raise InvalidInput(problems)
    if len(given) < _FEWEST_RUNS:
        raise NotEstimable(
            Notice.refusal(
                Code.FEW_INVOCATIONS,
                f"Only {many(len(given), 'run')}, expected {_FEWEST_RUNS} at least.",
                invocations=len(given),
                wanted=_FEWEST_RUNS,
            )
        )
    return given


def _misfits(given: Sequence[SegmentProfile]) -> list[str]:
    """Say which profiles cannot be compared with the first one."""
    problems = []
    seen: dict[str, int] = {}
    named = next((index for index, each in enumerate(given) if each.program), 0)
    for index, each in enumerate(given):
        if each.run and seen.setdefault(each.run, index) != index:
            problems.append(
                f"profiles[{index}] is of run {each.run!r} as profiles[{seen[each.run]}] is: give "
                "each run once, its processes merged"
            )
        if each.program and each.program != given[named].program:
            problems.append(
                f"profiles[{index}] is of program {each.program!r}, profiles[{named}] of "
                f"{given[named].program!r}: give runs of one program"
            )
        if not each.duration_s.any():
            problems.append(f"profiles[{index}]: duration_s sums to 0, expected some time")
        for kind in ("computation", "nominal"):
            here, there = set(getattr(each, kind)), set(getattr(given[0], kind))
            if here != there:
                problems.append(
                    f"profiles[{index}] has {kind} {sorted(here)}, profiles[0] {sorted(there)}: "
                    "record the same in all runs"
                )
    return problems


def _described(plain: Sequence[SegmentProfile], pooled: Groups) -> list[CompositeGroup]:
    """Return the groups of all runs for people, without how long they take."""
    extremes = {
        name: [
            ends.tolist()
            for ends in pooled.extremes(
                np.concatenate([each.computation[name] for each in plain])[pooled.order]
            )
        ]
        for name in plain[0].computation
    }
    firsts = pooled.order[pooled.starts]
    nominal = {
        name: np.concatenate([each.nominal[name] for each in plain])[firsts].tolist()
        for name in plain[0].nominal
    }
    return [
        CompositeGroup(
            n=n,
            computation={name: (low[g], high[g]) for name, (low, high) in extremes.items()},
            nominal={name: values[g] for name, values in nominal.items()},
            duration=None,
        )
        for g, n in enumerate(pooled.sizes.tolist())
    ]


def _check_work(
    places: Sequence[Indices], seconds: Floats, groups: Sequence[CompositeGroup]
) -> None:
    """Raise where a run did other work than the usual one of them.

    Parameters
    ----------
    places
        Of each run, the group of each segment.
    seconds
        How long a segment of each group usually takes.
    groups
        What each is.
    """
    counts = np.array([np.bincount(each, minlength=seconds.size) for each in places])
    usual = np.median(counts, axis=0)
    apart = (counts - usual) * seconds
    # A segment that is in another group is too many there and missing here: not counted twice.
    unlike = np.maximum(apart.clip(min=0.0).sum(axis=1), -apart.clip(max=0.0).sum(axis=1))
    problems = []
    for index in np.flatnonzero(unlike > _UNLIKE * (usual @ seconds)).tolist():
        worst = int(np.abs(apart[index]).argmax())
        problems.append(
            f"profiles[{index}] did other work than the runs usually did: "
            f"{counts[index, worst]} segments with {_named(groups[worst])}, expected about "
            f"{usual[worst]:g}: give runs of one program with one input, and record instructions "
            "or labels where CPU time tells groups apart"
        )
    if problems:
        raise InvalidInput(problems)


def _named(group: CompositeGroup) -> str:
    """Say what the segments of a group have in common."""
    ranges = [f"{name} {low:g} to {high:g}" for name, (low, high) in group.computation.items()]
    values = [f"{name} {value}" for name, value in group.nominal.items()]
    return ", ".join([*ranges, *values]) or "any features"


def _cleaned(profile: SegmentProfile, places: Indices, count: int) -> _Cleaned:
    """Judge a run in given groups, and give what it flags the mean of the rest of its group."""
    run = judged(replace(profile, computation={}, nominal={"group": places}))
    clean = profile.duration_s - profile.delay_s
    members, sizes = run.groups.order, run.groups.sizes
    flagged_s = run.excess + run.flagged * run.thresholds
    found = (run.groups.sums(clean[members]) - flagged_s) / (sizes - run.flagged)
    means = np.full(count, np.nan)
    means[places[members[run.groups.starts]]] = found
    loose = np.ones(profile.n, dtype=bool)
    loose[members] = False
    unclustered_s = float(clean[loose].sum())
    return _Cleaned(float(found @ sizes) + unclustered_s, unclustered_s, means)


def _estimated(means: Floats, confidence: float) -> Estimate | None:
    """Estimate how long a segment takes from the runs that tell it."""
    known = means[~np.isnan(means)]
    return combine_values(known.tolist(), confidence) if known.size >= _FEWEST_RUNS else None


def _unreliable(runs: Sequence[Interference]) -> tuple[Notice, ...]:
    """Warn of runs of which the flagged segments do not tell all."""
    warned = {
        index: [each.code for each in run.notices if each.severity is Severity.WARNING]
        for index, run in enumerate(runs)
    }
    doubtful = [index for index, codes in warned.items() if codes]
    if not doubtful:
        return ()
    reasons = ", ".join(dict.fromkeys(code for codes in warned.values() for code in codes))
    notice = Notice.warning(
        Code.DOUBTFUL_RUNS,
        f"{len(doubtful)} of {len(runs)} runs cannot be cleaned reliably ({reasons}): leave "
        f"them out, or take others instead.",
        runs=", ".join(map(str, doubtful)),
        of=len(runs),
        reasons=reasons,
    )
    return (notice,)


def _tails(runs: Sequence[Interference]) -> tuple[Notice, ...]:
    """Note that segments were slow in all runs, perhaps by themselves."""
    least = min(runs, key=lambda run: run.flagged_percent)
    if least.flagged_percent * least.n < 100.0 * _FEWEST_SLOW or least.flagged_percent <= _NOISE:
        return ()
    notice = Notice.note(
        Code.NATURAL_TAIL,
        f"In every run at least {least.flagged_percent:.1f}% of the segments took longer than "
        "usual: where the program itself is slow now and then, the composite leaves that out.",
        flagged_percent=least.flagged_percent,
        limit_percent=_NOISE,
    )
    return (notice,)


def _unclustered(cleaned: Sequence[_Cleaned]) -> tuple[Notice, ...]:
    """Say how much was taken as it is."""
    total_s = sum(each.total_s for each in cleaned)
    percent = 100.0 * sum(each.unclustered_s for each in cleaned) / total_s if total_s else 0.0
    if percent == 0.0:
        return ()
    notice = Notice(
        code=Code.UNCLUSTERED,
        severity=Severity.WARNING if percent > _MATERIAL else Severity.NOTE,
        sentence=(
            f"{percent:.2g}% of the time is in segments with fewer than {FEWEST - 1} others like "
            "them in their run: what was lost there is still in the duration."
        ),
        evidence={"unclustered_percent": percent},
    )
    return (notice,)
