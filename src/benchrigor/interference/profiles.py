"""One profile of many: of the processes of a run, and of several runs; bins for their columns.

The profile of several disturbed runs has the undisturbed duration of the program. Its method and
its interval are ours. Profiles of processes are merged as in Shah et al. 2018, section 2,
"Profiling Methodology", which aggregates nominal columns "beyond a threshold" without more detail.

Quantised columns are numbers replaced by the nearest of a few hundred bins. Nearest means by
distance over the smaller size: of 20,000 values of 40 classes over 3 decades with 1 % noise none
moves by more than 1.6 %; by plain distance values move by up to 68 %, and clusters merge.
"""

from __future__ import annotations

import math
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Interference, Notice, SegmentProfile
from benchrigor.model.checks import refuse, wrong_kinds, wrong_whole
from benchrigor.model.notice import Severity
from benchrigor.model.readings import Facts
from benchrigor.model.segments import Composite, CompositeGroup
from benchrigor.model.series import Floats, Ints, as_series, short
from benchrigor.stats.interference import MATERIAL, differing_columns, profile_interference
from benchrigor.stats.segment_groups import (
    DIVERSE,
    MIN_IN_GROUP,
    RunExcess,
    concatenate,
    group_by_code,
    group_codes,
    merge_columns,
    relative_distances,
    volumes_as_computation,
    without_delay,
)
from benchrigor.stats.series.interval import check_confidence
from benchrigor.stats.statistic import combine_values

_BLOCK = 2_048
_MAX_BINS = 65_536  # the most that two bytes can number

_Indices = npt.NDArray[np.intp]
_Small = npt.NDArray[np.uint8]


class Quantiser:
    """A growing column of numbers, kept exactly up to that many distinct values, else in bins.

    The two nearest bins are merged at their weighted mean, and values already kept move with them.
    Merging in blocks takes half a microsecond a value, and up to 256 bins 1.3 bytes.
    """

    __slots__ = ("_blocks", "_centroids", "_most", "_pending", "_weights")

    def __init__(self, bins: int = 256) -> None:
        self._most = bins
        self._centroids: Floats = np.empty(0)
        self._weights: Floats = np.empty(0)
        # By block: the new indices of the previous bins, and the bins of its values.
        self._blocks: list[tuple[_Small, _Small]] = []
        self._pending = array("d")

    def append(self, value: float) -> None:
        """Keep one more value."""
        self._pending.append(value)
        if len(self._pending) >= _BLOCK:
            self._pack()

    def add(self, values: npt.ArrayLike) -> None:
        """Keep more values, shape (n,)."""
        series = np.asarray(values, dtype=np.float64)
        start = 0
        while start < series.size:
            stop = start + _BLOCK - len(self._pending)
            self._pending.frombytes(series[start:stop].tobytes())
            start = stop
            if len(self._pending) >= _BLOCK:
                self._pack()

    def values(self) -> Floats:
        """Return all values in order, as their bins have them now; shape (n,)."""
        # Pending values are merged for the answer only: looking often has no effect.
        centroids, _, moved, last = self._merge()
        parts = [centroids[last]]
        for before, indices in reversed(self._blocks):
            parts.append(centroids[moved[indices]])
            moved = moved[before]
        return np.concatenate(parts[::-1])

    def _pack(self) -> None:
        """Move the pending values into a block of their own."""
        self._centroids, self._weights, moved, indices = self._merge()
        self._blocks.append((moved.astype(np.uint8), indices.astype(np.uint8)))
        self._pending = array("d")

    def _merge(self) -> tuple[Floats, Floats, _Indices, _Indices]:
        """Return centroids, weights, and the bins of old centroids and of pending values."""
        known = self._centroids.size
        values = np.concatenate([self._centroids, self._pending])
        distinct, inverse = np.unique(values, return_inverse=True)
        before = np.concatenate([self._weights, np.ones(len(self._pending))])
        weights: Floats = np.bincount(inverse, before).astype(np.float64, copy=False)
        centroids, weights, bin_of = _merge_nearest(distinct, weights, self._most)
        return centroids, weights, bin_of[inverse[:known]], bin_of[inverse[known:]]


