"""Recorded readings, arranged so that they can be analysed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import (
    Analysis,
    Code,
    Metric,
    Notice,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.readings import readings_of
from benchrigor.model.recorded import FILE
from benchrigor.model.selection import Reason
from benchrigor.model.series import as_series
from benchrigor.protocols import Detector, StopRule
from benchrigor.session.analysis_chain import Material, cut, leave_out_disturbed, look, report
from benchrigor.session.engine import Engine
from benchrigor.session.schedule.metric_trace import is_single
from benchrigor.session.schedule.references_along import references_along, timed_round
from benchrigor.session.schedule.series_of_pieces import by_piece, in_pieces
from benchrigor.session.traces import calls_per_reading, reading_groups, weights_of
from benchrigor.stats.changepoints.named_detector import detector_named
from benchrigor.stats.series.undisturbed import join_groups
from benchrigor.stats.statistics.statistic import ReferencesAlong
from benchrigor.units import Quantity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording(Material):
    """The readings of one metric, with the options by which they were measured."""

    name: str
    recorded: bool = True

    @property
    def in_series(self) -> bool:
        """Whether there is a series per invocation, or per piece."""
        return self.kind in (Kind.INVOCATIONS, Kind.PIECES)

    def analyse(self, options: Options) -> Analysis:
        """Analyse all readings by these options."""
        detector = detector_named(options.detector)
        material = replace(self, options=options, detector=detector)
        if detector is not None and self.kind is Kind.INVOCATIONS:
            # A detector is given the invocations one by one.
            phases = [phase for s in self.series for phase in cut(s, material.policy, detector)]
            material = replace(material, phases=tuple(phases))
        return look(material)

    def by_time(self) -> Recording:
        """Return it with rates averaged over time, unless their metric says otherwise."""
        is_auto = self.metric.averaging == "auto" and self.metric.kind is Quantity.RATE
        if not is_auto:
            return self
        metric = replace(self.metric, averaging="arithmetic")
        sentence = "A reading of a rate is 0 or less: all are averaged over time (arithmetic)."
        notice = Notice.warning(Code.RATE_OF_0, sentence)
        return replace(self, metric=metric, weights=None, notices=(*self.notices, notice))


def recording_of(
    readings: object, *, metric: str | None = None, unit: str = "", label: str = "readings"
) -> Recording:
    """Arrange a series of readings, or one metric of a run."""
    if isinstance(readings, RunRecord):
        return _of_run(readings, metric)
    name = metric or "readings"
    return Recording(
        name=name,
        metric=Metric(name=name, unit=unit),
        options=Options(),
        kind=Kind.UNIT_READINGS,
        series=(as_series(readings, name=label),),
    )


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
    subject = subject or {"kind": FILE}
    given: dict[str, Any] = {"detector": detector, "rules": rules, "recorded": True}
    engine = Engine(options, metrics, name=name, subject=subject, **given)
    for round_ in rounds:
        engine.replay(round_)
    return engine.result()


def record_of_pairs(
    work: npt.ArrayLike, duration_s: npt.ArrayLike, options: Options, metric: Metric, *, name: str
) -> RunRecord:
    """Fit the line through pairs of work amount and duration; all pairs count."""
    series = as_series(work, name="work"), as_series(duration_s, name="duration_s")
    options = replace(options, analysis="wps")
    material = Material(metric=metric, options=options, kind=Kind.WORK, series=series)
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
        analyses=(report(material),),
    )


def _of_run(run: RunRecord, metric: str | None) -> Recording:
    record = ensure_analysed(run)
    analysis = record.analysis(metric)
    name = "" if analysis is None else analysis.metric.name
    rounds = record.counted_rounds
    metrics = () if analysis is None else (analysis.metric,)
    weights = [weight for round_ in rounds for one in metrics for weight in weights_of(round_, one)]
    units = tuple(round_.unit_readings[name] for round_ in rounds if name in round_.unit_readings)
    single = [round_.readings[name] for round_ in rounds if name in round_.readings]
    # If nothing restarted the rounds, their readings continue one series.
    notices: tuple[Notice, ...] = ()
    one_process = any(notice.code is Code.THIS_PROCESS_ONLY for notice in record.session_notices)
    reasons = None
    if analysis is not None and analysis.kind is Kind.WORK:
        kind, series = (
            Kind.WORK,
            tuple(
                np.array(
                    [(each.plan.work, each.duration_s) for each in record.whole_rounds]
                ).T.copy()
            ),
        )
        reasons = np.zeros(series[0].size, dtype=np.int8)
        reasons[list(analysis.left_out)] = Reason.PILOT  # which reason does not matter here
    elif analysis is None:
        raise InvalidInput(f"the run of {record.name} holds no readings")
    elif not (units or single):
        raise _without_readings(record, analysis)
    elif not units:
        kind, series = Kind.READINGS, (np.asarray(single, dtype=np.float64),)
    elif record.options.rounds == "restarted" and not one_process:
        kind, series = Kind.INVOCATIONS, units
        if is_single(units):
            kind, series = Kind.READINGS, (np.concatenate(units),)
    elif record.options.pieces > 1:
        whose = [round_.plan.piece for round_ in rounds if name in round_.unit_readings]
        pieces = by_piece(whose, units, np.concatenate)
        kind, series, notices = in_pieces(pieces, record.options)
    else:
        kind, series = Kind.UNIT_READINGS, (np.concatenate(units),)
    for values in series:
        values.flags.writeable = False
    recording = Recording(
        name=record.name,
        # The metric that is asked for is the one that must be satisfied.
        metric=replace(analysis.metric, must_satisfy=True),
        options=record.options,
        kind=kind,
        series=series,
        weights=np.array(weights) if single and len(weights) == len(single) else None,
        references=_references(rounds, analysis.metric) if len(series) == 1 else None,
        recorded=_ended_by_itself(record),
        batch=max(map(calls_per_reading, rounds), default=1),
        reasons=reasons,
        notices=notices,
    )
    # Of various work, the analysis says which rounds do not count.
    return recording if kind is Kind.WORK else _leave_out_disturbed(recording, rounds)


def _without_readings(record: RunRecord, analysis: Analysis) -> NotEstimable:
    """Return the error of a metric without readings; what a file says of its own comes first."""
    sentence = f"The run of {record.name} holds no readings of {analysis.metric.name!r}."
    raised = [notice for notice in analysis.notices if notice.code is Code.NO_RAW_READINGS]
    return NotEstimable([*raised, Notice.refusal(Code.NO_DATA, sentence)][0])


def _references(rounds: Sequence[Round], metric: Metric) -> ReferencesAlong | None:
    if not metric.is_duration:
        return None
    none = np.empty(0)
    return references_along(
        [
            timed_round(
                round_.unit_readings.get(metric.name, none),
                round_.references,
                calls_per_reading(round_),
            )
            for round_ in rounds
        ]
    )


def _ended_by_itself(record: RunRecord) -> bool:
    is_exhausted = record.decision is not None and record.decision.reason is StopReason.EXHAUSTED
    return is_exhausted or record.subject.get("kind") == FILE


def _leave_out_disturbed(recording: Recording, rounds: Sequence[Round]) -> Recording:
    """Leave the disturbed readings out, as the session did."""
    if all(finished.delays is None for finished in rounds):
        return recording
    metric, kind = recording.metric, recording.kind
    groups, whose = [], []
    for round_ in rounds:
        if (values := readings_of(round_, metric.name)).size:
            groups.append(reading_groups(round_, values, metric, kind))
            whose.append(round_.plan.index if kind is Kind.INVOCATIONS else round_.plan.piece)
    return leave_out_disturbed(
        recording,
        by_piece(whose, groups, join_groups) if recording.in_series else [join_groups(groups)],
    )


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
    engine = Engine(
        record.options,
        record.metrics or None,
        seed=record.seed,
        name=record.name,
        subject=record.subject,
        recorded=is_file,
    )
    for finished in record.rounds:
        engine.replay(finished)
    return replace(engine.result(), provenance=record.provenance, run_id=record.run_id)
