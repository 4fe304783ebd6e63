"""Functions so slow that few calls fit into the budget: each counts, and none begins too late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy.typing as npt
import pytest
from tests.session.telling import codes, number, reason

import benchrigor as br
from benchrigor.model import Code, Comparison, StopReason
from benchrigor.testing import FakeClock

BUDGET_S = 10.0


class Slow:
    """A function on a clock of its own, whose calls differ by a few per mille."""

    def __init__(self, seconds: float) -> None:
        self.clock, self.seconds, self.calls = FakeClock(), seconds, 0

    def __call__(self) -> None:
        self.calls += 1
        self.clock.advance(int(self.seconds * 1e9 * (1.0 + 0.001 * (7 * self.calls % 5))))

    def steps(self) -> Iterator[None]:
        while True:
            self()
            yield

    def of_amount(self, amount: float) -> None:
        self()
        self.clock.advance(int(amount * 1e6))

    @property
    def elapsed_s(self) -> float:
        return self.clock.now_ns() / 1e9


def measured(slow: Slow, **around: Callable[[], None]) -> br.RunRecord:
    return br.measure(slow, budget_s=BUDGET_S, seed=1, clock=slow.clock, **around)  # type: ignore[arg-type]


def in_a_session(slow: Slow, func: Callable[..., object], rounds: Any = "auto") -> br.RunRecord:
    options = br.Options(budget_s=BUDGET_S, rounds=rounds)
    return br.Session(options, seed=1, clock=slow.clock).run(func)


def nothing() -> None:
    """Do nothing."""


DOORS: dict[str, Callable[[Slow], br.RunRecord]] = {
    "measure": measured,
    "measure between others": lambda slow: measured(slow, setup=nothing, teardown=nothing),
    "session": lambda slow: in_a_session(slow, slow),
    "session of steps": lambda slow: in_a_session(slow, slow.steps),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("seconds", "calls"), [(0.5, 20), (3.0, 3), (4.0, 2), (5.0, 2), (6.0, 2), (30.0, 1)]
)
def test_every_call_counts_and_the_last_one_ends_in_time(
    door: str, seconds: float, calls: int
) -> None:
    slow = Slow(seconds)
    record = DOORS[door](slow)
    assert slow.calls == record.readings("time").size == calls
    assert slow.elapsed_s < max(1.11 * BUDGET_S, 2 * seconds * 1.01)
    assert reason(record) is StopReason.TIME_BUDGET
    if calls == 1:
        assert record.estimate() is None
        return
    assert number(record).n == calls
    assert number(record).low <= seconds * 1.002 <= number(record).high
    assert Code.FEW_READINGS in codes(record)


def test_a_first_call_that_is_slow_only_once_does_not_choose_the_calls_per_reading() -> None:
    clock, durations = FakeClock(), iter([2_000_000_000])
    record = br.measure(
        lambda: clock.advance(next(durations, 1_000)), budget_s=10.0, seed=1, clock=clock
    )
    assert number(record).value == pytest.approx(1e-6, rel=0.001)  # the cold one is left out
    assert record.rounds[0].facts["first_call_s"] == 2.0
    assert record.rounds[1].facts["inner_loop"] > 10  # type: ignore[operator]  # a number


@pytest.mark.parametrize("in_steps", [False, True])
def test_rounds_of_many_readings_end_with_the_budget_and_are_not_exhausted(in_steps: bool) -> None:
    slow = Slow(3.0)
    record = in_a_session(slow, slow.steps if in_steps else slow, "restarted")
    assert slow.calls == record.readings("time").size == 3
    assert slow.elapsed_s < 10.0
    assert record.rounds[0].cut
    assert Code.EXHAUSTED not in codes(record)


class Jumping(Slow):
    """A function that is a thousand times slower from its 30th call on."""

    def __call__(self) -> None:
        self.seconds = 0.001 if self.calls < 29 else 1.0
        super().__call__()


@pytest.mark.parametrize("door", DOORS)
def test_a_function_that_slows_down_within_a_round_is_cut_after_the_call_under_way(
    door: str,
) -> None:
    jumping = Jumping(0.001)
    record = DOORS[door](jumping)
    assert BUDGET_S <= jumping.elapsed_s < BUDGET_S + 1.01
    assert record.readings("time").size >= jumping.calls - 10  # some choose the calls per reading
    assert reason(record) is StopReason.TIME_BUDGET


@pytest.mark.parametrize(("seconds", "calls"), [(3.0, 3), (30.0, 1)])
def test_rounds_of_various_work_begin_in_time(seconds: float, calls: int) -> None:
    slow = Slow(seconds)
    record = br.measure(
        slow.of_amount, work=(1, 10_000), budget_s=BUDGET_S, seed=1, clock=slow.clock
    )
    assert slow.calls == len(record.rounds) == calls
    assert slow.elapsed_s < max(12.0, 1.1 * seconds)


def paired(baseline: Slow, seconds: float) -> tuple[Comparison, int]:
    candidate = Slow(seconds)
    candidate.clock = baseline.clock
    found = br.measure_pair(baseline, candidate, budget_s=BUDGET_S, seed=1, clock=baseline.clock)
    assert found.reason is StopReason.TIME_BUDGET
    return found, candidate.calls


@pytest.mark.parametrize(
    ("seconds", "pairs"), [(0.5, 10), (1.0, 5), (1.6, 3), (3.0, 2), (5.0, 1), (30.0, 1)]
)
def test_pairs_of_slow_functions_end_in_time(seconds: float, pairs: int) -> None:
    baseline = Slow(seconds)
    found, calls = paired(baseline, seconds)
    assert (baseline.calls, calls) == (pairs, pairs)
    assert baseline.elapsed_s < max(12.1, 2 * seconds * 1.01)
    if pairs > 1:
        assert found.ratio is not None
        assert found.ratio.n == pairs
        assert found.ratio.low <= 1.0 <= found.ratio.high


def test_a_fast_function_is_not_made_as_slow_as_the_other() -> None:
    baseline = Slow(3.0)
    found, calls = paired(baseline, 0.001)
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1 / 3000, rel=0.5)
    assert baseline.calls == 3
    assert baseline.elapsed_s < 12.0
    assert calls > 3 * 300


def test_a_pair_that_is_slow_only_once_chooses_its_calls_after_that(clock: FakeClock) -> None:
    durations = {name: iter([2_000_000_000]) for name in ("old", "new")}
    found = br.measure_pair(
        lambda: clock.advance(next(durations["old"], 1_000)),
        lambda: clock.advance(next(durations["new"], 1_500)),
        budget_s=10.0,
        seed=1,
        clock=clock,
    )
    assert found.reason is StopReason.SATISFIED
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(1.5, rel=0.01)
    assert found.baseline is not None
    assert found.baseline.value == pytest.approx(1e-6, rel=0.01)


def test_a_session_leaves_time_for_its_end() -> None:
    # On a machine so busy that a look takes two seconds, the end takes several.
    work = Slow(0.001)

    def detect(series: npt.ArrayLike) -> br.ChangePoints:
        work.clock.advance(2 * 10**9)
        return br.stats.detect_changes(series)

    options = br.Options(budget_s=10, target=1e-12)
    record = br.Session(options, clock=work.clock, detector=detect, seed=1).run(work)
    assert reason(record) is StopReason.TIME_BUDGET
    assert 5.0 < work.elapsed_s < 11.0
