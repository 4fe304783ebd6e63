"""A gate over suites of known truth: what is found, what is not, and when it ends."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.gate.suites import TIME, SimulatedSuite, gate_of

from benchrigor.gate import Block, Gate, Pass, Ratios
from benchrigor.model import Metric, StopReason, Verdict
from benchrigor.report.fact import facts_of
from benchrigor.report.figures import markdown_of
from benchrigor.session.engine import Engine

QUIET = {f"test_{index}": 0.005 for index in range(8)}


def told(old: Pass, new: Pass, blocks: int = 7, copy: Pass | None = None) -> Engine[Ratios]:
    """Return an engine that was told the same passes again and again."""
    engine = Engine(Ratios(seed=1))
    engine.goal.labels = {"old": "main", "new": "HEAD"}
    for _ in range(blocks):
        if (turn := engine.ask()) is None:
            break
        passes = {"old": old, "new": new, "copy": copy or old}
        engine.tell(Block(plan=turn.plan, passes=passes, elapsed_ns=1))
    return engine


def passed(**values: float) -> Pass:
    return Pass(elapsed_s=1.0, values=values, metrics=dict.fromkeys(values, TIME))


def test_a_slower_benchmark_is_worse_and_the_others_are_not() -> None:
    found = gate_of(SimulatedSuite(QUIET, changes={"test_3": 0.05, "test_4": -0.05}), seed=1)
    assert found.family is not None
    assert found.family.verdicts["test_3"] == Verdict.WORSE
    assert found.family.verdicts["test_4"] == Verdict.BETTER
    assert {*found.family.verdicts.values()} == {
        Verdict.WORSE, Verdict.BETTER, Verdict.EQUIVALENT
    }  # fmt: skip
    assert found.verdict == Verdict.WORSE
    assert found.reason is StopReason.SATISFIED
    assert found.null is not None
    assert found.null.verdict == "held"


@pytest.mark.parametrize("way", ["lower", "higher"])
def test_the_metric_says_which_way_is_worse(way: str) -> None:
    rate = replace(TIME, unit="req/s" if way == "higher" else "s", direction=way, kind="auto")
    old, new = passed(a=1.0), passed(a=1.1)
    old, new = (replace(each, metrics={"a": rate}) for each in (old, new))
    found = told(old, new).result()
    assert found.verdict == (Verdict.BETTER if way == "higher" else Verdict.WORSE)


def at_a_changing_pace(
    seed: int,
    *,
    known: float = 1.0,
    budget_s: float = 24.0,
    metric: Metric = TIME,
    faster_interpreter: float = 1.0,
) -> Gate:
    """Return a gate on a machine whose pace differs between processes by 20 %.

    Two benchmarks, one of which is slower by 5 %, follow the reference more than in proportion. A
    process timed the reference with the probability ``known``. An interpreter of the new side may
    run the reference faster.
    """
    rng, engine = np.random.default_rng(seed), Engine(Ratios(seed=seed, budget_s=budget_s))
    engine.goal.labels = {"old": "main", "new": "HEAD"}
    names = ("same", "slower", "without")
    while (turn := engine.ask()) is not None:
        passes = {}
        for role in turn.order:
            pace, noise = rng.normal(0.0, 0.2, 3), rng.normal(0.0, 0.01, 3)
            levels = np.exp(1.3 * pace + noise) * [1.0, 1.05 if role == "new" else 1.0, 1.0]
            if metric is not TIME:
                levels = 1.0 / levels
            other = faster_interpreter if role == "new" else 1.0
            references = zip(names[:2], 4e-6 * np.exp(pace[:2]) / other, strict=True)
            passes[role] = replace(
                passed(**dict(zip(names, levels, strict=True))),
                metrics=dict.fromkeys(names, metric),
                paced_by=dict.fromkeys(names[:2], f"interpreter {other}"),
                references={name: s for name, s in references if rng.random() < known},
            )
        engine.tell(Block(plan=turn.plan, passes=passes, elapsed_ns=2 * 10**9))
    found: Gate = engine.result()
    return found


def test_numbers_that_follow_a_reference_are_compared_at_one_pace() -> None:
    found = at_a_changing_pace(1)
    assert found.at_one_pace == ("same", "slower")
    assert found.family is not None
    assert found.family.verdicts["slower"] == Verdict.WORSE
    ratios = {name: each.ratio for name, each in found.family.comparisons.items()}
    assert 8.0 * ratios["slower"].half_width < ratios["without"].half_width
    said = "2 of them are compared as if the machine had kept one pace"
    assert said in " ".join(str(found).split())


def test_rates_are_compared_at_one_pace_too() -> None:
    rate = replace(TIME, name="speed", unit="1/s", direction="higher", kind="auto")
    found = at_a_changing_pace(1, metric=rate).family
    assert found is not None
    assert found.verdicts["slower"] == Verdict.WORSE
    ratios = {name: each.ratio for name, each in found.comparisons.items()}
    assert 8.0 * ratios["slower"].half_width < ratios["without"].half_width


def test_a_reference_of_two_interpreters_is_no_pace_of_the_machine() -> None:
    found = at_a_changing_pace(1, faster_interpreter=1.2)
    assert found.at_one_pace == ()
    assert found.family is not None
    assert found.family.verdicts["same"] == Verdict.UNDECIDED


@pytest.mark.parametrize(("known", "budget_s"), [(1.0, 14.0), (0.9, 20.0)])
def test_ratios_at_one_pace_hold_the_truth(known: float, budget_s: float) -> None:
    held, gates = 0, 30
    for seed in range(gates):
        found = at_a_changing_pace(seed, known=known, budget_s=budget_s).family
        assert found is not None
        held += sum(
            found.comparisons[name].ratio.low <= truth <= found.comparisons[name].ratio.high
            for name, truth in (("same", 1.0), ("slower", 1.05))
        )
    assert held >= stats.binom.ppf(0.001, 2 * gates, 0.95)


def test_where_few_processes_timed_a_reference_numbers_are_as_measured() -> None:
    found = at_a_changing_pace(2, known=0.5)
    assert found.at_one_pace == ()
    assert found.family is not None
    assert found.family.comparisons["same"].ratio.half_width > 0.1


def test_no_change_is_called_one_more_often_than_the_rate_allows() -> None:
    """Of 60 gates of 8 equal benchmarks, at most as many call a change as 5 % of them may."""
    calls = 0
    for seed in range(60):
        suite = SimulatedSuite(dict.fromkeys(QUIET, 0.02), seed=seed)
        found = gate_of(suite, seed=seed, budget_s=12.0)
        assert found.family is not None
        calls += found.verdict in {Verdict.WORSE, Verdict.BETTER}
    assert calls <= stats.binom.ppf(0.999, 60, 0.05)


def test_copies_that_differ_make_the_verdict_advisory() -> None:
    suite = SimulatedSuite(QUIET, of_copy={"test_1": 0.08}, changes={"test_2": 0.05})
    found = gate_of(suite, seed=2)
    assert found.null is not None
    assert found.null.called == ("test_1",)
    assert found.is_advisory
    assert not found.fails("worse")
    assert found.fails("undecided")
    assert "ADVISORY" in str(found).splitlines()[0]


def test_copies_that_all_differ_a_little_make_it_advisory_too() -> None:
    """No single copy is called, but all together differ as copies never do."""
    sds = {f"test_{index}": 0.01 for index in range(40)}
    changes = {name: 0.012 * (-1) ** index for index, name in enumerate(sds)}
    found = gate_of(SimulatedSuite(sds, of_copy=changes), seed=3, budget_s=500.0, margin=0.02)
    assert found.null is not None
    assert found.null.called == ()
    assert found.null.p_value is not None
    assert found.null.p_value < 0.01


def test_processes_in_an_order_that_was_drawn_are_independent() -> None:
    """Student's t holds for any number of blocks, as readings of one process would not have it."""
    found = gate_of(SimulatedSuite({"noisy": 0.05}, seed=4), seed=4, budget_s=20.0)
    assert found.family is not None
    ratio = found.family.comparisons["noisy"].ratio
    assert ratio is not None
    assert ratio.n > 30
    assert ratio.degrees_of_freedom == ratio.n - 1


