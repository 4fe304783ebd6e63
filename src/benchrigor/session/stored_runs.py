"""Stored runs of the same thing: their mean, and the spread between runs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from benchrigor.errors import StoreFailed
from benchrigor.model import Analysis, Code, Estimate, Notice, Pace, RunRecord, codec
from benchrigor.model.machine import reference_s
from benchrigor.model.run import AGAIN, PAIR, Provenance
from benchrigor.protocols import Store
from benchrigor.stats.figures_at_full_speed import at_sensitivity
from benchrigor.stats.pace import of_machine
from benchrigor.stats.series.full_speed import (
    OTHER_WAY,
    Point,
    Told,
    slope_of_runs,
    spread_of,
    widening,
    with_spread,
)
from benchrigor.stats.series.interval import is_wide

_LEAST_ERROR = 1e-6  # of a figure that its readings show exactly

T = TypeVar("T")

_MOST = 12  # runs of a name that are loaded, the newest first: they may hold many readings
_LENGTH = {  # options about the length of a run and its reports, not about its number
    *("target", "confidence", "preset", "budget_readings", "budget_s", "min_seconds"),
    *("quick_s", "quick_rounds", "min_rounds", "max_rounds"),
    "target_given",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run and its figure at full speed; ``version`` identifies the code."""

    work: str
    version: tuple[str, str]
    pace: Pace
    figure: Estimate
    is_speed: bool

    def point(self, full_s: float) -> Point:
        """Return its time at its own fastest moments, and how far these are from a full speed."""
        pace, sign = self.pace, -1.0 if self.is_speed else 1.0
        own, away = pace.fastest_reference, 0.0
        if own is not None:  # not of commands
            away = own + math.log(reference_s(pace.full_s) / full_s)
        moved, _ = of_machine(own or 0.0)
        error = (self.figure.standard_error or 0.0) / pace.widening / self.figure.value
        variance = max(error**2 - (moved * pace.to_full_sd) ** 2, pace.error**2, _LEAST_ERROR**2)
        level = sign * math.log(self.figure.value) + pace.to_full * moved
        return Point(of_machine(away)[0], level, variance)

    def told(self, full_s: float, to_full: tuple[float, float]) -> Told:
        """Return logarithm and variance of its time at a full speed, by that sensitivity."""
        away, level, variance = self.point(full_s)
        return Told(level - to_full[0] * away, variance + (to_full[1] * away) ** 2)


def with_history(record: RunRecord, store: Store) -> RunRecord:
    """Add to the figures of a record at full speed what similar runs in a store show.

    That is the sensitivity of their work to the distance from full speed, and the spread between
    them. If the store fails, the record stays as it is.
    """
    stored, statistic = StoredRuns(store), record.options.statistic
    try:
        analyses = [_with_like_runs(record, a, stored, statistic) for a in record.analyses]
    except StoreFailed:
        return record
    return replace(record, analyses=tuple(analyses))


def _with_like_runs(
    record: RunRecord, analysis: Analysis, stored: StoredRuns, statistic: str
) -> Analysis:
    pace, figure = analysis.pace, analysis.at_full_pace
    if pace is None or figure is None:
        return analysis
    like = stored.beside([record], [pace], statistic, analysis.metric.name)
    full_s = reference_s(pace.full_s)
    to_full = like.to_full(pace)
    figure, pace = at_sensitivity(figure, pace, to_full, is_speed=analysis.wps is not None)
    spread = like.spread(full_s, to_full)
    figure = with_spread(figure, spread) if spread[1] else figure
    return replace(
        analysis,
        pace=replace(pace, widening=widening(spread)),
        at_full_pace=None if is_wide(figure) else figure,
    )


