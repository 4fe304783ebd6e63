"""Carries out a search for a peak: asks for trials, offers the loads, and stores the results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from benchrigor.model import Analysis, Options, Round, RoundPlan, RunRecord, StopReason, codec
from benchrigor.model.analysis import Kind
from benchrigor.model.metric import describe_metric
from benchrigor.model.run import Provenance
from benchrigor.model.text import show_duration, show_value
from benchrigor.protocols import Store
from benchrigor.workbench.data import (
    Limit,
    LoadResult,
    LoadTrial,
    PeakRate,
    PeakStatus,
    Trial,
)
from benchrigor.workbench.kept_run import KeptRun, keep_record
from benchrigor.workbench.load_generator import LoadGenerator
from benchrigor.workbench.loadgen.overtime import ended_with_budget
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workloads.processes.time_limits import CallOverran

KIND = "peak"  # of the subject of such a run
_REASONS: dict[PeakStatus | None, StopReason] = {
    PeakStatus.FOUND: StopReason.SATISFIED,
    PeakStatus.BUDGET_SPENT: StopReason.TIME_BUDGET,
}


class PeakRun:
    """Carries out a search, and stores it as a run with trials as rounds.

    Parameters
    ----------
    search
        The search, which asks for trials.
    name
        Of the server, for people.
    options, generator
        The options of `PeakSearch` by name, as `search_of` needs them; and a description of the
        load generator.
    subject
        Further facts on the measured subject, for programs.
    store
        The store of trials; None without one.
    now_ns
        A clock, for the time between trials, which also counts for the budget.

    Examples
    --------
    >>> class Fake:
    ...     def offer(self, trial):
    ...         spare = 200.0 - trial.load
    ...         return LoadResult(mean_response_s=1 / spare if spare > 0 else 9.0)
    >>> run = PeakRun(PeakSearch(threshold_s=0.04), name="a queue")
    >>> run.carry_out(Fake()).load.low < 175.0
    True
    """

    def __init__(
        self,
        search: PeakSearch,
        *,
        name: str,
        options: Mapping[str, Any] | None = None,
        generator: Mapping[str, Any] | None = None,
        subject: Mapping[str, Any] | None = None,
        provenance: Provenance | None = None,
        store: Store | None = None,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._search, self._now_ns = search, now_ns
        self._metric = describe_metric("peak", search.unit)
        self.kept = KeptRun(
            KIND,
            {"search": options or {}, "generator": generator or {}, **(subject or {})},
            store,
            name=name,
            metrics=(self._metric,),
            options=Options(
                target=search.goal.accuracy,
                confidence=search.goal.confidence,
                budget_s=math.inf if search.goal.budget_s is None else search.goal.budget_s,
            ),
            provenance=provenance,
        )

    @classmethod
    def resumed(cls, search: PeakSearch, record: RunRecord, store: Store) -> PeakRun:
        """Take up a stored search; ``search`` already has its trials."""
        found = cls(search, name=record.name, store=store)
        found.kept.take_up(record)
        return found

    def carry_out(
        self,
        generator: LoadGenerator,
        *,
        after: Callable[[Trial, PeakRate], object] = lambda *_: None,
        prepared_s: float = 0.0,
    ) -> PeakRate:
        """Run trials until the search is over; pass results to ``after`` once the next is known.

        A trial that lasts two seconds longer than the budget is ended, and so is the search.
        ``prepared_s`` of the budget were spent before the first one, to prepare it.

        Time that a generator does not account for, such as starting processes, counts as set-up.

        If an error ends the search, the error has the finished trials as ``record``.
        """
        self.kept.begin()
        begun_ns = self._now_ns()
        with keep_record(self.record):
            trial = self._search.ask()
            while trial is not None:
                decided_ns = self._now_ns()
                try:
                    with ended_with_budget(self.left_s() - prepared_s):
                        result = generator.offer(trial)
                except CallOverran:
                    self._search.cut(trial, self._say_cut(trial, self._now_ns() - decided_ns))
                    break
                prepared_s = 0.0  # the result of the trial includes it
                ended_ns = self._now_ns()
                if result.spent_s:
                    spent_s = {"decision": (decided_ns - begun_ns) / 1e9, **result.spent_s}
                    other_s = (ended_ns - decided_ns) / 1e9 - sum(result.spent_s.values())
                    if other_s > 0.0:
                        spent_s["set-up"] = spent_s.get("set-up", 0.0) + other_s
                    result = replace(result, spent_s=spent_s)
                begun_ns = ended_ns
                self._search.tell(trial, result)
                found = self._search.result()
                self.kept.add(round_of(found.trials[-1]))
                trial = self._search.ask()
                after(found.trials[-1], found if trial is not None else self._search.result())
        self.kept.finish(self.record())
        return self._search.result()

    def left_s(self) -> float:
        """Return the rest of the budget in seconds."""
        budget_s = self._search.goal.budget_s
        return math.inf if budget_s is None else budget_s - self._search.result().cost_s

    def _say_cut(self, trial: LoadTrial, elapsed_ns: int) -> str:
        """Return the sentence on a trial that was ended at the end of the budget."""
        load = show_value(trial.load, self._search.unit)
        return (
            f"The trial at {load} was ended after {show_duration(elapsed_ns / 1e9)}, because the "
            "budget was spent: nothing of it counts. Check that it cannot hang, or allow more."
        )

    def record(self) -> RunRecord:
        """Return the run so far."""
        found = self._search.result()
        analysis = Analysis(
            metric=self._metric,
            kind=Kind.READINGS,
            n=len(found.trials),
            n_kept=sum(trial.counts for trial in found.trials),
            estimate=found.load,
            notices=found.notices,
        )
        is_over = found.status is not None
        reason = _REASONS.get(found.status, StopReason.EXHAUSTED) if is_over else None
        return self.kept.record(analysis, reason=reason)


def search_of(record: RunRecord, **changed: Any) -> PeakSearch:
    """Return the search of a stored run with all its trials; ``changed`` replaces options."""
    options = {**record.subject["search"], **changed}
    options["limits"] = [codec.decode(Limit, limit) for limit in options["limits"]]
    search = PeakSearch(**options)
    for finished in record.rounds:
        search.recall(*_trial_of(finished))
    return search


def round_of(trial: Trial) -> Round:
    """Return a trial as it is stored; `_trial_of` reads it."""
    asked, result = trial.asked, trial.result
    values = {"mean": result.mean_response_s, "p95": result.p95_response_s, **result.metrics}
    return Round(
        plan=RoundPlan(index=asked.id, work=asked.load, seconds=asked.duration_s),
        elapsed_ns=round(trial.cost_s * 1e9),
        readings={name: value for name, value in values.items() if value is not None},
        facts={"reason": asked.reason, **dict(_flat(codec.encode(result)))},
    )


def _trial_of(finished: Round) -> tuple[LoadTrial, LoadResult]:
    plan, facts = finished.plan, dict(finished.facts)
    asked = LoadTrial(
        id=plan.index,
        load=float(plan.work or 0.0),
        duration_s=plan.seconds or 0.0,
        reason=str(facts.pop("reason")),
    )
    nested: dict[str, Any] = {}
    for name, value in facts.items():
        field, dot, key = name.partition(".")
        if dot:
            nested.setdefault(field, {})[key] = value
        else:
            nested[field] = value
    return asked, codec.decode(LoadResult, nested)


def _flat(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a result, items of mappings as field.key, without notices."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", item) for key, item in value.items() if key != "notices")
        else:
            yield name, value