def test_what_is_many_times_slower_takes_no_more_blocks_than_others() -> None:
    """Its ratio is as sure in proportion."""
    suite = SimulatedSuite({"much": 0.02, "same": 0.02}, changes={"much": 9.0})
    found = gate_of(suite, seed=4, margin=0.2, budget_s=500.0)
    assert found.reason is StopReason.SATISFIED
    assert found.blocks <= 9


def test_it_ends_at_the_budget() -> None:
    """No block begins that would end later, as one with a copy of the old code may."""
    suite = SimulatedSuite({"noisy": 0.3, "quiet": 0.005}, start_s=0.2, seed=4)
    found = gate_of(suite, seed=4, budget_s=20.0)
    assert found.reason is StopReason.TIME_BUDGET
    assert found.elapsed_s <= 20.0
    assert found.family is not None
    assert found.family.verdicts == {"noisy": Verdict.UNDECIDED, "quiet": Verdict.EQUIVALENT}


def test_what_one_side_lacks_or_breaks_is_named() -> None:
    old = passed(both=1.0, gone=1.0, breaks=1.0)
    new = replace(passed(both=1.0, added=1.0), failed={"breaks": "boom", "always": "bad"})
    found = told(replace(old, failed={"always": "bad"}), new).result()
    assert found.only == {"old": ("gone",), "new": ("added",)}
    assert found.broken == {"breaks": "boom"}
    head, _, rest = str(found).partition("breaks fails on the new side only: boom")
    assert "BROKEN, 1 benchmark fails on the new side only" in head
    assert "name" not in head
    assert "both" in rest
    assert "always" in str(found)


