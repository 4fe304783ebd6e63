"""What makes an estimate of interference weaker than it looks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchrigor.model import Code, Evidence, Floats, Notice, SegmentProfile, Severity
from benchrigor.model.text import many
from benchrigor.stats.interference.clustering import Indices
from benchrigor.stats.interference.grouping import FEWEST, undelayed
from benchrigor.stats.interference.mad_threshold import Judged
from benchrigor.stats.interference.traffic_light import probability_high

__all__ = ["doubts", "recording", "reference_doubts"]

_UNCLUSTERED = 10.0
_FEW = 20
"""Of groups of 10 and 15 segments, 1.4 and 0.6 % of 800 simulated runs are off by more than 0.1 in
accuracy, some of them by 0.9; of 20, 25 and 30 none is."""
_RATE = 1000.0
_MATERIAL = 10.0
"""Per cent of the time from which on something is worth a word."""
_MANY, _VALID, _SURE = 0.25, 0.2, 2.33
"""A group has many flagged segments above a quarter, unless a fifth hit, the most that leaves
the median alone, explains them: by 2.33 standard deviations, one group in a hundred."""
_FEWEST_FOR_SHAPE = (20, 100)
_MOVED, _MOVED_FEW = 3.5, (25.0, 100.0)
"""How many spreads of its fast part a group's slow part may lie away: by simulation 0.5 to 2.7
(median over groups of 500) with normal, lognormal, exponential and t(2) noise, of which at most
one group in a hundred exceeds 3.5 + 25/sqrt(n), n >= 50; 21 to 28 with 45 to 70 % of the segments
hit by delays of 50 times the noise. Of the lower triple likewise 3.5 + 100/sqrt(n), n >= 100,
gamma noise too; 17 to 29 with 80 to 90 % hit."""
_MOVED_FAR = 0.05
"""Of the duration; a median cannot have moved farther than the slow half lies away."""
_MIXED_EXCESS = 1.0
_MIXED_SIGMAS, _MIXED_RANK = 4.0, 0.2
"""At most 100 groups have a hundredth of the time in excess: together they warn by chance in less
than one run in a hundred. And the chance that a flagged segment computes more than another must
be beyond 0.3 to 0.7."""
_MIXED_APART, _MIXED_TIME = 0.02, 0.5
"""Instructions of like segments vary by 1 %. Sleeping itself takes 1 to 6 % more CPU time, which
is 1 % of the time slept: only what explains half of the time is work."""
_SAMPLE = 10_000
_GOLDEN = (5.0**0.5 - 1.0) / 2.0
_CHAINED = 30.0
"""Per cent of the time: features spread evenly over a factor of 1.5 have 40 to 50 % in pieces cut
off, CPU times of a few kinds of work on a busy machine up to 26 %."""
_WIDE = 0.07
"""Between probabilities of high interference. Of 800 simulated runs with 1 % normal noise, a fifth
hit at most, none is warned of; of those off by more than 0.1, with lognormal noise of 5 % 70 of 71,
with gamma noise of 10 % 135 of 141 (with a limit of 0.1: 60 and 128)."""
_SPLIT = 1.0
"""Per cent of the time outside of the largest group of otherwise like segments."""
_REFERENCE = 50.0
_RECORDING = 4.0


def doubts(judged: Judged) -> tuple[Notice, ...]:
    """Say what of a run's own segments makes its estimate weaker than it looks."""
    n, total_s = judged.profile.n, judged.total_s
    unclustered = judged.unclustered_percent
    if n < FEWEST:
        few = _notice(
            Code.FEW_SEGMENTS,
            f"Too few segments to tell what is usual ({n}; {FEWEST} alike are wanted): measure "
            "longer, or cut the run into more.",
            n=n,
            wanted=FEWEST,
        )
        return (few,)
    found = [
        _few(judged),
        (unclustered > _UNCLUSTERED)
        and _notice(
            Code.UNCLUSTERED,
            f"{unclustered:.1f}% of the time is in segments with fewer than {FEWEST - 1} others "
            "like them; what was lost there is not counted: measure longer, or drop features "
            "that hardly ever repeat.",
            unclustered_percent=unclustered,
            limit_percent=_UNCLUSTERED,
        ),
        (n / total_s > _RATE)
        and _notice(
            Code.HIGH_SEGMENT_RATE,
            f"{n / total_s:,.0f} segments per second: their features and durations are largely "
            f"what recording costs; cut the run into fewer than {_RATE:,.0f} per second.",
            per_second=n / total_s,
            limit=_RATE,
        ),
        _many_flagged(judged),
        _median_moved(judged),
        _mixed(judged),
        _chained(judged),
        _wide(judged),
        _by_processor_time(judged),
    ]
    return tuple(each for each in found if each)


