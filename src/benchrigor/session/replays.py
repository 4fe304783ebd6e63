"""Recorded readings, and the files of other tools, analysed as runs are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.formats.recognition import TOOLS, Result, results_in
from benchrigor.model import (
    Analysis,
    ChangePoints,
    Code,
    Metric,
    Notice,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StablePhase,
    StopReason,
)
from benchrigor.model.analysis import PhaseLabel, PhaseReason
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.notice import one_each
from benchrigor.model.readings import Reason
from benchrigor.model.run import FILE, RESTARTED, Recorded
from benchrigor.model.series import Floats, as_series
from benchrigor.protocols import Detector, StopRule
from benchrigor.safe_text import hide_secrets
from benchrigor.session.engine import Engine
from benchrigor.session.outcomes import without_readings
from benchrigor.session.subject import Subject
from benchrigor.stats.changepoints.detector import detect_changes
from benchrigor.stats.changepoints.ruptures_adapter import detector_named
from benchrigor.stats.phases.stable_phase import beyond_noise, find_stable_phase
from benchrigor.stats.readings.analysis import report
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.inference_units import SUCCESSIVE, unit_of
from benchrigor.stats.readings.work_rounds import ByWork


def recording_of(
    readings: object, *, metric: str | None = None, unit: str = "", label: str = "readings"
) -> Readings:
    """Arrange a series of readings, or one metric of a run."""
    if isinstance(readings, RunRecord):
        return _of_run(readings, metric)
    series = (as_series(readings, name=label),)
    named = Metric(name=metric or "readings", unit=unit)
    return Readings(series=series, unit=SUCCESSIVE, metric=named).stated()


def asked_anew(readings: Readings, options: Options) -> Readings:
    """Return recorded readings as these options ask, whatever their run asked."""
    detector = detector_named(options.detector)
    return replace(readings, options=options, detector=detector).stated()


def record_of_readings(
    rounds: Sequence[npt.ArrayLike],
    options: Options,
    metric: Metric,
    *,
    name: str,
    weights: Sequence[float] | None = None,
    detector: Detector | None = None,
) -> RunRecord:
    """Analyse recorded readings: one continuous series, or one per restarted round.

    Rounds with weights give single readings. Without a detector the options name one.
    """
    series = [as_series(round_, name=name) for round_ in rounds]
    options = replace(options, rounds="restarted" if len(series) > 1 else "continuous")
    made = []
    for index, values in enumerate(series):
        given: dict[str, Any] = {"unit_readings": {metric.name: values}}
        if weights is not None:
            given = {"readings": {metric.name: values[0]}, "weights": {metric.name: weights[index]}}
        plan = RoundPlan(index=index, readings=values.size)
        made.append(Round(plan=plan, elapsed_ns=0, **given))
    return record_of_rounds(made, options, (metric,), name=name, detector=detector)


def record_of_rounds(
    rounds: Iterable[Round],
    options: Options,
    metrics: Sequence[Metric],
    *,
    name: str,
    subject: Mapping[str, Any] | None = None,
    detector: Detector | None = None,
    rules: Sequence[StopRule] | None = None,
) -> RunRecord:
    """Analyse rounds that were recorded elsewhere; with empty rules only once, at their end."""
    facts = subject or {"kind": FILE}
    given: dict[str, Any] = {"detector": detector, "rules": rules, "recorded": True}
    return _told(Subject(options, metrics, name=name, facts=facts, **given), rounds)


def _told(subject: Subject, rounds: Iterable[Round]) -> RunRecord:
    engine = Engine(subject)
    for finished in rounds:
        engine.tell(finished, asked=False)
    record: RunRecord = engine.result()
    return record


def record_of_pairs(
    work: npt.ArrayLike, duration_s: npt.ArrayLike, options: Options, metric: Metric, *, name: str
) -> RunRecord:
    """Fit the line through pairs of work amount and duration; all pairs count."""
    series = as_series(work, name="work"), as_series(duration_s, name="duration_s")
    options = replace(options, analysis="wps")
    readings = Readings(series=series, unit=ByWork(), metric=metric, options=options)
    rounds = tuple(
        Round(plan=RoundPlan(index=index, work=amount), elapsed_ns=0, readings={"time": seconds})
        for index, (amount, seconds) in enumerate(zip(*map(np.ndarray.tolist, series), strict=True))
    )
    return RunRecord(
        name=name,
        options=options,
        metrics=(metric,),
        seed=0,
        rounds=rounds,
        analyses=(report(readings),),
    )


def _of_run(run: RunRecord, metric: str | None) -> Readings:
    """Arrange the readings of a run as its session did; no detector has cut them."""
    record = ensure_analysed(run)
    analysis, ended = record.analysis(metric), _ended_by_itself(record)
    if analysis is None:
        raise InvalidInput(f"the run of {record.name} holds no readings")
    # The metric that is asked for is the one that must be satisfied.
    asked, options = replace(analysis.metric, must_satisfy=True), record.options
    if isinstance(unit_of(analysis), ByWork):
        pairs = [(round_.plan.work, round_.duration_s) for round_ in record.whole_rounds]
        reasons = np.zeros(len(pairs), dtype=np.int8)
        reasons[list(analysis.left_out)] = Reason.PILOT  # which reason does not matter here
        work, duration_s = np.array(pairs, dtype=np.float64).T.copy()
        return Readings(
            series=(work, duration_s),
            unit=ByWork(reasons=reasons),
            metric=asked,
            options=options,
            batch=max((done.calls_per_reading for done in record.counted_rounds), default=1),
            ended=ended,
        )
    taken = replace(options, detector="ranks")
    if any(notice.code is Code.THIS_PROCESS_ONLY for notice in record.session_notices):
        taken = replace(taken, rounds="continuous")  # nothing restarted them
    subject = Subject(taken, record.metrics or None, recorded=ended)
    for round_ in record.counted_rounds:
        subject.add(round_)
    if (so_far := subject.by_name.get(asked.name)) is None:
        raise _without_readings(record, analysis)
    return replace(so_far.arranged(), metric=asked, options=options, busy_s=0.0)


def _without_readings(record: RunRecord, analysis: Analysis) -> NotEstimable:
    """Return the error of a metric without readings; the file's own reason comes first."""
    for notice in analysis.notices:
        if notice.code is Code.NO_RAW_READINGS:
            return NotEstimable(notice)
    name = analysis.metric.name
    return NotEstimable(Notice.of(Code.NO_DATA, "metric", name_=record.name, metric_=name))