def quantise(values: npt.ArrayLike, bins: int = 256) -> Floats:
    """Replace values by the nearest of a bounded number of bins, all of them at once.

    Parameters
    ----------
    values
        Numbers, shape (n,).
    bins
        How many distinct values there may be, from 2 to 65536.

    Returns
    -------
    numpy.ndarray
        Shape (n,): the values themselves if no more than ``bins`` are distinct; else each is
        the mean of those merged with it, nearest first, by distance over the smaller size.

    Raises
    ------
    InvalidInput
        When the values or the number of bins are out of range.

    Examples
    --------
    >>> quantise([1.0, 1.02, 5.0, 9.0], bins=3)
    array([1.01, 1.01, 5.  , 9.  ])
    """
    refuse(wrong_whole("bins", bins, least=2, most=_MAX_BINS))
    distinct, inverse, counts = np.unique(
        as_series(values), return_inverse=True, return_counts=True
    )
    centroids, _, bin_of = _merge_nearest(distinct, counts.astype(np.float64), int(bins))
    return centroids[bin_of[inverse]]


def _merge_nearest(
    centroids: Floats, weights: Floats, most: int
) -> tuple[Floats, Floats, _Indices]:
    """Merge neighbours, nearest first, until ``most`` are left; also return their new indices.

    A pass does half of the merges still needed, over the narrowest gaps, up to one per bin.
    """
    bin_of = np.arange(centroids.size)
    while centroids.size > most:
        need = centroids.size - most
        gaps = relative_distances(centroids[:-1], centroids[1:])
        few = max(1, need // 2)
        narrow = np.flatnonzero(gaps <= np.partition(gaps, few - 1)[few - 1])
        count = np.arange(narrow.size)
        run_start = np.maximum.accumulate(np.where(np.diff(narrow, prepend=-2) > 1, count, 0))
        first = narrow[(count - run_start) % 2 == 0]
        if first.size > need:  # more gaps of the same width than merges needed
            first = first[np.argsort(gaps[first], kind="stable")[:need]]
        share = weights[first + 1] / (weights[first] + weights[first + 1])
        weights[first] += weights[first + 1]
        centroids[first] += (centroids[first + 1] - centroids[first]) * share
        kept = np.ones(centroids.size, dtype=bool)
        kept[first + 1] = False
        bin_of = (np.cumsum(kept) - 1)[bin_of]
        centroids, weights = centroids[kept], weights[kept]
    return centroids, weights, bin_of


_BINS = 512
_LONGEST = 32  # characters of a combination: a table has room for it next to its figures
_KINDS = ("computation", "nominal", "delays", "evidence")

_Columns = npt.NDArray[Any]  # one column, for all processes, shape (processes, n)


def merge_processes(profiles: Iterable[SegmentProfile]) -> SegmentProfile:
    """Merge the profiles of the processes of one run.

    Parameters
    ----------
    profiles
        The profiles of all processes of one run, in any order. A single one is returned as it is.

    Returns
    -------
    SegmentProfile
        Per segment:

        - duration and computation: the median over the processes;
        - nominal columns: the value, if the processes agree in all segments. Else the column
          becomes text, with the values in the order of the processes: "4,096 ×3 | 8,192". A long
          text is cut, with a mark of the rest: "4,096 | 8,192 | 64 | 4,0… #5f2c81d0". Numbers with
          more than 512 combinations are summed instead. So are numbers of bytes with more
          combinations than a tenth of the segments; they are clustered like computation;
        - delays: the delays of the process with most delay, for which all others wait;
        - evidence: the sum.

        Numbers are quantised to 512 bins. If facts differ, the largest number is kept, or a list
        of the values if they are not numbers; "merged_processes" is the number of profiles.

    Raises
    ------
    InvalidInput
        When no profile is given, the profiles are not the processes of one run, or they differ in
        their number of segments or their columns.

    Examples
    --------
    >>> ranks = [
    ...     SegmentProfile(
    ...         duration_s=[1.0, 2.0], computation={"work": work}, process=index, processes=2
    ...     )
    ...     for index, work in enumerate([[10.0, 20.0], [30.0, 20.0]])
    ... ]
    >>> merge_processes(ranks).computation
    {'work': array([20., 20.])}
    """
    processes = sorted(_check_processes(_listed(profiles)), key=lambda profile: profile.process)
    first = processes[0]
    if len(processes) == 1:
        return first

    facts = _join_facts([process.facts for process in processes])
    return SegmentProfile(
        duration_s=np.median([process.duration_s for process in processes], axis=0),
        computation=merge_columns(processes, "computation", _medians),
        nominal={
            name: _combine([process.nominal[name] for process in processes], name.endswith("bytes"))
            for name in first.nominal
        },
        delays=_longest_delays(processes),
        evidence=merge_columns(processes, "evidence", partial(np.sum, axis=0)),
        program=first.program,
        run=first.run,
        processes=first.processes,
        facts={**facts, "merged_processes": len(processes)},
    )


def _listed(profiles: Iterable[SegmentProfile]) -> list[SegmentProfile]:
    """Return profiles as a list, or raise if another thing is among them."""
    if not isinstance(profiles, Iterable):
        raise InvalidInput(f"profiles is {short(profiles)}, expected a sequence of SegmentProfile")
    listed = list(profiles)
    refuse(wrong_kinds(listed, "profiles", SegmentProfile))
    return listed


def _check_processes(profiles: list[SegmentProfile]) -> list[SegmentProfile]:
    """Return the profiles, or raise if they are not of different processes of one run."""
    if not profiles:
        raise InvalidInput("profiles is empty, expected one of each process")
    names = [f"profiles[{index}] (process {one.process})" for index, one in enumerate(profiles)]
    problems = [
        f"{names[one]} and {names[other]} are of the same process, expected each only once"
        for one, other in combinations(range(len(profiles)), 2)
        if profiles[one].process == profiles[other].process
    ]
    first = profiles[0]
    for name, profile in zip(names[1:], profiles[1:], strict=True):
        if (profile.run, profile.processes) != (first.run, first.processes):
            problems.append(
                f"{name} is of {profile.processes} of run {profile.run!r}, {names[0]} of "
                f"{first.processes} of run {first.run!r}: give processes of one run only"
            )
        if profile.n != first.n:
            problems.append(
                f"{name} has {profile.n} segments, {names[0]} {first.n}: cut segments only where "
                "all processes pass"
            )
        problems += differing_columns(name, profile, names[0], first, _KINDS)
    refuse(problems)
    return profiles


def _medians(columns: Sequence[_Columns]) -> _Columns:
    return np.asarray(np.median(_merge_into_bins(np.array(columns)), axis=0))


def _merge_into_bins(columns: _Columns) -> _Columns:
    """Merge the values of all processes into the program's bins; strings stay."""
    if columns.dtype.kind == "U" or np.unique(columns).size <= _BINS:
        return columns
    return quantise(columns.ravel(), _BINS).reshape(columns.shape)


def _combine(of_processes: Sequence[_Columns], volumes: bool) -> _Columns:
    """Return the combinations of the processes' values, by segment."""
    columns = np.array(of_processes)
    agree = (columns == columns[0]).all(axis=0)
    columns = _merge_into_bins(columns)
    if agree.all():
        return np.asarray(columns[0])
    codes: npt.NDArray[np.int64] = np.zeros(agree.size, dtype=np.int64)
    for column in columns:
        _, places = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * agree.size + places, return_inverse=True)
    _, first = np.unique(codes, return_index=True)
    most = min(_BINS, DIVERSE * agree.size) if volumes else _BINS
    if columns.dtype.kind != "U" and first.size > most:
        return _merge_into_bins(columns.sum(axis=0))
    names = [_show_values(columns[:, place].tolist()) for place in first.tolist()]
    times = Counter(names)
    names = [
        name if times[name] == 1 else f"{name} #{code}"  # numbers that look the same, or a hash
        for code, name in enumerate(names)
    ]
    return np.array(names)[codes]


