"""How samples of a map are measured on the hosts of a pool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from benchrigor.cli.output import say
from benchrigor.control_characters import escaped
from benchrigor.errors import WorkloadFailed
from benchrigor.layout import page, wrapped
from benchrigor.model import RunRecord, codec
from benchrigor.protocols import Store
from benchrigor.storage import Journal
from benchrigor.workbench.maps.map_file import MapFile, map_of
from benchrigor.workbench.maps.map_run import Found, MapRun
from benchrigor.workbench.maps.responses import Samples
from benchrigor.workbench.pool.host_table import HostTable, executor_for
from benchrigor.workbench.pool.on_host import Refused
from benchrigor.workbench.pool.pool import JobDone, Pool
from benchrigor.workbench.surfaces.factors import show_point
from benchrigor.workbench.surfaces.placeholders import filled
from benchrigor.workbench.surfaces.samples import Measured, Sample

T = TypeVar("T")
U = TypeVar("U")


def carry_out_on_hosts(
    run: MapRun,
    file: MapFile,
    hosts: HostTable,
    *,
    cwd: str,
    store: Journal,
    earlier: Mapping[int, RunRecord],
    after: Callable[[Measured], object],
) -> None:
    """Carry out a map on a pool of hosts, each of which measures one sample at a time.

    Hosts that are this machine keep the runs of samples in the store themselves, so that a sample
    that was cut off goes on; those of other hosts are kept when they come back.

    Parameters
    ----------
    run, file
        The map.
    hosts, cwd
        Where; the folder of its commands here.
    store
        What keeps the runs of samples.
    earlier
        Runs of samples that an earlier process had begun, by sample.
    after
        Called with each sample that is finished.
    """
    executor = executor_for(hosts)
    shared: dict[str, Any] = {
        "document": dict(file.document),
        "cwd": hosts.cwd or cwd,
        "map_id": run.kept.begin(),
        "store": str(store.path) if hosts.is_here else None,
        "hosts": [],  # of the lease
    }

    with Pool(executor, owner=str(run.kept.begin()), began=_say_begun) as pool:

        def submit(sample: Sample) -> Future[Found]:
            begun = earlier.get(sample.id)
            own = {"sample": codec.encode(sample), "earlier": begun.run_id if begun else None}
            done = pool.submit(f"{__name__}:measure_sample", {**shared, **own})
            return change_result(done, lambda job: found_by(job, store))

        run.carry_out_on_hosts(
            submit,
            hosts=len(executor.hosts),
            deadline_s=math.inf if hosts.deadline_s is None else hosts.deadline_s,
            after=after,
        )


def _say_begun(host: str, given: Mapping[str, Any]) -> None:
    point = show_point(given["sample"]["point"])
    say(page(wrapped(f"{escaped(host)} · {point}: begun", hanging=2)), err=True)


def found_by(job: JobDone, store: Store) -> Found:
    """Return what a host found for a sample, and keep the run of it."""
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
    """Return a future of what another one will give, changed."""
    after: Future[U] = Future()

    def finish(done: Future[T]) -> None:
        try:
            after.set_result(change(done.result()))
        except BaseException as error:  # noqa: BLE001  # whoever waits is told
            after.set_exception(error)

    future.add_done_callback(finish)
    return after


def measure_sample(
    *,
    document: Mapping[str, Any],
    cwd: str,
    map_id: str | None,
    store: str | None,
    sample: Mapping[str, Any],
    earlier: str | None = None,
    hosts: Sequence[str],
) -> dict[str, Any]:
    """Measure a sample on this host; return what was found, and its run if no store here has it."""
    asked = codec.decode(Sample, sample)
    with _journal(store) as journal:
        samples = Samples(
            _file_on(hosts[0], document),
            cwd=_folder(cwd),
            store=journal,
            earlier={asked.id: journal.load(earlier)} if earlier and store else {},
            map_id=map_id,
        )
        with samples:
            found = samples.measure(asked)
        found = replace(found, steps=(*found.steps, *samples.ended()))
        runs = [journal.load(found.run_id)] if found.run_id and not store else []
        return {"found": codec.encode(found), "runs": [codec.encode(run) for run in runs]}


def measure_points(
    *,
    document: Mapping[str, Any],
    cwd: str,
    map_id: str | None,
    store: str | None,
    samples: Sequence[Mapping[str, Any]],
    response: str,
    hosts: Sequence[str],
) -> list[Any]:
    """Measure points on this host, one after the other; return the answers, None for none."""
    asked = [codec.decode(Sample, sample) for sample in samples]
    file = _file_on(hosts[0], document)
    with (
        _journal(store) as journal,
        Samples(file, cwd=_folder(cwd), store=journal, map_id=map_id) as measured,
    ):
        found = [measured.measure(sample) for sample in asked]
    for sample, answer in zip(asked, found, strict=True):
        if answer.at_least is not None:
            raise WorkloadFailed(
                f"{show_point(sample.point)} was not brought to its limits, expected a peak to "
                f"compare: {answer.reason}"
            )
    return [codec.encode(answer.estimates.get(response)) for answer in found]


def _file_on(host: str, document: Mapping[str, Any]) -> MapFile:
    """Return what a file says on a host, whose name is in its places."""
    rest = {name: table for name, table in document.items() if name != "hosts"}
    return map_of(filled(rest, {"host": host}, again=True))


def _folder(cwd: str) -> str:
    """Return a folder that is there; Refused else."""
    if not Path(cwd).is_dir():
        raise Refused(f"there is no folder {cwd} on this host, expected that of the map")
    return cwd


@contextmanager
def _journal(store: str | None) -> Iterator[Journal]:
    """Open a store, or one that is deleted afterwards."""
    with TemporaryDirectory() as folder, Journal(store or Path(folder, "runs.sqlite")) as journal:
        yield journal
