"""Stored runs of the same thing: their mean, and the spread between runs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from benchrigor.errors import StoreFailed
from benchrigor.model import (
    Analysis,
    Code,
    Estimate,
    Notice,
    Pace,
    Provenance,
    QuietPace,
    RunRecord,
    codec,
)
from benchrigor.protocols import Store
from benchrigor.stats.estimators.headline import (
    Told,
    at_quiet,
    from_full_pace,
    one_of_each_cluster,
    spread_of,
    widening,
    with_spread,
)

PAIR = "pair"  # in the subjects of both sides of a comparison the same, and of no other run
BASELINE, CANDIDATE = "baseline", "candidate"  # roles in the subjects of both sides
AGAIN = "command line"  # the same in their subjects: measures both again
PART_OF = "part of"  # in the subject of a run: the id of the one that it belongs to
_MOST = 12  # runs of a name that are loaded, the newest first: they may hold many readings
_LENGTH = {  # options about the length of a run and its reports, not about its number
    *("target", "confidence", "preset", "budget_readings", "budget_s", "min_seconds"),
    *("quick_s", "quick_rounds", "readings_per_round", "min_rounds", "max_rounds", "max_rejected"),
    *("state", "on_alarm"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run and its headline; ``version`` identifies the code."""

    work: str
    version: tuple[str, str]
    pace: Pace
    figure: Estimate
    analysis: Analysis

    def log_figure(self, quiet: QuietPace, *, from_full: bool = False) -> Told:
        """Return logarithm and variance of its headline at a quiet pace, for the spread of runs."""
        figure, widened = at_quiet(self.figure, self.pace, quiet), self.pace.widening
        if from_full and self.analysis.at_full_pace is not None:
            figure, widened = figure_at(self.analysis, quiet, from_full=True) or figure, 1.0
        error = (figure.standard_error or 0.0) / widened / figure.value
        return Told(math.log(figure.value), error**2)


def figure_at(analysis: Analysis, quiet: QuietPace, *, from_full: bool) -> Estimate | None:
    """Return the headline; or one from the moments at full pace, if the run has a figure."""
    figure, pace = analysis.at_full_pace, analysis.pace
    if not from_full or figure is None or pace is None:
        return analysis.headline
    return from_full_pace(figure, pace, quiet, is_speed=analysis.wps is not None)


def with_history(record: RunRecord, store: Store) -> RunRecord:
    """Add to the headlines of a record the spread between similar runs in a store.

    If the store fails, the record stays as it is.
    """
    stored, statistic = StoredRuns(store), record.options.statistic
    try:
        analyses = [_with_spread(record, a, stored, statistic) for a in record.analyses]
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
    for run in stored.apart([record], record.name, analysis.metric.name):
        if run.work == work and pace.quiet is not None:
            groups[run.version].append(run.log_figure(pace.quiet))
    spread = spread_of(groups.values())
    return replace(
        analysis,
        pace=replace(pace, widening=widening(spread)),
        headline=with_spread(figure, spread, pace.widening),
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
        """Return other runs of a name, one per ten minutes; few, for loading is slow."""
        known = {run.run_id for run in runs}
        listed = [
            run
            for run in self._store.runs(name)
            if run["name"] == name
            and run["run_id"] not in known
            and run.get("started_at")
            and not run.get("damage")
        ]
        began = [datetime.fromisoformat(run["started_at"]).timestamp() for run in listed]
        for index in one_of_each_cluster(began)[:_MOST]:
            run_id = str(listed[index]["run_id"])
            if (run_id, metric) not in self._loaded:
                self._loaded[run_id, metric] = _read_run(self._store.load(run_id), metric)
            found = self._loaded[run_id, metric]
            if found is not None:
                yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeRuns:
    """Runs next to two that are compared.

    ``versions`` are the work of these and the version of its code, None if that is not known.
    """

    versions: tuple[tuple[str, tuple[str, str] | None], ...]
    others: tuple[_Run, ...]

    @property
    def paces(self) -> list[Pace]:
        """The paces of the others, as evidence of the sensitivity."""
        return [other.pace for other in self.others]

    def means(
        self, own: Sequence[Estimate], quiet: QuietPace, *, from_full: bool = False
    ) -> tuple[list[Estimate], tuple[Notice, ...]]:
        """Return for both runs the mean of their headline and similar stored runs.

        If both runs have the same version, the stored runs belong to neither, and both stand alone.
        The spread between runs is pooled over the versions of the work and an assumed spread.
        """
        groups: dict[object, list[Told]] = defaultdict(list)
        for other in self.others:
            groups[other.work, other.version].append(other.log_figure(quiet, from_full=from_full))
        spread = spread_of(groups.values())
        is_alone = self.versions[0] == self.versions[1]
        alike = [[] if is_alone else groups[key] for key in self.versions]
        means = [_mean(one, more, spread) for one, more in zip(own, alike, strict=True)]
        counts = [len(more) for more in alike]
        return means, (_told_of(counts),) if any(counts) else ()


def _told_of(counts: Sequence[int]) -> Notice:
    sentence = (
        f"{counts[0]} and {counts[1]} other stored runs of the same versions count with the "
        "baseline and the candidate."
    )
    return Notice.note(Code.STORED_RUNS, sentence)


def _mean(own: Estimate, others: Sequence[Told], spread: tuple[float, float]) -> Estimate:
    """Return the mean of a run's own headline and of others, weighted by their variances."""
    error = (own.standard_error or 0.0) / own.value
    if not others or not error:
        return with_spread(own, spread) if spread[1] else own
    values, variances = np.array([(math.log(own.value), error**2), *others]).T
    value = math.exp(float(np.average(values, weights=1.0 / variances)))
    error = float((1.0 / variances).sum()) ** -0.5
    mean = replace(own, value=value, standard_error=value * error, n=own.n + len(others))
    return with_spread(mean, spread)


def _read_run(run: RunRecord, metric: str) -> _Run | None:
    """Return a run of a known version with its headline, if it has one."""
    analysis = next((analysis for analysis in run.analyses if analysis.metric.name == metric), None)
    version = _version(run)
    if analysis is None or analysis.pace is None or version is None:
        return None
    pace, figure = analysis.pace, analysis.headline
    if figure is None or pace.quiet is None or not figure.standard_error or figure.value <= 0.0:
        return None
    work = _work(run, pace, run.options.statistic)
    return _Run(work=work, version=version, pace=pace, figure=figure, analysis=analysis)


def paced_by(where: Provenance | None, pace: Pace) -> dict[str, str]:
    """Return the conditions of full pace: machine, interpreter, reference and its version."""
    return {
        "machine": f"{where.host}, {where.cpu}" if where else "unknown",
        "interpreter": where.python if where else "unknown",
        "version of the reference": f"{', '.join(sorted(pace.full_s))} {pace.version}",
    }


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


def are_in_turn(runs: Sequence[RunRecord | None]) -> bool:
    """Return whether these are both sides of one comparison."""
    told = [(run.subject.get(PAIR), run.subject.get("as")) for run in runs if run is not None]
    pairs, roles = {pair for pair, _ in told}, {role for _, role in told}
    return len(told) == 2 and len(pairs) == 1 and roles == {BASELINE, CANDIDATE}
