"""Fakes: a server with a known peak that needs no requests; hosts that are threads."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from benchrigor.workbench.data import LoadResult, LoadTrial
from benchrigor.workbench.pool.on_host import FREE, HOLD, Job, Outcome, call_function

_CAPPED = 0.5  # of the duration: above the capacity a queue grows during the whole trial


class SimulatedServer:
    """Serves one request after the other (M/M/1); a `LoadGenerator`.

    Parameters
    ----------
    capacity
        Requests that it serves per second. The mean response is 1 / (capacity - load), so that it
        keeps a limit up to a load of capacity - 1 / limit.
    noise
        Relative standard deviation of the mean response of a trial of a minute; it is proportional
        to 1 / sqrt(duration).
    seed
        Of the noise.

    Examples
    --------
    >>> server = SimulatedServer(200.0)
    >>> server.offer(LoadTrial(id=0, load=175.0, duration_s=60.0)).mean_response_s
    0.04
    """

    def __init__(self, capacity: float, *, noise: float = 0.0, seed: int = 1) -> None:
        self.capacity, self.noise = capacity, noise
        self._rng = np.random.default_rng(seed)

    def peak(self, limit_s: float) -> float:
        """Return the greatest load at which the mean response keeps a limit."""
        return self.capacity - 1.0 / limit_s

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Carry out a trial, at once."""
        spare, duration_s = self.capacity - trial.load, trial.duration_s
        mean_s = min(1.0 / spare if spare > 0.0 else math.inf, _CAPPED * duration_s)
        mean_s *= math.exp(self._rng.normal(0.0, self.noise * math.sqrt(60.0 / duration_s)))
        requests = int(self._rng.poisson(trial.load * duration_s))
        return LoadResult(
            mean_response_s=mean_s,
            p95_response_s=-math.log(0.05) * mean_s,  # responses of M/M/1 are exponential
            scheduled=requests,
            sent=requests,
        )


class FakeExecutor:
    """Runs jobs in this process as fake hosts; an `Executor`.

    Parameters
    ----------
    hosts
        Their names.
    instead
        Called with a job; its outcome replaces a call of the function. The function is called if
        this is None or returns None.

    Attributes
    ----------
    log
        Host, job, beginning and end of all jobs, in seconds of a monotonic clock.

    Examples
    --------
    >>> from benchrigor.workbench.pool.on_host import Token
    >>> executor = FakeExecutor(["elm"])
    >>> job = Job(call="math:sqrt", arguments={}, host="elm", token=Token(owner="a", number=1))
    >>> executor.run("elm", job).failure
    'TypeError: math.sqrt() takes exactly one argument (0 given)'
    """

    alone = True

    def __init__(
        self, hosts: Sequence[str], *, instead: Callable[[Job], Outcome | None] | None = None
    ) -> None:
        self.hosts = tuple(hosts)
        self.log: list[tuple[str, Job, float, float]] = []
        self._instead = instead or (lambda _: None)

    def run(self, host: str, job: Job) -> Outcome:
        """Call the function of a job, in this thread."""
        if job.call in {FREE, HOLD}:
            return Outcome()
        begun_s = time.monotonic()
        outcome = self._instead(job) or call_function(job)
        self.log.append((host, job, begun_s, time.monotonic()))
        return outcome

    def stop(self) -> None:
        """Do nothing: running jobs end by themselves."""

    def close(self) -> None:
        """Do nothing: it has no resources."""
