import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from benchrigor.errors import InvalidInput, PlanMismatch
from benchrigor.model import Code, Comparison, Decision, StopReason, Verdict
from benchrigor.session.pairs.pair_engine import PairEngine, PairRound

MOST = 40_000


def tell(engine: PairEngine, plan: Any, old: object, new: object, elapsed_ns: int) -> Decision:
    told_round = PairRound(plan=plan, baseline=old, candidate=new, elapsed_ns=elapsed_ns)
    return engine.tell(told_round)


def told(
    engine: PairEngine,
    old: np.ndarray,
    new: np.ndarray,
    *,
    pair_ns: int = 1_000,
    after: Callable[[Decision], object] = lambda _: None,
) -> Comparison:
    """Tell an engine the pairs of two series until it has enough."""
    done = 0
    while (plan := engine.ask()) is not None:
        part = slice(done, done + plan.pairs)
        after(tell(engine, plan, old[part], new[part], plan.pairs * pair_ns))
        done += plan.pairs
    return engine.result()


def noisy(seed: int, ratio: float = 1.0, cv: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    old, new = np.random.default_rng(seed).normal(1.0, cv, (2, MOST))
    return old, ratio * new


def codes(found: Comparison) -> list[Code]:
    return [each.code for each in found.notices]


def plans(engine: PairEngine, most: int = 400) -> list[Any]:
    found = []
    while engine.pairs < most and (plan := engine.ask()) is not None:
        found.append(plan)
        tell(engine, plan, np.ones(plan.pairs), np.ones(plan.pairs), 1_000)
    return found


def test_each_pair_has_both_sides_and_blocks_of_either_kind_are_as_many() -> None:
    for plan in plans(PairEngine(seed=1)):
        order = np.array(plan.order)
        pairs = order.reshape(-1, 2)
        assert all(set(pair) == {"baseline", "candidate"} for pair in pairs.tolist())
        blocks = order.reshape(-1, 4)
        assert (blocks[:, 0] == blocks[:, 3]).all()
        assert (blocks[:, 1] == blocks[:, 2]).all()
        leading = int((blocks[:, 0] == "baseline").sum())
        assert abs(2 * leading - len(blocks)) <= 1


def test_a_plan_is_the_same_until_it_is_told() -> None:
    engine = PairEngine(seed=1)
    plan = engine.ask()
    assert plan is not None
    assert engine.ask() is plan
    tell(engine, plan, [1.0, 1.1], [1.0, 1.1], 10)
    with pytest.raises(PlanMismatch, match="plan 0"):
        tell(engine, plan, [1.0, 1.1], [1.0, 1.1], 10)
    with pytest.raises(PlanMismatch):
        tell(PairEngine(seed=1), plan, [1.0, 1.1], [1.0, 1.1], 10)


def test_all_that_is_wrong_with_a_plan_is_told_at_once_and_it_stays_open() -> None:
    engine = PairEngine(seed=1)
    plan = engine.ask()
    assert plan is not None
    with pytest.raises(InvalidInput, match="3 problems") as caught:
        tell(engine, plan, [1.0, math.nan], [1.0, 1.0, 1.0], -1)
    assert [each.split(" ")[2] for each in caught.value.problems] == [
        "baseline_values[1]",
        "candidate_values",
        "elapsed_ns",
    ]
    assert engine.ask() is plan
    assert engine.pairs == 0


def test_more_can_be_better() -> None:
    found = told(PairEngine(direction="higher", seed=1), *noisy(3, 1.03))
    assert found.verdict is Verdict.BETTER


@pytest.mark.slow
def test_a_verdict_never_ends_it() -> None:
    engine = PairEngine(seed=1)
    verdicts = []

    def look(decision: Decision) -> None:
        if engine.progress is not None and engine.progress.fresh and not decision.stop:
            verdicts.append(engine.result().verdict)

    found = told(engine, *noisy(5, 1.4, cv=0.1), after=look)
    assert verdicts.count(Verdict.WORSE) >= 2
    assert found.ratio is not None
    assert (found.ratio.half_width <= 0.005, found.reason) == (True, StopReason.SATISFIED)


@pytest.mark.slow
def test_it_looks_at_growing_sizes_from_the_first_check_on() -> None:
    for preset, first in (("quick", 200), (None, 500), ("strict", 1_000)):
        engine = PairEngine(preset=preset, seed=1)
        looks: list[int] = []

        def look(_: Decision, engine: PairEngine = engine, looks: list[int] = looks) -> None:
            if engine.progress is not None and engine.progress.fresh:
                looks.append(engine.pairs)

        told(engine, *noisy(6, cv=0.1), after=look)
        assert first <= looks[0] <= first + 1
        assert len(looks) > 2
        assert all(1.5 * a <= b <= 1.5 * a + 2 for a, b in pairwise(looks))


@pytest.mark.slow
def test_a_second_look_outside_the_first_interval_lets_a_comparison_go_on() -> None:
    old, new = noisy(3, cv=0.02)
    new[500:750] += 0.008  # a third of it at the second look, too little for a change point
    new[750:] += 0.008 / 3.0
    engine, seen = PairEngine(target=0.05, seed=1), []

    def look(_: Decision) -> None:
        progress = engine.progress
        if progress is not None and progress.fresh:
            ((analysis, ratio),) = ((each, each.estimate) for each in progress.analyses)
            assert ratio is not None
            assert ratio.half_width <= 0.05
            assert analysis.n_kept >= 0.8 * analysis.n
            seen.append((progress.readings, progress.agreed))

    found = told(engine, old, new, after=look)
    assert seen == [(500, False), (750, False), (1126, True)]
    assert found.reason is StopReason.SATISFIED
    again = PairEngine(target=0.05, seed=1)
    told(again, *noisy(3, cv=0.02))
    assert again.pairs == 750


@pytest.mark.slow
def test_half_the_margin_is_the_width_wanted() -> None:
    widths = [
        told(PairEngine(margin=margin, target=target, seed=1), *noisy(7, cv=0.15)).ratio
        for margin, target in ((0.04, None), (0.01, None), (0.0, None), (0.01, 0.02))
    ]
    reached = [each.half_width for each in widths if each is not None]
    assert 0.005 < reached[0] <= 0.02
    assert 0.0025 < reached[1] <= 0.005
    assert reached[2] == reached[1]
    assert 0.005 < reached[3] <= 0.02


def test_a_few_dear_pairs_carry_their_warnings() -> None:
    engine = PairEngine(target=0.005, budget_s=60.0, seed=1)
    found = told(engine, *noisy(10), pair_ns=5 * 10**9)
    assert found.baseline is not None
    assert found.baseline.n == 12
    assert {Code.NOT_CONVERGED, Code.FEW_READINGS} <= set(codes(found))
    assert Code.SHORT_RUN not in codes(found)
    assert codes(found).count(Code.THIS_PROCESS_ONLY) == 1


def test_the_warm_up_of_one_side_is_cut() -> None:
    old, new = noisy(11, 1.03)
    new[:100] += 0.5
    found = told(PairEngine(seed=1), old, new)
    assert found.ratio is not None
    assert found.ratio.low <= 1.03 <= found.ratio.high
    assert found.baseline is not None
    kept = found.baseline.n
    assert new[:kept].mean() / old[:kept].mean() > found.ratio.high


@pytest.mark.slow
def test_a_warm_up_of_one_side_that_ends_just_before_a_look_is_no_verdict() -> None:
    for length in (420, 480):
        old, new = noisy(31, cv=0.02)
        new[:length] += 0.5
        found = told(PairEngine(), old, new)
        assert found.verdict is Verdict.EQUIVALENT
        assert found.reason is StopReason.SATISFIED


def test_pairs_whose_stable_phase_is_over_when_time_is_spent_are_said_to_be() -> None:
    old, new = noisy(32, cv=0.02)
    new[:450] += 0.5
    engine = PairEngine(target=0.005, budget_s=1.0)
    while (plan := engine.ask()) is not None:
        part = slice(engine.pairs, engine.pairs + plan.pairs)
        left = engine.pairs + plan.pairs < 500
        tell(engine, plan, old[part], new[part], 1_000 if left else 2 * 10**9)
    assert {Code.MOVED_ON, Code.NOT_CONVERGED} <= set(codes(engine.result()))


def test_without_a_steady_ratio_blocks_of_pairs_are_compared() -> None:
    old, new = noisy(13)
    new += np.arange(MOST) / 1_000
    found = told(PairEngine(budget_s=1.0, seed=1), old, new, pair_ns=10**6)
    assert (found.baseline, found.candidate) == (None, None)
    assert found.ratio is not None
    assert found.ratio.method == "blocks of pairs"
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert found.verdict is Verdict.WORSE
    assert found.reason is StopReason.TIME_BUDGET
    assert codes(found) == [Code.BLOCKS_OF_PAIRS]
    assert len(str(found)) <= 100


def test_readings_of_nothing_are_refused_rather_than_divided_by() -> None:
    old, new = noisy(14)
    old, new = old * (1.0 + np.arange(MOST) / 1_000), new.copy()
    old[7] = 0.0
    found = told(PairEngine(budget_s=1.0, seed=1), old, new, pair_ns=10**6)
    assert found.ratio is None
    assert codes(found) == [Code.NO_STABLE_PHASE]


def test_before_there_is_a_pair_there_is_no_number() -> None:
    engine = PairEngine(seed=1)
    found = engine.result()
    assert found.ratio is None
    assert (found.reason, codes(found)) == (None, [Code.TOO_FEW_READINGS])
    engine.request_stop()
    assert engine.ask() is None


@pytest.mark.slow
def test_the_result_can_be_had_at_any_time_and_changes_nothing() -> None:
    old, new = noisy(16, 1.02)
    asked, left = PairEngine(seed=1), PairEngine(seed=1)
    one = told(asked, old, new, after=lambda _: asked.result())
    assert one == told(left, old, new)
    assert asked.result() == one


@pytest.mark.slow
def test_progress_foresees_how_many_pairs_it_takes() -> None:
    engine = PairEngine(seed=1)
    foreseen = []

    def look(_: Decision) -> None:
        progress = engine.progress
        if progress is not None and progress.fresh and progress.readings_needed is not None:
            foreseen.append(progress.readings + progress.readings_needed)

    told(engine, *noisy(17, cv=0.1), after=look)
    assert len(foreseen) > 3
    assert foreseen[0] == pytest.approx(engine.pairs, rel=0.6)


def test_a_line_with_its_reason_never_grows_beyond_a_hundred_columns() -> None:
    found = told(PairEngine(seed=1), *noisy(1, 1.03))
    assert found.ratio is not None
    for reason in StopReason:
        for n, value in ((500, 1.0299), (10**7, 1234.5)):
            ratio = replace(found.ratio, value=value, low=0.5 * value, high=1.7 * value, n=n)
            shown = replace(found, reason=reason, ratio=ratio, elapsed_s=12_345.6)
            assert len(str(shown)) <= 100


@pytest.mark.parametrize("by_round", [False, True])
def test_times_that_are_all_0_are_no_measurement(by_round: bool) -> None:
    engine = PairEngine(by_round=by_round, budget_s=1.0, seed=1)
    one = np.random.default_rng(1).lognormal(0.0, 0.05, 40)
    sides = [list(np.split(side, 40)) if by_round else side for side in (one, 0.0 * one)]
    engine.add(*sides, None)
    found = engine.result()
    assert found.ratio is None
    assert found.verdict is Verdict.UNDECIDED
    assert codes(found) == [Code.COARSE_CLOCK]


def test_a_slow_outlier_leaves_the_ratio_open_and_the_engine_going() -> None:
    one, two = np.random.default_rng(4).lognormal(0.0, 0.05, (2, MOST))
    one[300] = 1e6
    found = told(PairEngine(budget_s=0.001, min_seconds=0.0, seed=1), one, two)
    assert found.ratio is not None
    assert found.ratio.high == math.inf
    assert found.verdict is Verdict.UNDECIDED
    assert Code.FEW_PAIRS_CARRY in {each.code for each in found.ratio.notices}
    assert found.median_ratio is not None
    assert found.median_ratio.half_width < 0.05
