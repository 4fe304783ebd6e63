from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchrigor.model import Code, Notice, Verdict
from benchrigor.stats import compare, estimate_invocations


def test_few_pairs_are_compared_by_the_paired_test_of_student() -> None:
    rng = np.random.default_rng(1)
    shared = rng.normal(5.0, 1.0, 20)
    old, new = shared + rng.normal(0.0, 0.1, 20), shared + rng.normal(0.1, 0.1, 20)
    found = compare(old, new, paired=True)
    wanted = scipy_stats.ttest_rel(new, old)
    low, high = wanted.confidence_interval(0.95)
    assert found.p_value == pytest.approx(wanted.pvalue)
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))
    assert found.unit == "pair"
    assert found.difference.n == 20
    assert [each.code for each in found.notices] == [Code.THIS_PROCESS_ONLY, Code.FEW_READINGS]


def test_pairs_of_invocations_are_compared_by_their_values() -> None:
    rng = np.random.default_rng(3)
    shared = rng.normal(5.0, 1.0, 12)
    old = [rng.normal(level, 0.1, 50) for level in shared]
    new = [rng.normal(level, 0.1, 70) for level in shared]
    for statistic, value in (("mean", np.mean), ("median", np.median)):
        found = compare(old, new, statistic=statistic, paired=True)
        wanted = scipy_stats.ttest_rel([value(each) for each in new], [value(each) for each in old])
        assert found.p_value == pytest.approx(wanted.pvalue)
        assert found.notices == ()


def test_a_pair_counts_if_both_invocations_do() -> None:
    rng = np.random.default_rng(4)
    warm = np.repeat([2.0, 1.0], [30, 270])
    old, new = ([rng.normal(warm, 0.05) for _ in range(12)] for _ in range(2))
    old[0], new[1] = old[0][:20], new[1][:20]  # nothing but warm-up
    found = compare(old, new, paired=True, trim=True)
    assert found.baseline.n == found.candidate.n == found.difference.n == 10
    assert [each.code for each in found.notices] == [Code.ROUNDS_REJECTED]


def test_pairs_are_kept_where_both_series_are_stable() -> None:
    rng = np.random.default_rng(5)
    old, new = rng.normal(1.0, 0.02, (2, 1_000))
    old[:100] += 1.0
    new[900:] += 1.0
    found = compare(old, new, paired=True, trim=True)
    assert found.difference.n <= 800
    assert found.verdict is Verdict.EQUIVALENT
    medians = compare(old, new, statistic="median", paired=True, trim=True)
    assert medians.difference.n == found.difference.n
    assert medians.verdict is Verdict.EQUIVALENT


def test_series_that_are_never_stable_together_are_compared_by_blocks() -> None:
    rng = np.random.default_rng(6)
    old, new = rng.normal(1.0, 0.02, (2, 1_000))
    old[:480] += 1.0
    new[520:] += 1.0
    found = compare(old, new, paired=True, trim=True)
    assert found.ratio is not None
    assert found.ratio.method == "blocks of pairs"
    assert found.ratio.low < 0.6
    assert found.ratio.high > 1.9
    assert found.verdict is Verdict.UNDECIDED
    assert [each.code for each in found.notices] == [Code.BLOCKS_OF_PAIRS]


def test_pairs_with_a_constant_ratio_are_compared_exactly() -> None:
    old = np.random.default_rng(8).normal(5.0, 1.0, 100)
    found = compare(old, 1.5 * old, paired=True)
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx((1.5, 1.5))
    assert found.verdict is Verdict.WORSE
    same = compare(old, old, paired=True, statistic="median")
    assert (same.verdict, same.p_value) == (Verdict.EQUIVALENT, 1.0)


def test_an_estimate_of_one_process_says_so_in_a_comparison_too() -> None:
    rng = np.random.default_rng(9)
    runs = [rng.normal(1.0, 0.1, 30) for _ in range(10)]
    honest = estimate_invocations(runs)
    said = Notice.warning(Code.THIS_PROCESS_ONLY, "Said.")
    one = replace(honest, notices=(said, *honest.notices))
    assert Code.THIS_PROCESS_ONLY not in {each.code for each in compare(honest, honest).notices}
    assert [each.code for each in compare(honest, one).notices] == [Code.THIS_PROCESS_ONLY]
