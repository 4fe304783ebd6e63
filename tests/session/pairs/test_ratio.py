"""The order of pairs, and when a comparison of them ends, with which ratio."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.session.pairs.turns import both, comparing, take
from tests.session.telling import codes, following

from benchrigor.model import (
    Code,
    Comparison,
    Delays,
    Estimate,
    Progress,
    RoundPlan,
    StopReason,
    Verdict,
)
from benchrigor.session.engine import Engine, Taken
from benchrigor.session.pairs.ratio import Ratio

MOST = 40_000


def tell(
    engine: Engine[Ratio],
    plan: Any,
    old: object,
    new: object,
    *,
    elapsed_ns: int = 1_000,
    delays: Delays | None = None,
) -> None:
    pair = both(plan, old, new, delays=delays)
    engine.tell(Taken(plan=plan, rounds=[pair], elapsed_ns=elapsed_ns))


def told(
    engine: Engine[Ratio],
    old: np.ndarray,
    new: np.ndarray,
    *,
    pair_ns: Callable[[int], int] = lambda _: 1_000,
    after: Callable[[], object] = lambda: None,
) -> Comparison:
    """Tell an engine the pairs of two series until it has enough."""
    first, second = following(old), following(new)
    while (turn := engine.ask()) is not None:
        plan = turn.plan
        elapsed_ns = plan.readings * pair_ns(engine.goal.pairs + plan.readings)
        tell(engine, plan, first(plan.readings), second(plan.readings), elapsed_ns=elapsed_ns)
        after()
    return engine.result()


def looks_of(engine: Engine[Ratio], old: np.ndarray, new: np.ndarray) -> list[Progress]:
    """Tell pairs until the engine ends, and return the progress at its looks."""
    looks = []

    def look() -> None:
        if engine.progress is not None and engine.progress.fresh:
            looks.append(engine.progress)

    told(engine, old, new, after=look)
    return looks


def noisy(seed: int, ratio: float = 1.0, cv: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    old, new = np.random.default_rng(seed).normal(1.0, cv, (2, MOST))
    return old, ratio * new


def ratio_of(found: Comparison) -> Estimate:
    assert found.ratio is not None
    return found.ratio


def test_a_verdict_never_ends_it() -> None:
    engine = comparing(seed=1)
    looks = looks_of(engine, *noisy(5, 1.4, cv=0.1))
    lows = [each.widths[0].estimate.low for each in looks[:-1] if each.widths[0].estimate]
    assert sum(low > 1.01 for low in lows) >= 2
    found = engine.result()
    assert (found.verdict, found.reason) == (Verdict.WORSE, StopReason.SATISFIED)
    assert ratio_of(found).half_width <= 0.005


@pytest.mark.parametrize(("preset", "first"), [("quick", 200), (None, 500), ("strict", 1_000)])
def test_it_looks_at_growing_sizes_and_foresees_how_many_pairs_it_takes(
    preset: str | None, first: int
) -> None:
    looks = looks_of(comparing(preset=preset, seed=1), *noisy(6, cv=0.1))
    sizes = [each.readings for each in looks]
    assert first <= sizes[0] <= first + 1
    assert len(sizes) > 2
    assert all(1.5 * a <= b <= 1.5 * a + 2 for a, b in pairwise(sizes))
    needed = [each.readings_needed for each in looks[:-1]]
    assert needed[0] is not None
    assert sizes[0] + needed[0] == pytest.approx(sizes[-1], rel=0.6)


def test_a_second_look_outside_the_first_interval_lets_a_comparison_go_on() -> None:
    old, new = noisy(3, cv=0.02)
    new[500:750] += 0.008  # a third of it at the second look, too little for a change point
    new[750:] += 0.008 / 3.0
    engine = comparing(target=0.05, seed=1)
    looks = looks_of(engine, old, new)
    found = [(each.readings, each.agreed) for each in looks]
    assert found == [(500, False), (750, False), (1126, True)]
    for (width,) in (each.widths for each in looks):
        assert width.is_narrow(0.05)
        assert width.is_settled
        assert width.wanted(0.05) == 0.05
    assert engine.result().reason is StopReason.SATISFIED
    again = comparing(target=0.05, seed=1)
    told(again, *noisy(3, cv=0.02))
    assert again.goal.pairs == 750


def test_a_few_dear_pairs_carry_their_warnings() -> None:
    engine = comparing(target=0.005, budget_s=60.0, seed=1)
    found = told(engine, *noisy(10), pair_ns=lambda _: 5 * 10**9)
    assert found.baseline is not None
    assert found.baseline.n == 12
    assert {Code.NOT_CONVERGED, Code.FEW_READINGS} <= set(codes(found))
    assert Code.SHORT_RUN not in codes(found)
    assert codes(found).count(Code.THIS_PROCESS_ONLY) == 1


@pytest.mark.parametrize("length", [100, 420, 480])
def test_the_warm_up_of_one_side_is_cut_even_if_it_ends_just_before_a_look(length: int) -> None:
    old, new = noisy(31, cv=0.02)
    new[:length] += 0.5
    found = told(comparing(), old, new)
    assert (found.verdict, found.reason) == (Verdict.EQUIVALENT, StopReason.SATISFIED)
    assert found.baseline is not None
    kept = found.baseline.n
    assert new[:kept].mean() / old[:kept].mean() > ratio_of(found).high


def test_readings_of_nothing_are_refused_rather_than_divided_by() -> None:
    old, new = noisy(14)
    old, new = old * (1.0 + np.arange(MOST) / 1_000), new.copy()
    old[7] = 0.0
    found = told(comparing(budget_s=1.0, seed=1), old, new, pair_ns=lambda _: 10**6)
    assert found.ratio is None
    assert codes(found) == [Code.NO_STABLE_PHASE]


def test_pairs_without_a_ratio_show_both_sides() -> None:
    old, new = noisy(15)
    engine = comparing(budget_s=1.0, seed=1)
    found = told(engine, old * np.resize([-1.0, 1.0], MOST), new, pair_ns=lambda _: 10**6)
    assert found.ratio is None
    assert Code.NO_RATIO in codes(found)
    assert found.observed.keys() == {"baseline", "candidate"}
    assert found.observed["baseline"].n == engine.goal.pairs


def test_before_there_is_a_pair_there_is_no_number() -> None:
    engine = comparing(seed=1)
    found = engine.result()
    assert found.ratio is None
    assert (found.reason, codes(found)) == (None, [Code.TOO_FEW_READINGS])
    engine.request_stop()
    assert engine.ask() is None


def test_the_result_can_be_had_at_any_time_and_changes_nothing() -> None:
    old, new = noisy(16, 1.02)
    asked = comparing(seed=1)
    one = told(asked, old, new, after=asked.result)
    assert one == told(comparing(seed=1), old, new) == asked.result()


@pytest.mark.parametrize("rounds", ["auto", "restarted"])
def test_times_that_are_all_0_are_no_measurement(rounds: str) -> None:
    engine = comparing(rounds=rounds, budget_s=1.0, seed=1)
    one = np.random.default_rng(1).lognormal(0.0, 0.05, 40)
    plan, splits = RoundPlan(index=0), 40 if rounds == "restarted" else 1
    halves = zip(np.split(one, splits), np.split(0.0 * one, splits), strict=True)
    take(engine, [both(plan, old, new) for old, new in halves])
    found = engine.result()
    assert found.ratio is None
    assert found.verdict is Verdict.UNDECIDED
    assert codes(found) == [Code.COARSE_CLOCK]


def test_a_slow_outlier_leaves_the_ratio_open_and_the_engine_going() -> None:
    one, two = np.random.default_rng(4).lognormal(0.0, 0.05, (2, MOST))
    one[300] = 1e6
    found = told(comparing(budget_s=0.001, min_seconds=0.0, seed=1), one, two)
    assert ratio_of(found).high == math.inf
    assert found.verdict is Verdict.UNDECIDED
    assert Code.FEW_PAIRS_CARRY in codes(found.ratio)
    assert found.median_ratio is not None
    assert found.median_ratio.half_width < 0.05


@pytest.mark.parametrize("rounds", ["auto", "restarted"])
def test_pairs_are_cut_by_the_detector_that_is_asked_for(rounds: str) -> None:
    rng = np.random.default_rng(5)
    levels = np.repeat([1.5, 1.0, 1.2], [60, 900, 40])
    sides = [
        rng.normal(levels, 0.05, (6 if rounds == "restarted" else 1, levels.size)) for _ in range(2)
    ]
    ratios = []
    for name in ("ranks", "edm"):
        engine = comparing(rounds=rounds, detector=name)
        plan = RoundPlan(index=0)
        take(engine, [both(plan, old, new) for old, new in zip(*sides, strict=True)])
        ratios.append(ratio_of(engine.result()))
    assert all(ratio.low <= 1.0 <= ratio.high for ratio in ratios)
    assert ratios[0] != ratios[1]


def of_disturbed(**options: Any) -> Comparison:
    """Compare functions of which the candidate takes 5 % longer and is disturbed more often."""
    engine = comparing(seed=1, margin=0.01, budget_s=20.0, **options)
    rng = np.random.default_rng(20271204)
    while (turn := engine.ask()) is not None:
        plan = turn.plan
        own = 1e-3 * rng.gamma(100.0, 0.01, (2, plan.readings))
        waits = np.where(rng.random(own.shape) < -np.expm1([[-100.0], [-400.0]] * own), 2e-3, 0.0)
        sides = own * [[1.0], [1.05]] + waits
        delays = Delays(
            stops=np.arange(1, plan.readings + 1), seconds={"run queue": waits.sum(axis=0)}
        )
        tell(engine, plan, *sides, elapsed_ns=round(1e9 * sides.sum()), delays=delays)
    return engine.result()


def test_a_pair_counts_when_both_its_readings_are_undisturbed() -> None:
    found, kept = of_disturbed(), of_disturbed(disturbed="keep")
    assert ratio_of(found).low <= 1.05 <= ratio_of(found).high
    assert ratio_of(found).value == pytest.approx(1.05, abs=0.01)
    assert kept.ratio is None or kept.ratio.value > 1.3
    assert codes(found).count(Code.DISTURBED) == 1
