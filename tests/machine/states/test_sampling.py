"""Samplers that raise, and counters that go on, go back or are new."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchrigor.machine.kernel_files import Unavailable
from benchrigor.machine.states.sampling import FIRST, Counters, GuardedSampler, sample_all
from benchrigor.model import Sample
from benchrigor.testing import FakeClock, FakeSampler


def half() -> Iterator[Sample]:
    yield Sample("a", 1.0)
    raise ValueError("no b")


def test_what_came_before_an_exception_counts_and_the_rest_has_the_reason() -> None:
    assert GuardedSampler("both", half, "a, b").sample() == [
        Sample("a", 1.0),
        Sample("b", None, reason="cannot be read: ValueError('no b')"),
    ]


def test_a_sampler_without_names_gives_its_own_the_reason() -> None:
    assert [each.name for each in GuardedSampler("both", half).sample()] == ["a", "both"]


def test_what_is_not_told_says_so_and_others_can_be_left_out() -> None:
    samples = GuardedSampler("x", lambda: [Sample("c", 1.0)], "a", only=True).sample()
    assert samples == [Sample("a", None, reason="this system does not tell")]


def test_an_interrupt_is_no_failure_of_a_sampler() -> None:
    def interrupted() -> list[Sample]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GuardedSampler("x", interrupted).sample()


def test_each_sampler_states_what_it_cost(clock: FakeClock) -> None:
    slow = FakeSampler({"a": 1.0}, name="slow", clock=clock, cost_s=0.25)
    fast = FakeSampler({"b": 2.0}, name="fast", clock=clock)
    guarded = [GuardedSampler(each.describe(), each.sample) for each in (slow, fast)]
    found = sample_all(guarded, clock)
    assert found["cost_s"] == {"slow": 0.25, "fast": 0.0}
    assert [each.name for each in found["samples"]] == ["a", "b"]


def rates(counters: Counters, **totals: float) -> dict[str, float | str | None]:
    return {each.name: each.value or each.reason for each in counters.rates(totals, "B/s")}


def test_a_rate_is_over_the_time_since_the_last_reading(clock: FakeClock) -> None:
    counters = Counters(clock)
    with pytest.raises(Unavailable, match=FIRST):
        rates(counters, a=100.0)
    clock.advance(2_000_000_000)
    assert rates(counters, a=110.0) == {"a": 5.0}
    clock.advance(1_000_000_000)
    assert rates(counters, a=30.0, b=9.0) == {"a": "the counter went back", "b": FIRST}
    clock.advance(1_000_000_000)
    assert rates(counters, a=31.0, b=10.0) == {"a": 1.0, "b": 1.0}


def test_without_time_there_is_no_rate(clock: FakeClock) -> None:
    counters = Counters(clock)
    with pytest.raises(Unavailable):
        rates(counters, a=1.0)
    with pytest.raises(Unavailable, match="no time has passed"):
        rates(counters, a=2.0)


def test_what_is_gone_is_forgotten(clock: FakeClock) -> None:
    counters = Counters(clock)
    for index in range(100):
        clock.advance(1)
        with pytest.raises(Unavailable):
            rates(counters, **{f"veth{index}": 1.0})
    assert len(vars(counters)["_last"]) == 1
