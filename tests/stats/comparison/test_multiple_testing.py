import numpy as np
import pytest
from simulated.comparisons import DECIDED, family, places, runs
from simulated.estimates import estimated

from benchrigor.model import Verdict
from benchrigor.stats import compare, rank


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
