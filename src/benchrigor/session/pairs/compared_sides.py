"""The sides of `compare_runs`: runs, or readings from elsewhere, and how else they differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TypeVar

import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotComparable, NotEstimable
from benchrigor.model import Analysis, Code, Estimate, Notice, Options, Pace, RunRecord
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.notice import Evidence, weakening
from benchrigor.model.run import FILE, PROCESSES
from benchrigor.model.segments import Light
from benchrigor.model.text import is_broken_off, refusal_of, say_end
from benchrigor.session.red_rounds import is_disturbed
from benchrigor.session.replays import asked_anew, is_bare, recording_of
from benchrigor.stats.figures_at_full_speed import AT_FULL_SPEED
from benchrigor.stats.readings.analysis import look
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE
from benchrigor.stats.statistic import INVOCATION_MEANS
from benchrigor.units import Quantity

T = TypeVar("T", RunRecord, Readings)

_MOST = 0.5  # a larger share of failed runs means that the times are of errors
# A comparison judges these by itself.
_SAID_ELSEWHERE = {
    *(Code.DISTURBED, Code.NOT_CONVERGED, Code.THIS_PROCESS_ONLY),
}
_ONE_PROCESS = Notice.of(Code.THIS_PROCESS_ONLY, "rounds")


def label_of(run: RunRecord) -> str:
    """Name a run in a report."""
    return f"{run.name} ({run.run_id})" if run.run_id else run.name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A run to compare, or readings from elsewhere."""

    label: str
    run: RunRecord | None
    recorded: Readings

    @property
    def session_notices(self) -> tuple[Notice, ...]:
        """The Notices of its run as a whole."""
        return () if self.run is None else self.run.session_notices

    @property
    def by_process(self) -> bool:
        """Whether every reading, or pair of work and duration, has a process of its own."""
        if self.recorded.unit.many or self.run is None:
            return False
        subject = self.run.subject
        return subject.get("kind") == "command" or subject.get("unit") in PROCESSES

    @property
    def may_be_0(self) -> bool:
        """Whether its readings may all be 0: counts and sizes may, times and bare numbers not."""
        return self.recorded.metric.kind in (Quantity.OTHER, Quantity.SHARE)

    @property
    def is_positive(self) -> bool:
        """Whether its quantity is above 0, though a coarse clock may show 0."""
        least = min(float(values.min()) for values in self.recorded.series if values.size)
        is_above = self.recorded.metric.kind in (Quantity.TIME, Quantity.RATE)
        return least > 0.0 or (is_above and least == 0.0)

    @property
    def pace(self) -> Pace | None:
        """The pace that the run knows; None if it measured no reference."""
        own = None if self.run is None else self.run.analysis(self.recorded.metric.name)
        return None if own is None else own.pace

    def analysis(self, asked: Options) -> Analysis:
        """Estimate the stable phase as it is asked for; the target of a run does not matter."""
        statistic = asked.statistic
        if self.recorded.unit.is_line and statistic != "mean":
            raise InvalidInput(
                f"{self.label}: statistic is {statistic!r}, expected 'mean': a speed is a mean"
            )
        options = replace(
            self.recorded.options,
            target=None,
            statistic=statistic,
            confidence=asked.confidence,
            method=LONG_RUN_VARIANCE,
        )
        # A side may be wide: the interval of the ratio says what that means.
        anew = asked_anew(replace(self.recorded, narrow=False), options)
        analysis = look(anew)
        if analysis.estimate is None:
            why = refusal_of(analysis.notices) or analysis.notices[0]
            raise NotEstimable(why.about(self.label))
        return anew.unit.tell_of_modes(anew, analysis)

    def of_processes(self, estimate: Estimate) -> Estimate:
        """Mark an estimate as of one process or of several; a headline is of any."""
        if estimate.method.startswith(AT_FULL_SPEED):
            return estimate
        if self.recorded.unit.is_line:
            notices = () if self.by_process else (_ONE_PROCESS,)
            return replace(estimate, notices=(*notices, *estimate.notices))
        method = f"{estimate.method}, {INVOCATION_MEANS}"
        return replace(estimate, method=method) if self.by_process else estimate


def sides_of_runs(
    sides: Mapping[str, RunRecord | npt.ArrayLike], metric: str | None, detector: str | None
) -> Sequence[Source]:
    """Return both sides; NotComparable if most runs of a side failed."""
    problems: list[str] = []
    several = [
        attempt(problems, _source, given, metric, name, detector) for name, given in sides.items()
    ]
    refuse(problems)
    sources = [source for source in several if source is not None]
    refuse_errors((source.label, source.session_notices) for source in sources)
    return _averaged_alike(sources)


