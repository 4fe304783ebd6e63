"""Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from benchrigor.errors import NotEstimable
from benchrigor.model import Code
from benchrigor.stats import estimate_quantile
from benchrigor.stats.statistics.shares_and_quantiles import distribution_of

RNG = np.random.default_rng(40)
SKEWED = RNG.lognormal(0.0, 1.0, 400)
BOTH = pytest.mark.parametrize("trim", [False, True])


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