def _ended_by_itself(record: RunRecord) -> bool:
    is_exhausted = record.decision is not None and record.decision.reason is StopReason.EXHAUSTED
    return is_exhausted or record.subject.get("kind") == FILE


def is_bare(run: RunRecord) -> bool:
    """Return whether a run is a column of a file: readings without machine, end or tool."""
    return run.subject.get("kind") == FILE and "tool" not in run.subject


def ensure_analysed(record: RunRecord) -> RunRecord:
    """Analyse the rounds of a run that was interrupted before its result was stored.

    A record with a decision is returned unchanged, and so is an analysed file.
    """
    is_file = record.subject.get("kind") == FILE
    if record.decision is not None or not record.rounds or (is_file and record.analyses):
        return record
    subject = Subject(
        record.options,
        record.metrics or None,
        seed=record.seed,
        name=record.name,
        facts=record.subject,
        recorded=is_file,
    )
    analysed = _told(subject, record.rounds)
    return replace(analysed, provenance=record.provenance, run_id=record.run_id)


def record_with_changes(
    rounds: Sequence[Floats],
    options: Options,
    metric: Metric,
    *,
    name: str,
    level: float,
    min_segment: int | None,
) -> RunRecord:
    """Analyse recorded readings by these change points; all phases of a series hold all of them.

    The phases leave out steps that slow noise explains, as in any analysis. Restarted rounds are
    cut in the same way if an analysis does so. A series that is too short for the search of an
    analysis is searched too, and is stable only if it has an estimate.
    """
    named = detector_named(options.detector, min_segment)
    detect = named or partial(detect_changes, level=level, min_segment=min_segment)

    def detect_beyond_noise(values: npt.ArrayLike) -> ChangePoints:
        return beyond_noise(as_series(values), detect(values))

    own = detect_beyond_noise if len(rounds) == 1 else None
    detector: Detector | None = named or own
    record = record_of_readings(rounds, options, metric, name=name, detector=detector)
    (analysis,) = record.analyses
    all_points = [detect(series) for series in rounds]
    phases: Sequence[StablePhase] = analysis.phases
    if len(phases) != len(rounds):
        phases = [
            find_stable_phase(series, change_points=points)
            for series, points in zip(rounds, all_points, strict=True)
        ]
        phases = phases if analysis.estimate else list(map(_unstable, phases))
    if len(rounds) == 1:
        new = [notice for notice in phases[0].notices if notice not in analysis.notices]
        ends = [notice for notice in new if notice.code is Code.TOO_FEW_TO_CALL]
        phases = [replace(phases[0], notices=one_each((*analysis.notices, *ends)))]
    phases = tuple(
        replace(phase, change_points=points)
        for phase, points in zip(phases, all_points, strict=True)
    )
    return replace(record, analyses=(replace(analysis, phases=phases),))


def _unstable(phase: StablePhase) -> StablePhase:
    """Return the phases of readings that have no estimate."""
    stable = phase.reason is PhaseReason.STABLE
    return replace(
        phase,
        start=None,
        stop=None,
        reason=PhaseReason.FEW_EFFECTIVE if stable else phase.reason,
        phases=tuple(replace(part, label=PhaseLabel.OTHER) for part in phase.phases),
    )


_ANALYSIS = (  # options that do not say how the readings were taken
    *("target", "confidence", "statistic", "method", "autocorrelation_limit", "trim", "detector"),
)