def _few(judged: Judged) -> Notice | None:
    """Warn where groups are so small that chance decides what is usual in them."""
    percent = judged.percent(judged.durations[judged.groups.sizes < _FEW])
    if percent <= _MATERIAL:
        return None
    return _notice(
        Code.FEW_SEGMENTS,
        f"{percent:.0f}% of the time is in groups of fewer than {_FEW} segments, too few to tell "
        "well what is usual: measure longer. Of a profile, drop features that tell like work "
        "apart.",
        time_percent=percent,
        wanted=_FEW,
    )


def _many_flagged(judged: Judged) -> Notice | None:
    """Warn where more segments were hit than leave the median alone."""
    n, flagged = int(judged.groups.sizes.sum()), int(judged.flagged.sum())
    crowded = _crowded(judged.flagged, judged.groups.sizes)
    percent = judged.percent(judged.durations[crowded])
    if percent <= _MATERIAL and not _crowded(np.array(flagged), np.array(n)):
        return None
    return _notice(
        Code.MANY_FLAGGED,
        f"{100.0 * flagged / n:.0f}% of the segments took longer than usual; above "
        f"{100.0 * _VALID:.0f}% hit the usual itself shifts, and the estimate falls short: take it "
        "for a lower limit, or repeat the run when less goes on.",
        flagged_percent=100.0 * flagged / n,
        time_percent=percent,
    )