def test_what_fails_in_the_old_code_is_named_and_is_not_broken_by_the_new() -> None:
    one = passed(both=1.0)
    old, copy = (replace(one, failed={name: "boom"}) for name in ("of_old", "now_and_then"))
    new = replace(passed(both=1.0, of_old=1.0), failed={"now_and_then": "boom"})
    found = told(old, new, copy=copy).result()
    assert not found.broken
    assert "failed on both sides, and left out: now_and_then" in str(found)
    assert "failed on the old side, and left out: of_old" in str(found)


def test_what_has_no_number_in_some_blocks_is_compared_in_the_others() -> None:
    whole, part = passed(a=1.0, b=1.0), replace(passed(a=1.0), without={"b": "no readings"})
    engine = told(whole, whole, blocks=6)
    turn = engine.ask()
    assert turn is not None
    engine.tell(Block(plan=turn.plan, passes={"old": whole, "new": part}, elapsed_ns=1))
    assert not engine.result().refused
    never = told(whole, part).result()
    assert never.refused == {"b": "no readings"}
    assert not never.only


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (passed(a=0.0), passed(a=0.0), "0"),
        (passed(a=1.0), replace(passed(a=1.0), metrics={"a": replace(TIME, unit="B")}), "units"),
    ],
)
def test_what_cannot_be_compared_is_named_with_the_reason(old: Pass, new: Pass, why: str) -> None:
    found = told(old, new).result()
    assert found.family is None
    assert why in found.refused["a"]


def test_what_no_time_makes_comparable_gets_none() -> None:
    """Times that are all 0 do not keep a gate until its budget is spent."""
    zero = passed(a=0.0, b=1.0)
    engine = told(zero, zero, blocks=20)
    assert engine.told == 7
    assert engine.result().reason is StopReason.SATISFIED


def test_rates_and_times_have_no_mean_of_ratios() -> None:
    """Half of the speed and half of the time are no change of nothing."""
    rate = replace(TIME, unit="req/s", direction="higher", kind="auto")
    old, new = (
        replace(passed(a=value, b=value), metrics={"a": rate, "b": TIME}) for value in (1.0, 0.5)
    )
    family = told(old, new).result().family
    assert family is not None
    assert family.summary is None


def test_a_suite_without_a_benchmark_on_both_sides_ends_after_a_block() -> None:
    engine = told(passed(a=1.0), passed(b=1.0))
    assert engine.told == 1


@pytest.mark.parametrize("count", [3, 70])
def test_markdown_fits_into_a_summary_and_begins_with_the_verdict(count: int) -> None:
    names = {
        f"tests/test_{index}.py::test[{'x' * 1000}|<b>-{index}]": 1.0 for index in range(count)
    }
    old = passed(**names)
    worst = [*names][-1]
    found = told(old, passed(**{**names, worst: 1.2})).result()
    text = markdown_of(facts_of(found))
    assert len(text) < 65_536
    assert text.startswith("**HEAD against main: WORSE; 1 worse, ")
    first = next(line for line in text.splitlines() if line.startswith("| tests"))
    assert f"-{count - 1}" in first
    assert "<b>" not in text
    assert ("more rows: --csv" in text) is (count > 3)


def test_markdown_fits_if_nothing_of_a_large_suite_can_be_compared() -> None:
    names = [f"tests/test_many.py::test[{'x' * 60}-{index}]" for index in range(3_000)]
    broken = replace(passed(), failed=dict.fromkeys(names, "boom"))
    found = told(passed(**dict.fromkeys(names, 0.0)), broken).result()
    text = markdown_of(facts_of(found))
    assert len(text) < 65_536
    assert "and 2990 more like these" in text


def test_json_has_the_fields_that_programs_read() -> None:
    found = gate_of(SimulatedSuite(QUIET, changes={"test_3": 0.05}), seed=1)
    told = json.loads(json.dumps(found.to_dict()))
    worst = next(each for each in told["benchmarks"] if each["name"] == "test_3")
    assert worst["verdict"] == "worse"
    assert worst["ratio"]["value"] == pytest.approx(1.05, abs=0.01)
    assert worst["p_adjusted"] < 0.05
    assert told["null"].keys() >= {"ratio_spread", "visible_change", "verdict"}
    assert told["geometric_mean"]["value"] == pytest.approx(1.05 ** (1 / 8), abs=0.005)
    assert told["scope"] == "this session on this host"


def test_the_visible_change_is_seen_as_often_as_is_said() -> None:
    """A change of the size that a gate calls visible is found in 90 % of gates, by seeds."""
    sizes, found = [], 0
    for seed in range(40):
        same = gate_of(SimulatedSuite(dict.fromkeys(QUIET, 0.01), seed=seed), budget_s=14, seed=1)
        assert same.null is not None
        assert same.null.visible_change is not None
        sizes.append(same.null.visible_change)
    typical = math.exp(sum(map(math.log, sizes)) / len(sizes))
    for seed in range(40):
        suite = SimulatedSuite(
            dict.fromkeys(QUIET, 0.01), changes={"test_0": typical}, seed=100 + seed
        )
        family = gate_of(suite, budget_s=14, seed=1).family
        assert family is not None
        found += family.verdicts["test_0"] == Verdict.WORSE
    assert stats.binom.ppf(0.001, 40, 0.9) <= found
