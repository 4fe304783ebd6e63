import numpy as np
import pytest
from scipy import stats as scipy_stats

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice
from benchrigor.model.analysis import Kind
from benchrigor.stats import estimate_invocations, estimate_mean
from benchrigor.stats.estimators.estimation import Policy, estimate


def test_the_interval_is_students_t_of_the_invocation_means() -> None:
    rng = np.random.default_rng(1)
    invocations = [rng.normal(level, 0.1, 50) for level in rng.normal(5.0, 0.5, 12)]
    means = [series.mean() for series in invocations]
    found = estimate_invocations(invocations)
    mean, reach = np.mean(means), scipy_stats.t.ppf(0.975, 11) * scipy_stats.sem(means)
    ends = mean / np.exp(reach / mean), mean * np.exp(reach / mean)  # of log(mean)
    assert (found.low, found.high) == pytest.approx(ends)
    below = estimate_invocations([series - 9.0 for series in invocations])
    assert (below.low, below.high) == pytest.approx((mean - 9.0 - reach, mean - 9.0 + reach))
    assert found.n == 12
    assert found.notices == ()


@pytest.mark.parametrize("q", [None, 0.5])
def test_times_too_far_apart_are_no_number_and_differences_are(q: float | None) -> None:
    policy = Policy(kind=Kind.INVOCATIONS, q=q, narrow=True)
    times = [np.linspace(level, level + 0.1, 30) for level in (1.0, 5.0)]
    assert estimate(times, policy).notices[-1].code is Code.TOO_WIDE
    below = estimate([series - 2.0 for series in times], policy).estimate_or_raise()
    assert below.low < -10.0


def test_two_times_too_far_apart_in_one_invocation_are_no_number_and_differences_are() -> None:
    policy = Policy(kind=Kind.INVOCATIONS, narrow=True)
    assert estimate([np.array([1.0, 5.0])], policy).notices[-1].code is Code.TOO_WIDE
    assert estimate([np.array([-1.0, 5.0])], policy).estimate_or_raise().low < -10.0


def test_one_invocation_speaks_of_its_process_only() -> None:
    values = np.random.default_rng(2).normal(5.0, 1.0, 200)
    found = estimate_invocations([values])
    assert found.n == 1
    assert found.notices[0].code is Code.THIS_PROCESS_ONLY
    assert (found.low, found.high) == (estimate_mean(values).low, estimate_mean(values).high)


def test_a_warm_up_that_all_share_is_cut() -> None:
    rng = np.random.default_rng(3)
    warm_up = np.repeat([2.0, 0.0], [60, 340])
    invocations = [rng.normal(1.0, 0.05, 400) + warm_up for _ in range(10)]
    plain = estimate_invocations(invocations)
    trimmed = estimate_invocations(invocations, trim=True)
    assert plain.value > 1.25
    assert trimmed.low < 1.0 < trimmed.high


def test_no_shift_stays_that_the_interval_does_not_bear() -> None:
    rng = np.random.default_rng(5)
    shift = np.repeat([0.006, 0.0], [600, 1_400])
    invocations = [1.0 + shift + 0.01 * rng.normal(size=2_000) for _ in range(10)]
    found = estimate_invocations(invocations, trim=True)
    # Joined, the shift of 0.6 % would leave the level some 0.002 too high.
    assert abs(found.value - 1.0) < 0.0007


def test_invocations_without_a_steady_state_in_common_are_refused() -> None:
    rng = np.random.default_rng(4)
    restless = [np.repeat([1.0, 2.0, 3.0], 100) + rng.normal(0.0, 0.01, 300) for _ in range(6)]
    for count in (3, 6):
        with pytest.raises(NotEstimable) as error:
            estimate_invocations(restless[:count], trim=True)
        assert isinstance(error.value.notice, Notice)
        assert error.value.notice.code is Code.NO_STABLE_PHASE


def test_one_restless_invocation_of_many_counts_as_it_is() -> None:
    rng = np.random.default_rng(6)
    steady = [rng.normal(1.0, 0.05, 300) for _ in range(9)]
    restless = np.repeat([1.0, 2.0, 3.0], 100) + rng.normal(0.0, 0.01, 300)
    assert estimate_invocations([*steady, restless], trim=True).n == 10


def test_an_invocation_that_the_cut_swallows_does_not_count() -> None:
    rng = np.random.default_rng(7)
    whole = [rng.normal(1.0, 0.05, 200) + 0.5 * (np.arange(200) < 30) for _ in range(10)]
    found = estimate_invocations([*whole, rng.normal(1.5, 0.05, 20)], trim=True)
    assert found.n == 10
    assert found.notices[0].code is Code.ROUNDS_REJECTED
    assert found.value == estimate_invocations(whole, trim=True).value


@pytest.mark.parametrize("kind", [Kind.INVOCATIONS, Kind.PIECES])
def test_equal_levels_of_rates_are_said_as_rates(kind: Kind) -> None:
    policy = Policy(kind=kind, harmonic=True)
    for sizes, rates, level in (([3, 7, 5, 9], [0.1], 0.1), ([8, 8, 8], [0.2, 0.6], 0.3)):
        found = estimate([np.resize(rates, size) for size in sizes], policy)
        assert found.estimate.value == pytest.approx(level)
        (constant,) = (each for each in found.notices if each.code is Code.CONSTANT)
        assert constant.evidence["value"] == pytest.approx(level)
        assert found.levels(policy) == pytest.approx([level] * len(sizes))


def test_the_mean_of_equal_readings_is_their_value() -> None:
    # The sum of seven times 0.1 is not 0.7.
    found = estimate([np.full(size, 0.1) for size in (3, 7, 5, 9)], Policy(kind=Kind.PIECES))
    assert (found.estimate.low, found.estimate.value, found.estimate.high) == (0.1, 0.1, 0.1)
