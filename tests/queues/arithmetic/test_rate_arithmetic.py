import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats
from simulated.estimates import estimated, mean_of

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.stats import filter_ratio, sum_rates, utilisation_of

NOTICE = Notice.of(Code.NOT_CONVERGED)


def rate(
    value: float, down: float, up: float | None = None, *, df: float | None = None
) -> Estimate:
    """Make an estimate of given standard errors downwards and upwards."""
    quantile = -float(special.stdtrit(math.inf if df is None else df, 0.025))
    high = value + quantile * (down if up is None else up)
    return estimated(value, value - quantile * down, high, degrees_of_freedom=df)


levels, errors = st.floats(1.0, 100.0), st.floats(0.001, 0.3)
rates = st.builds(rate, levels, errors, errors, df=st.sampled_from([None, 4.0, 30.0]))


def shown(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def test_the_sum_is_that_of_welch_and_satterthwaite() -> None:
    rng = np.random.default_rng(75)
    samples = [rng.normal(mean, sd, n) for mean, sd, n in ((5.0, 1.0, 6), (9.0, 3.0, 9))]
    squares = [float(sample.var(ddof=1)) / sample.size for sample in samples]
    df = sum(squares) ** 2 / (squares[0] ** 2 / 5 + squares[1] ** 2 / 8)
    error = math.sqrt(sum(squares))
    levels = [
        mean_of(each.size, value=float(each.mean()), sd=float(each.std(ddof=1))) for each in samples
    ]
    found = sum_rates(levels)
    wanted = sum(float(sample.mean()) for sample in samples)
    reach = float(scipy_stats.t.ppf(0.975, df)) * error
    assert found.degrees_of_freedom == pytest.approx(df)
    assert found.standard_error == pytest.approx(error)
    assert shown(found) == pytest.approx((wanted, wanted - reach, wanted + reach))


@given(
    st.lists(st.builds(rate, levels, errors, errors), min_size=1, max_size=6), st.floats(0.0, 50.0)
)
def test_the_sum_of_asymmetric_rates_is_that_of_zou_and_donner(
    parts: list[Estimate], exact: float
) -> None:
    """A rate that is known exactly shifts the sum."""
    found = sum_rates([*parts, exact])
    total = exact + sum(part.value for part in parts)
    down, up = (
        math.hypot(*(part.value - end(part) for part in parts))
        for end in (lambda part: part.low, lambda part: part.high)
    )
    assert shown(found) == pytest.approx((total, total - down, total + up))
    assert (found.n, found.n_effective) == (20 * len(parts), 15.0 * len(parts))
    assert sum_rates([exact, *parts[::-1]]) == found


def test_the_sum_of_exact_rates_is_exact() -> None:
    exact = sum_rates([1.0, 2.0])
    assert (*shown(exact), exact.method, exact.n) == (3.0, 3.0, 3.0, "exact", 0)


def test_the_notices_of_all_parts_are_carried_once() -> None:
    one = replace(rate(1.0, 0.1), notices=(NOTICE,))
    assert sum_rates([one, rate(2.0, 0.1), one]).notices == (NOTICE,)
    assert utilisation_of(rate(1.0, 0.1), one).notices == (NOTICE,)


@pytest.mark.parametrize(
    ("arrival", "service", "servers", "found"),
    [
        (6.0, 4.0, 3, (0.5, 0.5, 0.5)),
        (0, 10.0, 1, (0.0, 0.0, 0.0)),
        (rate(1.0, 2.0, 0.0), 10.0, 1, (0.1, 0.0, 0.1)),  # none is below 0
        # An exact rate of arrival turns the interval of the service over.
        (60.0, estimated(30.0, 25.0, 40.0), 2, (1.0, 0.75, 1.2)),
    ],
)
def test_the_utilisation_by_a_rate_that_is_known_exactly(
    arrival: Any, service: Any, servers: int, found: tuple[float, float, float]
) -> None:
    used = utilisation_of(arrival, service, servers=servers)
    assert shown(used) == pytest.approx(found)
    assert (used.confidence, used.notices) == (0.95, ())


@given(rates, rates, st.integers(1, 20), st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(
    arrival: Estimate, service: Estimate, servers: int, unit: float
) -> None:
    def scaled(each: Estimate) -> Estimate:
        return replace(each, value=each.value * unit, low=each.low * unit, high=each.high * unit)

    found = utilisation_of(arrival, service, servers=servers)
    other = utilisation_of(scaled(arrival), scaled(service), servers=servers)
    assert shown(other) == pytest.approx(shown(found), rel=1e-6)
    assert 0.0 <= found.low <= found.value <= found.high


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), min_size=2, max_size=60))
def test_nothing_is_lost_in_merging(counts: list[tuple[int, int]]) -> None:
    taken, given_ = (list(each) for each in zip(*counts, strict=True))
    if sum(count > 0 for count in given_) < 2:
        with pytest.raises(NotEstimable):
            filter_ratio(taken, given_)
        return
    found = filter_ratio(taken, given_)
    assert found.value == pytest.approx(sum(taken) / sum(given_))
    assert 0.0 <= found.low <= found.value * (1.0 + 1e-12)
    assert found.value <= found.high * (1.0 + 1e-12)
