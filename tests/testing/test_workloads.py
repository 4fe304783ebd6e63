"""Fakes of known truth: workloads and clocks."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchrigor.errors import InvalidInput
from benchrigor.model import RoundPlan
from benchrigor.testing import ExponentialWarmUp, FakeClock, StepWarmUp, SyntheticWorkload

Floats = npt.NDArray[np.float64]
KINDS = [
    {"noise": "normal", "phi": 0.0},
    {"noise": "normal", "phi": 0.9},
    {"noise": "normal", "phi": -0.5},
    {"noise": "lognormal", "phi": 0.0, "cv": 0.8},
    {"noise": "lognormal", "phi": 0.7, "cv": 0.8},
    {"noise": "bimodal", "phi": 0.0},
    {"noise": "bimodal", "phi": 0.95},
]
N = 200_000


def draw(workload: SyntheticWorkload, n: int, index: int = 0) -> Floats:
    return workload.draw(RoundPlan(index=index, readings=n))


def autocorrelation(readings: Floats, lag: int) -> float:
    centred = readings - readings.mean()
    return float(centred[:-lag] @ centred[lag:] / (centred @ centred))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mean_spread_and_variance_of_long_means_are_as_asked(kind: dict[str, Any]) -> None:
    workload = SyntheticWorkload(mean=3.0, seed=11, **kind)
    readings = draw(workload, N)
    error = readings.mean() - workload.truth
    assert abs(error) < 4 * math.sqrt(workload.long_run_variance / N)
    assert readings.std() / 3.0 == pytest.approx(kind.get("cv", 0.1), rel=0.1)
    assert readings.min() > 0
    stretches, length = 400, N // 400
    means = readings.reshape(stretches, length).mean(axis=1)
    # The share of a chi-squared variable with 399 degrees of freedom, 4 standard deviations.
    share = means.var(ddof=1) * length / workload.long_run_variance
    assert share == pytest.approx(1, abs=4 * math.sqrt(2 / (stretches - 1)))


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("lag", [1, 3])
def test_a_normal_series_remembers_as_asked(phi: float, lag: int) -> None:
    readings = draw(SyntheticWorkload(phi=phi, seed=14), N)
    # Bartlett's variance of an AR(1)'s autocorrelation is at most (1 + phi^2) / (1 - phi^2) / n.
    bound = 4 * math.sqrt((1 + phi**2) / (1 - phi**2) / N)
    assert autocorrelation(readings, lag) == pytest.approx(phi**lag, abs=bound)


def test_a_normal_series_starts_in_its_stationary_state() -> None:
    firsts = [draw(SyntheticWorkload(phi=0.9, seed=seed), 1)[0] for seed in range(400)]
    assert np.std(firsts) == pytest.approx(0.1, rel=4 / math.sqrt(2 * 400))


def test_a_lognormal_series_is_skewed_and_its_variance_sums_its_autocovariances() -> None:
    readings = draw(SyntheticWorkload(noise="lognormal", cv=0.5, seed=1), N)
    skewness = (((readings - 1) / 0.5) ** 3).mean()
    assert skewness == pytest.approx(3 * 0.5 + 0.5**3, rel=0.1)
    for cv, phi in ((0.7, 0.0), (1.5, 0.8)):
        logs = math.log1p(cv**2) * phi ** np.arange(1, 400)
        summed = cv**2 + 2 * np.expm1(logs).sum()
        workload = SyntheticWorkload(noise="lognormal", cv=cv, phi=phi)
        assert workload.long_run_variance == pytest.approx(summed, rel=1e-12)


@pytest.mark.parametrize("phi", [0.0, 0.98])
def test_a_bimodal_series_has_two_modes_and_changes_over_as_asked(phi: float) -> None:
    readings = draw(SyntheticWorkload(noise="bimodal", phi=phi, seed=15), N)
    assert np.mean(np.abs(readings - 1) < 0.03) < 0.03  # of one normal mode a quarter would be
    changes = sum(before != after for before, after in pairwise((readings > 1).tolist()))
    chance = (1 - phi) / 2
    bound = 4 * math.sqrt(N * chance * (1 - chance)) + 0.003 * N  # a few cross without a change
    assert changes == pytest.approx(N * chance, abs=bound)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    kind=st.sampled_from(KINDS),
    warm_up=st.sampled_from(
        [
            None,
            ExponentialWarmUp(amplitude=0.3, time_constant=9.0),
            StepWarmUp(amplitude=0.3, length=50),
        ]
    ),
)
def test_a_series_does_not_depend_on_how_it_is_cut(
    sizes: list[int], kind: dict[str, Any], warm_up: ExponentialWarmUp | StepWarmUp | None
) -> None:
    def make() -> SyntheticWorkload:
        return SyntheticWorkload(warm_up=warm_up, total=sum(sizes), seed=5, **kind)

    in_one = draw(make(), sum(sizes))
    in_pieces = make()
    pieces = [draw(in_pieces, n, index) for index, n in enumerate(sizes)]
    assert np.array_equal(np.concatenate(pieces), in_one)


def test_a_warm_up_lies_on_top_of_the_level_and_may_decay() -> None:
    step, slope = (
        StepWarmUp(amplitude=0.5, length=2),
        ExponentialWarmUp(amplitude=0.15, time_constant=20.0),
    )
    found = draw(SyntheticWorkload(mean=2.0, cv=0.0, warm_up=step), 4)
    assert found.tolist() == [3.0, 3.0, 2.0, 2.0]
    readings = draw(SyntheticWorkload(mean=2.0, cv=0.0, warm_up=slope), 1_000)
    assert readings[:3] == pytest.approx([2.3, 2 + 0.3 * math.exp(-0.05), 2 + 0.3 * math.exp(-0.1)])
    assert readings[-1] == 2.0


def test_a_series_of_a_given_total_ends() -> None:
    workload = SyntheticWorkload(total=5)
    assert [draw(workload, 3).size, draw(workload, 3).size] == [3, 2]
    with pytest.raises(StopIteration):
        draw(workload, 3)


def test_restarted_rounds_are_invocations_of_their_own() -> None:
    def make() -> SyntheticWorkload:
        return SyntheticWorkload(
            cv=0.01, warm_up=StepWarmUp(amplitude=1.0, length=2), restarted=True, seed=3
        )

    one, other = (draw(make(), 50, index) for index in range(2))
    assert np.all(one[:2] > 1.9)
    assert np.all(other[:2] > 1.9)
    assert not np.array_equal(one, other)
    assert np.array_equal(other, draw(make(), 50, index=1))


def test_levels_of_restarted_rounds_spread_as_asked() -> None:
    workload = SyntheticWorkload(mean=2.0, cv=0.0, restarted=True, between_cv=0.05, seed=8)
    levels = [draw(workload, 1, index)[0] for index in range(400)]
    assert np.std(levels) == pytest.approx(0.1, rel=4 / math.sqrt(2 * 400))
    assert np.mean(levels) == pytest.approx(workload.truth, abs=4 * 0.1 / math.sqrt(400))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        *(({"mean": wrong}, "mean") for wrong in (0.0, math.nan)),
        *(({"noise": "pink"}, "'pink'"), ({"cv": -0.1}, "cv"), ({"phi": 1.0}, "phi")),
        *(({"cv": 0.2}, "-0.2"), ({"noise": "bimodal", "cv": 0.4}, "lower cv")),
        ({"cv": 0.1, "warm_up": StepWarmUp(amplitude=-0.5, length=3)}, "amplitude"),
        *(({"between_cv": 0.1}, "restarted"), ({"between_cv": 0.3, "restarted": True}, "0.3")),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        SyntheticWorkload(**options)


def test_it_shows_multiples_of_its_resolution_and_loses_nothing_in_between() -> None:
    clock = FakeClock(resolution_ns=100)
    shown = []
    for _ in range(5):
        clock.advance(60)
        shown.append(clock.now_ns())
    assert shown == [0, 100, 100, 200, 300]


def test_a_script_is_shown_as_it_stands_and_then_left_behind() -> None:
    clock = FakeClock(cost_ns=1, script=[5, 3, 3])
    assert [clock.now_ns() for _ in range(5)] == [5, 3, 3, 3, 4]
