"""Where the variance arises, and how much to measure of what."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchrigor.model.analysis import Kind, VarianceSplit
from benchrigor.stats.estimators.estimation import Policy, estimate
from benchrigor.stats.estimators.variance_components import readings_per_invocation, split_variance


def components(invocations: Sequence[npt.ArrayLike], *, trim: bool = False) -> VarianceSplit:
    series = [np.asarray(each, dtype=float) for each in invocations]
    return split_variance(estimate(series, Policy(kind=Kind.INVOCATIONS, trim=trim)).fits)


SPLIT = VarianceSplit(level=2.0, between=4e-4, within=0.01, invocations=10, readings=100.0)


def test_the_split_of_the_steady_part() -> None:
    rng = np.random.default_rng(10)
    levels = rng.normal(1.0, 0.1, 20)
    warm = [rng.normal(level, 0.01, 200) + 5.0 * (np.arange(200) < 30) for level in levels]
    split = components(warm, trim=True)
    assert split.between == pytest.approx(levels.var(ddof=1), rel=0.05)
    assert split.readings < 170.0


def test_parts_add_up_to_the_spread_of_levels() -> None:
    rng = np.random.default_rng(11)
    invocations = [rng.normal(level, 0.1, 50) for level in (1.0, 1.2, 1.4)]
    split = components(invocations)
    means = [series.mean() for series in invocations]
    assert split.level == pytest.approx(np.mean(means))
    assert split.between + split.within / 50 == pytest.approx(np.var(means, ddof=1))
    assert (split.invocations, split.readings) == (3, 50.0)


def test_readings_are_the_harmonic_mean_and_between_is_never_negative() -> None:
    split = components([[1.0, 2.0, 1.0, 2.0], [2.0, 1.0]])
    assert split.readings == pytest.approx(2.0 / (1 / 4 + 1 / 2))
    assert split.between == 0.0


@given(
    between=st.floats(1e-6, 1.0),
    within=st.floats(1e-6, 1.0),
    start_cost=st.floats(0.01, 1e4),
    reading_cost=st.floats(0.01, 100.0),
)
def test_no_other_number_of_readings_is_better(
    between: float, within: float, start_cost: float, reading_cost: float
) -> None:
    split = dataclasses.replace(SPLIT, between=between, within=within)
    best = readings_per_invocation(
        split, start_cost=start_cost, reading_cost=reading_cost, longest=10_000
    )

    def price(n: float) -> float:
        """Cost of an invocation times its variance: what a given width costs."""
        return (start_cost + n * reading_cost) * (between + within / n)

    assert 2 <= best <= 10_000
    near = min(price(max(best - 0.5, 2.0)), price(min(best + 0.5, 10_000.0)))
    assert min(price(2.0), price(10_000.0), price(best)) >= near * (1.0 - 0.05)
    assert price(best) <= min(price(2.0), price(10_000.0)) * (1.0 + 1e-9)


def test_the_ends_of_the_allocation() -> None:
    def best(between: float, within: float, start_cost: float = 1.0) -> int:
        split = dataclasses.replace(SPLIT, between=between, within=within)
        return readings_per_invocation(split, start_cost=start_cost, reading_cost=1.0, longest=500)

    assert best(0.0, 1.0) == 500
    assert best(1e-300, 1e-2) == 500
    assert best(1.0, 0.0) == best(0.0, 0.0) == best(1.0, 1.0, start_cost=0.0) == 2
