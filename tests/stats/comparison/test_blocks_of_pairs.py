import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice, Verdict
from benchrigor.stats import compare
from benchrigor.stats.comparison.blocks_of_pairs import PairBlocks, blocks_of_pairs
from benchrigor.stats.estimators.estimation import Policy

REFUSAL = NotEstimable(Notice.refusal(Code.NO_STABLE_PHASE, "No phase.", reason="trend"))


def restless(
    ratio: float, rng: np.random.Generator, n: int = 3_000
) -> tuple[np.ndarray, np.ndarray]:
    """Return sides each of which goes through its own levels, up to twice as slow."""
    sides = []
    for level in (1.0, ratio):
        paces = np.repeat(rng.permutation(np.linspace(1.0, 2.0, 7)), n // 7 + 1)[:n]
        sides.append(level * paces * rng.gamma(50.0, 1.0 / 50.0, n))
    return sides[0], sides[1]


def test_code_three_times_as_slow_is_worse_by_at_least_so_much() -> None:
    found = compare(*restless(3.0, np.random.default_rng(1)), paired=True, trim=True)
    assert found.verdict is Verdict.WORSE
    assert found.ratio is not None
    assert found.difference is not None
    assert found.ratio.method == found.difference.method == "blocks of pairs"
    assert 1.3 < found.ratio.low < 3.0 < found.ratio.high
    assert found.p_value == pytest.approx(2.0 * 0.5**12)
    assert found.p_beyond == pytest.approx(2.0 * 0.5**12)
    assert [each.code for each in found.notices] == [Code.BLOCKS_OF_PAIRS]


def test_the_interval_is_that_of_the_sign_test() -> None:
    ratios = np.arange(1.0, 13.0)
    blocks = PairBlocks(ratios=ratios, differences=ratios, n=12)
    interval = blocks.ratio(0.95)
    assert (interval.value, interval.low, interval.high) == (
        pytest.approx(math.sqrt(6.0 * 7.0)),
        3.0,
        10.0,
    )
    inside = scipy_stats.binom.cdf(9, 12, 0.5) - scipy_stats.binom.cdf(2, 12, 0.5)
    assert inside >= 0.95
    for ratio in (0.5, 2.5, 6.5):
        below = int((ratios < ratio).sum())
        expected = scipy_stats.binomtest(below, 12).pvalue
        assert blocks.p_value(ratio) == pytest.approx(expected)


def test_the_interval_holds_the_median_of_blocks_whatever_the_distribution() -> None:
    rng, hits = np.random.default_rng(20270216), 0
    for _ in range(400):
        ratios = rng.pareto(1.1, 12) + 1.0
        found = PairBlocks(ratios=ratios, differences=ratios, n=12).ratio(0.95)
        hits += found.low <= 2.0 ** (1.0 / 1.1) <= found.high
    assert scipy_stats.binomtest(hits, 400, 0.961).pvalue > 0.001


def test_a_confidence_out_of_reach_and_readings_of_nothing_keep_their_refusal() -> None:
    one, two = restless(1.0, np.random.default_rng(2))
    for sides, policy in (
        ((one, two), Policy(confidence=0.9999)),
        ((one - 3.0, two), Policy()),
        ((one[:4], two[:4]), Policy()),
        ((one, two), Policy(share=True)),
    ):
        with pytest.raises(NotEstimable) as caught:
            blocks_of_pairs(*sides, policy, REFUSAL)
        assert caught.value is REFUSAL


@pytest.mark.slow
def test_the_same_code_is_seldom_called_different() -> None:
    rng = np.random.default_rng(20270217)
    verdicts = [compare(*restless(1.0, rng), paired=True, trim=True).verdict for _ in range(40)]
    assert sum(each in {Verdict.BETTER, Verdict.WORSE} for each in verdicts) <= 6


def test_a_stall_of_one_side_is_not_equivalent() -> None:
    rng = np.random.default_rng(20271123)
    one, two = 1.0 + 0.01 * rng.standard_normal((2, 1_000))
    assert compare(one, two, paired=True, trim=True).verdict is Verdict.EQUIVALENT
    two[300:400] *= 1.5
    found = compare(one, two, paired=True, trim=True)
    assert found.verdict is Verdict.UNDECIDED
    assert [each.code for each in found.notices] == [Code.BLOCKS_OF_PAIRS]


def test_a_median_is_compared_by_the_medians_of_blocks() -> None:
    sides = restless(3.0, np.random.default_rng(3))
    found = compare(*sides, paired=True, trim=True, statistic="median")
    assert found.ratio is not None
    assert found.ratio.low > 1.3


def test_a_far_quantile_of_few_pairs_keeps_its_refusal() -> None:
    one, two = restless(3.0, np.random.default_rng(4), n=400)
    with pytest.raises(NotEstimable):
        blocks_of_pairs(one, two, Policy(q=0.99), REFUSAL)
    assert blocks_of_pairs(one, two, Policy(q=0.5), REFUSAL).ratios.size == 12


def test_a_leaking_candidate_is_said_to_leak() -> None:
    rng = np.random.default_rng(5)
    one, two = rng.gamma(100.0, 0.01, (2, 1_200))
    found = compare(one, two * np.linspace(1.0, 2.0, 1_200), paired=True, trim=True)
    assert found.verdict is Verdict.WORSE
    assert " rises " in found.notices[0].sentence
    assert found.notices[0].evidence["rising"] is True
