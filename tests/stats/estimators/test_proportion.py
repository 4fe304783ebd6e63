"""Coverage is tested by seeded simulation; a bound is left by chance about once in a thousand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from simulated.series import persistent
from statsmodels.stats.proportion import proportion_confint

from benchrigor.model import Code
from benchrigor.stats import estimate_proportion


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(
    ("successes", "n"), [(0, 1), (1, 1), (0, 20), (7, 20), (20, 20), (3, 5000)]
)
def test_counts_give_the_interval_of_wilson(successes: int, n: int, confidence: float) -> None:
    found = estimate_proportion(successes, n, confidence=confidence)
    low, high = proportion_confint(successes, n, alpha=1.0 - confidence, method="wilson")
    assert found.value == successes / n
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert (found.n, found.n_effective, found.method) == (n, n, "Wilson")
    assert found.notices == ()


@given(st.integers(1, 10**6), st.floats(0.0, 1.0), st.floats(0.01, 0.999))
def test_failures_mirror_successes_within_0_and_1(n: int, share: float, confidence: float) -> None:
    successes = round(share * n)
    found = estimate_proportion(successes, n, confidence=confidence)
    mirrored = estimate_proportion(n - successes, n, confidence=confidence)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.low < found.high
    assert (mirrored.low, mirrored.high) == pytest.approx((1.0 - found.high, 1.0 - found.low))


def test_a_series_of_independent_outcomes_is_judged_like_counts() -> None:
    outcomes = np.random.default_rng(50).random(2000) < 0.3
    found = estimate_proportion(outcomes)
    counted = estimate_proportion(int(outcomes.sum()), 2000)
    assert found.value == pytest.approx(counted.value)
    assert found.half_width == pytest.approx(counted.half_width, rel=0.15)
    assert found.notices == ()


def test_a_series_may_be_written_in_bools_or_numbers() -> None:
    outcomes = [True, False, True, True] * 10
    written = [outcomes, [int(each) for each in outcomes], np.array(outcomes, dtype=np.float32)]
    first, *others = (estimate_proportion(each) for each in written)
    assert all(other == first for other in others)
    assert first.value == 0.75


def test_a_short_series_has_students_t_in_wilsons_interval() -> None:
    found = estimate_proportion([1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0])
    t = scipy_stats.t.ppf(0.975, 11)
    low, high = proportion_confint(7, 12, alpha=2.0 * scipy_stats.norm.sf(t), method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high))
    assert Code.FEW_READINGS in [notice.code for notice in found.notices]


@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("n", [5, 200])
def test_outcomes_that_are_all_alike_leave_a_width(outcome: int, n: int) -> None:
    found = estimate_proportion([outcome] * n)
    assert found.value == outcome
    # Of many alike, none may be in bursts, which then would count for three.
    assert found.n_effective == pytest.approx(n if n < 30 else n / 3)
    assert found.half_width > 1.0 / n
    codes = [notice.code for notice in found.notices]
    assert Code.CONSTANT not in codes
    assert Code.FEW_IN_TAIL in codes


def test_persistent_outcomes_count_for_fewer() -> None:
    # Long-run over marginal variance of the chain: (1 + 0.9) / (1 - 0.9) = 19.
    outcomes = persistent(np.random.default_rng(51), 20_000, 0.3, 0.9)
    found = estimate_proportion(outcomes)
    assert 20_000 / found.n_effective == pytest.approx(19.0, rel=0.35)


def test_numpys_whole_numbers_are_counts() -> None:
    assert estimate_proportion(np.int64(3), np.int32(4)).value == 0.75  # type: ignore[arg-type]
