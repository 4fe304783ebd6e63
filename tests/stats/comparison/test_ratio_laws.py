"""Laws of every ratio of means: one test inverted, and neither side preferred."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Comparison, Verdict, codec
from benchrigor.stats import compare

DECIDED = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


def slow(rng: np.random.Generator, n: int, factor: float) -> np.ndarray:
    return rng.lognormal(0.0, 0.1, n) * np.where(rng.random(n) < 0.12, factor, 1.0)


def series(seed: int, n: int, factor: float, moving: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pace = np.exp(moving * np.cumsum(rng.normal(0.0, 0.05, n)))
    one, two = (slow(rng, n, factor) * pace for _ in range(2))
    return one, two * rng.choice([0.3, 0.9, 1.0, 1.2])


Compare = Callable[[np.ndarray, np.ndarray, float], Comparison]


def of_pairs(one: np.ndarray, two: np.ndarray, margin: float) -> Comparison:
    return compare(one, two, paired=True, margin=margin)


def of_stable_pairs(one: np.ndarray, two: np.ndarray, margin: float) -> Comparison:
    return compare(one, two, paired=True, trim=True, margin=margin)


def of_paired_invocations(one: np.ndarray, two: np.ndarray, margin: float) -> Comparison:
    return compare(*([part[None] for part in each] for each in (one, two)), paired=True,
                   margin=margin)  # fmt: skip


def of_samples(one: np.ndarray, two: np.ndarray, margin: float) -> Comparison:
    return compare(one, two[: max(two.size // 2, 2)], margin=margin)


def of_invocations(one: np.ndarray, two: np.ndarray, margin: float) -> Comparison:
    return compare(*([part[None] for part in each] for each in (one, two)), margin=margin)


def of_medians(one: np.ndarray, two: np.ndarray, margin: float) -> Comparison:
    return compare(one, two, paired=True, statistic="median", margin=margin)


MEANS: list[Compare] = [
    of_pairs,
    of_stable_pairs,
    of_paired_invocations,
    of_samples,
    of_invocations,
]
doors = pytest.mark.parametrize("door", MEANS, ids=lambda door: door.__name__)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    one, two = series(
        draw(st.integers(0, 10**6)),
        draw(st.integers(12, 90)),
        draw(st.sampled_from([1.0, 3.0, 10.0, 100.0])),
        draw(st.sampled_from([0.0, 0.3, 1.0])),
    )
    return one, two, draw(st.sampled_from([0.0, 0.01]))


@pytest.mark.slow
@pytest.mark.parametrize("door", [of_pairs, of_stable_pairs, of_paired_invocations,
                                  of_invocations, of_medians])  # fmt: skip
@settings(max_examples=25)
@given(cases())
def test_exchanged_sides_give_the_mirror(
    door: Compare, case: tuple[np.ndarray, np.ndarray, float]
) -> None:
    one, two, margin = case
    try:
        found, back = door(one, two, margin), door(two, one, margin)
    except NotEstimable:
        reject()
    assert found.ratio is not None
    assert back.ratio is not None
    assert 1.0 / found.ratio.value == pytest.approx(back.ratio.value, rel=1e-9)
    ends = (1.0 / found.ratio.high, 1.0 / found.ratio.low if found.ratio.low else math.inf)
    assert ends == pytest.approx((back.ratio.low, back.ratio.high), rel=1e-7)
    assert found.p_value == pytest.approx(back.p_value, rel=1e-6, abs=1e-14)
    assert found.p_beyond == pytest.approx(back.p_beyond, rel=1e-6, abs=1e-14)
    assert DECIDED.get(found.verdict, found.verdict) is back.verdict
    assert (found.median_ratio is None) == (back.median_ratio is None)
    if found.median_ratio is not None and back.median_ratio is not None:
        assert found.median_ratio.low == pytest.approx(1.0 / back.median_ratio.high, rel=1e-9)


@pytest.mark.slow
@doors
@settings(max_examples=25)
@given(cases())
def test_verdict_interval_and_p_value_agree(
    door: Compare, case: tuple[np.ndarray, np.ndarray, float]
) -> None:
    found = door(*case)
    ratio = found.ratio
    assert ratio is not None
    assert found.p_value is not None
    assert 0.0 <= ratio.low <= ratio.value <= ratio.high
    if found.baseline is None:
        return  # blocks of pairs have the sign test, of few probabilities
    is_bounded = ratio.low > 0.0 and ratio.high < math.inf
    assume(abs(found.p_value - 0.05) > 1e-9)
    assert (found.p_value < 0.05) == (is_bounded and not ratio.low <= 1.0 <= ratio.high)
    if found.verdict in DECIDED:
        assert found.p_value < 0.05
        assert found.p_beyond < 0.05
    if found.margin == 0.0:
        assert (found.verdict in DECIDED) == (found.p_value < 0.05)
    if not is_bounded:
        assert found.verdict is Verdict.UNDECIDED


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(5, 29), st.permutations(range(29)))
def test_the_order_of_few_pairs_does_not_matter(seed: int, n: int, order: list[int]) -> None:
    one, two = series(seed, n, 10.0, 0.0)
    moved = [place for place in order if place < n]
    found, other = of_pairs(one, two, 0.0), of_pairs(one[moved], two[moved], 0.0)
    assert found.ratio is not None
    assert other.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx(
        (other.ratio.low, other.ratio.high), rel=1e-9
    )
    assert found.p_value == pytest.approx(other.p_value)


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_few_pairs_have_the_roots_of_fieller(factor: float) -> None:
    one, two = series(3, 15, factor, 0.0)
    found, n = of_pairs(one, two, 0.0), 15
    t = float(scipy_stats.t.ppf(0.975, n - 1))
    (a, b), (_, c) = np.cov(one, two) / n
    roots = np.roots([one.mean() ** 2 - t**2 * a, -2.0 * (one.mean() * two.mean() - t**2 * b),
                      two.mean() ** 2 - t**2 * c])  # fmt: skip
    assert found.ratio is not None
    assert (found.ratio.low, found.ratio.high) == pytest.approx(tuple(sorted(roots)))
    assert found.p_value == pytest.approx(scipy_stats.ttest_rel(one, two).pvalue)


@pytest.mark.parametrize("paired", [True, False])
def test_a_slow_outlier_leaves_the_ratio_without_an_end(paired: bool) -> None:
    rng = np.random.default_rng(8)
    one, two = (rng.lognormal(0.0, 0.05, 15) for _ in range(2))
    one[4] *= 100.0
    found, back = compare(one, two, paired=paired), compare(two, one, paired=paired)
    assert found.ratio is not None
    assert back.ratio is not None
    assert found.ratio.high == math.inf
    assert back.ratio.low == 0.0
    assert found.verdict is back.verdict is Verdict.UNDECIDED
    assert found.required is None
    plain = json.loads(json.dumps(codec.encode(found), allow_nan=False))
    assert plain["ratio"]["high"] == "inf"
    assert codec.decode(Comparison, plain) == found
    codes = {each.code for each in found.notices}
    assert (Code.FEW_PAIRS_CARRY in codes) == paired
    if paired:
        assert found.median_ratio is not None
        assert found.median_ratio.low < 1.0 < found.median_ratio.high


def test_common_drift_does_not_open_the_interval() -> None:
    drift = 1.0 + 0.3 * np.sin(np.arange(1000) / 50.0)
    rng = np.random.default_rng(1)
    one, two = (drift * factor + rng.normal(0.0, 0.02, 1000) for factor in (1.0, 1.03))
    for trim in (True, False):
        found = compare(one, two, paired=True, trim=trim)
        assert found.ratio is not None
        assert found.ratio.half_width < 0.005
        assert found.verdict is Verdict.WORSE
