"""What stored runs of the same thing tell: a mean of several, and how far apart runs are."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from benchrigor.errors import StoreFailed
from benchrigor.model import Analysis, Code, Estimate, Notice, Pace, Provenance, RunRecord, codec
from benchrigor.model.pace import reference_s
from benchrigor.protocols import Store
from benchrigor.stats.estimators.headline import (
    Told,
    one_of_each_cluster,
    spread_of,
    widening,
    with_spread,
)
from benchrigor.stats.estimators.pace import moved
from benchrigor.stats.series.interval import StandardError, t_interval

PAIR = "pair"  # in the subjects of both sides of a comparison the same, and of no other run
AGAIN = "command line"  # likewise in their subjects: measures both again
_MOST = 30  # runs of a name that are loaded, the newest first: they may hold many readings
_MOST_APART = 12  # at different times, at the end of each run
_ENOUGH = 5  # degrees of freedom of the spread between runs, from which on nothing is assumed
_LENGTH = {  # options that say how long a run lasts and what is told, not what its number is of
    *("target", "confidence", "preset", "budget_readings", "budget_s", "min_seconds"),
    *("quick_s", "quick_rounds", "readings_per_round", "min_rounds", "max_rounds", "max_rejected"),
    *("state", "on_alarm"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run at full pace; ``version`` is that of the code."""

    work: str
    version: tuple[str, str]
    pace: Pace
    figure: Estimate
    told: Told | None


def with_history(record: RunRecord, store: Store) -> RunRecord:
    """Return a record whose headlines have the spread that like runs of a store show.

    Runs that a store cannot give show nothing.
    """
    stored, statistic = StoredRuns(store), record.options.statistic
    try:
        analyses = [_with_spread(record, each, stored, statistic) for each in record.analyses]
    except StoreFailed:
        return record
    return replace(record, analyses=tuple(analyses))


def _with_spread(
    record: RunRecord, analysis: Analysis, stored: StoredRuns, statistic: str
) -> Analysis:
    pace, figure = analysis.pace, analysis.headline
    if pace is None or figure is None:
        return analysis
    work, groups = _work(record, pace, statistic), defaultdict[object, list[Told]](list)
    for run in stored.apart(record, analysis.metric.name):
        if run.work == work and run.told is not None:
            groups[run.version].append(_at_quiet(run.told, run.pace, pace))
    spread = spread_of(groups.values())
    return replace(
        analysis,
        pace=replace(pace, widening=widening(spread)),
        headline=with_spread(figure, spread, pace.widening),
    )


class StoredRuns:
    """The runs of a store, each of which is loaded once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: dict[tuple[str, str], _Run | None] = {}

    def beside(
        self, runs: Sequence[RunRecord], paces: Sequence[Pace], statistic: str, metric: str
    ) -> LikeRuns:
        """Return the other runs that measured the same statistic of the same work as one of these.

        They have the same options but for those of their length, and the same machine,
        interpreter and version of the reference.
        """
        works = [_work(each, pace, statistic) for each, pace in zip(runs, paces, strict=True)]
        others = [each for each in self._others(runs, metric) if each.work in works]
        return LikeRuns(
            versions=tuple((work, _version(each)) for work, each in zip(works, runs, strict=True)),
            others=tuple(others),
        )

    def apart(self, record: RunRecord, metric: str) -> Iterator[_Run]:
        """Return other runs of the same name, one of each ten minutes; few, for loading is slow."""
        listed = [
            run
            for run in self._listed(record.name)
            if run["run_id"] != record.run_id and run.get("started_at") and not run.get("damage")
        ]
        began = [datetime.fromisoformat(run["started_at"]).timestamp() for run in listed]
        chosen = one_of_each_cluster(began)[:_MOST_APART]
        return self._load([str(listed[index]["run_id"]) for index in chosen], metric)

    def _others(self, runs: Sequence[RunRecord], metric: str) -> Iterator[_Run]:
        known = {each.run_id for each in runs}
        for name in dict.fromkeys(each.name for each in runs):
            listed = [str(run["run_id"]) for run in self._listed(name)][:_MOST]
            yield from self._load([run_id for run_id in listed if run_id not in known], metric)

    def _listed(self, name: str) -> list[dict[str, Any]]:
        return [run for run in self._store.runs(name) if run["name"] == name]

    def _load(self, run_ids: Sequence[str], metric: str) -> Iterator[_Run]:
        for run_id in run_ids:
            if (run_id, metric) not in self._loaded:
                self._loaded[run_id, metric] = _told(self._store.load(run_id), metric)
            found = self._loaded[run_id, metric]
            if found is not None:
                yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeRuns:
    """Runs beside two that are compared.

    ``versions`` are the work of these and the version of its code, None where nobody knows that.
    """

    versions: tuple[tuple[str, tuple[str, str] | None], ...]
    others: tuple[_Run, ...]

    @property
    def paces(self) -> list[Pace]:
        """The paces of the others: what they tell of the sensitivity."""
        return [each.pace for each in self.others]

    def means(
        self, own: Sequence[Estimate], full_s: float, sensitivity: float
    ) -> tuple[list[Estimate], tuple[Notice, ...]]:
        """Return the mean of each of two, by its figure at full pace, and of those like it.

        Two that are alike stand alone: neither has the other's like runs for itself. The variance
        between runs is pooled over the versions of the work; with fewer than five degrees of
        freedom each run's own is taken, with the component between runs that it assumes.
        """
        groups: dict[object, list[Estimate]] = defaultdict(list)
        for each in self.others:
            figure = moved(each.figure, each.pace, full_s, sensitivity)
            groups[each.work, each.version].append(figure)
        is_alone = self.versions[0] == self.versions[1]
        alike = [[] if is_alone else [*groups[key]] for key in self.versions]
        for key, figure in zip(self.versions, own, strict=True):
            if key[1] is not None:
                groups[key].append(figure)
        spread = _between(groups.values())
        means = [_mean([one, *more], spread) for one, more in zip(own, alike, strict=True)]
        counts = [len(more) for more in alike]
        return means, (_told_of(counts),) if any(counts) else ()


def _told_of(counts: Sequence[int]) -> Notice:
    sentence = (
        f"{counts[0]} and {counts[1]} other stored runs of the same versions count with the "
        "baseline and the candidate."
    )
    return Notice.note(Code.STORED_RUNS, sentence)


def _mean(figures: Sequence[Estimate], between: tuple[float, float]) -> Estimate:
    """Return the mean of a run's own figure, the first, and of others."""
    own, (spread, freedom) = figures[0], between
    if freedom < _ENOUGH:
        if len(figures) == 1:
            return own
        errors = [(each.standard_error or 0.0) / each.value for each in figures]
        spread = math.sqrt(float(np.mean(np.square(errors))))
        freedom = min(each.degrees_of_freedom or math.inf for each in figures)
    value = math.exp(float(np.mean([math.log(each.value) for each in figures])))
    mean = t_interval(
        value,
        StandardError(value * spread / math.sqrt(len(figures)), freedom),
        own.confidence,
        n=sum(each.n for each in figures),
        n_effective=sum(each.n_effective for each in figures),
        method=own.method,
    )
    return replace(mean, notices=own.notices)


