"""Measures the samples of a map and the turns of a choice: here, or on the hosts of a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchrigor.errors import WorkloadFailed
from benchrigor.model import RunRecord, codec
from benchrigor.protocols import Store
from benchrigor.storage import Journal
from benchrigor.workbench.campaign import here
from benchrigor.workbench.data import PeakRate, Trial
from benchrigor.workbench.loadgen import HostSenders
from benchrigor.workbench.maps.life_cycle import StepDone
from benchrigor.workbench.maps.map_file import map_of
from benchrigor.workbench.maps.map_run import ChoiceRun, MapRun, TurnDone
from benchrigor.workbench.maps.responses import Found, Samples, metric_of
from benchrigor.workbench.planning.best_choice import Turn
from benchrigor.workbench.pool.on_host import FAILED, Outcome, Refused
from benchrigor.workbench.pool.pool import Pool, executor_for
from benchrigor.workbench.surfaces.samples import Sample, fill_places

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
    file, map_id = run.file, run.campaign.begin()
    if not file.has_pool:
        own: dict[str, Any] = {"cwd": run.subject["cwd"], "store": store, "map_id": map_id}
        with Samples(file, **own, after=after_trial, earlier=run.earlier) as samples:
            run.campaign.carry_out(here(samples.measure), after=after)
        return samples.pop_steps()
    with _hosts(run, store, began, after) as (submit, carry_out):

        def measure_sample(sample: Sample) -> Future[Outcome]:
            begun = run.earlier.get(sample.id)
            return submit([sample], earlier=begun.run_id if begun else None)

        carry_out(measure_sample, read=lambda _, job: _found_in(job, store)[0])
    return []


def measure_choice(
    run: ChoiceRun, *, store: Journal, began: Began, after: Callable[[], object]
) -> None:
    """Carry out a choice, on the hosts of its file or on this machine."""
    name = metric_of(run.file.response).name

    def read(turn: Turn, job: Outcome) -> TurnDone:
        if job.kind == FAILED:
            raise WorkloadFailed(f"{turn.host}: {job.failure}")
        found = [] if job.failure else _found_in(job, store)
        estimates = tuple(each.estimates.get(name) for each in found)
        nothing = "" if any(estimates) else "no configuration has a number on this host"
        return TurnDone(
            turn=turn,
            estimates=estimates,
            better_than=tuple(each.at_least for each in found),
            lost=job.failure or nothing,
            attempts=job.remarks,
        )

    with _hosts(run, store, began, after) as (submit, carry_out):
        carry_out(lambda turn: submit(run.samples_of(turn), first=turn.host), read=read)


@contextmanager
def _hosts(
    run: MapRun | ChoiceRun, store: Journal, began: Began, after: Callable[[], object]
) -> Iterator[tuple[Callable[..., Future[Outcome]], Callable[..., Any]]]:
    """Hold the hosts of a map; give what measures samples on one, and what has all carried out.

    A job may take as long as the whole map. Without hosts it is measured here.
    """
    file = run.file
    carry_out = partial(run.campaign.carry_out, deadline_s=file.deadline_s, after=after)
    n_hosts, call = 1 + file.hosts.generators, f"{__name__}:{measure.__name__}"
    # Arguments of all jobs; the pool fills in the hosts and lease.
    shared: dict[str, Any] = {
        "document": dict(file.document),
        "cwd": file.hosts.cwd or run.subject["cwd"],
        "map_id": run.campaign.begin(),
        "store": str(store.path) if file.hosts.is_here else None,
        "hosts": [],
        "lease": 0,
    }
    if not file.has_pool:

        def measure_here(samples: Sequence[Sample], *, first: str) -> dict[str, Any]:
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
            samples: Sequence[Sample], *, earlier: str | None = None, first: str | None = None
        ) -> Future[Outcome]:
            own = {"samples": codec.encode(samples), "earlier": earlier}
            return pool.submit(call, shared | own, n_hosts=n_hosts, first=first)

        at_once = max(1, len(pool.hosts) // n_hosts)  # the first one fails on too few
        yield submit, partial(carry_out, at_once=at_once)


def _found_in(job: Outcome, store: Store) -> list[Found]:
    """Return the results of the samples of a job; store the runs that came with them."""
    how: dict[str, Any] = {"host": job.host, "attempts": job.remarks}
    if job.failure:
        return [Found(reason=job.failure, **how)]
    found = [codec.decode(Found, each) for each in job.value["found"]]
    kept = {
        str(run["run_id"]): _keep(codec.decode(RunRecord, run), store) for run in job.value["runs"]
    }
    return [replace(each, run_id=kept.get(str(each.run_id), each.run_id), **how) for each in found]


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
        raise Refused(f"no folder {cwd} on this host, expected the folder of the map")
    asked = [codec.decode(Sample, sample) for sample in samples]
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
        ids = [] if store else [each.run_id for each in found if each.run_id]
        runs = [journal.load(run_id) for run_id in ids]
        measured.close()
        steps = (*found[-1].steps, *measured.pop_steps())
    found[-1] = replace(found[-1], steps=steps)
    return {"found": codec.encode(found), "runs": codec.encode(runs)}
