"""Two functions measured in turn, by `measure_pair`."""

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.session.telling import codes

import benchrigor as br
from benchrigor import errors
from benchrigor.clocks import WallClock
from benchrigor.model import Code
from benchrigor.storage import Journal
from benchrigor.testing import FakeClock, FakeMeter


class Taking:
    """A function that takes normally distributed times, scaled by what may drift."""

    def __init__(
        self,
        clock: FakeClock,
        mean_ns: float = 1e6,
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


def pair(clock: FakeClock, second: Callable[[], object] | None = None, **options: Any) -> Any:
    """Measure a function of a millisecond beside another one."""
    second = second or Taking(clock, seed=2)
    return br.measure_pair(Taking(clock), second, clock=clock, **{"seed": 1, **options})


def test_the_seed_gives_the_order_of_the_calls() -> None:
    orders = []
    for seed in (1, 1, 2):
        clock, order = FakeClock(), list[str]()

        def call(name: str, order: list[str] = order, clock: FakeClock = clock) -> None:
            order.append(name)
            clock.advance(1_000_000)

        old, new = (lambda name=name, call=call: call(name) for name in "on")
        br.measure_pair(old, new, clock=clock, seed=seed)
        orders.append("".join(order))
    assert orders[0] == orders[1] != orders[2]
    # The first call of either, two to choose the calls per reading, one to see how long it lasts.
    taken = orders[0][8:]
    blocks = {taken[at : at + 4] for at in range(0, len(taken), 4)}
    assert blocks == {"onno", "noon"}


def test_setup_and_teardown_stand_around_each_reading_untimed(clock: FakeClock) -> None:
    calls: list[str] = []

    def step(name: str) -> None:
        calls.append(name)
        clock.advance(3_000_000)

    found = pair(clock, setup=lambda: step("setup"), teardown=lambda: step("teardown"))
    assert found.baseline.value == pytest.approx(1e-3, rel=0.01)
    assert calls == ["setup", "teardown"] * (len(calls) // 2)


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize(
    ("calls", "error"),
    [*((calls, KeyError()) for calls in (0, 1, 2, 300)), (300, KeyboardInterrupt())],
)
def test_what_was_measured_before_a_side_failed_is_kept(
    clock: FakeClock, side: str, calls: int, error: BaseException
) -> None:
    works, fails = Taking(clock, seed=1), Taking(clock, seed=2)

    def failing() -> None:
        if fails.calls == calls:
            raise error
        fails()

    functions: dict[str, Any] = {"baseline": works, "candidate": works, side: failing}
    with pytest.raises((errors.WorkloadFailed, KeyboardInterrupt)) as caught:
        br.measure_pair(**functions, clock=clock, seed=1)
    found = caught.value.record  # type: ignore[attr-defined]
    is_interrupted = caught.value is error
    expected = br.StopReason.INTERRUPTED if is_interrupted else br.StopReason.WORKLOAD_FAILED
    assert found.reason is expected
    assert (Code.WORKLOAD_FAILED in codes(found)) is not is_interrupted
    assert (found.ratio is None) == (calls < 300)


@pytest.mark.parametrize(("policy", "inside"), [("on", True), ("off", False)])
def test_the_garbage_collector_is_held_back_as_asked_and_restored(
    clock: FakeClock, policy: str, *, inside: bool
) -> None:
    seen = set()

    def look() -> None:
        seen.add(gc.isenabled())
        clock.advance(1_000_000)

    assert gc.isenabled()
    br.measure_pair(look, look, gc=policy, clock=clock, seed=1)
    assert seen == {inside}
    assert gc.isenabled()


def test_it_can_be_asked_to_end_after_the_round_under_way(clock: FakeClock) -> None:
    engines: list[Any] = []
    found = pair(clock, began=engines.append, progress=lambda _: engines[0].request_stop())
    assert found.reason is br.StopReason.STOP_REQUESTED
    assert found.ratio is not None


def test_a_comparison_spans_a_second_on_the_wall_clock() -> None:
    class Wall(FakeClock, WallClock):
        """A wall clock that moves only when it is told to."""

    clock = Wall()
    sides = Taking(clock, 1e4, seed=1), Taking(clock, 1e4, seed=2)
    found: Any = br.measure_pair(*sides, target=0.2, batch=1, clock=clock, seed=1)
    assert found.reason is br.StopReason.SATISFIED
    assert 1.0 <= found.elapsed_s < 1.6  # of 15 ms for the pairs that it takes


def test_progress_is_shown_after_each_round_with_the_ratio_so_far(clock: FakeClock) -> None:
    seen: list[br.Progress] = []
    pair(clock, Taking(clock, 1.03e6, seed=2), progress=seen.append)
    assert [each.rounds for each in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].decision is not None
    assert seen[-1].half_width is not None
    rough = [each.provisional.estimate for each in seen if each.provisional]
    assert rough[-1] is not None
    assert rough[-1].low < 1.03 < rough[-1].high


class BreakingJournal(Journal):
    """A journal whose disk is full from some round on."""

    left = 0

    def append(self, run_id: str, finished: br.Round) -> None:
        self.left -= 1
        if self.left < 0:
            raise errors.StoreFailed("no room")
        super().append(run_id, finished)


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_records_say_what_a_journal_that_broke_holds(kept: int, tmp_path: Path) -> None:
    """Of both sides it holds a turn, or nothing."""
    journal = BreakingJournal(tmp_path / "runs.sqlite")
    journal.left = kept
    with pytest.raises(errors.StoreFailed) as caught:
        pair(FakeClock(), store=journal, budget_s=1e-1, target=1e-6)
    stored = {str(run["run_id"]): run["rounds"] for run in Journal(journal.path).runs()}
    told = {record.run_id: len(record.rounds) for record in caught.value.records.values()}
    assert told == (stored if kept > 1 else {None: 0})
    assert [*stored.values()] == [1, 1] * (kept > 1)


def test_each_function_is_kept_as_a_run_that_names_the_other(
    clock: FakeClock, tmp_path: Path
) -> None:
    store = tmp_path / "runs.sqlite"

    def drift() -> float:
        return 1.0 + 0.2 * np.sin(clock.now_ns() / 1e8)

    old, new = (Taking(clock, mean, seed=mean, scale=drift) for mean in (100_000, 103_000))
    found = br.measure_pair(old, new, clock=clock, seed=1, store=store)
    kept = [Journal(store).load(str(each["run_id"])) for each in Journal(store).runs()]
    first, second = sorted(kept, key=lambda each: str(each.subject["as"]))
    (named,) = (value for key, value in first.subject.items() if key.startswith("in turn"))
    assert named == second.name
    assert first.subject["pair"] == second.subject["pair"]
    assert first.decision == second.decision == br.Decision(stop=True, reason=found.reason)
    again = br.compare_runs(first, second, paired=True)
    assert again.ratio == replace(found.ratio, notices=again.ratio.notices)
    assert str(again.verdict) == "worse"
    with pytest.raises(br.NotEstimable):  # what both share is left
        br.compare_runs(first, second)


def test_functions_in_turn_are_measured_with_their_delay(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter, rng = FakeMeter(clock), np.random.default_rng(20271205)
    monkeypatch.setattr("benchrigor.session.pairs.in_turn.meter_for", lambda _: meter)

    def call() -> None:
        clock.advance(round(5_000_000 * rng.normal(1.0, 0.01)))
        if rng.random() < 0.2:
            meter.lose(3_000_000)

    found = br.measure_pair(call, call, clock=clock, seed=1)
    assert found.ratio is not None
    assert found.ratio.half_width < 0.006
    assert found.verdict is br.Verdict.EQUIVALENT
