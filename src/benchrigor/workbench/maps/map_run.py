"""A map that is carried out: ask, measure, tell, and keep each sample."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchrigor.errors import BenchrigorError, WorkloadFailed
from benchrigor.model import (
    Analysis,
    Decision,
    Estimate,
    Kind,
    Metric,
    Options,
    Provenance,
    Round,
    RoundPlan,
    RunRecord,
    StopReason,
    codec,
)
from benchrigor.protocols import Store
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.factors import Factor
from benchrigor.workbench.surfaces.samples import Measured, Sample
from benchrigor.workbench.surfaces.surface import Surface

KIND = "map"  # of the subject of such a run
_SAMPLE = "sample"  # the fact of a round that holds it


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the measuring of a sample found; as `SurfaceMap.tell` takes it."""

    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    reason: str | None = None


Measure = Callable[[Sample], Found]


class MapRun:
    """Carries out a map, and keeps it as a run of which each sample is a round.

    Parameters
    ----------
    search
        What asks for samples.
    name
        Of what is measured, for people.
    subject
        What a later process needs to go on, by name: options of the map, and what is measured.
    metrics
        The responses, the first of which steers.
    store
        Where samples are kept; None for nowhere.
    now_ns
        A clock, for what a sample costs.

    Examples
    --------
    >>> from benchrigor.model.metric import describe_metric
    >>> search = SurfaceMap([Factor("size", levels=[1, 2, 4], scale="log2")], design="full")
    >>> def measure(sample):
    ...     value = 100.0 * sample.point["size"]
    ...     told = Estimate(value=value, low=0.9 * value, high=1.1 * value, confidence=0.95, n=9,
    ...                     n_effective=9.0, method="told")
    ...     return Found(estimates={"speed": told})
    >>> run = MapRun(search, name="a cache", metrics=(describe_metric("speed", "1/s"),))
    >>> len(run.carry_out(measure).samples)
    3
    """

    def __init__(
        self,
        search: SurfaceMap,
        *,
        name: str,
        metrics: tuple[Metric, ...],
        subject: Mapping[str, Any] | None = None,
        provenance: Provenance | None = None,
        store: Store | None = None,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._search, self._store, self._now_ns = search, store, now_ns
        self._header = RunRecord(
            name=name,
            options=Options(budget_s=math.inf if search.budget_s is None else search.budget_s),
            metrics=metrics,
            seed=0,
            rounds=(),
            analyses=(),
            subject={"kind": KIND, **(subject or {})},
            provenance=provenance,
        )
        self._rounds: list[Round] = []
        self.run_id: str | None = None

    @classmethod
    def resumed(cls, search: SurfaceMap, record: RunRecord, store: Store) -> MapRun:
        """Take up a stored map; ``search`` is told its samples."""
        run = cls(search, name=record.name, metrics=record.metrics, store=store)
        run._header = replace(run._header, subject=record.subject, provenance=record.provenance)
        run._rounds, run.run_id = list(record.rounds), record.run_id
        search.recall(samples_of(record))
        return run

    def carry_out(
        self, measure: Measure, *, after: Callable[[Measured], object] = lambda _: None
    ) -> Surface:
        """Measure samples until the map is known well enough, and tell of each.

        A sample whose workload fails is kept with its reason, and the map goes on.

        Raises
        ------
        BenchrigorError
            What else ends it; what is finished is kept, and the error has it as ``record``.
        """
        if self._store is not None and self.run_id is None:
            self.run_id = self._store.begin(self._header)
        try:
            while (sample := self._search.ask()) is not None:
                begun_ns = self._now_ns()
                try:
                    found = measure(sample)
                except WorkloadFailed as error:
                    found = Found(reason=str(error))
                self._tell(sample, found, self._now_ns() - begun_ns)
                after(self._search.last)
        except (BenchrigorError, KeyboardInterrupt) as error:
            error.record = self.record()  # type: ignore[union-attr]
            raise
        self._header = replace(
            self._header, decision=Decision(stop=True, reason=StopReason.EXHAUSTED)
        )
        if self._store is not None and self.run_id is not None:
            self._store.finish(self.run_id, self.record())
        return self._search.result()

    def _tell(self, sample: Sample, found: Found, elapsed_ns: int) -> None:
        self._search.tell(
            sample,
            found.estimates or None,
            at_least=found.at_least,
            at_most=found.at_most,
            cost_s=elapsed_ns / 1e9,
            reason=found.reason,
        )
        self._rounds.append(round_of(self._search.last))
        if self._store is not None and self.run_id is not None:
            self._store.append(self.run_id, self._rounds[-1])

    def record(self) -> RunRecord:
        """Return the run so far."""
        analyses = tuple(
            Analysis(metric=metric, kind=Kind.READINGS, n=len(self._rounds))
            for metric in self._header.metrics
        )
        return replace(
            self._header, rounds=tuple(self._rounds), analyses=analyses, run_id=self.run_id
        )


def round_of(measured: Measured) -> Round:
    """Return a sample as it is stored; `samples_of` reads it."""
    return Round(
        plan=RoundPlan(index=measured.sample.id),
        elapsed_ns=round(measured.cost_s * 1e9),
        readings={name: estimate.value for name, estimate in measured.estimates.items()},
        facts={_SAMPLE: json.dumps(codec.encode(measured))},
    )


def samples_of(record: RunRecord) -> list[Measured]:
    """Return the samples of a stored map."""
    return [
        codec.decode(Measured, json.loads(str(stored.facts[_SAMPLE]))) for stored in record.rounds
    ]


def factors_of(record: RunRecord) -> list[Factor]:
    """Return the factors of a stored map."""
    return [Factor(**each) for each in record.subject["factors"]]
