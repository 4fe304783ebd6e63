"""Carries out a map: asks for samples, has them measured, and stores them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from benchrigor.errors import WorkloadFailed
from benchrigor.model import (
    Analysis,
    Estimate,
    Metric,
    Options,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
    codec,
)
from benchrigor.model.analysis import Kind
from benchrigor.model.run import Provenance
from benchrigor.protocols import Store
from benchrigor.workbench.kept_run import KeptRun, keep_record
from benchrigor.workbench.maps.life_cycle import StepDone
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.samples import Measured, Sample
from benchrigor.workbench.surfaces.surface import Surface

A = TypeVar("A")
T = TypeVar("T")

KIND = "map"  # of the subject of such a run
_SAMPLE = "sample"  # the fact of a round that holds it
STEPS = "steps"  # the fact with the steps of its server
ATTEMPTS = "attempts"  # the fact with its attempts that failed
_REUSED = "reused"  # in the subject: samples of earlier maps
_MOST_FAILED = 3  # samples, if none before them had an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a sample: its numbers as `SurfaceMap.tell` takes them, and how it arose.

    Parameters
    ----------
    steps
        Steps of its server that ended meanwhile.
    run_id
        The stored run that measured it; None without one.
    before_s, spent_s
        Seconds that an earlier process measured it, and that hosts did; None for hosts if this
        process measured it.
    host, attempts
        The host of a pool that measured it, and why it was measured again.
    """

    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    reason: str | None = None
    steps: tuple[StepDone, ...] = ()
    run_id: str | None = None
    before_s: float = 0.0
    host: str | None = None
    attempts: tuple[str, ...] = ()
    spent_s: float | None = None


Measure = Callable[[Sample], Found]
Submit = Callable[[Sample], Future[Found]]


def finish_each(
    ask: Callable[[], A | None],
    submit: Callable[[A], Future[T]],
    *,
    hosts: int,
    late_ns: float,
    now_ns: Callable[[], int],
) -> Iterator[tuple[A, T, int]]:
    """Submit items, up to ``hosts`` at once; yield them with their results and nanoseconds.

    No item begins after ``late_ns``, or while ``ask`` returns None. Of items that end together,
    those that raise come last, after the results of the others.
    """
    running: dict[Future[T], tuple[A, int]] = {}
    while True:
        while len(running) < hosts and now_ns() < late_ns and (asked := ask()) is not None:
            begun_ns = now_ns()
            running[submit(asked)] = asked, begun_ns
        if not running:
            return
        ended = wait(running, return_when=FIRST_COMPLETED).done
        for future in sorted(ended, key=lambda future: future.exception() is not None):
            asked, begun_ns = running.pop(future)
            yield asked, future.result(), now_ns() - begun_ns


def at_once(measure: Callable[[A], T]) -> Callable[[A], Future[T]]:
    """Return a function that measures its argument, and returns a finished future."""

    def submit(asked: A) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(measure(asked))
        return future

    return submit


