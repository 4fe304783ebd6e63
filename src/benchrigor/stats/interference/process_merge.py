"""The program's segments from those of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Floats, SegmentProfile
from benchrigor.model.readings import Facts
from benchrigor.model.series import short
from benchrigor.stats.interference.binning import check_bins, quantise

__all__ = ["merge_processes", "profiles_among"]

_KINDS = ("computation", "nominal", "delays", "evidence")

_Columns = npt.NDArray[Any]
"""One column of each process, shape (processes, n)."""


def merge_processes(profiles: Iterable[SegmentProfile], *, bins: int = 512) -> SegmentProfile:
    """Make one profile of a program from those of its processes.

    Parameters
    ----------
    profiles
        Of the processes of one run, in any order. One alone is returned as it is.
    bins
        How many distinct values a column of numbers, and how many distinct combinations of what
        the processes did, may have in the whole program; from 2 to 65536.

    Returns
    -------
    SegmentProfile
        For each segment:

        - its duration, the median of the processes. Boundaries synchronise them, so that they
          agree but for when each leaves the boundary, and the median follows no straggler;
        - each computation column, the median of the processes;
        - each nominal column, as it is where all processes agree. Else what identifies the
          combination of their values: numbers from 0 on for numbers, "combination 0" and so on
          for strings (in segments where the processes differ). Numbers with more than ``bins``
          combinations are summed instead;
        - the delays, those of the process that was held up longest, all sources together: who is
          late makes all wait, but for one of them at a time;
        - each column of evidence, the sum.

        Of facts that differ, numbers become the largest, all else a list; "merged_processes" is
        how many there were, which may be fewer than ``processes`` of the run.

    Raises
    ------
    InvalidInput
        When there is no profile, or they are not the processes of one run, or differ in how many
        segments or which columns they have.

    Notes
    -----
    Source: Shah, Mueller, Wolf et al., 'Estimating the impact of external interference on
    application performance' (Euro-Par 2018), section 2, profiling methodology. The paper says
    that nominal columns are aggregated beyond a threshold, but not which, nor how.

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
    given = sorted(_checked(profiles), key=lambda each: each.process)
    check_bins(bins)
    first = given[0]
    if len(given) == 1:
        return first

    def of_all(kind: str, name: str) -> _Columns:
        return np.array([getattr(each, kind)[name] for each in given])

    return SegmentProfile(
        duration_s=np.median([each.duration_s for each in given], axis=0),
        computation={
            name: np.median(_binned(of_all("computation", name), bins), axis=0)
            for name in first.computation
        },
        nominal={name: _combined(of_all("nominal", name), bins) for name in first.nominal},
        delays=_of_the_latest(given),
        evidence={name: of_all("evidence", name).sum(axis=0) for name in first.evidence},
        program=first.program,
        run=first.run,
        processes=first.processes,
        facts={**_joined([each.facts for each in given]), "merged_processes": len(given)},
    )


def profiles_among(profiles: Iterable[SegmentProfile]) -> list[SegmentProfile]:
    """Return profiles as a list; raise where anything else is among them."""
    if not isinstance(profiles, Iterable):
        raise InvalidInput(f"profiles is {short(profiles)}, expected a sequence of SegmentProfile")
    given = list(profiles)
    problems = [
        f"profiles[{index}] is {short(each)}, expected a SegmentProfile"
        for index, each in enumerate(given)
        if not isinstance(each, SegmentProfile)
    ]
    if problems:
        raise InvalidInput(problems)
    return given


def _checked(profiles: Iterable[SegmentProfile]) -> list[SegmentProfile]:
    given = profiles_among(profiles)
    problems = _misfits(given) if given else ["profiles is empty, expected one of each process"]
    if problems:
        raise InvalidInput(problems)
    return given


def _misfits(given: Sequence[SegmentProfile]) -> list[str]:
    """Say which profiles are not of the same run as the first one, or of a process twice."""
    names = [f"profiles[{index}] (process {each.process})" for index, each in enumerate(given)]
    problems = [
        f"{names[one]} and {names[other]} are of the same process, expected each only once"
        for one, other in combinations(range(len(given)), 2)
        if given[one].process == given[other].process
    ]
    first = given[0]
    for name, each in zip(names[1:], given[1:], strict=True):
        if (each.run, each.processes) != (first.run, first.processes):
            problems.append(
                f"{name} is of {each.processes} of run {each.run!r}, {names[0]} of "
                f"{first.processes} of run {first.run!r}: give those of one run only"
            )
        if each.n != first.n:
            problems.append(
                f"{name} has {each.n} segments, {names[0]} {first.n}: cut segments only where all "
                "processes pass"
            )
        for kind in _KINDS:
            here, there = set(getattr(each, kind)), set(getattr(first, kind))
            if here != there:
                problems.append(
                    f"{name} has {kind} {sorted(here)}, {names[0]} {sorted(there)}: record the "
                    "same in all processes, or leave out what some lack"
                )
    return problems


def _binned(columns: _Columns, bins: int) -> _Columns:
    """Merge the values of all processes into the program's bins; strings stay."""
    if columns.dtype.kind == "U" or np.unique(columns).size <= bins:
        return columns
    return quantise(columns.ravel(), bins).reshape(columns.shape)


def _combined(columns: _Columns, bins: int) -> _Columns:
    """Return what identifies the combination of the processes' values in each segment."""
    agree = (columns == columns[0]).all(axis=0)
    columns = _binned(columns, bins)
    if agree.all():
        return np.asarray(columns[0])
    codes: npt.NDArray[np.int64] = np.zeros(agree.size, dtype=np.int64)
    for column in columns:
        _, places = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * agree.size + places, return_inverse=True)
    if columns.dtype.kind == "U":
        coded = np.array([f"combination {code}" for code in range(int(codes.max()) + 1)])[codes]
        return np.where(agree, columns[0], coded)
    if int(codes.max()) < bins:
        return codes
    return _binned(np.asarray(columns.sum(axis=0)), bins)


def _of_the_latest(profiles: Sequence[SegmentProfile]) -> dict[str, Floats]:
    """Return, segment by segment, the delays of the process with the largest sum of them."""
    names = list(profiles[0].delays)
    if not names:
        return {}
    lost = np.array([[each.delays[name] for name in names] for each in profiles])
    latest = lost.sum(axis=1).argmax(axis=0)
    return dict(zip(names, lost[latest, :, np.arange(latest.size)].T, strict=True))


def _joined(facts: Sequence[Facts]) -> Facts:
    """Return facts that all share, the largest of numbers that differ, all of what else does."""
    found: dict[str, str | int | float | bool | None] = {}
    for name in dict.fromkeys(name for each in facts for name in each):
        values = list(dict.fromkeys(each[name] for each in facts if each.get(name) is not None))
        if len(values) <= 1:
            found[name] = values[0] if values else None
        elif all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in values
        ):
            found[name] = max(values)  # type: ignore[type-var]
        else:
            found[name] = ", ".join(map(str, values))
    return found
