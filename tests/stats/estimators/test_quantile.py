"""Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.series import autoregressive

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice
from benchrigor.stats import estimate_quantile
from benchrigor.stats.statistics.shares_and_quantiles import distribution_of

RNG = np.random.default_rng(40)
SKEWED = RNG.lognormal(0.0, 1.0, 400)
TIED = np.round(RNG.lognormal(0.0, 1.0, 400), 1)
BOTH = pytest.mark.parametrize("trim", [False, True])


NORMAL = {q: float(scipy_stats.norm.ppf(q)) for q in (0.1, 0.5, 0.9, 0.99)}


def refusal(call: Callable[[], object]) -> Notice:
    with pytest.raises(NotEstimable) as caught:
        call()
    notice = caught.value.notice
    assert isinstance(notice, Notice)
    return notice


@pytest.mark.parametrize("q", [0.1, 0.25, 0.3, 0.5, 0.9, 0.123])
def test_a_quantile_is_numpys_averaged_inverted_distribution_function(q: float) -> None:
    for n in (397, 400):
        expected = np.quantile(SKEWED[:n], q, method="averaged_inverted_cdf")
        assert estimate_quantile(SKEWED[:n], q).value == expected


@pytest.mark.parametrize(("n", "q"), [(12, 0.5), (20, 0.5), (29, 0.5), (25, 0.3), (29, 0.8)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_below_thirty_readings_the_interval_is_the_binomial_one(
    n: int, q: float, confidence: float
) -> None:
    values = SKEWED[:n]
    found = estimate_quantile(values, q, confidence=confidence)
    expected = scipy_stats.quantile_test(values, q=0.0, p=q).confidence_interval(confidence)
    assert (found.low, found.high) == tuple(expected)
    assert [notice.code for notice in found.notices] == [Code.FEW_READINGS]


NORMAL_READINGS = np.random.default_rng(41).normal(size=2000)


@BOTH
@pytest.mark.parametrize("values", [SKEWED, TIED, SKEWED[:25]], ids=["skewed", "tied", "few"])
@pytest.mark.parametrize("q", [0.25, 0.5, 0.7])
def test_mirrored_readings_get_the_mirrored_estimate(
    values: np.ndarray, q: float, trim: bool
) -> None:
    found = estimate_quantile(values, q, trim=trim)
    mirrored = estimate_quantile(-values, 1.0 - q, trim=trim)
    assert (mirrored.value, mirrored.low, mirrored.high) == (-found.value, -found.high, -found.low)
    assert mirrored.n_effective == pytest.approx(found.n_effective)


@BOTH
@given(
    st.lists(st.integers(0, 4), min_size=40, max_size=80).filter(lambda each: len(set(each)) > 1),
    st.floats(0.3, 0.7),
    st.floats(0.5, 0.9),
)
def test_the_ends_are_readings_in_order_and_nested_however_many_are_tied(
    trim: bool, values: list[int], q: float, confidence: float
) -> None:
    series = np.array(values, dtype=np.float64)
    try:
        wide = estimate_quantile(series, q, trim=trim)
        narrow = estimate_quantile(series, q, confidence=confidence, trim=trim)
    except NotEstimable:  # the outcome of a series that is too persistent
        assume(False)
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high
    assert {wide.low, wide.high} <= set(series)


@BOTH
def test_constant_readings_have_an_interval_without_width(trim: bool) -> None:
    found = estimate_quantile(np.full(100, 3.5), 0.99, trim=trim)
    assert (found.low, found.value, found.high) == (3.5, 3.5, 3.5)
    assert [notice.code for notice in found.notices] == [Code.CONSTANT]
    assert found.method == "order statistics"


@pytest.mark.parametrize("digits", [0, 1, 8])
@pytest.mark.parametrize("n", [400, 10_000])  # of many readings not all are sorted
def test_weighted_shares_are_those_of_the_definition(n: int, digits: int) -> None:
    rng = np.random.default_rng(46)
    values = np.round(rng.lognormal(0.0, 1.0, n), digits)
    weights = rng.normal(1.0, 0.5, n)
    weights /= weights.sum()
    distinct, places = np.unique(values, return_inverse=True)
    upto = np.cumsum(np.bincount(places, weights))
    below = upto - np.bincount(places, weights)
    distribution = distribution_of(values, weights)
    for share in np.linspace(0.02, 0.98, 49):
        low, high = distribution.between(share, share)
        assert low == distinct[upto >= share].min()
        assert high == distinct[below <= share].max()


def test_a_tail_with_fewer_than_five_readings_is_refused() -> None:
    notice = refusal(lambda: estimate_quantile(NORMAL_READINGS[:400], 0.99))
    assert (notice.code, notice.severity) == (Code.FEW_IN_TAIL, "refusal")
    required = notice.evidence["required"]
    assert isinstance(required, int)
    assert 500 <= required < 700
    assert estimate_quantile(NORMAL_READINGS[:required], 0.99).high in NORMAL_READINGS


@pytest.mark.parametrize("q", [0.1, 0.9])
def test_five_readings_in_the_tail_are_enough_and_fewer_never_are(q: float) -> None:
    spread_out = np.arange(50.0) * 0.618034 % 1.0  # neighbours repel each other
    found = estimate_quantile(spread_out, q)
    assert (found.n, found.n_effective) == (50, 50.0)
    assert refusal(lambda: estimate_quantile(spread_out[:49], q)).code is Code.FEW_IN_TAIL


def test_autocorrelation_leaves_fewer_readings_in_the_tail() -> None:
    values = autoregressive(np.random.default_rng(43), 1000, 0.95)
    assert refusal(lambda: estimate_quantile(values, 0.99)).code is Code.FEW_IN_TAIL
    assert estimate_quantile(NORMAL_READINGS[:1000], 0.99).high >= NORMAL[0.99]


def test_more_confidence_wants_more_readings_in_the_tail() -> None:
    notice = refusal(lambda: estimate_quantile(SKEWED[:12], 0.5, confidence=0.9999))
    # All 12 readings lie on one side of the median with a chance of 1/4096 each way.
    assert notice.evidence["required"] == 15
    assert estimate_quantile(SKEWED[:15], 0.5, confidence=0.9999).low == SKEWED[:15].min()
