from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated

from benchrigor.model import Code
from benchrigor.stats import suggest_buffer, suggest_replicas

loads = st.floats(0.01, 0.97)
shares = st.floats(1e-5, 0.3)
processes = st.sampled_from(["deterministic", "exponential", "other"])


@pytest.mark.slow
@given(loads, loads, shares, processes)
def test_a_busier_stage_needs_no_less_room(
    one: float, other: float, share: float, process: str
) -> None:
    variation = 3.0 if process == "other" else None
    sizes = [
        suggest_buffer(load, 1.0, process=process, variation=variation, blocked_share=share)
        for load in sorted((one, other))
    ]
    assert sizes[0].capacity is not None
    assert sizes[1].capacity is not None
    assert sizes[0].capacity <= sizes[1].capacity


@given(loads, shares, shares)
def test_a_smaller_share_needs_no_less_room(load: float, one: float, other: float) -> None:
    sizes = [
        suggest_buffer(load, 1.0, blocked_share=each).capacity for each in sorted((one, other))
    ]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[0] >= sizes[1]


@given(loads, st.integers(-20, 20))
def test_the_unit_of_time_does_not_matter(load: float, power: int) -> None:
    unit = 2.0**power
    assert suggest_buffer(load * unit, unit) == suggest_buffer(load, 1.0)
    assert suggest_replicas(9.0 * load * unit, unit) == suggest_replicas(9.0 * load, 1.0)


def test_the_worst_of_both_intervals_counts() -> None:
    size = suggest_buffer(estimated(70.0, 65.0, 80.0), estimated(110.0, 100.0, 125.0))
    assert size.capacity == suggest_buffer(80.0, 100.0).capacity == 13
    assert size.capacity_at_value == suggest_buffer(70.0, 110.0).capacity
    assert (size.utilisation, size.worst_utilisation) == (70.0 / 110.0, 0.8)


def test_replicas_keep_the_utilisation_down() -> None:
    found = suggest_replicas(estimated(900.0, 850.0, 1000.0), estimated(450.0, 400.0, 500.0))
    assert (found.replicas, found.replicas_at_value) == (4, 3)
    assert found.notices == ()
    assert suggest_replicas(0.0, 5.0).replicas == 1


@pytest.mark.parametrize(
    ("arrival", "service", "wanted", "replicas"),
    [(8.0, 10.0, 0.8, 1), (2.4, 1.0, 0.8, 3), (0.3, 0.1, 0.5, 6), (2.401, 1.0, 0.8, 4)],
)
def test_rounding_does_not_add_a_replica(
    arrival: float, service: float, wanted: float, replicas: int
) -> None:
    assert suggest_replicas(arrival, service, utilisation=wanted).replicas == replicas


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e6), st.floats(0.05, 0.99))
def test_the_replicas_are_the_fewest_that_do(arrival: float, service: float, wanted: float) -> None:
    found = suggest_replicas(arrival, service, utilisation=wanted).replicas
    assert found is not None
    assert arrival / (found * service) <= wanted * (1.0 + 1e-8)
    assert found == 1 or arrival / ((found - 1) * service) > wanted


SURE, HUGE = estimated(100.0, 90.0, 110.0), 1.0 - 1e-9


@pytest.mark.parametrize(
    ("rates", "share", "sizes", "utilisations", "severity"),
    [
        # By the closed form of M/M/1/K 14 places block 0.9 % at a utilisation of 0.8, 13 1.2 %.
        ((80.0, 100.0), 0.01, (13, 13), (0.8, 0.8), None),
        ((0, 10.0), 0.01, (1, 1), (0.0, 0.0), None),
        ((100.0, 100.0), 0.01, (None, None), (1.0, 1.0), "refusal"),
        ((estimated(80.0, 70.0, 95.0), SURE), 0.01, (None, 13), (0.8, 95 / 90), "warning"),
        ((80.0, estimated(100.0, -5.0, 205.0)), 0.01, (None, 13), (0.8, None), "warning"),
        ((HUGE, 1.0), 1e-7, (None, None), (HUGE, HUGE), "refusal"),
        ((estimated(0.5, 0.4, HUGE), 1.0), 1e-7, (None, 22), (0.5, HUGE), "warning"),
    ],
)
def test_sizes_are_as_far_as_the_rates_are_known(
    rates: tuple[Any, Any],
    share: float,
    sizes: tuple[int | None, ...],
    utilisations: tuple[float | None, ...],
    severity: str | None,
) -> None:
    size = suggest_buffer(*rates, blocked_share=share)
    assert (size.capacity, size.capacity_at_value) == sizes
    assert (size.utilisation, size.worst_utilisation) == pytest.approx(utilisations)
    assert [each.severity for each in size.notices[:-1]] == [severity] * (severity is not None)
    assert size.notices[-1].code is Code.QUEUE_MODEL