class MapRun:
    """Carries out a map, and stores it as a run with samples as rounds.

    Parameters
    ----------
    search
        The planner, which asks for samples.
    subject
        The facts that a later process needs to continue.
    metrics
        The metrics of the responses, the steering one first.
    reused
        Samples of earlier maps.
    store
        The store of samples; None without one.
    now_ns
        A clock for the costs of samples.
    """

    def __init__(
        self,
        search: SurfaceMap,
        *,
        name: str,
        metrics: tuple[Metric, ...],
        subject: Mapping[str, Any] | None = None,
        reused: Sequence[Measured] = (),
        provenance: Provenance | None = None,
        store: Store | None = None,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.search, self._metrics, self._now_ns = search, metrics, now_ns
        search.recall(reused, own=False)
        self._reason: StopReason | None = None
        self.kept = KeptRun(
            KIND,
            {**(subject or {}), _REUSED: codec.encode(list(reused))},
            store,
            name=name,
            metrics=metrics,
            options=Options(budget_s=math.inf if search.budget_s is None else search.budget_s),
            provenance=provenance,
        )
        self._begun: list[Sample] = []  # by an earlier process

    @classmethod
    def resume(
        cls, search: SurfaceMap, record: RunRecord, store: Store, *, begun: Iterable[Sample] = ()
    ) -> MapRun:
        """Take up a stored map; pass its samples, also those under way, to ``search``."""
        reused = reused_in(record)
        run = cls(search, name=record.name, metrics=record.metrics, reused=reused, store=store)
        run.kept.take_up(record)
        search.recall(samples_of(record))
        run._begun = sorted(begun, key=lambda sample: sample.id)
        for sample in run._begun:
            search.take_up(sample)
        return run

    def carry_out(
        self,
        measure: Measure,
        *,
        after: Callable[[Measured], object] = lambda _: None,
    ) -> Surface:
        """Measure samples one after the other until the map is accurate enough.

        See `carry_out_on_hosts`.
        """
        return self.carry_out_on_hosts(at_once(measure), hosts=1, after=after)

    def carry_out_on_hosts(
        self,
        submit: Submit,
        *,
        hosts: int,
        deadline_s: float = math.inf,
        after: Callable[[Measured], object] = lambda _: None,
    ) -> Surface:
        """Have samples measured until the map is accurate enough.

        A sample that failed is stored with its reason, and the map continues, unless the first
        three all failed. ``submit`` begins a sample, up to ``hosts`` at once, until ``deadline_s``;
        ``after`` is called with every finished sample.

        Raises
        ------
        WorkloadFailed
            When the first samples all failed. All errors have the finished rounds as ``record``.
        """
        self.kept.begin()
        late_ns = self._now_ns() + 1e9 * deadline_s
        clock: dict[str, Any] = {"late_ns": late_ns, "now_ns": self._now_ns}
        with keep_record(self.record):
            for sample, found, took_ns in finish_each(self._next, submit, hosts=hosts, **clock):
                spent_s = took_ns / 1e9 if found.spent_s is None else found.spent_s
                self.search.tell(
                    sample,
                    found.estimates or None,
                    at_least=found.at_least,
                    at_most=found.at_most,
                    host=found.host,
                    cost_s=spent_s + found.before_s,
                    reason=found.reason,
                )
                self.kept.add(round_of(self.search.last, found))
                after(self.search.last)
                self._refuse_failing()
        reason = self.search.reason()
        if reason is StopReason.EXHAUSTED and self._now_ns() >= late_ns:
            reason = StopReason.TIME_BUDGET
        self._reason = reason
        self.kept.finish(self.record())
        return self.search.result()

    def _next(self) -> Sample | None:
        """Return a sample that was under way when an earlier process ended, or the next one."""
        return self._begun.pop(0) if self._begun else self.search.ask()

    def _refuse_failing(self) -> None:
        """Raise an error if the first samples all failed: further samples would fail, too."""
        if len(self.kept.rounds) == _MOST_FAILED:
            samples = [*map(sample_in, self.kept.rounds)]
            if all(sample.lacks(self._metrics[0].name) for sample in samples):
                why = samples[-1].reason
                raise WorkloadFailed(f"the first {_MOST_FAILED} samples failed, the last: {why}")

    def record(self) -> RunRecord:
        """Return the run so far; its estimate is the prediction at the best point."""
        surface, n = self.search.result(), len(self.kept.rounds)
        analyses = (
            Analysis(
                metric=metric,
                kind=Kind.READINGS,
                n=n,
                estimate=surface.best(metric.name).estimate
                if metric.name in surface.responses and surface.missed(metric.name) is not None
                else None,
            )
            for metric in self._metrics
        )
        return self.kept.record(*analyses, reason=self._reason)


def round_of(measured: Measured, found: Found) -> Round:
    """Return a sample as it is stored; `sample_in` reads it."""
    facts = {_SAMPLE: json.dumps(codec.encode(measured))}
    if found.steps:
        facts[STEPS] = json.dumps(codec.encode(list(found.steps)))
    if found.run_id:
        facts["run"] = found.run_id
    if found.attempts:
        facts[ATTEMPTS] = json.dumps(list(found.attempts))
    return Round(
        plan=RoundPlan(index=measured.sample.id),
        elapsed_ns=round(measured.cost_s * 1e9),
        readings={name: estimate.value for name, estimate in measured.estimates.items()},
        facts=facts,
    )


def sample_in(finished: Round) -> Measured:
    """Return the sample in a round of a stored map."""
    return codec.decode(Measured, json.loads(str(finished.facts[_SAMPLE])))


def is_map(record: RunRecord) -> bool:
    """Return whether a stored run is a map."""
    return record.subject.get("kind") == KIND


def samples_of(record: RunRecord) -> list[Measured]:
    """Return the samples of a stored map."""
    return [*map(sample_in, record.rounds)]


def reused_in(record: RunRecord) -> list[Measured]:
    """Return the samples of earlier maps that a stored map reused."""
    return [codec.decode(Measured, sample) for sample in record.subject.get(_REUSED, ())]


def facts_of(record: RunRecord, name: str) -> Iterator[tuple[Sample, Any]]:
    """Yield the items of a fact of a stored map, with their samples."""
    for finished in record.rounds:
        for item in json.loads(str(finished.facts.get(name, "[]"))):
            yield sample_in(finished).sample, item