def _show_values(values: Sequence[str | float]) -> str:
    """Show the values of all processes, in their order; equal values give equal texts."""
    shown = [value if isinstance(value, str) else f"{value:,.9g}" for value in values]
    runs = [(value, len(list(same))) for value, same in groupby(shown)]
    if len(runs) == 1:
        return shown[0]
    text = " | ".join(value if times == 1 else f"{value} ×{times}" for value, times in runs)
    if len(text) <= _LONGEST:
        return text
    mark = f"… #{zlib.crc32(text.encode()):08x}"
    return text[: _LONGEST - len(mark)] + mark


def _longest_delays(profiles: Sequence[SegmentProfile]) -> dict[str, Floats]:
    """Return, segment by segment, the delays of the process with the largest sum of them."""
    names = list(profiles[0].delays)
    if not names:
        return {}
    delays = np.array([[profile.delays[name] for name in names] for profile in profiles])
    latest = delays.sum(axis=1).argmax(axis=0)
    return dict(zip(names, delays[latest, :, np.arange(latest.size)].T, strict=True))


def _join_facts(facts: Sequence[Facts]) -> Facts:
    """Return facts that all share, the largest of numbers that differ, a list of all else."""
    joined: dict[str, str | int | float | bool | None] = {}
    for name in dict.fromkeys(name for fact in facts for name in fact):
        values = list(dict.fromkeys(fact[name] for fact in facts if fact.get(name) is not None))
        numbers = [value for value in values if not isinstance(value, str | bool | None)]
        if len(values) > 1:
            values = [max(numbers) if len(numbers) == len(values) else ", ".join(map(str, values))]
        joined[name] = values[0] if values else None
    return joined


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
    runs = _check_runs(_listed(profiles))
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


def _check_runs(runs: list[SegmentProfile]) -> list[SegmentProfile]:
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
