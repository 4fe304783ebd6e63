"""Hosts that send the requests of a trial together, from one start."""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.series import Floats, short
from benchrigor.model.text import show_duration
from benchrigor.workbench.loadgen.http_requests import HttpRequest, HttpRequests
from benchrigor.workbench.loadgen.senders import PartLost, most_connections
from benchrigor.workbench.loadgen.sending import ARRAYS, Requests, Send, Sent, merge, send_requests
from benchrigor.workbench.pool.on_host import LOST, Outcome
from benchrigor.workbench.pool.pool import Pool

_SPARE_S, _TIMES = 0.3, 1.5  # lead of the start: the slowest host so far, times this, and a bit


class HostSenders:
    """Sends from n hosts of a pool; a host sends an n-th of one schedule, drawn at random.

    Before a trial all hosts receive its start, with a lead for the slowest. A lost host spoils the
    trial, and later trials continue without it. All hosts are held from the check until the end.

    Requests of independent users stay so when hosts do not start quite together, since parts drawn
    at random are independent, too. If hosts took turns, a start 50 ms too early or late would make
    arrivals more even, and peaks too high.

    Parameters
    ----------
    begin
        Makes the pool, with ``timed`` jobs; called when it is needed.
    is_kept
        Whether the pool stays open after `close`.
    """

    def __init__(self, begin: Callable[[], Pool], *, is_kept: bool = False) -> None:
        self._begin, self._is_kept = begin, is_kept
        self._pool: Pool | None = None
        self.shares: Mapping[str, int] = {}
        self._lead_s = 0.0

    def check(self, requests: Requests | Send) -> None:
        """Take all hosts, and open the resources of requests there.

        Raises
        ------
        InvalidInput
            When requests cannot be passed to another host.
        HostBusy
            When a host works for another owner.
        WorkloadFailed
            When a host cannot send.
        """
        if not isinstance(requests, HttpRequests):
            raise InvalidInput(f"requests is {short(requests)}, expected HttpRequests with hosts")
        if self._pool is not None:
            return
        self._pool = self._begin()
        given: dict[str, dict[str, Any]] = {host: {} for host in self._pool.table.hosts}
        for host, done in self._all_done("get_ready", given).items():
            if done.failure:
                raise WorkloadFailed(f"{host} cannot send: {done.failure}")
            self._lead_s = max(self._lead_s, _lead_for(done.elapsed_s))

    def send(
        self, requests: Requests | Send, at_s: Floats, *, timeout_s: float, give_up_s: float
    ) -> Sent:
        """Send requests at their times, shared among hosts; PartLost if a host did not send."""
        self.check(requests)
        assert isinstance(requests, HttpRequests)  # noqa: S101  # it was checked
        assert self._pool is not None  # noqa: S101  # it was made
        hosts = self._pool.table.hosts
        if not hosts:
            raise WorkloadFailed("no host is left that sends")
        shared: dict[str, Any] = {
            "requests": {**asdict(requests), "kinds": [asdict(kind) for kind in requests.kinds]},
            "timeout_s": timeout_s,
            "give_up_s": min(give_up_s, 1e9),
        }
        whose = np.random.default_rng(at_s.size).permutation(at_s.size) % len(hosts)
        parts = {host: at_s[whose == index] for index, host in enumerate(hosts)}
        self.shares = {host: part.size for host, part in parts.items()}
        shared["start_s"] = time.time() + self._lead_s
        given = {host: shared | {"at_s": _pack(part)} for host, part in parts.items()}
        found = self._all_done("send_part", given)
        lost = [host for host, done in found.items() if done.kind == LOST]
        for host in lost:
            self._pool.table.drop(host)
        if lost:
            why = "; ".join(found[host].failure for host in lost)
            raise PartLost(
                f"{' and '.join(lost)} {'was' if len(lost) == 1 else 'were'} lost: {why}"
            )
        if failed := [f"{host}: {done.failure}" for host, done in found.items() if done.failure]:
            raise WorkloadFailed("; ".join(failed))
        return self._together({host: done.value for host, done in found.items()})

    def _together(self, values: Mapping[str, Mapping[str, Any]]) -> Sent:
        """Return the results of all hosts, and learn the lead that they need before a start."""
        spare_s = {host: value["spare_s"] for host, value in values.items()}
        host, least_s = min(spare_s.items(), key=lambda pair: pair[1])
        self._lead_s = _lead_for(self._lead_s - least_s)
        if least_s < 0.0:
            raise PartLost(f"{host} was ready {show_duration(-least_s)} after the start")
        return merge([_unpack(value["sent"]) for value in values.values()])

    def _all_done(self, name: str, given: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
        """Have a function of this module called on hosts at the same time."""
        assert self._pool is not None  # noqa: S101  # the caller has begun it
        jobs: dict[str, Future[Outcome]] = {
            host: self._pool.submit(f"{__name__}:{name}", arguments, among=[host])
            for host, arguments in given.items()
        }
        return {host: job.result() for host, job in jobs.items()}

    def close(self) -> None:
        """Release the hosts."""
        if self._pool is not None and not self._is_kept:
            self._pool.close()
        self._pool = None


def _lead_for(needed_s: float) -> float:
    return _SPARE_S + _TIMES * max(needed_s, 0.0)


def get_ready() -> int:
    """Open the resources of requests; return the maximum number of connections of this host."""
    nothing = HttpRequests(kinds=[HttpRequest(url="http://127.0.0.1/")])
    send_requests(nothing, np.zeros(0), timeout_s=1.0, most_waiting=1)
    return most_connections()


def send_part(
    *,
    requests: Mapping[str, Any],
    at_s: str,
    start_s: float,
    timeout_s: float,
    give_up_s: float,
) -> dict[str, Any]:
    """Send requests on this host, from ``start_s`` by its calendar clock on.

    Returns
    -------
    dict
        The seconds between readiness and start, and the results of requests unless it was too late.
    """
    kinds = [HttpRequest(**kind) for kind in requests["kinds"]]
    most = get_ready()
    times, spare_s = _floats(at_s), start_s - time.time()
    if spare_s < 0.0:
        return {"spare_s": spare_s}
    found = send_requests(
        HttpRequests(kinds=kinds, seed=requests["seed"]),
        times,
        start_s=time.monotonic() + spare_s,
        timeout_s=timeout_s,
        most_waiting=most,
        give_up_s=give_up_s,
    )
    names = [field.name for field in fields(found)]
    values = {name: getattr(found, name) for name in names}
    packed = {name: _pack(values[name]) for name in ARRAYS}
    return {"spare_s": spare_s, "sent": values | packed}


def _pack(numbers: Sequence[float] | np.ndarray) -> str:
    """Return numbers as text: as lists 10^5 of them would take JSON ten times as long."""
    return base64.b64encode(np.asarray(numbers, dtype="<f8").tobytes()).decode()


def _floats(packed: str) -> Floats:
    return np.frombuffer(base64.b64decode(packed), dtype="<f8").astype(np.float64)


def _unpack(packed: Mapping[str, Any]) -> Sent:
    arrays: dict[str, Any] = {name: _floats(packed[name]) for name in ARRAYS}
    arrays["failed"] = arrays["failed"] > 0.0
    return Sent(**{**packed, **arrays, "failures": Counter(packed["failures"])})