def _crowded(flagged: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    chance = _SURE * np.sqrt(_VALID * (1.0 - _VALID) * n)
    return np.asarray(flagged > np.maximum(_MANY * n, _VALID * n + chance))


def _median_moved(judged: Judged) -> Notice | None:
    """Warn where half of a group or more was hit, so that its median is one of those hit.

    Then there is a gap between the quarter and the three fifths of its durations, far wider than
    the undisturbed quarter below it; smooth noise, however skewed, has none. Where up to nine
    tenths were hit, the gap lies lower.
    """
    sizes = judged.groups.sizes
    moved = np.zeros(sizes.size, dtype=bool)
    for (low, usual, beyond), few, fewest in zip(
        judged.quantiles, _MOVED_FEW, _FEWEST_FOR_SHAPE, strict=True
    ):
        limit = (_MOVED + few / np.sqrt(sizes)) * (usual - low)
        gap = beyond - usual > np.maximum(limit, _MOVED_FAR * usual)
        moved |= gap & (sizes >= fewest)
    percent = judged.percent(judged.durations[moved])
    if percent <= _MATERIAL:
        return None
    return _notice(
        Code.MEDIAN_MOVED,
        f"In groups with {percent:.0f}% of the time half of the segments or more took far longer "
        "than the others: where that is interference, the estimate misses it; where it is work of "
        "two kinds, record a feature or a label that tells them apart.",
        time_percent=percent,
        groups=int(np.count_nonzero(moved)),
    )


def _mixed(judged: Judged) -> Notice | None:
    """Warn where the segments flagged computed more, or less, than the rest of their group."""
    groups = judged.groups
    suspects = np.flatnonzero(100.0 * judged.excess > _MIXED_EXCESS * judged.total_s)
    found: dict[str, list[int]] = {}
    for g in suspects.tolist():
        members = groups.order[groups.starts[g] + _sampled(int(groups.sizes[g]))]
        durations = undelayed(judged.profile, members)
        flags = durations > judged.thresholds[g]
        if not flags.any():
            continue
        longer_s = float(np.median(durations[flags]) - np.median(durations[~flags]))
        for name, values in judged.profile.computation.items():
            some, rest = values[members[flags]], values[members[~flags]]
            if _explains(name, some, rest, longer_s) and _differ(some, rest):
                found.setdefault(name, []).append(g)
    if not found:
        return None
    mixed = sorted({g for each in found.values() for g in each})
    percent = judged.percent(judged.excess[mixed])
    names = ", ".join(found)
    return _notice(
        Code.MIXED_SEGMENTS,
        f"In {many(len(mixed), 'group')} the segments that took longer also differ in {names}: the "
        f"{percent:.1f}% lost there may be work of another kind; label the segments.",
        features=names,
        groups=len(mixed),
        excess_percent=percent,
    )


def _sampled(size: int) -> Indices:
    """Return places in a group: all, or of a large one some that keep step with no loop."""
    if size <= _SAMPLE:
        return np.arange(size)
    return np.asarray(size * (_GOLDEN * np.arange(_SAMPLE) % 1.0), dtype=np.int64)


def _explains(name: str, some: Floats, rest: Floats, longer_s: float) -> bool:
    """Tell whether a feature differs enough to be the reason why some segments took longer."""
    usual = float(np.median(rest))
    more = float(np.median(some)) - usual
    if name.endswith("_s") and more < _MIXED_TIME * longer_s:
        return False
    return abs(more) > _MIXED_APART * abs(usual)


def _differ(some: Floats, rest: Floats) -> bool:
    """Tell whether some values surely rank above, or below, the rest (Mann and Whitney's U)."""
    ordered = np.sort(rest)
    below = np.searchsorted(ordered, some, side="left") + np.searchsorted(
        ordered, some, side="right"
    )
    rank = float(below.mean()) / (2.0 * rest.size) - 0.5
    sigma = float(np.sqrt((some.size + rest.size + 1) / (12.0 * some.size * rest.size)))
    return abs(rank) > max(_MIXED_RANK, _MIXED_SIGMAS * sigma)


def _chained(judged: Judged) -> Notice | None:
    """Warn where chains of near values were cut into pieces that all hold much time.

    A class with so much noise that the guard cuts off its end leaves the rest in one piece.
    """
    worst, name = 0.0, ""
    pairs = zip(judged.profile.computation, judged.clusters, strict=True)
    for feature, clusters in pairs:
        if not clusters.chained:
            continue
        pieces = np.bincount(clusters.labels, weights=judged.profile.duration_s)
        largest = np.zeros(int(clusters.chains[-1]) + 1)
        np.maximum.at(largest, clusters.chains, pieces)
        percent = judged.percent(pieces.sum() - largest.sum())
        worst, name = max((worst, name), (percent, feature))
    if worst <= _CHAINED:
        return None
    return _notice(
        Code.CHAINED,
        f"The values of {name} run into each other: {worst:.0f}% of the time is in groups cut off "
        "where there is no gap, of work of different size; label the segments, or record a feature "
        "with less noise.",
        feature=name,
        cut_off_percent=worst,
    )


def _wide(judged: Judged) -> Notice | None:
    """Warn where it matters whether the excess counts from the threshold or from the median."""
    measured = judged.percent(judged.profile.delay_s) if judged.profile.delays else 0.0
    percent, above_median = judged.percent(judged.excess), judged.percent(judged.above_median)
    apart = probability_high(measured + above_median) - probability_high(measured + percent)
    if abs(apart) <= _WIDE:
        return None
    return _notice(
        Code.WIDE_GROUPS,
        "Like segments differ so much that the estimate depends on where the excess is counted "
        f"from: {percent:.1f}% from the threshold, {above_median:.1f}% from the median.",
        percent=percent,
        above_median_percent=above_median,
    )


def _by_processor_time(judged: Judged) -> Notice | None:
    """Note that groups of otherwise like segments differ in seconds alone."""
    profile, groups = judged.profile, judged.groups
    seconds = [name for name in profile.computation if name.endswith("_s")]
    if not seconds:
        return None
    firsts = groups.order[groups.starts]
    others = [
        clusters.labels[firsts].tolist()
        for name, clusters in zip(profile.computation, judged.clusters, strict=True)
        if name not in seconds
    ]
    others += [values[firsts].tolist() for values in profile.nominal.values()]
    kinds = list(zip(*others, strict=True)) or [()] * firsts.size
    largest: dict[tuple[object, ...], float] = {}
    for kind, lasted in zip(kinds, judged.durations.tolist(), strict=True):
        largest[kind] = max(largest.get(kind, 0.0), lasted)
    percent = 100.0 - judged.percent(sum(largest.values()))
    if percent <= _SPLIT:
        return None
    return _notice(
        Code.PROCESSOR_TIME,
        "Work is told apart by processor time, which contention raises too: segments that it "
        "slowed may count as other work; give work amounts or labels.",
        Severity.NOTE,
        features=", ".join(seconds),
        split_percent=percent,
    )


def reference_doubts(matched_percent: float | None) -> tuple[Notice, ...]:
    """Say what is missing of the continuous part; None: there is no reference."""
    if matched_percent is None:
        none = _notice(
            Code.NO_REFERENCE,
            "What slows all segments alike does not show in one run: give an undisturbed run of "
            "the same program as reference to see it.",
            Severity.NOTE,
        )
        return (none,)
    if matched_percent >= _REFERENCE:
        return ()
    differs = _notice(
        Code.REFERENCE_DIFFERS,
        f"Only {matched_percent:.0f}% of the time is in groups that the reference has too "
        f"({_REFERENCE:.0f}% wanted): the continuous part tells of those alone; take a reference "
        "with the same input.",
        matched_percent=matched_percent,
        wanted_percent=_REFERENCE,
    )
    return (differs,)


def recording(profile: SegmentProfile, total_s: float) -> tuple[Notice, ...]:
    """Say what the way a profile was recorded means for the estimate."""
    found = []
    other_s, own_s = _fact(profile, "other_cpu_s"), _fact(profile, "thread_cpu_s")
    if other_s > own_s and 100.0 * other_s > _MATERIAL * total_s:
        found.append(
            _notice(
                Code.DELAY_NOT_MEASURED,
                "Most processor time was used by other threads or processes: what they lost is "
                "not measured.",
                other_cpu_s=other_s,
                thread_cpu_s=own_s,
            )
        )
    elif not profile.delays:
        found.append(
            _notice(
                Code.DELAY_NOT_MEASURED,
                "No delay was measured: a neighbour that takes the processor all the time slows "
                "all segments alike, and does not show in the estimate.",
                Severity.NOTE,
            )
        )
    cost_s = _fact(profile, "recording_cost_s")
    if 100.0 * cost_s > _RECORDING * total_s:
        percent = 100.0 * cost_s / total_s
        found.append(
            _notice(
                Code.RECORDING_COST,
                f"Recording took {percent:.1f}% of the time ({_RECORDING:.0f}% is fair): cut the "
                "run into fewer segments.",
                recording_percent=percent,
                limit_percent=_RECORDING,
            )
        )
    return tuple(found)


def _fact(profile: SegmentProfile, name: str) -> float:
    value = profile.facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _notice(
    code: Code, sentence: str, severity: Severity = Severity.WARNING, **evidence: float | str
) -> Notice:
    told: Evidence = evidence
    return Notice(code=code, severity=severity, sentence=sentence, evidence=told)
