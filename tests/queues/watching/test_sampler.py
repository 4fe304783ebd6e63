"""The loop, on a clock that moves only when it is told to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.queues.benches import MS, Bench, stage_of

from benchrigor.model import ServiceRate
from benchrigor.queues import Page
from benchrigor.queues.monitor import keep_sampling
from benchrigor.queues.writers import Owners
from benchrigor.testing import FakeClock


class Program(Bench):
    """A stage that serves so many items a millisecond, and then waits for a while, by turns."""

    def __init__(self, page: Page, **watching: Any) -> None:
        super().__init__(page, stage_of(page, reads=["work.head"]), **watching)
        self.clock, self.worker = FakeClock(), self.cell("work.head", tid=6)
        self.items_per_ms, self.busy_ms, self.idle_ms = 4, 7, 3
        self.late_ns = 0
        self.cost_s = 0.0  # processor time so far
        self.sampler.thread_time = lambda: self.cost_s
        self.at_ms: list[float] = []

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
            self.worker.begin_wait(self.clock.now_ns())
        elif turn == 0 and now_ms:
            self.worker.end_wait(self.clock.now_ns())
        if turn < self.busy_ms:
            self.worker.words[0] += self.items_per_ms
        self.clock.advance(MS)

    def run(self, samples: int) -> list[ServiceRate]:
        def take(now_ns: int) -> float | None:
            self.at_ms.append(now_ns / MS)
            self.sampler.sample(now_ns)
            return self.sampler.period_s if len(self.at_ms) < samples else None

        if self.at_ms:
            self.wait(0.001)
        keep_sampling(take, self.wait, now_ns=self.clock.now_ns)
        return list(self.found.rates)

    @property
    def seeking(self) -> bool:
        return self.sampler.report().seeking


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts by thread")
Make = Callable[..., Program]


@pytest.fixture
def program(page: Page) -> Make:
    return lambda **watching: Program(page, **watching)


def is_found(rate: ServiceRate) -> bool:
    """Whether it is what programs serve while they are busy."""
    return rate.estimate is not None and rate.estimate.value == pytest.approx(4000.0, rel=0.01)


@pytest.mark.parametrize("late_ms", [0, 3])
def test_periods_are_as_wide_as_they_were_not_as_they_should_have_been(
    program: Make, late_ms: int
) -> None:
    watched = program(period_s=0.05)
    watched.late_ns = late_ms * MS
    (rate,) = watched.run(103)
    assert rate.estimate is not None
    assert rate.estimate.value == pytest.approx(4000.0)
    assert (rate.periods, rate.unblocked) == (100, 0)
    assert rate.period_s == pytest.approx(0.05)
    assert rate.stop_s - rate.start_s == pytest.approx(5.0)
    # Each is late, and none the later for it.
    assert watched.at_ms[:3] == [late_ms, 50.0 + late_ms, 100.0 + late_ms]


@pytest.mark.parametrize(
    ("busy_ms", "idle_ms", "options", "period_s"),
    [
        (1_000_000, 0, {}, 0.2),  # the widest that is kept to, where the stage never waits
        (7, 3, {}, 0.05),  # where a stage that may wait waits a period is wide enough
        # Six of 100 ms fit into what it works in a row, three of 200 ms.
        (600, 30, {"method": "quantile", "guards": False}, 0.1),
    ],
)
def test_a_period_is_found_that_fits_how_the_stage_waits(
    program: Make, busy_ms: int, idle_ms: int, options: Any, period_s: float
) -> None:
    watched = program(period_s=None, **options)
    watched.busy_ms, watched.idle_ms = busy_ms, idle_ms
    rates = watched.run(200)
    assert (watched.sampler.period_s, watched.seeking) == (period_s, False)
    assert watched.sampler.failure is None
    assert is_found(rates[-1])


def test_what_costs_more_than_a_hundredth_of_a_processor_is_widened(program: Make) -> None:
    watched = program(period_s=None)

    def wait(seconds: float) -> bool:
        watched.cost_s += 0.0015  # more than 1 % of 100 ms
        return Program.wait(watched, seconds)

    watched.wait = wait  # type: ignore[method-assign]
    watched.run(120)
    assert watched.sampler.period_s == 0.2


def test_while_nothing_passes_the_search_goes_on(program: Make) -> None:
    watched = program(period_s=None)
    watched.items_per_ms = 0
    watched.run(100)
    assert watched.seeking
    watched.items_per_ms = 4
    watched.run(120)
    assert not watched.seeking


def test_rates_are_provisional_until_the_method_has_one_of_its_own(program: Make) -> None:
    watched = program(period_s=None, method="quantile")
    watched.busy_ms, watched.idle_ms = 1_000_000, 0
    for samples, seeking in ((12, True), (30, False)):
        (rate,) = watched.run(samples)
        assert (rate.method, rate.converged, rate.reason) == ("busy-time", False, "provisional")
        assert watched.seeking is seeking
        assert is_found(rate)
    (rate, *_) = watched.run(150)
    assert (rate.method, watched.sampler.period_s) == ("quantile", 0.2)
    assert is_found(rate)


@pytest.mark.parametrize("method", ["busy-time", "quantile"])
def test_where_no_period_is_kept_to_only_the_published_method_ends(
    program: Make, method: str
) -> None:
    watched = program(period_s=None, method=method)
    turns = iter(range(10_000))

    def wait(seconds: float) -> bool:
        watched.late_ns = next(turns) % 2 * 9 * MS
        return Program.wait(watched, seconds)

    watched.wait = wait  # type: ignore[method-assign]
    watched.run(300)
    report = watched.sampler.report()
    assert report.stages[0].rate is not None
    is_busy_time = method == "busy-time"
    assert (report.period_s, report.failure is None) == (
        0.05 if is_busy_time else None,
        is_busy_time,
    )


@pytest.mark.parametrize(
    ("cost_ms", "at_ms"),
    [
        ([1, 9, 0, 5, 0], [0, 10, 20, 30, 40]),  # on a grid, whatever they cost
        ([1, 25, 10, 0, 0], [0, 10, 40, 60, 70]),  # times that have passed are skipped
    ],
)
def test_samples_are_taken_on_a_grid_until_it_is_told_to_end(
    cost_ms: list[float], at_ms: list[float]
) -> None:
    clock, taken = FakeClock(), list[float]()

    def take(now_ns: int) -> float:
        clock.advance(round(cost_ms[len(taken)] * MS))
        taken.append(now_ns / MS)
        return 0.01

    def wait(seconds: float) -> bool:
        clock.sleep_ns(round(seconds * 1e9))
        return len(taken) == len(cost_ms)

    keep_sampling(take, wait, now_ns=clock.now_ns)
    assert taken == at_ms


def sampled(page: Page, owner: int, root: Path, use: Callable[[], object]) -> Program:
    """Return a program, sampled ten times, whose process and thread the system knows."""
    watched = Program(page, period_s=0.05)
    watched.sampler.owners = owners = Owners(root=root)
    watched.worker.words[5] = owner
    for n in range(10):
        watched.at(100 * n, worker=watched.worker)
        use()
    watched.told()
    owners.close()
    return watched


@pytest.mark.parametrize(
    ("text", "told"),
    [("120000 30000 7\n", 0.0), ("0 0 0\n", None), ("what\n", None), ("1 2\n", None)],
)
def test_processor_time_is_what_the_kernel_counts(
    page: Page, tmp_path: Path, text: str, told: float | None
) -> None:
    folder = tmp_path / f"proc/{os.getpid()}/task/6"
    folder.mkdir(parents=True)
    (folder / "schedstat").write_text(text)
    watched = sampled(page, os.getpid() << 32 | 6, tmp_path, time.monotonic)
    assert {(each.cpu_ms, each.delay_ms) for each in watched.told("hash")} == {(told, told)}


@LINUX
def test_what_a_thread_uses_grows_with_what_it_does(page: Page) -> None:
    def use() -> None:
        until_s = time.thread_time() + 0.02
        while time.thread_time() < until_s:
            pass
        time.sleep(0.001)  # the kernel adds up when a thread gives way

    owner = os.getpid() << 32 | threading.get_native_id()
    rows = sampled(page, owner, Path("/"), use).told()
    assert min(each.cpu_ms or 0.0 for each in rows) >= 15.0
    assert min(-1.0 if each.delay_ms is None else each.delay_ms for each in rows) >= 0.0


@LINUX
def test_nothing_is_known_of_a_thread_that_has_ended(page: Page) -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    task = Path(f"/proc/self/task/{thread.native_id}")

    def use() -> None:
        end.set()
        thread.join()
        while task.exists():
            time.sleep(0.001)

    rows = sampled(page, os.getpid() << 32 | int(task.name), Path("/"), use).told()
    assert {(each.cpu_ms, each.delay_ms) for each in rows} == {(None, None)}


@pytest.mark.skipif(os.name != "posix", reason="processes are only asked for there")
@pytest.mark.parametrize(("has_descriptors", "waits"), [(True, True), (True, False), (False, True)])
def test_who_was_killed_is_gone(
    page: Page, monkeypatch: pytest.MonkeyPatch, has_descriptors: bool, waits: bool
) -> None:
    """One that nobody has waited for yet is known to be gone by its descriptor."""
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    elif not hasattr(os, "pidfd_open"):
        pytest.skip("only pidfd tells of it")
    words = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        watched = Program(page, period_s=0.05)
        watched.sampler.owners = owners = Owners()
        watched.worker.words[5] = process.pid << 32
        watched.at(0, 100, 200, worker=watched.worker)
        watched.told()
        assert not watched.sampler.nobody_left
        process.kill()
        if waits:
            process.wait()
        last_s, at_ms = time.monotonic() + 60.0, 300
        while not watched.sampler.nobody_left and time.monotonic() < last_s:
            watched.at(at_ms)
            watched.told()
            at_ms += 100
            time.sleep(0.001)
        owners.close()
    assert watched.sampler.nobody_left
