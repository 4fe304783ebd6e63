import math

import numpy as np
import pytest
from simulated.comparisons import DECIDED, family, places, runs
from simulated.estimates import estimated

from benchrigor.model import Verdict
from benchrigor.stats import compare, estimate_mean, rank
from benchrigor.stats.comparison.two_sample import family_of


def test_chances_are_adjusted_as_benjamini_and_hochberg_say() -> None:
    ratios = {f"b{i}": 1.0 + 0.004 * i for i in range(8)}
    found = family(np.random.default_rng(1), ratios)
    chances = sorted(each.p_beyond for each in found.comparisons.values())
    steps = [p * 8 / (i + 1) for i, p in enumerate(chances)]
    wanted = [min(1.0, *steps[i:], 1.0) for i in range(8)]
    assert sorted(found.adjusted.values()) == pytest.approx(wanted)


def test_verdicts_stand_only_where_the_family_bears_them() -> None:
    rng = np.random.default_rng(2)
    weakened = 0
    for _ in range(20):
        found = family(rng, {f"b{i}": 1.025 for i in range(6)} | {f"n{i}": 1.0 for i in range(12)})
        for name, each in found.comparisons.items():
            stands = found.verdicts[name]
            if each.verdict in DECIDED and found.adjusted[name] > 0.05:
                weakened += 1
                assert stands is Verdict.UNDECIDED
            else:
                assert stands is each.verdict
    assert weakened > 0


def test_the_summary_of_one_is_its_ratio() -> None:
    found = family(np.random.default_rng(5), {"only": 1.2})
    ratio = found.comparisons["only"].ratio
    assert ratio is not None
    assert found.summary is not None
    assert found.summary.value == pytest.approx(ratio.value)
    assert (found.summary.low, found.summary.high) == pytest.approx((ratio.low, ratio.high), 1e-3)
    assert found.adjusted["only"] == found.comparisons["only"].p_beyond


def test_the_summary_of_ratios_that_depend_on_each_other_is_a_value_alone() -> None:
    comparisons = family(np.random.default_rng(5), {"a": 1.2, "b": 1.2}).comparisons
    found = family_of(comparisons, independent=False)
    apart = family_of(comparisons)
    assert found.summary is not None
    assert apart.summary is not None
    assert found.summary.value == apart.summary.value
    assert (found.summary.low, found.summary.high) == (0.0, math.inf)
    one = {"a": comparisons["a"]}
    assert family_of(one, independent=False) == family_of(one)


def test_results_that_differ_have_places_of_their_own() -> None:
    rng = np.random.default_rng(8)
    results = {"slow": runs(rng, 3.0), "fast": runs(rng, 1.0), "middle": runs(rng, 2.0)}
    assert list(places(results).items()) == [("fast", 1), ("middle", 2), ("slow", 3)]
    assert list(places(results, "higher").items()) == [("slow", 1), ("middle", 2), ("fast", 3)]


def test_results_that_are_not_told_apart_share_the_place_of_the_best() -> None:
    rng = np.random.default_rng(9)
    results = {"a": runs(rng, 1.0), "b": runs(rng, 1.001), "c": runs(rng, 2.0)}
    assert places(results) == {"a": 1, "b": 1, "c": 3}
    assert places({"alone": results["a"]}) == {"alone": 1}


def test_two_that_are_told_apart_by_the_test_may_have_intervals_that_overlap() -> None:
    first, second = (
        estimated(value, value - 1.96, value + 1.96, standard_error=1.0) for value in (10.0, 13.0)
    )
    assert first.high > second.low
    assert [each.place for each in rank({"a": first, "b": second})] == [1, 2]


def test_two_results_are_ranked_as_they_are_compared() -> None:
    rng = np.random.default_rng(10)
    for _ in range(50):
        one, two = runs(rng, 1.0), runs(rng, 1.01)
        apart = compare(one, two, margin=0.0).p_value <= 0.05
        assert (max(places({"a": one, "b": two}).values()) == 2) == apart


def test_medians_and_estimates_are_ranked_too() -> None:
    rng = np.random.default_rng(12)
    wide, narrow = np.exp(rng.normal(size=2_000)), 1.2 * np.exp(0.1 * rng.normal(size=2_000))
    medians = rank({"wide": wide, "narrow": narrow}, statistic="median")
    assert [each.name for each in medians] == ["wide", "narrow"]
    means = rank({"wide": estimate_mean(wide), "narrow": narrow})
    assert [each.name for each in means] == ["narrow", "wide"]
    assert [each.place for each in means] == [1, 2]
