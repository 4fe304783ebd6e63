"""What stored runs of the same thing tell: a mean of several, and how far apart runs are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.model import Analysis, Code, Estimate, Notice, Pace, RunRecord
from benchrigor.protocols import Store
from benchrigor.stats.estimators.pace import moved
from benchrigor.stats.series.interval import StandardError, t_interval

_MOST = 30  # runs that are loaded, the newest first: they may hold many readings
_ENOUGH = 5  # degrees of freedom of the spread between runs, from which on nothing is assumed

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRuns:
    """The figures at full pace of stored runs of one subject, by all that makes them alike."""

    runs: dict[_Key, dict[str | None, tuple[Analysis, Estimate]]]

    def told(self, runs: Sequence[RunRecord], *, alone: bool) -> tuple[Notice, ...]:
        """Say how many others count with a baseline and a candidate, if any."""
        others = [len(self.runs.get(_key(each), {})) - 1 for each in runs]
        if alone or not any(others):
            return ()
        sentence = (
            f"{others[0]} and {others[1]} other stored runs of the same versions count with the "
            "baseline and the candidate."
        )
        return (Notice.note(Code.STORED_RUNS, sentence),)

    def paces(self, without: Sequence[RunRecord]) -> list[Pace]:
        """Return the paces of all runs but these: what they tell of the sensitivity."""
        known = {each.run_id for each in without}
        return [
            analysis.pace
            for group in self.runs.values()
            for run_id, (analysis, _) in group.items()
            if analysis.pace is not None and run_id not in known
        ]

    def of(
        self, run: RunRecord, own: Estimate, full_s: float, sensitivity: float, *, alone: bool
    ) -> Estimate:
        """Return the mean of a run, whose figure at full pace this is, and of those like it.

        ``alone`` it is the run's own, with the variance between runs that the store tells. That is
        pooled over versions of the subject; with fewer than five degrees of freedom each run's own
        is taken, with the component between runs that it assumes.
        """
        at_full = self._at(full_s, sensitivity)
        alike = {} if alone else dict(at_full.get(_key(run), {}))
        alike[run.run_id] = own
        figures = [*alike.values()]
        spread, freedom = _between([*at_full.values()])
        if freedom < _ENOUGH:
            if len(figures) == 1:
                return own
            errors = [(each.standard_error or 0.0) / each.value for each in figures]
            spread = math.sqrt(float(np.mean(np.square(errors))))
            freedom = min(each.degrees_of_freedom or math.inf for each in figures)
        value = math.exp(float(np.mean([math.log(each.value) for each in figures])))
        error = StandardError(value * spread / math.sqrt(len(figures)), freedom)
        mean = t_interval(
            value,
            error,
            own.confidence,
            n=sum(each.n for each in figures),
            n_effective=sum(each.n_effective for each in figures),
            method=own.method,
        )
        return replace(mean, notices=own.notices)

    def _at(self, full_s: float, sensitivity: float) -> dict[_Key, dict[str | None, Estimate]]:
        """Return all figures at one full pace, with one sensitivity."""
        return {
            key: {
                run_id: moved(figure, analysis.pace, full_s, sensitivity)
                for run_id, (analysis, figure) in group.items()
                if analysis.pace is not None
            }
            for key, group in self.runs.items()
        }


def _between(groups: Sequence[dict[str | None, Estimate]]) -> tuple[float, float]:
    """Return the standard deviation between like runs, relative, and its degrees of freedom."""
    logs = [np.log([each.value for each in group.values()]) for group in groups]
    freedom = sum(each.size - 1 for each in logs)
    squares = sum(float(((each - each.mean()) ** 2).sum()) for each in logs)
    return (math.sqrt(squares / freedom) if freedom else 0.0), float(freedom)


def stored_runs(runs: Sequence[RunRecord], store: Store, metric: str | None) -> StoredRuns:
    """Load the runs of a store that have the subject of one of these, and a figure at full pace."""
    found: dict[_Key, dict[str | None, tuple[Analysis, Estimate]]] = {}
    for each in (*runs, *_candidates(runs, store)):
        analysis = each.analysis(metric)
        if analysis is None or analysis.at_full_pace is None or analysis.pace is None:
            continue
        group = found.setdefault(_key(each), {})
        group[each.run_id] = (analysis, analysis.at_full_pace)
    return StoredRuns(runs=found)


def _candidates(runs: Sequence[RunRecord], store: Store) -> Iterator[RunRecord]:
    subjects = {_subject(each) for each in runs}
    names = dict.fromkeys(each.name for each in runs)
    listed = [run for name in names for run in store.runs(name) if run["name"] == name]
    for run in listed[:_MOST]:
        record = store.load(str(run["run_id"]))
        if _subject(record) in subjects:
            yield record


def _subject(run: RunRecord) -> _Key:
    where = run.provenance
    subject = json.dumps(dict(run.subject), sort_keys=True, default=str)
    return (
        subject,
        run.options.statistic,
        where.host if where else "",
        where.python if where else "",
    )


def _key(run: RunRecord) -> _Key:
    """Tell what runs agree in that measured the same."""
    where = run.provenance
    return (*_subject(run), *(() if where is None else (str(where.commit), str(where.source))))


def are_alike(one: RunRecord, other: RunRecord) -> bool:
    """Whether two runs measured the same: neither can have the other's like runs for itself."""
    return _key(one) == _key(other)
