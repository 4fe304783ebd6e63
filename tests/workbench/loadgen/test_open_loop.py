"""The load generator, with HTTP requests to servers that are really there."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys

import pytest

from benchrigor import Limit, LoadTrial
from benchrigor.errors import InvalidInput, MissingExtra, WorkloadFailed
from benchrigor.protocols import LoadGenerator
from benchrigor.testing import SimulatedServer
from benchrigor.workbench.loadgen import HttpRequest, HttpRequests, OpenLoop

MEAN = [Limit(metric="mean", at_most=1.0)]
TRIAL = LoadTrial(id=0, load=100.0, duration_s=0.5)


def requests(url: str, **options: object) -> HttpRequests:
    return HttpRequests(kinds=[HttpRequest(url=url, **options)])


async def alone() -> None:
    """A request of this module, which takes 5 ms."""
    await asyncio.sleep(0.005)


@pytest.mark.parametrize("name", ["simulated", "poisson", "constant"])
def test_laws_of_load_generators(name):
    """The mean rate is that of the trial, and no response is faster than its service."""
    arrivals = "poisson" if name == "simulated" else name
    generator = (
        SimulatedServer(200.0) if name == "simulated" else OpenLoop(alone, arrivals=arrivals)
    )
    assert isinstance(generator, LoadGenerator)
    found = generator.offer(LoadTrial(id=3, load=150.0, duration_s=1.0))
    assert abs(found.scheduled - 150.0) <= 4.0 * math.sqrt(150.0)
    assert found.mean_response_s >= 0.005
    assert found.failed == 0


@pytest.mark.parametrize("processes", [1, 2])
def test_a_rate_is_offered_by_one_process_or_several(web, processes):
    generator = OpenLoop(requests(web), MEAN, seed=3, processes=processes)
    try:
        found = generator.offer(TRIAL)
    finally:
        generator.close()
    assert 20 <= found.scheduled <= 90
    assert found.failed == 0
    assert 0.0 < found.mean_response_s < 1.0
    # The last request is scheduled for .487 s; what is warm-up counts apart.
    assert found.spent_s["warm-up"] + found.spent_s["run"] >= 0.48


def test_what_is_sent_is_as_asked_for(web, seen):
    kinds = [
        HttpRequest(url=web, method="POST", headers={"X-Test": "yes"}, body="hello", weight=3.0),
        HttpRequest(url=web),
    ]
    found = OpenLoop(HttpRequests(kinds=kinds), MEAN).offer(TRIAL)
    assert found.failed == 0
    posts = [each for each in seen if each[0] == "POST"]
    assert set(posts) == {("POST", "yes", "hello")}
    assert 0.5 < len(posts) / len(seen) < 0.95


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("/error", {}, "status 500"),
        ("/", {"status": 204}, "status 200"),
        ("/moved", {}, "status 302"),
        ("/huge", {}, "16 MiB"),
        ("/close", {}, "ServerDisconnected"),
    ],
)
def test_an_answer_that_is_not_as_expected_has_failed(web, path, options, said):
    generator = OpenLoop(requests(web + path, **options), MEAN)
    with pytest.raises(WorkloadFailed) as caught:
        generator.check()
    assert said in str(caught.value)


def test_a_redirect_that_is_expected_is_none(web, seen):
    OpenLoop(requests(f"{web}/moved", status=302), MEAN).check()
    assert len(seen) == 1  # it was not followed


def test_a_server_that_never_answers_or_speaks_no_tls(web, silent):
    with pytest.raises(WorkloadFailed, match=r"(?i)ssl"):
        OpenLoop(requests(web.replace("http:", "https:")), MEAN).check()
    with pytest.raises(WorkloadFailed):
        OpenLoop(requests(silent), timeout_s=0.2).check()


def test_failures_are_counted_and_named(web):
    limits = [Limit(metric="failed", at_most=0.01)]
    generator = OpenLoop(requests(f"{web}/error"), limits, timeout_s=1.0)
    generator._await_recovery = lambda _: True  # noqa: SLF001
    found = generator.offer(LoadTrial(id=0, load=500.0, duration_s=0.2))
    assert "status 500" in found.failures
    assert sum(found.failures.values()) >= found.failed
    assert found.value("failed") == pytest.approx(1.0, abs=0.1)


def test_a_process_that_was_killed_spoils_one_trial():
    generator = OpenLoop(alone, MEAN, processes=2)
    try:
        generator.offer(LoadTrial(id=0, load=100.0, duration_s=0.1))
        for pid in generator._senders._pool._processes:  # noqa: SLF001
            os.kill(pid, signal.SIGKILL)
        lost, found = (
            generator.offer(LoadTrial(id=number, load=100.0, duration_s=0.1)) for number in (1, 2)
        )
        assert lost.invalid
        assert not found.invalid
    finally:
        generator.close()


def test_what_cannot_be_sent_to_others_is_sent_by_one():
    async def nested() -> None:
        pass

    assert OpenLoop(nested, MEAN).offer(TRIAL).failed == 0
    with pytest.raises(InvalidInput):
        OpenLoop(nested, MEAN, processes=2)


def test_a_server_that_broke_down_is_noticed(nobody, monkeypatch):
    monkeypatch.setattr("benchrigor.workbench.loadgen.open_loop._RECOVERY_S", 0.1)
    assert OpenLoop(requests(nobody), MEAN).offer(TRIAL).crashed


def test_without_aiohttp_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingExtra, match=r"benchrigor\[load\]"):
        OpenLoop(requests("http://127.0.0.1/"), MEAN).check()


def test_first_byte_and_gaps_of_a_streamed_answer_are_measured(web):
    slo = Limit(metric="response<2s and first-byte<1s and chunk-gap<1s", at_most=0.05)
    found = OpenLoop(requests(f"{web}/stream"), [slo]).offer(
        LoadTrial(id=0, load=20.0, duration_s=0.5)
    )
    assert 0.1 <= found.metrics["first-byte-p95"] < found.metrics["response-p95"]
    assert found.metrics["response-p95"] >= 0.29
    assert 0.14 <= found.metrics["chunk-gap-p95"] <= 0.29
    assert found.metrics[slo.metric] == 0.0


def test_the_response_of_any_requests_may_be_limited():
    generator = OpenLoop(alone, [Limit(metric="response<1s", at_most=0.05)])
    found = generator.offer(LoadTrial(id=0, load=20.0, duration_s=0.5))
    assert found.metrics["response<1s"] == 0.0