class StoredRuns:
    """The runs of a store; a run is loaded once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: dict[tuple[str, str], _Run | None] = {}

    def beside(
        self, runs: Sequence[RunRecord], paces: Sequence[Pace], statistic: str, metric: str
    ) -> LikeRuns:
        """Return the other runs that measured the same statistic of the same work as one of these.

        They have the same options, apart from options of length, and the same machine,
        interpreter and version of the reference.
        """
        works = [_work(run, pace, statistic) for run, pace in zip(runs, paces, strict=True)]
        names = dict.fromkeys(run.name for run in runs)
        found = (run for name in names for run in self.apart(runs, name, metric))
        others = [run for run in found if run.work in works]
        return LikeRuns(
            versions=tuple((work, _version(run)) for work, run in zip(works, runs, strict=True)),
            others=tuple(others),
        )

    def apart(self, runs: Sequence[RunRecord], name: str, metric: str) -> Iterator[_Run]:
        """Return other runs of a name, the newest first; few, for loading is slow."""
        known = {run.run_id for run in runs}
        listed = [
            str(run["run_id"])
            for run in sorted(
                self._store.runs(name), key=lambda run: str(run.get("started_at")), reverse=True
            )
            if run["name"] == name and run["run_id"] not in known and not run.get("damage")
        ]
        for run_id in listed[:_MOST]:
            if (run_id, metric) not in self._loaded:
                self._loaded[run_id, metric] = _read_run(self._store.load(run_id), metric)
            found = self._loaded[run_id, metric]
            if found is not None:
                yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeRuns:
    """Runs next to one, or to two that are compared.

    ``versions`` are the work of these and the version of its code, None if that is not known.
    """

    versions: tuple[tuple[str, tuple[str, str] | None], ...] = ()
    others: tuple[_Run, ...] = ()

    @property
    def paces(self) -> list[Pace]:
        """The paces of the others, as evidence of the sensitivity."""
        return [other.pace for other in self.others]

    def to_full(self, pace: Pace) -> tuple[float, float]:
        """Return the sensitivity to the distance from full speed, by a run and the others."""
        full_s = reference_s(pace.full_s)
        points = [other.point(full_s) for other in self.others]
        groups = self._by_version(points).values()
        return slope_of_runs(groups, (pace.to_full, pace.to_full_sd), own=OTHER_WAY * pace.busy)

    def spread(self, full_s: float, to_full: tuple[float, float]) -> tuple[float, float]:
        """Return the spread between the others, pooled over the versions of the work."""
        return spread_of(self._by_version(self._told(full_s, to_full)).values())

    def means(
        self,
        own: Sequence[Estimate],
        full_s: float,
        to_full: tuple[float, float],
        *,
        is_speed: bool,
    ) -> tuple[list[Estimate], tuple[Notice, ...]]:
        """Return for both runs the mean of their figure and similar stored runs.

        If both runs have the same version, the stored runs belong to neither, and both stand alone.
        """
        groups = self._by_version(self._told(full_s, to_full))
        spread = spread_of(groups.values())
        is_alone = len(set(self.versions)) < len(own)
        alike = [[] for _ in own] if is_alone else [groups[key] for key in self.versions]
        means = [
            _mean(one, more, spread, sign=-1.0 if is_speed else 1.0)
            for one, more in zip(own, alike, strict=True)
        ]
        counts = [len(more) for more in alike]
        told = Notice.of(Code.STORED_RUNS, baseline_=counts[0], candidate_=counts[1])
        return means, (told,) if any(counts) else ()

    def _told(self, full_s: float, to_full: tuple[float, float]) -> list[Told]:
        return [other.told(full_s, to_full) for other in self.others]

    def _by_version(self, items: Sequence[T]) -> dict[object, list[T]]:
        groups: dict[object, list[T]] = defaultdict(list)
        for other, item in zip(self.others, items, strict=True):
            groups[other.work, other.version].append(item)
        return groups


def _mean(
    own: Estimate, others: Sequence[Told], spread: tuple[float, float], *, sign: float
) -> Estimate:
    """Return the mean of a run's own figure and of others, weighted by their variances.

    The others hold logarithms of times; ``sign`` is -1 where the figure is a speed.
    """
    error = (own.standard_error or 0.0) / own.value
    if not others or not error:
        return with_spread(own, spread) if spread[1] else own
    values, variances = np.array([(sign * math.log(own.value), error**2), *others]).T
    value = math.exp(sign * float(np.average(values, weights=1.0 / variances)))
    error = float((1.0 / variances).sum()) ** -0.5
    mean = replace(own, value=value, standard_error=value * error, n=own.n + len(others))
    return with_spread(mean, spread)


def _read_run(run: RunRecord, metric: str) -> _Run | None:
    """Return a run of a known version with its figure at full speed, if it has one."""
    analysis = next((analysis for analysis in run.analyses if analysis.metric.name == metric), None)
    version = _version(run)
    if analysis is None or analysis.pace is None or version is None:
        return None
    pace, figure = analysis.pace, analysis.at_full_pace
    if figure is None or not figure.standard_error or figure.value <= 0.0:
        return None
    work, is_speed = _work(run, pace, run.options.statistic), analysis.wps is not None
    return _Run(work=work, version=version, pace=pace, figure=figure, is_speed=is_speed)


def conditions_of_speed(where: Provenance | None) -> dict[str, str]:
    """Return the machine, its settings and the interpreter, which full speed depends on."""
    if where is None:
        return {"machine": "unknown", "interpreter": "unknown"}
    settings = {known.name: known.value for known in where.capabilities if known.value}
    found = {"machine": f"{where.host}, {where.cores} x {where.cpu}"}
    found |= {name: settings[name] for name in ("cpu governor", "power source") if name in settings}
    return found | {"interpreter": where.python}


def paced_by(where: Provenance | None, pace: Pace) -> dict[str, str]:
    """Return the conditions of full speed, with the reference and its version."""
    reference = f"{', '.join(sorted(pace.full_s))} {pace.version}"
    return {**conditions_of_speed(where), "version of the reference": reference}


def _work(run: RunRecord, pace: Pace, statistic: str) -> str:
    """Identify the work, statistic and conditions of a run, but not the version of the code."""
    options = codec.encode(replace(run.options, statistic=statistic))
    asked = {name: value for name, value in options.items() if name not in _LENGTH}
    told = [{**run.subject, PAIR: "", AGAIN: ""}, asked, paced_by(run.provenance, pace)]
    return json.dumps(told, sort_keys=True, default=str)


def _version(run: RunRecord) -> tuple[str, str] | None:
    """Return the version of the measured code; a commit alone does not identify it."""
    where = run.provenance
    return None if where is None or where.source is None else (str(where.commit), where.source)
