"""Hosts that send together: one schedule, split at random, from one start."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import WorkloadFailed
from benchrigor.testing import FakeExecutor
from benchrigor.workbench import PeakSearch
from benchrigor.workbench.loadgen import HostSenders, HttpRequest, HttpRequests, OpenLoop
from benchrigor.workbench.loadgen.senders import send_part
from benchrigor.workbench.on_host import HostBusy, Job, Outcome
from benchrigor.workbench.pool import Pool

REQUESTS = HttpRequests(kinds=[HttpRequest(url="http://127.0.0.1:9/")])


ARRAYS = ("at_s", "lag_s", "response_s", "first_byte_s", "chunk_gap_s", "failed")


def floats(packed: str) -> np.ndarray:
    """Return numbers that are sent as text."""
    return np.frombuffer(base64.b64decode(packed), dtype="<f8")


def pack(numbers: np.ndarray) -> str:
    return base64.b64encode(np.asarray(numbers, dtype="<f8").tobytes()).decode()


class Hosts:
    """Hosts that answer each request after 10 ms, by words alone."""

    def __init__(self, *names: str) -> None:
        self._names, self.spare_s = names, 1.0
        self.parts: dict[str, dict[str, Any]] = {}
        self.instead: Callable[[Job], Outcome | None] = lambda _: None
        self.senders = HostSenders(self.pool)

    def pool(self) -> Pool:
        executor = FakeExecutor(self._names, instead=self.outcome)
        return Pool(executor, owner="a", timed=True)

    def outcome(self, job: Job) -> Outcome:
        value: object = 100
        if job.call.endswith(":send_part"):
            self.parts[job.host] = dict(job.arguments)
            value = json.loads(json.dumps(self.answer(job.arguments), allow_nan=False))
        return self.instead(job) or Outcome(value=value)

    def answer(self, given: Mapping[str, Any]) -> dict[str, object]:
        at_s = floats(given["at_s"])
        if self.spare_s < 0.0:
            return {"spare_s": self.spare_s}
        lost = {"first_byte_s": np.full(at_s.size, np.nan), "lag_s": np.zeros(at_s.size)}
        arrays = dict.fromkeys(ARRAYS, np.full(at_s.size, 0.01)) | lost
        arrays |= {"at_s": at_s, "failed": at_s == at_s.min(initial=np.inf)}
        columns = pack(np.array([arrays[name] for name in ARRAYS]))
        rest = {"failures": {"status 500": 1}, "cpu_s": 0.1, "elapsed_s": 2.0, "gave_up": False}
        return {"spare_s": self.spare_s, "sent": rest, "columns": columns}

    def send(self, at_s: np.ndarray) -> Any:
        self.parts = {}
        return self.senders.send(REQUESTS, at_s, timeout_s=1.0, give_up_s=np.inf)


@pytest.mark.parametrize(("n", "requests"), [(1, 7), (2, 1), (2, 100_000), (5, 500)])
def test_each_request_is_sent_once_whatever_the_number_of_hosts(n, requests):
    hosts = Hosts(*(f"host{index}" for index in range(n)))
    at_s = np.sort(np.random.default_rng(n).uniform(0.0, 9.0, requests))
    found = hosts.send(at_s)
    hosts.senders.close()
    np.testing.assert_array_equal(found.at_s, at_s)
    assert found.failures.total() == n
    assert found.failed.sum() == min(n, requests)
    assert found.failed.dtype == np.bool_
    assert np.isnan(found.first_byte_s).all()
    sizes = [floats(each["at_s"]).size for each in hosts.parts.values()]
    assert max(sizes) - min(sizes) <= 1


def test_all_hosts_are_given_the_same_start():
    hosts = Hosts("elm", "oak", "fir")
    hosts.send(np.arange(9.0))
    hosts.senders.close()
    assert len({each["start_s"] for each in hosts.parts.values()}) == 1


def test_each_host_sends_independent_users_not_every_nth_request():
    hosts = Hosts("elm", "oak")
    at_s = np.sort(np.random.default_rng(1).uniform(0.0, 100.0, 10_000))
    hosts.send(at_s)
    hosts.senders.close()
    for part in hosts.parts.values():
        counts = np.histogram(floats(part["at_s"]), 1_000)[0]
        assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.2)  # taking turns: 0.5


def test_a_lost_host_spoils_one_trial_and_is_left_out_of_later_ones():
    hosts = Hosts("elm", "oak", "fir")
    at_s = np.arange(10.0)
    hosts.send(at_s)
    hosts.instead = lambda job: Outcome(kind="lost", failure="no") if job.host == "oak" else None
    with pytest.raises(WorkloadFailed):
        hosts.send(at_s)
    assert hosts.senders.shares == {"elm": 4, "oak": 3, "fir": 3}
    np.testing.assert_array_equal(hosts.send(at_s).at_s, at_s)
    assert set(hosts.parts) == set(hosts.senders.shares) == {"elm", "fir"}
    hosts.instead = lambda _: Outcome(kind="lost", failure="no")
    with pytest.raises(WorkloadFailed):
        hosts.send(at_s)
    with pytest.raises(WorkloadFailed):
        hosts.send(at_s)
    hosts.senders.close()


def test_a_trial_of_a_lost_host_is_repeated_and_never_saturation(monkeypatch):
    hosts = Hosts("elm", "oak")
    search = PeakSearch(threshold_s=0.5)
    generator = OpenLoop(REQUESTS, search.limits, senders=hosts.senders)
    monkeypatch.setattr(generator, "_await_recovery", lambda _: True)
    hosts.senders.check(REQUESTS)
    hosts.instead = lambda job: Outcome(kind="lost", failure="no") if job.host == "oak" else None
    first = search.ask()
    assert first is not None
    search.tell(first, generator.offer(first))
    again = search.ask()
    assert (again.load, again.duration_s) == (first.load, first.duration_s)
    search.tell(again, generator.offer(again))
    generator.close()
    lost, kept = search.result().trials
    assert lost.invalid
    assert not lost.counts
    assert kept.counts
    assert kept.ratio is not None
    assert kept.ratio < 0.5
    assert [set(each.result.shares) for each in (lost, kept)] == [{"elm", "oak"}, {"elm"}]


def test_a_host_that_is_ready_too_late_is_given_more_time():
    hosts = Hosts("elm", "oak")
    hosts.senders.check(REQUESTS)
    hosts.spare_s, before_s = -20.0, time.monotonic()
    with pytest.raises(WorkloadFailed):
        hosts.send(np.arange(3.0))
    assert hosts.parts["elm"]["start_s"] < before_s + 20.0  # unless this machine hung
    hosts.spare_s, before_s = 1.0, time.monotonic()
    assert hosts.send(np.arange(3.0)).at_s.size == 3
    assert hosts.parts["elm"]["start_s"] > before_s + 30.0
    hosts.senders.close()


def test_a_host_whose_start_has_passed_sends_nothing():
    given = {"requests": {"kinds": [], "seed": 1}, "at_s": pack(np.arange(3.0))}
    start_s = time.monotonic() - 1.0
    found = send_part(**given, start_s=start_s, timeout_s=1.0, give_up_s=1.0)
    assert [*found] == ["spare_s"]
    assert found["spare_s"] < -0.9


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [("busy", HostBusy, "others"), ("failed", WorkloadFailed, "refused")],
)
def test_a_host_that_cannot_send_is_an_error_before_any_trial(kind, error, said):
    hosts = Hosts("elm", "oak")
    hosts.instead = lambda job: Outcome(kind=kind, failure=said) if job.host == "oak" else None
    with pytest.raises(error, match=said):
        hosts.senders.check(REQUESTS)
    hosts.senders.close()