def read_results(path: str | Path, *, options: Options | None = None) -> list[RunRecord]:
    """Read the results of a benchmark tool, and analyse every benchmark as a run.

    The tool is recognised by the content, not by the name of the file: pyperf, pytest-benchmark,
    asv, hyperfine, google-benchmark, criterion, JMH, Go, k6, vegeta, JMeter, JSON lines, and
    records that benchrigor saved (docs/formats.md). Readings, units, parameters, warm-up, machine
    and commit are carried over; the subject of a record says which tool wrote it.

    Parameters
    ----------
    path
        A file, which may be compressed by gzip, or a folder of results.
    options
        How to analyse the readings; None for the defaults. Saved records keep theirs.

    Returns
    -------
    list of RunRecord
        One per benchmark, in order. Without raw readings in the file the records have no
        estimate, and a Notice describes the file and how the tool keeps the readings.

    Raises
    ------
    InvalidInput
        When no known tool wrote the file, or something in it is wrong; the message names the place.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> times = [0.101, 0.099, 0.102, 0.1, 0.098, 0.103, 0.1, 0.101, 0.099, 0.1]
    >>> content = json.dumps({"results": [{"command": "sleep 0.1", "times": times}]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "hyperfine.json")
    ...     _ = path.write_text(content)
    ...     (record,) = read_results(path)
    >>> record.name, f"{record.estimate().value:.4f}"
    ('sleep 0.1', '0.1003')
    """
    found = results_in(path)
    if found is None:
        raise InvalidInput(f"{path} is of no known tool, expected results of {', '.join(TOOLS)}")
    return analyse_file(found, str(path), options)


def analyse_file(found: Sequence[Result], place: str, options: Options | None) -> list[RunRecord]:
    """Analyse the benchmarks of a file; all that is wrong with them is raised at once."""
    return _each(_analyse, found, place, options)


def arrange_file(found: Sequence[Result], place: str) -> list[RunRecord]:
    """Return the benchmarks of a file without estimates: who compares them makes those anyway."""
    return _each(_arrange, found, place, None)


def _each(
    read: Callable[[Result, Options | None], RunRecord],
    found: Sequence[Result],
    place: str,
    options: Options | None,
) -> list[RunRecord]:
    problems = list[str]()
    records = [attempt(problems, read, benchmark, options) for benchmark in found]
    refuse(f"{place}: {problem}" for problem in problems)
    return [record for record in records if record is not None]


def _arrange(found: Result, _: Options | None = None) -> RunRecord:
    """Check the readings of a benchmark, and find their kind."""
    if isinstance(found, RunRecord):
        return ensure_analysed(found)
    options = _options_of(found, None)
    subject = Subject(options, found.metrics, recorded=True)
    for round_ in found.rounds:
        with _naming(found.name):
            subject.check(round_)
        subject.add(round_)
    known = {name: metric.empty_analysis() for name, metric in subject.by_name.items()}
    lacking = [without_readings(metric, found.rounds) for metric in found.metrics]
    if not found.rounds:
        lacking = [replace(analysis, notices=found.notices) for analysis in lacking]
    return RunRecord(
        name=hide_secrets(found.name),
        options=options,
        metrics=found.metrics,
        seed=0,
        rounds=found.rounds,
        analyses=tuple(known.get(analysis.metric.name, analysis) for analysis in lacking),
        session_notices=found.notices if found.rounds else (),
        provenance=found.provenance,
        subject=found.subject,
    )


def _options_of(found: Recorded, options: Options | None) -> Options:
    rounds = "restarted" if found.unit in RESTARTED else "continuous"
    return replace(options or Options(), rounds=rounds)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say in an error which benchmark it is about."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {problem}" for problem in error.problems) from error


def _analyse(found: Result, options: Options | None) -> RunRecord:
    if isinstance(found, RunRecord):
        return ensure_analysed(found if options is None else _judged_by(options, found))
    options = _options_of(found, options)
    told: dict[str, Any] = {"name": found.name, "subject": found.subject, "rules": ()}
    with _naming(found.name):
        record = record_of_rounds(found.rounds, options, found.metrics, **told)
    analyses, notices = [*map(_without_counts, record.analyses)], found.notices
    if not found.rounds:
        analyses, notices = [replace(analysis, notices=notices) for analysis in record.analyses], ()
    return replace(
        record,
        provenance=found.provenance,
        session_notices=(*notices, *record.session_notices),
        analyses=tuple(analyses),
    )


def _without_counts(analysis: Analysis) -> Analysis:
    """Leave out that an optional metric is constant: counts of bytes or allocations often are."""
    if analysis.metric.must_satisfy:
        return analysis
    kept = (notice for notice in analysis.notices if notice.code is not Code.CONSTANT)
    return replace(analysis, notices=tuple(kept))


def _judged_by(options: Options, run: RunRecord) -> RunRecord:
    """Return a run without its analyses, to be analysed by other options."""
    asked = {name: getattr(options, name) for name in _ANALYSIS}
    return replace(run, options=replace(run.options, **asked), analyses=(), decision=None)