def _between(groups: Iterable[Sequence[Estimate]]) -> tuple[float, float]:
    """Return the standard deviation between like runs, relative, and its degrees of freedom."""
    logs = [np.log([each.value for each in group]) for group in groups if group]
    freedom = sum(each.size - 1 for each in logs)
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    return (math.sqrt(squares / freedom) if freedom else 0.0), float(freedom)


def _told(run: RunRecord, metric: str) -> _Run | None:
    """Return what a run of a known version tells at full pace, if it does."""
    analysis = next((each for each in run.analyses if each.metric.name == metric), None)
    version = _version(run)
    if analysis is None or analysis.pace is None or version is None:
        return None
    pace, figure = analysis.pace, analysis.at_full_pace
    if figure is None:
        return None
    work = _work(run, pace, run.options.statistic)
    return _Run(work=work, version=version, pace=pace, figure=figure, told=_of_headline(analysis))


def _of_headline(analysis: Analysis) -> Told | None:
    """Return what the headline of a run tells of the spread between runs."""
    figure, pace = analysis.headline, analysis.pace
    if figure is None or pace is None or pace.quiet is None or not figure.standard_error:
        return None
    return Told(
        log_value=math.log(figure.value),
        variance=(figure.standard_error / pace.widening / figure.value) ** 2,
    )


def _at_quiet(told: Told, pace: Pace, other: Pace) -> Told:
    """Return what a run tells, at the quiet pace of another."""
    if pace.quiet is None or other.quiet is None:
        return told
    ratio = reference_s(other.quiet.seconds) / reference_s(pace.quiet.seconds)
    return told._replace(log_value=told.log_value + pace.sensitivity * math.log(ratio))


def paced_by(where: Provenance | None, pace: Pace) -> dict[str, str]:
    """Return what full pace is of: the machine, the interpreter, the reference and its version."""
    return {
        "machine": f"{where.host}, {where.cpu}" if where else "unknown",
        "interpreter": where.python if where else "unknown",
        "version of the reference": f"{', '.join(sorted(pace.full_s))} {pace.version}",
    }


def _work(run: RunRecord, pace: Pace, statistic: str) -> str:
    """Tell what the number of a run is of, whatever the version of the code."""
    options = codec.encode(replace(run.options, statistic=statistic))
    asked = {name: value for name, value in options.items() if name not in _LENGTH}
    told = [{**run.subject, PAIR: "", AGAIN: ""}, asked, paced_by(run.provenance, pace)]
    return json.dumps(told, sort_keys=True, default=str)


def _version(run: RunRecord) -> tuple[str, str] | None:
    """Return the version of what was measured; a commit alone does not tell it."""
    where = run.provenance
    return None if where is None or where.source is None else (str(where.commit), where.source)
