"""Readings that were recorded before, laid out so that they can be judged once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    Analysis,
    Code,
    Floats,
    Kind,
    Metric,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    as_series,
)
from benchrigor.protocols import Detector
from benchrigor.session.analysis_chain import CHECK, LINE, LINE_REPORT, Material, analyse, cut
from benchrigor.session.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """The readings of one metric of one recording.

    Parameters
    ----------
    name
        What was measured.
    metric, options
        As they were when it was measured.
    kind
        How the readings came.
    series
        One series for continuous rounds, one per round for restarted ones; of rounds of various
        work their amounts and durations.
    batch
        Calls of which each reading is the average.
    left_out
        Of rounds of various work, those that do not count.
    """

    name: str
    metric: Metric
    options: Options
    kind: Kind
    series: tuple[Floats, ...]
    batch: int = 1
    left_out: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """How much was recorded: readings, or rounds where each is an invocation."""
        return len(self.series) if self.kind is Kind.INVOCATIONS else self.series[0].size

    def material(self, options: Options, detector: Detector | None = None) -> Material:
        """Return it as the chain of analysis wants it, judged by these options."""
        material = Material(
            metric=self.metric,
            options=options,
            kind=self.kind,
            series=self.series,
            detector=detector,
            batch=self.batch,
            recorded=True,
            left_out=self.left_out,
        )
        if detector is None or self.kind is not Kind.INVOCATIONS:
            return material
        # Rounds are cut together, but by a detector of one's own each for itself.
        own = [phase for each in self.series for phase in cut(each, material.policy, detector)]
        return replace(material, phases=tuple(own))

    def judged(self, options: Options, detector: Detector | None = None) -> Analysis:
        """Analyse all of it by these options, whatever was found when it was measured."""
        steps = LINE if self.kind is Kind.WORK else CHECK
        return analyse(self.material(options, detector), steps)

    def piece(self, plan: RoundPlan, start: int) -> tuple[Round, int]:
        """Return the next round that a session would have been told, and how far it goes."""
        given: dict[str, Any] = {}
        stop = start + 1
        if self.kind is Kind.INVOCATIONS:
            given["unit_readings"] = {self.metric.name: self.series[start]}
        elif self.kind is Kind.READINGS:
            given["readings"] = {self.metric.name: float(self.series[0][start])}
        else:
            stop = min(start + plan.readings, self.n)
            given["unit_readings"] = {self.metric.name: self.series[0][start:stop]}
        facts = {"inner_loop": self.batch}
        return Round(plan=plan, elapsed_ns=0, facts=facts, **given), stop

    def after(self, start: int) -> Recorded | None:
        """Return what was recorded from ``start`` on, counted as `n` is; None if nothing was."""
        if start >= self.n:
            return None
        if self.kind is Kind.INVOCATIONS:
            return replace(self, series=self.series[start:])
        return replace(self, series=(self.series[0][start:],))


def recorded(readings: object, *, metric: str | None = None, unit: str = "") -> Recorded:
    """Lay out readings, or one metric of a run."""
    if isinstance(readings, RunRecord):
        return _of_run(readings, metric)
    name = metric or "readings"
    return Recorded(
        name=name,
        metric=Metric(name=name, unit=unit),
        options=Options(),
        kind=Kind.UNIT_READINGS,
        series=(as_series(readings, name="readings"),),
    )


def record_of_pairs(
    work: npt.ArrayLike, duration_s: npt.ArrayLike, options: Options, metric: Metric, *, name: str
) -> RunRecord:
    """Fit the line through pairs of work amount and duration; all of them count."""
    series = as_series(work, name="work"), as_series(duration_s, name="duration_s")
    asked = replace(options, analysis="wps")
    material = Material(metric=metric, options=asked, kind=Kind.WORK, series=series)
    analysis = analyse(material, LINE_REPORT)
    rounds = tuple(
        Round(plan=RoundPlan(index=index, work=amount), elapsed_ns=0, readings={"time": seconds})
        for index, (amount, seconds) in enumerate(zip(*map(np.ndarray.tolist, series), strict=True))
    )
    return RunRecord(
        name=name, options=asked, metrics=(metric,), seed=0, rounds=rounds, analyses=(analysis,)
    )


def _of_run(run: RunRecord, metric: str | None) -> Recorded:
    record = retraced(run)
    analysis = record.analysis(metric)
    if analysis is not None and analysis.kind is Kind.WORK:
        return _of_work(record, analysis)
    name = "" if analysis is None else analysis.metric.name
    units = tuple(
        each.unit_readings[name] for each in record.counted_rounds if name in each.unit_readings
    )
    single = [each.readings[name] for each in record.counted_rounds if name in each.readings]
    if analysis is None or not (units or single):
        raise InvalidInput(
            f"the run of {record.name} holds no readings{f' of {name!r}' if name else ''}"
        )
    kind, series = Kind.READINGS, (np.asarray(single, dtype=np.float64),)
    if units:
        # Rounds of a plain function, which nothing restarts, continue one series.
        one = any(each.code is Code.THIS_PROCESS_ONLY for each in record.session_notices)
        restarted = record.options.rounds == "restarted" and not one
        kind = Kind.INVOCATIONS if restarted else Kind.UNIT_READINGS
        series = units if restarted else (np.concatenate(units),)
    for each in series:
        each.flags.writeable = False
    return Recorded(
        name=record.name,
        # Judged by itself, a metric is the one that counts.
        metric=replace(analysis.metric, must_satisfy=True),
        options=record.options,
        kind=kind,
        series=series,
        batch=max((_calls(each.facts) for each in record.counted_rounds), default=1),
    )


def _of_work(record: RunRecord, analysis: Analysis) -> Recorded:
    pairs = np.array([(each.plan.work, each.duration_s) for each in record.counted_rounds]).T.copy()
    pairs.flags.writeable = False
    return Recorded(
        name=record.name,
        metric=replace(analysis.metric, must_satisfy=True),
        options=record.options,
        kind=Kind.WORK,
        series=tuple(pairs),
        left_out=analysis.left_out,
    )


def _calls(facts: Mapping[str, object]) -> int:
    calls = facts.get("inner_loop", 1)
    return calls if isinstance(calls, int) else 1


def retraced(record: RunRecord) -> RunRecord:
    """Analyse the rounds of a run that was cut off before its result was written down.

    A record with a decision comes back as it is.
    """
    if record.decision is not None or not record.rounds:
        return record
    engine = Engine(
        record.options,
        record.metrics or None,
        seed=record.seed,
        name=record.name,
        subject=record.subject,
    )
    for finished in record.rounds:
        engine.replay(finished)
    return replace(engine.result(), provenance=record.provenance, run_id=record.run_id)
