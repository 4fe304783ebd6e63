import time
from itertools import count, repeat

import pytest

from benchrigor import clocks
from benchrigor.clocks import WallClock, clock_cost_ns, measured_resolution_ns
from benchrigor.errors import ClockFailed
from benchrigor.testing import FakeClock


def test_reading_a_system_clock_costs_no_python_call() -> None:
    assert WallClock().now_ns is time.perf_counter_ns


def test_the_resolution_is_the_smallest_step_seen() -> None:
    steps = iter([0, 0, 50, 50, 75, 175, *range(1_175, 10**9, 1_000)])
    assert measured_resolution_ns(lambda: next(steps)) == 25


def test_the_resolution_of_a_coarse_clock_is_found_by_reading_on() -> None:
    reads = count()
    assert measured_resolution_ns(lambda: next(reads) // 5_500 * 15_600_000) == 15_600_000


def test_a_clock_that_goes_backwards_has_no_resolution() -> None:
    clock = FakeClock(script=[100, 110, 93])
    with pytest.raises(ClockFailed, match="17 ns"):
        measured_resolution_ns(clock.now_ns)


def test_a_clock_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MOST_BATCHES", 5)
    frozen = repeat(42)
    with pytest.raises(ClockFailed, match="5000"):
        measured_resolution_ns(lambda: next(frozen))


@pytest.mark.parametrize("cost_ns", [0, 1, 40])
def test_the_cost_is_what_two_reads_around_nothing_show(cost_ns: int) -> None:
    assert clock_cost_ns(FakeClock(cost_ns=cost_ns)) == cost_ns


def test_a_cost_below_the_resolution_is_seen_in_the_mean() -> None:
    # Most pairs of reads show no step at all, some show one of 1000 ns.
    assert clock_cost_ns(FakeClock(cost_ns=370, resolution_ns=1_000)) == pytest.approx(370, rel=0.1)


def test_all_processors_count_if_the_system_does_not_say_which_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(clocks.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(clocks.os, "cpu_count", lambda: 6)
    assert clocks.processors() == 6
