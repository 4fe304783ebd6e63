"""Requests sent at given times, whatever becomes of earlier ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from benchrigor.workbench.loadgen.sending import Answer, Sent, merge, send_requests


def at_times(
    request: Callable[[], Awaitable[object]], times: list[float], **options: float
) -> Sent:
    given = {"timeout_s": 5.0, "most_waiting": 1000, **options}
    start_s = time.monotonic() + 0.01
    return send_requests(request, np.array(times), start_s=start_s, **given)


def test_responses_count_from_when_requests_were_to_be_sent():
    """The first request keeps the sender busy: the others are late, and their responses longer."""
    calls = 0

    async def request() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            time.sleep(0.2)  # it blocks the whole loop

    found = at_times(request, [0.0, 0.05, 0.1])
    assert found.lag_s[1] >= 0.1
    assert found.response_s[1] >= 0.1
    assert found.response_s[2] >= found.lag_s[2] >= 0.05


def test_no_request_waits_for_the_answer_to_another():
    async def request() -> None:
        await asyncio.sleep(0.2)

    found = at_times(request, [0.0] * 50)
    assert found.elapsed_s < 50 * 0.2
    assert (found.response_s >= 0.199).all()


def test_what_the_cap_holds_back_is_late():
    async def request() -> None:
        await asyncio.sleep(0.05)

    found = at_times(request, [0.0, 0.0, 0.0], most_waiting=1)
    assert found.lag_s[2] >= 0.09
    assert found.response_s[2] >= 0.14


def test_of_many_kinds_of_failures_some_are_named():
    async def request() -> None:
        raise ValueError(time.monotonic())

    found = at_times(request, [0.0] * 50)
    assert found.failures["failed otherwise"] == 40
    assert len(found.failures) == 11


def test_failures_are_named_and_count_at_the_timeout():
    kinds = iter(["slow", "refused", "wrong", "fine"])

    async def request() -> None:
        match next(kinds):
            case "slow":
                await asyncio.sleep(60.0)
            case "refused":
                raise ConnectionRefusedError
            case "wrong":
                raise ValueError

    found = at_times(request, [0.0, 0.01, 0.02, 0.03], timeout_s=1.0)
    assert found.failed.tolist() == [True, True, True, False]
    assert (found.response_s[:3] >= 1.0).all()
    assert found.response_s[3] < 1.0
    assert [*found.failures.values()] == [1, 1, 1]


@pytest.mark.slow
def test_sending_ends_when_far_too_many_wait():
    async def request() -> None:
        await asyncio.sleep(60.0)

    times = np.linspace(0.0, 1000.0, 200_000).tolist()
    found = at_times(request, times, give_up_s=0.5)
    assert found.gave_up
    assert 50 <= found.at_s.size <= 20_000
    assert found.elapsed_s < 100.0


def test_sending_ends_when_what_waits_takes_far_too_long_by_the_rate_of_answers():
    one_by_one = asyncio.Lock()

    async def request() -> None:
        async with one_by_one:
            await asyncio.sleep(0.02)

    found = at_times(request, np.linspace(0.0, 2.0, 2_000).tolist(), give_up_s=0.5)
    assert found.gave_up
    assert 20 <= found.left < 500  # as many as arrive in that time
    assert found.backlog_s >= 0.02 * found.left


def test_parts_of_several_processes_are_merged_by_time():
    async def request() -> None:
        return

    one, two = at_times(request, [0.0, 0.02]), at_times(request, [0.01, 0.03])
    both = merge([one, two])
    assert both.at_s.tolist() == [0.0, 0.01, 0.02, 0.03]
    assert both.response_s[1] == two.response_s[0]
    assert both.cpu_s == one.cpu_s + two.cpu_s


@pytest.mark.parametrize("n", [1, 3])
def test_each_request_is_sent_once(n: int):
    calls: list[float] = []

    async def request() -> None:
        calls.append(time.monotonic())

    found = at_times(request, [0.0] * n)
    assert len(calls) == found.at_s.size == n


def test_first_bytes_count_from_when_requests_were_to_be_sent_and_gaps_do_not():
    calls = 0

    async def request() -> Answer | None:
        nonlocal calls
        calls += 1
        if calls == 1:
            time.sleep(0.2)  # all others are late
        if calls == 3:
            raise ValueError
        return Answer(first_byte_at_s=time.monotonic(), chunk_gap_s=0.003) if calls == 2 else None

    found = at_times(request, [0.0, 0.05, 0.1])
    assert np.isnan(found.first_byte_s[0])
    assert 0.1 <= found.first_byte_s[1] <= found.response_s[1]
    assert found.chunk_gap_s[1] == 0.003
    assert found.first_byte_s[2] == found.chunk_gap_s[2] == found.response_s[2] > 5.0
