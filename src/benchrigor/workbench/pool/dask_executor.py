"""Jobs on the workers of a Dask cluster, one worker per host."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.model import codec
from benchrigor.workbench.pool.executors import MODULE, run_job
from benchrigor.workbench.pool.on_host import LOST, Job, Outcome

RESOURCE = "host"  # a worker has one of it, and a job needs one
_ANSWER_S = 10.0  # for the scheduler
_LOOK_S = 1.0  # between two checks of a job
_GONE_S = 15.0  # for a worker to come back


class DaskExecutor:
    """Runs jobs on workers of Dask, which have the names of the hosts.

    A worker has one resource ``host``, which a job takes whole; Dask neither repeats a job nor
    moves it to another worker. The worker starts a process for the job, so that the measured code
    does not share a process with Dask.

    Parameters
    ----------
    scheduler
        Its address, such as "tcp://10.0.0.1:8786".
    hosts
        Names of workers; None for all.

    Raises
    ------
    MissingExtra
        Without the package ``distributed``.
    InvalidInput
        When there is no scheduler, a host has no worker, or a worker has no resource ``host``.
    """

    def __init__(self, scheduler: str, hosts: Sequence[str] | None = None) -> None:
        try:
            import distributed  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise MissingExtra(
                "A pool of workers", package="distributed", extra="cluster"
            ) from error
        self._distributed, self._scheduler = distributed, scheduler
        self._client = self._connect()
        workers = self._workers()
        self.hosts = tuple(hosts or sorted(workers))
        problems, known = [], ", ".join(sorted(workers)) or "none"
        for name in self.hosts:
            if name not in workers:
                problems.append(f"{name} has no worker, expected one of {known}")
            elif workers[name].get("resources", {}).get(RESOURCE) != 1:
                said = f"expected: dask worker --name {name} --resources {RESOURCE}=1"
                problems.append(f"the worker {name} has no resource {RESOURCE}, {said}")
        if not self.hosts:
            problems = [f"{scheduler} has no worker, expected one for each host"]
        if problems:
            self._client.close()
            raise InvalidInput(problems)
        machines = {str(workers[name].get("host")) for name in self.hosts}
        self.alone = len(machines) == len(self.hosts)  # each host is a machine of its own
        self._futures: set[Any] = set()

    def _connect(self) -> Any:
        try:
            client: Any = self._distributed.Client
            return client(self._scheduler, timeout=_ANSWER_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidInput(
                f"no scheduler of Dask answers at {self._scheduler}: {error}"
            ) from error

    def _workers(self) -> dict[str, Any]:
        """Return the scheduler's information on workers, by name, with their addresses.

        ``scheduler_info`` cannot be used: every 2 s its data are replaced by data without workers.
        """
        known = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        return {str(info["name"]): {**info, "address": address} for address, info in known.items()}

    def run(self, host: str, job: Job) -> Outcome:
        """Run a job on the worker of a host, and wait for its outcome."""
        address = self._address(host)
        if address is None:
            return Outcome(kind=LOST, failure=f"{host} has no worker of Dask")
        try:
            own = {"workers": [address], "allow_other_workers": False, "resources": {RESOURCE: 1}}
            asked = replace(job, asked_s=time.time())
            future = self._client.submit(_on_worker, asked, **own, retries=0, pure=False)
            self._futures.add(future)
            try:
                return self._await_outcome(host, address, future)
            finally:
                self._futures.discard(future)
        except Exception as error:  # noqa: BLE001  # Dask has many; all mean that it was lost
            return Outcome(kind=LOST, failure=f"{host}: {type(error).__name__}: {error}")

    def _await_outcome(self, host: str, address: str, future: Any) -> Outcome:
        """Wait for a task while its worker is there: Dask itself would wait forever."""
        seen_s = time.monotonic()
        while True:
            try:
                return codec.decode(Outcome, future.result(timeout=_LOOK_S))
            except (TimeoutError, self._distributed.TimeoutError):
                try:
                    worker = self._workers().get(host)
                except (OSError, RuntimeError):  # the scheduler is away, or busy
                    if time.monotonic() > seen_s + _GONE_S:
                        raise
                    continue
                seen_s = time.monotonic()
                if worker is None or worker["address"] != address:
                    future.cancel()
                    return Outcome(kind=LOST, failure=f"the worker of {host} has gone")

    def _address(self, host: str) -> str | None:
        """Wait for a worker, and return its address; None without one."""
        until_s = time.monotonic() + _GONE_S
        while time.monotonic() < until_s:
            try:
                if self._client.status != "running":
                    self._client = self._connect()
                if (worker := self._workers().get(host)) is not None:
                    return str(worker["address"])
            except (OSError, InvalidInput, RuntimeError):  # the scheduler is away
                pass
            time.sleep(_LOOK_S)
        return None

    def stop(self) -> None:
        """End all running jobs."""
        self._client.cancel([*self._futures])

    def close(self) -> None:
        """Release all resources."""
        self._client.close(timeout=_ANSWER_S)


def _on_worker(job: Job) -> Any:
    """Run a job on a worker, until it is cancelled, or its client has gone."""
    from distributed import get_worker  # noqa: PLC0415  # an extra

    job, worker = job.arrived(time.time()), get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    return codec.encode(run_job([sys.executable, *MODULE], job, is_wanted=is_wanted))
