"""A map in a campaign: how its samples are measured, here or on the hosts of a pool, and stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from benchrigor.errors import WorkloadFailed
from benchrigor.model import Options, Round, RunRecord, StopReason, codec
from benchrigor.model.run import PART_OF
from benchrigor.protocols import Store
from benchrigor.storage import Journal
from benchrigor.workbench.campaign import Campaign, fact_in, here, round_of
from benchrigor.workbench.data import PeakRate, Trial
from benchrigor.workbench.designs import MapSample, Measured, Space, fill_places
from benchrigor.workbench.loadgen import HostSenders
from benchrigor.workbench.maps.life_cycle import StepDone
from benchrigor.workbench.maps.map_file import MapFile, map_of
from benchrigor.workbench.maps.responses import SAMPLE, Found, Samples, metrics_of
from benchrigor.workbench.on_host import Outcome, UnfitHost
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.pool import Pool, executor_for
from benchrigor.workbench.surface import MapSummary, Surface, fit_surface

KIND_OF_MAPS = "map"  # the kind of the subject of such a run
STEPS = "steps"  # the fact with the steps of its server
ATTEMPTS = "attempts"  # the fact with its attempts that failed
_REUSED = "reused"  # in the subject: samples of earlier maps
_SUMMARY = "summary"  # in the subject of a finished one: what reports show of it
_MOST_FAILED = 3  # samples, if none before them had an answer


class MapRun:
    """A map, which a campaign carries out and stores as a run with samples as rounds.

    A sample that failed is stored with its reason, and the map continues, unless the first three
    all failed: then it raises WorkloadFailed, as further samples would fail, too.

    Parameters
    ----------
    subject
        Needed by a later process to continue: the file of the map, the folder.
    store
        The store of samples; None without one.
    reused
        Samples of earlier maps.
    changed
        Fields of the file that are replaced, such as its budget.
    header
        Of the run: name, provenance, and the metrics of responses, the steering one first.
    """

    def __init__(
        self,
        subject: Mapping[str, Any],
        store: Store | None,
        *,
        reused: Sequence[Measured] = (),
        changed: Mapping[str, Any] = MappingProxyType({}),
        **header: Any,
    ) -> None:
        self.subject, self.file = subject, replace(map_of(subject["file"]), **changed)
        self.search, self._metrics = search_for(self.file), header["metrics"]
        self.search.recall(reused, own=False)
        budget_s = math.inf if self.file.budget_s is None else self.file.budget_s
        self.campaign = Campaign(
            self,
            KIND_OF_MAPS,
            {**subject, _REUSED: codec.encode(list(reused))},
            store,
            options=Options(budget_s=budget_s),
            **header,
        )
        self.earlier: dict[int, RunRecord] = {}
        self._begun: list[MapSample] = []  # by an earlier process
        self._failed = ""  # why the first samples did, if they all did

    @classmethod
    def resume(cls, record: RunRecord, store: Store, **changed: Any) -> MapRun:
        """Take up a stored map: its samples, and those that were under way, with their runs."""
        header: dict[str, Any] = {"name": record.name, "metrics": record.metrics}
        run = cls(record.subject, store, reused=reused_in(record), changed=changed, **header)
        run.campaign.take_up(record)
        run.search.recall(samples_of(record))
        begun = _unfinished_samples(store, record)
        run.earlier = {number: earlier for number, (_, earlier) in begun.items()}
        run._begun = [sample for _, (sample, _) in sorted(begun.items())]
        for sample in run._begun:
            run.search.take_up(sample)
        return run

    def ask(self) -> MapSample | None:
        """Return a sample that was under way when an earlier process ended, or the next one."""
        if self._failed:
            raise WorkloadFailed(self._failed)
        return self._begun.pop(0) if self._begun else self.search.ask()

    def tell(self, sample: MapSample, found: Found, spent_s: float, /) -> Round:
        """Take the result of a sample; return it as it is stored."""
        self.search.recall([found.answer_to(sample, spent_s)])
        own = self.search.own
        if len(own) == _MOST_FAILED and all(each.lacks(self._metrics[0].name) for each in own):
            why = own[-1].reason
            self._failed = f"the first {_MOST_FAILED} samples failed, the last: {why}"
        return _round_of(own[-1], found)

    def result(self) -> Surface:
        """Return the surface of all samples so far."""
        return self.search.result()

    def reason(self) -> StopReason:
        """Return why the map is over."""
        return self.search.reason()

    def estimates(self) -> Iterator[Mapping[str, Any]]:
        """Yield the prediction of each response at the best point."""
        summary = self.search.result().summary
        for metric in self._metrics:
            found = summary.responses.get(metric.name)
            yield {"metric": metric, "estimate": None if found is None else found.best.estimate}

    def summary(self) -> Mapping[str, Any]:
        """Return what reports show of its surface."""
        return {_SUMMARY: codec.encode(replace(self.search.result().summary, samples=()))}


def _round_of(measured: Measured, found: Found) -> Round:
    """Return a sample as it is stored; `_sample_in` reads it."""
    facts = {SAMPLE: measured, STEPS: found.steps, "run": found.run_id, ATTEMPTS: found.attempts}
    readings = {name: estimate.value for name, estimate in measured.estimates.items()}
    return round_of(measured.sample.id, measured.cost_s, facts, readings)


def _sample_in(finished: Round) -> Measured:
    """Return the sample in a round of a stored map."""
    return codec.decode(Measured, fact_in(finished, SAMPLE))


def is_map(record: RunRecord) -> bool:
    """Return whether a stored run is a map."""
    return record.subject.get("kind") == KIND_OF_MAPS


def samples_of(record: RunRecord) -> list[Measured]:
    """Return the samples of a stored map."""
    return [*map(_sample_in, record.rounds)]


def reused_in(record: RunRecord) -> list[Measured]:
    """Return the samples of earlier maps that a stored map reused."""
    return [codec.decode(Measured, sample) for sample in record.subject.get(_REUSED, ())]


def facts_of(record: RunRecord, name: str) -> Iterator[tuple[MapSample, Any]]:
    """Yield the items of a fact of a stored map, with their samples."""
    for finished in record.rounds:
        for item in fact_in(finished, name):
            yield _sample_in(finished).sample, item


def _unfinished_samples(store: Store, record: RunRecord) -> dict[int, tuple[MapSample, RunRecord]]:
    """Return the samples, with their runs, that were under way when a stored map ended."""
    finished = {measured.sample.id for measured in samples_of(record)}
    known = {record.run_id, *(sample.facts.get("run") for sample in record.rounds)}
    found: dict[int, tuple[MapSample, RunRecord]] = {}
    for listed in store.runs(str(record.run_id)):  # the newest first
        if listed["run_id"] in known:
            continue
        run = store.load(listed["run_id"])
        if run.subject.get(PART_OF) == record.run_id:
            sample = codec.decode(MapSample, run.subject[SAMPLE])
            if sample.id not in finished:
                found.setdefault(sample.id, (sample, run))
    return found


def surface_of(record: RunRecord) -> Surface:
    """Return the surface of a stored map, finished or not."""
    file = map_of(record.subject["file"])
    ways = {metric.name: str(metric.direction) for metric in record.metrics}
    return fit_surface(
        Space(file.factors),
        [*reused_in(record), *samples_of(record)],
        responses=[*ways],
        direction=ways,
        interchangeable=file.hosts.are_alike,
        **{name: file.design[name] for name in ("confidence", "seed") if name in file.design},
    )


def summary_of(record: RunRecord) -> MapSummary:
    """Return what reports show of a stored map; of an unfinished one, its samples are modelled."""
    stored = record.subject.get(_SUMMARY)
    if stored is None or record.decision is None:
        return surface_of(record).summary
    samples = (*reused_in(record), *samples_of(record))
    return replace(codec.decode(MapSummary, stored), samples=samples)


def search_for(file: MapFile) -> SurfaceMap:
    """Return the planner of the samples of a map."""
    metrics = metrics_of(file.response)
    return SurfaceMap(
        file.factors,
        **file.design,
        budget_s=file.budget_s,
        direction={metric.name: str(metric.direction) for metric in metrics},
        interchangeable=file.hosts.are_alike,
        responses=[metric.name for metric in metrics],
    )


# --- samples, measured here or on the hosts of a pool

_MOST_S = 86_400.0  # the limit of a job, unless the file has one
Began = Callable[[str, Sequence[Mapping[str, Any]]], object]  # gets a host, and its samples


def measure_map(
    run: MapRun,
    *,
    store: Journal,
    began: Began,
    after: Callable[[], object],
    after_trial: Callable[[Trial, PeakRate], object],
) -> list[StepDone]:
    """Carry out a map; return the steps of the server after the last sample.

    On a pool a host measures one sample at a time. Hosts on this machine write the runs of samples
    into the store themselves, so that an interrupted sample can be resumed. The runs of other hosts
    are stored when they arrive.
    """
    file, cwd, map_id = run.file, run.subject["cwd"], run.campaign.begin()
    if not file.has_pool:
        own: dict[str, Any] = {"cwd": cwd, "store": store, "map_id": map_id}
        with Samples(file, **own, after=after_trial, earlier=run.earlier) as samples:
            run.campaign.carry_out(here(samples.measure), after=after)
        return samples.pop_steps()
    with on_hosts(run.campaign, file, cwd, store=store, began=began, after=after) as hosts:
        submit, carry_out = hosts

        def measure_sample(sample: MapSample) -> Future[Outcome]:
            begun = run.earlier.get(sample.id)
            return submit([sample], earlier=begun.run_id if begun else None)

        carry_out(measure_sample, read=lambda _, job: found_in(job, store)[0])
    return []


@contextmanager
def on_hosts(
    campaign: Campaign,
    file: MapFile,
    cwd: str,
    *,
    store: Journal,
    began: Began,
    after: Callable[[], object],
) -> Iterator[tuple[Callable[..., Future[Outcome]], Callable[..., Any]]]:
    """Hold the hosts of a map; give what measures samples on one, and what has all carried out.

    A job may take as long as the whole map. Without hosts it is measured here.
    """
    carry_out = partial(campaign.carry_out, deadline_s=file.deadline_s, after=after)
    n_hosts, call = 1 + file.hosts.generators, f"{__name__}:{measure.__name__}"
    # Arguments of all jobs; the pool fills in the hosts and lease.
    shared: dict[str, Any] = {
        "document": dict(file.document),
        "cwd": file.hosts.cwd or cwd,
        "map_id": campaign.begin(),
        "store": str(store.path) if file.hosts.is_here else None,
        "hosts": [],
        "lease": 0,
    }
    if not file.has_pool:

        def measure_here(samples: Sequence[MapSample], *, first: str) -> dict[str, Any]:
            own = {"samples": codec.encode(samples), "hosts": [first]}
            return measure(**shared | own)

        yield here(measure_here), carry_out
        return
    with Pool(
        executor_for(file.hosts),
        owner=str(shared["map_id"]),
        limit_s=file.hosts.limit_s or file.budget_s or _MOST_S,
        began=lambda host, given: began(host, given.get("samples", ())),
    ) as pool:

        def submit(
            samples: Sequence[MapSample], *, earlier: str | None = None, first: str | None = None
        ) -> Future[Outcome]:
            own = {"samples": codec.encode(samples), "earlier": earlier}
            return pool.submit(call, shared | own, n_hosts=n_hosts, first=first)

        at_once = max(1, len(pool.hosts) // n_hosts)  # the first one fails on too few
        yield submit, partial(carry_out, at_once=at_once)


def found_in(job: Outcome, store: Store) -> list[Found]:
    """Return the results of the samples of a job; store the runs that came with them."""
    how: dict[str, Any] = {"host": job.host, "attempts": job.remarks}
    if job.failure:
        return [Found(reason=job.failure, **how)]
    found = [codec.decode(Found, each) for each in job.value["found"]]
    kept = {
        str(run["run_id"]): _keep(codec.decode(RunRecord, run), store) for run in job.value["runs"]
    }
    return [replace(one, run_id=kept.get(str(one.run_id), one.run_id), **how) for one in found]


def _keep(record: RunRecord, store: Store) -> str:
    """Write a run of another host into the store."""
    run_id = store.begin(replace(record, rounds=(), run_id=None))
    for finished in record.rounds:
        store.append(run_id, finished)
    store.finish(run_id, replace(record, run_id=run_id))
    return run_id


def measure(
    *,
    samples: Sequence[Mapping[str, Any]],
    earlier: str | None = None,
    document: Mapping[str, Any],
    cwd: str,
    map_id: str | None,
    store: str | None,
    hosts: Sequence[str],
    lease: int,
) -> dict[str, Any]:
    """Measure samples on this host, the first of a lease, one after the other.

    Return their results, and their runs if no ``store`` here has them. ``earlier`` is the run of
    the only sample, of an earlier process. The other hosts of the lease send the requests.
    """
    if not Path(cwd).is_dir():
        raise UnfitHost(f"no folder {cwd} on this host, expected the folder of the map")
    asked = [codec.decode(MapSample, sample) for sample in samples]
    file = map_of(document)
    rest = {name: table for name, table in document.items() if name != "hosts"}
    own = map_of(fill_places(rest, {"host": hosts[0]}, again=True))
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        journal = stack.enter_context(Journal(store or Path(folder, "runs.sqlite")))
        senders = None
        if len(hosts) > 1:
            others = executor_for(replace(file.hosts, names=hosts[1:], generators=0))
            pool = Pool(others, owner=str(map_id), within=lease, timed=True)
            stack.enter_context(pool)
            senders = HostSenders(lambda: pool, is_kept=True)
        begun = {asked[0].id: journal.load(earlier)} if earlier and store else {}
        ways: dict[str, Any] = {"earlier": begun, "map_id": map_id, "senders": senders}
        measured = stack.enter_context(Samples(own, cwd=cwd, store=journal, **ways))
        found = [measured.measure(sample) for sample in asked]
        ids = [] if store else [one.run_id for one in found if one.run_id]
        runs = [journal.load(run_id) for run_id in ids]
        measured.close()
        steps = (*found[-1].steps, *measured.pop_steps())
    found[-1] = replace(found[-1], steps=steps)
    return {"found": codec.encode(found), "runs": codec.encode(runs)}
