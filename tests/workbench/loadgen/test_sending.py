"""Requests sent at given times, whatever becomes of earlier ones."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from benchrigor.workbench.loadgen import Answer
from benchrigor.workbench.loadgen.open_loop import arrival_times
from benchrigor.workbench.loadgen.sending import send_requests


def test_times_at_random_have_exponential_distances_and_poissons_number():
    rng = np.random.default_rng(1)
    counts = [arrival_times(50.0, 2.0, rng=rng).size for _ in range(400)]
    # The mean of 400 numbers with mean and variance 100, and their variance, within 4 errors.
    assert abs(np.mean(counts) - 100.0) < 4.0 * 10.0 / 20.0
    assert abs(np.var(counts) / 100.0 - 1.0) < 4.0 * np.sqrt(2.0 / 400.0)
    times = arrival_times(200.0, 50.0, rng=rng)
    assert kstest(np.diff(times), "expon", args=(0.0, 1.0 / 200.0)).pvalue > 1e-3
    assert (np.diff(times) >= 0.0).all()
    assert times[-1] < 50.0


@pytest.mark.parametrize(
    ("arrivals", "load", "times"),
    [("constant", 4.0, [0.0, 0.25, 0.5, 0.75]), ("constant", 1e-6, [0.0]), ("poisson", 1e-6, None)],
)
def test_times_that_are_constant_are_evenly_spaced_and_there_is_one(arrivals, load, times):
    found = arrival_times(load, 1.0, arrivals=arrivals, rng=np.random.default_rng(1))
    assert found.size == 1 if times is None else found.tolist() == times


def at_times(request: Callable[[], Awaitable[object]], times: Any, **options: float) -> Any:
    given = {"timeout_s": 5.0, "most_waiting": 1000, **options}
    start_s = time.monotonic() + 0.01
    return send_requests(request, np.array(times), start_s=start_s, **given)


def test_responses_and_first_bytes_count_from_when_requests_were_to_be_sent():
    """The first request keeps the sender busy: the others are late. Gaps do not include that."""
    calls = itertools.count(1)

    async def request() -> Answer | None:
        match next(calls):
            case 1:
                time.sleep(0.2)  # it blocks the whole loop
            case 2:
                return Answer(first_byte_at_s=time.monotonic(), chunk_gap_s=0.003)
            case 3:
                raise ValueError
        return None

    found = at_times(request, [0.0, 0.05, 0.1])
    assert found.lag_s[1] >= 0.1
    assert found.response_s[1] >= 0.1
    assert found.response_s[2] >= found.lag_s[2] >= 0.05
    assert np.isnan(found.first_byte_s[0])
    assert 0.1 <= found.first_byte_s[1] <= found.response_s[1]
    assert found.chunk_gap_s[1] == 0.003
    assert found.first_byte_s[2] == found.chunk_gap_s[2] == found.response_s[2] > 5.0


def test_no_request_waits_for_the_answer_to_another_unless_a_cap_holds_it_back():
    async def request() -> None:
        await asyncio.sleep(0.05)

    found = at_times(request, [0.0] * 50)
    assert found.elapsed_s < 50 * 0.05
    assert (found.response_s >= 0.049).all()
    assert found.at_s.size == 50
    found = at_times(request, [0.0, 0.0, 0.0], most_waiting=1)
    assert found.lag_s[2] >= 0.09
    assert found.response_s[2] >= 0.14


def test_a_faster_event_loop_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch):
    made: list[asyncio.AbstractEventLoop] = []

    def new_event_loop() -> asyncio.AbstractEventLoop:
        made.append(asyncio.new_event_loop())
        return made[0]

    monkeypatch.setitem(sys.modules, "uvloop", SimpleNamespace(new_event_loop=new_event_loop))
    assert not at_times(lambda: asyncio.sleep(0.0), [0.0]).failures
    assert len(made) == 1


def test_of_many_kinds_of_failures_some_are_named():
    async def request() -> None:
        raise ValueError(time.monotonic())

    found = at_times(request, [0.0] * 50)
    assert found.failures["failed otherwise"] == 40
    assert len(found.failures) == 11


def test_failures_are_named_and_count_at_the_timeout():
    kinds = iter([asyncio.sleep(60.0), ConnectionRefusedError(), ValueError(), asyncio.sleep(0.0)])

    async def request() -> None:
        match next(kinds):
            case Exception() as error:
                raise error
            case sleeping:
                await sleeping

    found = at_times(request, [0.0, 0.01, 0.02, 0.03], timeout_s=0.2)
    assert found.failed.tolist() == [True, True, True, False]
    assert (found.response_s[:3] >= 0.2).all()
    assert [*found.failures.values()] == [1, 1, 1]


def test_sending_ends_when_far_too_many_wait():
    async def request() -> None:
        await asyncio.sleep(60.0)

    found = at_times(request, np.linspace(0.0, 1000.0, 200_000), give_up_s=0.5)
    assert found.gave_up
    assert 50 <= found.at_s.size <= 20_000
    assert found.elapsed_s < 100.0


def test_sending_ends_when_what_waits_takes_far_too_long_by_the_rate_of_answers():
    one_by_one = asyncio.Lock()

    async def request() -> None:
        async with one_by_one:
            await asyncio.sleep(0.02)

    found = at_times(request, np.linspace(0.0, 2.0, 2_000), give_up_s=0.5)
    assert found.gave_up
    assert 20 <= found.left < 500  # as many as arrive in that time
    assert found.backlog_s >= 0.02 * found.left