def _source(
    given: RunRecord | npt.ArrayLike, metric: str | None, label: str, detector: str | None
) -> Source:
    if not isinstance(given, RunRecord):
        recorded = _cut_by(detector, recording_of(given, label=label))
        return Source(label=label, run=None, recorded=recorded)
    given = _cut_by(detector, given)
    # Readings of a file have neither a machine nor an end to compare, and only one metric.
    run = None if is_bare(given) else given
    recorded = recording_of(given, metric=metric if run else None)
    # Two files of a tool have the same benchmarks: their labels distinguish them.
    label = label if "tool" in given.subject else label_of(given)
    return Source(label=label, run=run, recorded=recorded)


def _cut_by(detector: str | None, source: T) -> T:
    """Let another detector cut the readings, if one is named."""
    if detector is None:
        return source
    return replace(source, options=replace(source.options, detector=detector))


def refuse_errors(sides: Iterable[tuple[str, Sequence[Notice]]], cure: str = "") -> None:
    """Raise NotComparable if most runs of a side failed, as the Notices next to its name say."""
    failed = [
        f"{label}: {notice.sentence}"
        for label, notices in sides
        for notice in notices
        if notice.code is Code.FAILED_RUNS and _failed_share(notice.evidence) > _MOST
    ]
    if failed:
        expected = "Expected at most half of a side: these are times of errors, correct what failed"
        raise NotComparable(f"{' '.join(failed)} {expected}{cure}")


def _failed_share(evidence: Evidence) -> float:
    failed, total = evidence.get("failed"), evidence.get("total")
    if not isinstance(failed, int | float) or not isinstance(total, int | float):
        return 0.0
    return failed / total if total else 0.0


def _averaged_alike(sources: Sequence[Source]) -> Sequence[Source]:
    """Average all rates over time if one side cannot be averaged over work."""
    if not any(source.recorded.rates_of_0 for source in sources):
        return sources
    return [replace(source, recorded=source.recorded.by_time()) for source in sources]


def notices_of_sides(
    sources: Sequence[Source], analyses: Sequence[Analysis] = (), known: Sequence[Notice] = ()
) -> tuple[Notice, ...]:
    """Return warnings of either side, apart from the comparison's own."""
    said = {*_SAID_ELSEWHERE, *(notice.code for notice in known)}
    return tuple(
        notice.about(source.label)
        for source, analysis in zip_longest(sources, analyses)
        for notice in weakening((*source.session_notices, *(analysis.notices if analysis else ())))
        if notice.code not in said
    )


def other_differences(sources: Sequence[Source]) -> Iterator[Notice]:
    """Warn of other differences between the runs."""
    runs = [(source, source.run) for source in sources if source.run is not None]
    for source, run in runs:
        if run.subject.get("kind") != FILE and _ended_early(run):
            how = say_end(run.decision)
            yield Notice.of(Code.NOT_CONVERGED, "side", side_=source.label, how_=how)
    for source, run in runs:
        found = run.interference
        # Undisturbed readings are the same on a busy machine as on an idle one.
        if found is None or source.recorded.disturbed is not None or not is_disturbed(found):
            continue
        light = f"{'an' if found.light is Light.UNKNOWN else 'a'} {found.light}"
        yield Notice.of(
            Code.DISTURBED,
            "side",
            side_=source.label,
            light_=light,
            least_=found.least,
            percent=found.total_percent,
        )
    places = (run.provenance for _, run in runs if run.provenance is not None)
    hosts = sorted({place.host for place in places if place.host is not None})
    if len(hosts) > 1:
        yield Notice.of(Code.HOSTS_DIFFER, hosts=", ".join(hosts))
    names = sorted({source.recorded.metric.name for source, _ in runs})
    if len(names) > 1:
        yield Notice.of(Code.METRICS_DIFFER, names=", ".join(names))
    yield from _changed_functions([run for _, run in runs])


def _ended_early(run: RunRecord) -> bool:
    """Whether a run broke off, or missed a target that somebody asked for."""
    is_missed = any(notice.code is Code.NOT_CONVERGED for notice in run.notices)
    return is_missed or is_broken_off(run.decision)


def _changed_functions(runs: Sequence[RunRecord]) -> Iterator[Notice]:
    """Warn of measured functions with a changed source of their own, not only of callees."""
    hashes: dict[object, set[str]] = defaultdict(set)
    for run in runs:
        known = (run.subject.get(key) for key in ("target", "test", "name"))
        name = next(filter(None, known), run.name)
        if run.provenance is not None and run.provenance.function is not None:
            hashes[name].add(run.provenance.function)
    for name, different in hashes.items():
        if len(different) > 1:
            yield Notice.of(Code.FUNCTIONS_DIFFER, name=str(name))
