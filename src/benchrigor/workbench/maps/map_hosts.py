"""Measures the samples of a map on the hosts of a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, TypeVar

from benchrigor.cli.output import say
from benchrigor.control_characters import escaped
from benchrigor.layout import page, wrapped
from benchrigor.model import RunRecord, codec
from benchrigor.model.text import many
from benchrigor.protocols import Store
from benchrigor.storage import Journal
from benchrigor.workbench.loadgen import HostSenders
from benchrigor.workbench.loadgen.senders import Senders
from benchrigor.workbench.maps.map_file import MapFile, map_of
from benchrigor.workbench.maps.map_run import Found, MapRun
from benchrigor.workbench.maps.responses import Samples
from benchrigor.workbench.pool.host_table import executor_for
from benchrigor.workbench.pool.on_host import Refused
from benchrigor.workbench.pool.pool import JobDone, Pool
from benchrigor.workbench.surfaces.factors import show_point
from benchrigor.workbench.surfaces.samples import Measured, Sample, fill_places

_MOST_S = 86_400.0  # the limit of a job, unless the file has one
T = TypeVar("T")
U = TypeVar("U")


def carry_out_on_hosts(
    run: MapRun,
    file: MapFile,
    *,
    cwd: str,
    store: Journal,
    earlier: Mapping[int, RunRecord],
    after: Callable[[Measured], object],
) -> None:
    """Carry out a map on a pool of hosts; a host measures one sample at a time.

    Hosts on this machine write the runs of samples into the store themselves, so that an
    interrupted sample can be resumed: ``earlier`` has such runs, by sample. The runs of other hosts
    are stored when they arrive.
    """
    shared = job_arguments(file, cwd=cwd, map_id=run.kept.begin(), store=store)
    n_hosts = 1 + file.hosts.generators

    with pool_for(file, run.kept.begin()) as pool:

        def submit(sample: Sample) -> Future[Found]:
            begun = earlier.get(sample.id)
            own = {"sample": codec.encode(sample), "earlier": begun.run_id if begun else None}
            done = pool.submit(f"{__name__}:measure_sample", {**shared, **own}, n_hosts=n_hosts)
            return change_result(done, lambda job: keep_found(job, store))

        run.carry_out_on_hosts(
            submit,
            hosts=max(1, len(pool.table.hosts) // n_hosts),  # the first sample fails on too few
            deadline_s=file.deadline_s,
            after=after,
        )


def job_arguments(file: MapFile, *, cwd: str, map_id: str | None, store: Journal) -> dict[str, Any]:
    """Return the arguments of all jobs of a map; the pool fills in the hosts and lease."""
    return {
        "document": dict(file.document),
        "cwd": file.hosts.cwd or cwd,
        "map_id": map_id,
        "store": str(store.path) if file.hosts.is_here else None,
        "hosts": [],
        "lease": 0,
    }


def pool_for(file: MapFile, run_id: str | None) -> Pool:
    """Return the hosts of a map, held for a run; a job may take as long as the whole map."""
    limit_s = file.hosts.limit_s or file.budget_s or _MOST_S
    return Pool(executor_for(file.hosts), owner=str(run_id), limit_s=limit_s, began=_say_begun)


def _say_begun(host: str, given: Mapping[str, Any]) -> None:
    several = many(len(given.get("samples", ())), "configuration")
    what = show_point(given["sample"]["point"]) if "sample" in given else several
    say(page(wrapped(f"{escaped(host)} · {what}: begun", hanging=2)), err=True)


def keep_found(job: JobDone, store: Store) -> Found:
    """Return the result of a sample on a host, and store its run."""
    tries = job.remarks()
    spent_s = sum(attempt.elapsed_s for attempt in job.attempts)
    if job.failure:
        return Found(reason=job.failure, host=job.host, attempts=tries, spent_s=spent_s)
    found = codec.decode(Found, job.value["found"])
    for run in job.value["runs"]:
        record = codec.decode(RunRecord, run)
        found = replace(found, run_id=_keep(record, store))
    return replace(found, host=job.host, attempts=tries, spent_s=spent_s)


def _keep(record: RunRecord, store: Store) -> str:
    """Write a run of another host into the store."""
    run_id = store.begin(replace(record, rounds=(), run_id=None))
    for finished in record.rounds:
        store.append(run_id, finished)
    store.finish(run_id, replace(record, run_id=run_id))
    return run_id


def change_result(future: Future[T], change: Callable[[T], U]) -> Future[U]:
    """Return a future with the changed result of another one."""
    after: Future[U] = Future()

    def finish(done: Future[T]) -> None:
        try:
            after.set_result(change(done.result()))
        except BaseException as error:  # noqa: BLE001  # it is raised to the waiting thread
            after.set_exception(error)

    future.add_done_callback(finish)
    return after


def measure_sample(
    *, sample: Mapping[str, Any], earlier: str | None = None, store: str | None, **shared: Any
) -> dict[str, Any]:
    """Measure a sample on this host; return its result, and its run if no store here has it."""
    asked = codec.decode(Sample, sample)
    begun = {asked.id: earlier} if earlier else {}
    with _samples_here(store=store, earlier=begun, **shared) as (samples, journal):
        found = samples.measure(asked)
        runs = [journal.load(found.run_id)] if found.run_id and not store else []
    found = replace(found, steps=(*found.steps, *samples.pop_steps()))
    return {"found": codec.encode(found), "runs": codec.encode(runs)}


def measure_points(
    *, samples: Sequence[Mapping[str, Any]], response: str, **shared: Any
) -> dict[str, list[Any]]:
    """Measure points on this host, one after the other; return answers and bounds, or None."""
    with _samples_here(**shared) as (measured, _):
        found = [measured.measure(codec.decode(Sample, sample)) for sample in samples]
    return {
        "estimates": [codec.encode(answer.estimates.get(response)) for answer in found],
        "better_than": [answer.at_least for answer in found],
    }


@contextmanager
def _samples_here(
    *,
    document: Mapping[str, Any],
    cwd: str,
    map_id: str | None,
    store: str | None,
    hosts: Sequence[str],
    lease: int,
    earlier: Mapping[int, str] = MappingProxyType({}),
) -> Iterator[tuple[Samples, Journal]]:
    """Give `Samples` of this host, the first of a lease, and their journal.

    A journal without a ``store`` is temporary.
    """
    if not Path(cwd).is_dir():
        raise Refused(f"there is no folder {cwd} on this host, expected that of the map")
    with (
        TemporaryDirectory() as folder,
        Journal(store or Path(folder, "runs.sqlite")) as journal,
        _senders(document, hosts, map_id, lease) as senders,
        Samples(
            _file_on(hosts[0], document),
            cwd=cwd,
            store=journal,
            earlier={number: journal.load(run_id) for number, run_id in earlier.items() if store},
            map_id=map_id,
            senders=senders,
        ) as samples,
    ):
        yield samples, journal


def _file_on(host: str, document: Mapping[str, Any]) -> MapFile:
    """Return a file with the name of a host in its places."""
    rest = {name: table for name, table in document.items() if name != "hosts"}
    return map_of(fill_places(rest, {"host": host}, again=True))


@contextmanager
def _senders(
    document: Mapping[str, Any], hosts: Sequence[str], owner: str | None, lease: int
) -> Iterator[Senders | None]:
    """Give senders on the hosts of a lease after this first one; None if there are no others."""
    table = map_of(document).hosts
    if len(hosts) == 1:
        yield None
        return
    others = executor_for(replace(table, names=hosts[1:], generators=0))
    with Pool(others, owner=str(owner), within=lease, timed=True) as pool:
        yield HostSenders(lambda: pool, is_kept=True)
