import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchrigor as br
from benchrigor import errors
from benchrigor.clocks import WallClock
from benchrigor.model import Code
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock


class Taking:
    """A function that takes normally distributed times, scaled by what may drift."""

    def __init__(
        self,
        clock: FakeClock,
        mean_ns: float,
        *,
        seed: int = 1,
        cv: float = 0.03,
        scale: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self.clock, self.mean_ns, self.scale, self.calls = clock, mean_ns, scale, 0
        self._factors = np.random.default_rng(seed).normal(1.0, cv, 2**16).tolist()

    def __call__(self) -> None:
        factor = self._factors[self.calls % len(self._factors)]
        self.clock.advance(round(self.mean_ns * factor * self.scale()))
        self.calls += 1


def codes(found: br.Comparison) -> list[Code]:
    return [each.code for each in found.notices]


def test_the_seed_gives_the_order_of_the_calls() -> None:
    orders = []
    for seed in (1, 1, 2):
        clock, order = FakeClock(), []

        def called(
            name: str, order: list[str] = order, clock: FakeClock = clock
        ) -> Callable[[], None]:
            def call() -> None:
                order.append(name)
                clock.advance(1_000_000)

            return call

        br.measure_pair(called("old"), called("new"), clock=clock, seed=seed)
        orders.append("".join(each[0] for each in order))
    assert orders[0] == orders[1] != orders[2]
    # The first call of either, two to choose the calls per reading, one to see how long it lasts.
    taken = orders[0][8:]
    blocks = {taken[at : at + 4] for at in range(0, len(taken), 4)}
    assert blocks == {"onno", "noon"}


def test_readings_of_either_last_about_as_long() -> None:
    clock = FakeClock()
    old, new = Taking(clock, 2_000, cv=0.0), Taking(clock, 700_000, cv=0.0)
    found = br.measure_pair(old, new, clock=clock, seed=1)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(350.0)
    assert old.calls * 2_000 == pytest.approx(new.calls * 700_000, rel=0.02)


@pytest.mark.parametrize("order", [1, -1])
def test_calls_per_reading_can_be_given(order: int) -> None:
    clock = FakeClock()
    functions = [Taking(clock, 25_000), Taking(clock, 70_000)][::order]
    found = br.measure_pair(*functions, batch=3, clock=clock, seed=1)
    assert found.baseline is not None
    # One call is the first, the others are the readings, a few of which are not measured.
    pairs = {(each.calls - 1) / 3 for each in functions}
    assert len(pairs) == 1
    assert found.baseline.n <= pairs.pop() <= 1.1 * found.baseline.n


def test_setup_and_teardown_stand_around_each_reading_untimed() -> None:
    clock, calls = FakeClock(), []

    def step(name: str) -> None:
        calls.append(name)
        clock.advance(3_000_000)

    found = br.measure_pair(
        Taking(clock, 1e6, seed=1),
        Taking(clock, 1.03e6, seed=2),
        setup=lambda: step("setup"),
        teardown=lambda: step("teardown"),
        clock=clock,
        seed=1,
    )
    assert found.baseline is not None
    assert found.baseline.value == pytest.approx(1e-3, rel=0.01)
    assert calls == ["setup", "teardown"] * (len(calls) // 2)


@pytest.mark.slow
def test_without_a_steady_ratio_blocks_of_pairs_give_the_verdict() -> None:
    clock = FakeClock()
    new = Taking(clock, 1e6, seed=2, scale=lambda: 1.0 + clock.now_ns() / 1e9)
    found = br.measure_pair(Taking(clock, 1e6), new, budget_s=3.0, clock=clock, seed=1)
    assert found.ratio is not None
    assert found.verdict is br.Verdict.WORSE
    assert [each.code for each in found.notices] == [Code.BLOCKS_OF_PAIRS]


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize("calls", [0, 1, 2, 300])
def test_the_side_that_fails_is_named_and_what_was_measured_is_kept(side: str, calls: int) -> None:
    clock = FakeClock()
    works, fails = Taking(clock, 1e6, seed=1), Taking(clock, 1e6, seed=2)

    def failing() -> None:
        if fails.calls == calls:
            raise KeyError("gone")
        fails()

    pair = {"baseline": works, "candidate": works, side: failing}
    with pytest.raises(errors.WorkloadFailed) as caught:
        br.measure_pair(pair["baseline"], pair["candidate"], clock=clock, seed=1)
    found = caught.value.record
    assert isinstance(found, br.Comparison)
    assert found.reason is br.StopReason.WORKLOAD_FAILED
    assert Code.WORKLOAD_FAILED in codes(found)
    assert (found.ratio is None) == (calls < 300)
    if calls == 300:
        assert "at reading 29" in str(caught.value)


def test_a_keyboard_interrupt_passes_with_what_was_measured() -> None:
    clock = FakeClock()
    old, new = Taking(clock, 1e6, seed=1), Taking(clock, 1e6, seed=2)

    def stopped() -> None:
        if new.calls == 300:
            raise KeyboardInterrupt
        new()

    with pytest.raises(KeyboardInterrupt) as caught:
        br.measure_pair(old, stopped, clock=clock, seed=1)
    found = caught.value.record  # type: ignore[attr-defined]
    assert found.reason is br.StopReason.INTERRUPTED
    assert found.ratio is not None


def test_a_clock_that_goes_backwards_is_named() -> None:
    clock = FakeClock()
    new = Taking(clock, 1e6, seed=2)

    def jumping() -> None:
        new()
        if new.calls == 100:
            clock.advance(-50_000_000)

    with pytest.raises(errors.ClockFailed):
        br.measure_pair(Taking(clock, 1e6), jumping, clock=clock, seed=1)


@pytest.mark.slow
def test_what_is_wrong_with_the_clock_is_told_once() -> None:
    clock = FakeClock(resolution_ns=1_000, cost_ns=300)
    pair = (Taking(clock, 10_000, cv=0.1, seed=seed) for seed in (1, 2))
    found = br.measure_pair(*pair, batch=1, clock=clock, seed=1)
    assert codes(found).count(Code.COARSE_CLOCK) == 1
    assert Code.CLOCK_COST not in codes(found)


@pytest.mark.parametrize(("policy", "inside"), [("on", True), ("off", False)])
def test_the_garbage_collector_is_held_back_as_asked_and_restored(
    policy: str, *, inside: bool
) -> None:
    clock, seen = FakeClock(), set()

    def look() -> None:
        seen.add(gc.isenabled())
        clock.advance(1_000_000)

    assert gc.isenabled()
    br.measure_pair(look, look, gc=policy, clock=clock, seed=1)
    assert seen == {inside}
    assert gc.isenabled()


def test_progress_is_shown_after_each_round() -> None:
    clock, seen = FakeClock(), []
    br.measure_pair(
        Taking(clock, 1e6, seed=1),
        Taking(clock, 1e6, seed=2),
        progress=seen.append,
        clock=clock,
        seed=1,
    )
    assert [each.rounds for each in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].decision is not None
    assert seen[-1].half_width is not None


def test_a_hook_that_fails_ends_it_with_what_there_is() -> None:
    clock = FakeClock()

    def broken(progress: br.Progress) -> None:
        if progress.readings > 100:
            raise OSError("no screen")

    found = br.measure_pair(
        Taking(clock, 1e6, seed=1),
        Taking(clock, 1e6, seed=2),
        progress=broken,
        clock=clock,
        seed=1,
    )
    assert found.reason is br.StopReason.HOOK_FAILED
    assert codes(found).count(Code.HOOK_FAILED) == 1
    assert found.ratio is not None


@pytest.mark.slow
def test_a_comparison_spans_a_second_on_the_wall_clock_only() -> None:
    class Wall(FakeClock, WallClock):
        """A wall clock that moves only when it is told to."""

    spent = {}
    for clock in (Wall(), FakeClock()):
        sides = Taking(clock, 1e4, seed=1), Taking(clock, 1e4, seed=2)
        found = br.measure_pair(*sides, target=0.2, batch=1, clock=clock, seed=1)
        assert found.reason is br.StopReason.SATISFIED
        spent[type(clock)] = found.elapsed_s
    assert 1.0 <= spent[Wall] < 1.6
    assert spent[FakeClock] == pytest.approx(750 * 2e-5, rel=0.05)


def kept_in(store: Path) -> tuple[br.RunRecord, br.RunRecord]:
    """Return both sides of the comparison in a store."""
    journal = Journal(store)
    loaded = [journal.load(str(each["run_id"])) for each in journal.runs()]
    runs = {str(each.subject["as"]): each for each in loaded}
    return runs["baseline"], runs["candidate"]


@pytest.mark.slow
def test_each_function_is_kept_as_a_run_that_names_the_other(tmp_path: Path) -> None:
    clock, store = FakeClock(), tmp_path / "runs.sqlite"

    def drift() -> float:
        return 1.0 + 0.2 * np.sin(clock.now_ns() / 1e8)

    old, new = (Taking(clock, mean, seed=mean, scale=drift) for mean in (100_000, 103_000))
    found = br.measure_pair(old, new, clock=clock, seed=1, store=store)
    first, second = kept_in(store)
    (named,) = (value for key, value in first.subject.items() if key.startswith("in turn"))
    assert named == second.name
    assert first.subject["pair"] == second.subject["pair"]
    assert first.decision == second.decision == br.Decision(stop=True, reason=found.reason)
    again = br.compare_runs(first, second, paired=True)
    assert again.ratio == replace(found.ratio, notices=again.ratio.notices)
    assert str(again.verdict) == "worse"
    with pytest.raises(br.NotEstimable):  # what both share is left
        br.compare_runs(first, second)


def test_a_comparison_can_be_asked_to_end_after_the_round_under_way() -> None:
    clock = FakeClock()

    def work() -> None:
        clock.advance(1_000_000)
        calls.append(None)
        if len(calls) > 100:
            engines[0].request_stop()

    engines: list[Any] = []
    calls: list[None] = []
    found = br.measure_pair(work, work, clock=clock, seed=1, began=engines.append)
    assert found.reason is br.StopReason.STOP_REQUESTED
