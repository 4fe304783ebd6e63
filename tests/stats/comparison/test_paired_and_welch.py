import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Comparison, Verdict
from benchrigor.stats import compare


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


def test_a_pair_counts_if_both_invocations_do() -> None:
    rng = np.random.default_rng(4)
    warm = np.repeat([2.0, 1.0], [30, 270])
    old, new = ([rng.normal(warm, 0.05) for _ in range(12)] for _ in range(2))
    old[0], new[1] = old[0][:20], new[1][:20]  # nothing but warm-up
    found = compare(old, new, paired=True, trim=True)
    assert found.baseline.n == found.candidate.n == found.difference.n == 10
    assert [each.code for each in found.notices] == [Code.ROUNDS_REJECTED]


def test_pairs_with_a_constant_ratio_are_compared_exactly() -> None:
    old = np.random.default_rng(8).normal(5.0, 1.0, 100)
    found = compare(old, 1.5 * old, paired=True)
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx((1.5, 1.5))
    assert found.verdict is Verdict.WORSE
    same = compare(old, old, paired=True, statistic="median")
    assert (same.verdict, same.p_value) == (Verdict.EQUIVALENT, 1.0)


def restless(ratio: float, rng: np.random.Generator, n: int = 3_000) -> tuple[np.ndarray, ...]:
    """Return sides each of which goes through its own levels, up to twice as slow."""

    def side(level: float) -> np.ndarray:
        paces = np.repeat(rng.permutation(np.linspace(1.0, 2.0, 7)), n // 7 + 1)[:n]
        return level * paces * rng.gamma(50.0, 1.0 / 50.0, n)

    return side(1.0), side(ratio)


def in_turn(one: np.ndarray, two: np.ndarray, **options: object) -> Comparison:
    return compare(one, two, paired=True, trim=True, **options)


def test_the_interval_is_that_of_the_sign_test() -> None:
    # Each pair takes two seconds, so that blocks of equal time are those of equally many pairs.
    away = np.random.default_rng(1).permutation(np.linspace(-0.4, 0.5, 12))
    found = in_turn(1.0 - away.repeat(100), 1.0 + away.repeat(100))
    ratios = np.sort((1.0 + away) / (1.0 - away))
    assert found.ratio is not None
    middle = math.sqrt(ratios[5] * ratios[6])
    expected = pytest.approx((middle, ratios[2], ratios[9]))
    assert (found.ratio.value, found.ratio.low, found.ratio.high) == expected
    inside = scipy_stats.binom.cdf(9, 12, 0.5) - scipy_stats.binom.cdf(2, 12, 0.5)
    assert inside >= 0.95
    below = int((ratios < 1.0).sum())
    assert found.p_value == pytest.approx(scipy_stats.binomtest(below, 12).pvalue)


def test_a_confidence_out_of_reach_and_readings_of_nothing_keep_their_refusal() -> None:
    one, two = restless(3.0, np.random.default_rng(2))
    for sides, options in (
        ((one, two), {"confidence": 0.9999}),
        ((one - 3.0, two), {}),
        ((one[:400], two[:400]), {"statistic": "p99"}),
        ((one, two), {"detector": "edm"}),  # only the longest segment may count
    ):
        with pytest.raises(NotEstimable) as caught:
            in_turn(*sides, **options)
        assert caught.value.notice.code is not Code.BLOCKS_OF_PAIRS


def test_the_same_code_is_seldom_called_different() -> None:
    rng = np.random.default_rng(20270217)
    verdicts = [in_turn(*restless(1.0, rng)).verdict for _ in range(40)]
    assert sum(each in {Verdict.BETTER, Verdict.WORSE} for each in verdicts) <= 6
