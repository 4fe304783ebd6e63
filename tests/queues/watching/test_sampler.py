"""The loop, on a clock that moves only when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from simulated.owners import FakeOwners

from benchrigor.model import ServiceRate
from benchrigor.queues import Page, Stage
from benchrigor.queues.counting.ends import End
from benchrigor.queues.data.service import RateReason
from benchrigor.queues.stages.stage_figures import Watching
from benchrigor.queues.watching.sampler import Sampler, keep_sampling
from benchrigor.testing import FakeClock

MS = 1_000_000


class Program:
    """A stage that serves so many items a millisecond, and then waits for a while, by turns."""

    def __init__(self, cell: Any, clock: FakeClock) -> None:
        self.cell, self.clock = cell, clock
        self.items_per_ms, self.busy_ms, self.idle_ms = 4, 7, 3
        self.late_ns = 0

    def wait(self, seconds: float) -> bool:
        """Let time pass as a machine does that wakes who sleeps too late."""
        until_ns = self.clock.now_ns() + round(seconds * 1e9) + self.late_ns
        while self.clock.now_ns() < until_ns:
            self.work_for_a_millisecond()
        return False

    def work_for_a_millisecond(self) -> None:
        now_ms = self.clock.now_ns() // MS
        turn = now_ms % (self.busy_ms + self.idle_ms)
        if turn == self.busy_ms:
            self.cell.begin_wait(self.clock.now_ns())
        elif turn == 0 and now_ms:
            self.cell.end_wait(self.clock.now_ns())
        if turn < self.busy_ms:
            for _ in range(self.items_per_ms):
                self.cell.count()
        self.clock.advance(MS)


class Watched:
    """A program and what samples it."""

    def __init__(self, page: Page, watching: Watching, **more: object) -> None:
        self.clock, self.owners = FakeClock(), FakeOwners()
        self.cell = page.claim("work.head")
        self.cell.words[5] = 5 << 32 | 6
        self.program = Program(self.cell, self.clock)
        self.head = End(page, "work.head")
        self.cost_s = 0.0  # processor time so far
        self.sampler = Sampler([Stage("hash", reads=[self.head])], watching, owners=self.owners)
        self.sampler.thread_time = lambda: self.cost_s  # type: ignore[method-assign]
        self.at_ms: list[float] = []

    def run(self, samples: int) -> list[ServiceRate]:
        def take(now_ns: int) -> float | None:
            self.at_ms.append(now_ns / MS)
            self.sampler.sample(now_ns)
            return self.sampler.period_s if len(self.at_ms) < samples else None

        if self.at_ms:
            self.program.wait(0.001)
        keep_sampling(take, self.program.wait, now_ns=self.clock.now_ns)
        self.sampler.work_off()
        return list(self.sampler.report().stages[0].rates)


Make = Callable[..., Watched]


@pytest.fixture
def watched(page: Page) -> Make:
    def make(**watching: object) -> Watched:
        return Watched(page, Watching(**watching))  # type: ignore[arg-type]

    return make


def test_the_rate_is_items_over_the_time_that_it_did_not_wait(watched: Make) -> None:
    (rate,) = watched(period_s=0.05).run(103)
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0)
    assert (rate.periods, rate.unblocked) == (100, 0)
    assert rate.period_s == pytest.approx(0.05)
    assert (rate.start_s, rate.stop_s) == pytest.approx((0.05, 5.05))


def test_periods_are_as_wide_as_they_were_not_as_they_should_have_been(watched: Make) -> None:
    program = watched(period_s=0.05)
    program.program.late_ns = 3 * MS
    (rate,) = program.run(103)
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0)
    # Each is late, and none the later for it.
    assert program.at_ms[:3] == [3.0, 53.0, 103.0]


def test_the_published_method_gets_the_same_periods(watched: Make) -> None:
    program = watched(period_s=0.05, method="quantile")
    program.program.idle_ms = 0
    rate = program.run(400)[0]
    assert rate.method == "quantile"
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0)


def test_cells_that_are_claimed_later_are_found(watched: Make, page: Page) -> None:
    program = watched(period_s=0.05)
    program.run(30)
    other = page.claim("work.head")
    other.words[5] = 7 << 32
    other.begin_wait(program.clock.now_ns())
    program.at_ms.clear()
    assert [len(program.run(30)), program.sampler.report().stages[0].servers] == [2, 2]


def test_the_widest_period_that_is_kept_to_wins_where_the_stage_never_waits(watched: Make) -> None:
    program = watched(period_s=None)
    program.program.busy_ms, program.program.idle_ms = 1_000_000, 0
    program.run(10)
    assert program.sampler.report().seeking
    program.run(30)
    assert not program.sampler.report().seeking
    (rate,) = program.run(60)
    assert program.sampler.period_s == 0.2
    assert not program.sampler.report().seeking
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0)


def test_where_a_stage_that_may_wait_waits_a_period_is_wide_enough(watched: Make) -> None:
    program = watched(period_s=None)
    (rate,) = program.run(60)
    assert program.sampler.period_s == 0.05
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0)


def test_what_costs_more_than_a_hundredth_of_a_processor_is_widened(watched: Make) -> None:
    program = watched(period_s=None)

    def wait(seconds: float) -> bool:
        program.cost_s += 0.0015  # more than 1 % of 100 ms
        return Program.wait(program.program, seconds)

    program.program.wait = wait  # type: ignore[method-assign]
    program.run(120)
    assert program.sampler.period_s == 0.2


def test_while_nothing_passes_the_search_goes_on(watched: Make) -> None:
    program = watched(period_s=None)
    program.program.items_per_ms = 0
    program.run(100)
    assert program.sampler.report().seeking
    program.program.items_per_ms = 4
    program.run(120)
    assert not program.sampler.report().seeking


def test_the_period_of_the_published_method_ends_where_the_stage_waits(watched: Make) -> None:
    program = watched(period_s=None, method="quantile", guards=False)
    program.program.busy_ms, program.program.idle_ms = 600, 30
    program.run(200)
    # Six of 100 ms fit into what it works in a row, three of 200 ms.
    assert program.sampler.period_s == 0.1
    assert program.sampler.failure is None


def test_rates_are_provisional_until_the_method_has_one_of_its_own(watched: Make) -> None:
    program = watched(period_s=None, method="quantile")
    program.program.busy_ms, program.program.idle_ms = 1_000_000, 0
    (rate,) = program.run(12)
    assert (rate.method, rate.converged) == ("busy-time", False)
    assert rate.reason is RateReason.PROVISIONAL
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0, rel=0.01)
    (rate,) = program.run(30)
    assert not program.sampler.report().seeking
    assert rate.reason is RateReason.PROVISIONAL
    (rate, *_) = program.run(150)
    assert (rate.method, program.sampler.period_s) == ("quantile", 0.2)
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0, rel=0.01)


@pytest.mark.parametrize("method", ["busy-time", "quantile"])
def test_where_no_period_is_kept_to_only_the_published_method_ends(
    watched: Make, method: str
) -> None:
    program = watched(period_s=None, method=method)
    turns = iter(range(10_000))

    def wait(seconds: float) -> bool:
        program.program.late_ns = next(turns) % 2 * 9 * MS
        return Program.wait(program.program, seconds)

    program.program.wait = wait  # type: ignore[method-assign]
    program.run(300)
    report = program.sampler.report()
    assert report.stages[0].rate is not None
    if method == "busy-time":
        assert (report.period_s, report.failure) == (0.05, None)
    else:
        assert report.period_s is None
        assert report.failure is not None


@pytest.mark.parametrize(
    ("cost_ms", "at_ms"),
    [
        ([1, 9, 0, 5, 0], [0, 10, 20, 30, 40]),  # on a grid, whatever they cost
        ([1, 25, 10, 0, 0], [0, 10, 40, 60, 70]),  # times that have passed are skipped
    ],
)
def test_samples_are_taken_on_a_grid(cost_ms: list[float], at_ms: list[float]) -> None:
    clock, taken = FakeClock(), list[float]()

    def take(now_ns: int) -> float | None:
        clock.advance(round(cost_ms[len(taken)] * MS))
        taken.append(now_ns / MS)
        return 0.01 if len(taken) < len(cost_ms) else None

    def wait(seconds: float) -> bool:
        clock.sleep_ns(round(seconds * 1e9))
        return False

    keep_sampling(take, wait, now_ns=clock.now_ns)
    assert taken == at_ms


def test_it_ends_when_told_before_another_sample_is_taken() -> None:
    taken: list[int] = []
    told = iter([False, False, True])

    def take(now_ns: int) -> float:
        taken.append(now_ns)
        return 0.01

    keep_sampling(take, lambda _: next(told))
    assert len(taken) == 2


def test_only_the_method_as_published_is_bound_to_the_period() -> None:
    used = []
    for method, guards in (("busy-time", True), ("quantile", True), ("quantile", False)):
        estimator = Watching(method=method, guards=guards, period_s=0.05).estimator()
        estimator.tell_many([40] * 400, 0.1)
        used.append(estimator.rates[-1].used > 0)
    assert used == [True, True, False]
