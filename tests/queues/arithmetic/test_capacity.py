import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated

from benchrigor.errors import InvalidInput
from benchrigor.model import Code
from benchrigor.model.estimate import Quantity
from benchrigor.model.notice import Severity
from benchrigor.queues.arithmetic.capacity import suggest_buffer, suggest_replicas
from benchrigor.queues.data.pipeline import BufferSize
from benchrigor.queues.data.service import ServiceProcess

loads = st.floats(0.01, 0.97)
shares = st.floats(1e-5, 0.3)
processes = st.sampled_from(list(ServiceProcess))


def codes(size: BufferSize) -> list[tuple[Code, Severity]]:
    return [(notice.code, notice.severity) for notice in size.notices]


ASSUMED = (Code.QUEUE_MODEL, Severity.NOTE)


def test_the_size_leaves_out_the_item_in_service() -> None:
    # By the closed form of M/M/1/K 14 places block 0.9 % at a utilisation of 0.8, 13 block 1.2 %.
    for when_full in ("wait", "lose"):
        size = suggest_buffer(80.0, 100.0, when_full=when_full)
        assert size.capacity == size.capacity_at_value == 13


def test_constant_service_is_blocked_less() -> None:
    assert suggest_buffer(8, 10, process="deterministic", when_full="lose").capacity == 7
    assert suggest_buffer(8, 10, process="deterministic").capacity == 8


@pytest.mark.slow
@given(loads, loads, shares, processes)
def test_a_busier_stage_needs_no_less_room(
    one: float, other: float, share: float, process: ServiceProcess
) -> None:
    variation = 3.0 if process is ServiceProcess.OTHER else None
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
    assert codes(size) == [ASSUMED]


def test_replicas_share_the_arrivals() -> None:
    size = suggest_buffer(240.0, 100.0, replicas=3)
    assert replace(size, notices=()) == replace(suggest_buffer(80.0, 100.0), notices=())


def test_nobody_who_comes_needs_the_least_room() -> None:
    assert suggest_buffer(0, 10.0).capacity == 1


@pytest.mark.parametrize("load", [1.0, 1.25])
def test_no_size_is_enough_for_a_saturated_stage(load: float) -> None:
    size = suggest_buffer(load * 100.0, 100.0)
    assert size.capacity is size.capacity_at_value is None
    assert codes(size) == [(Code.SATURATED, "refusal"), ASSUMED]
    assert size.notices[0].evidence["least_blocked"] == pytest.approx(1.0 - 1.0 / load)
    assert ("20% of arrivals" in size.notices[0].sentence) is (load > 1.0)


def test_a_stage_that_may_be_saturated_is_sized_as_estimated() -> None:
    size = suggest_buffer(estimated(80.0, 70.0, 95.0), estimated(100.0, 90.0, 110.0))
    assert (size.capacity, size.capacity_at_value) == (None, 13)
    assert codes(size) == [(Code.SATURATED, "warning"), ASSUMED]
    assert "utilisation may be 106%" in size.notices[0].sentence


def test_a_service_that_may_be_as_slow_as_can_be_is_sized_as_estimated() -> None:
    size = suggest_buffer(80.0, estimated(100.0, -5.0, 205.0))
    assert (size.capacity, size.capacity_at_value, size.worst_utilisation) == (None, 13, None)
    assert codes(size) == [(Code.SATURATED, "warning"), ASSUMED]
    assert "reaches 0" in size.notices[0].sentence


def test_a_size_that_nobody_would_want_is_refused() -> None:
    size = suggest_buffer(1.0 - 1e-9, 1.0, blocked_share=1e-7)
    assert size.capacity is None
    assert codes(size) == [(Code.HUGE_BUFFER, "refusal"), ASSUMED]
    assert "even a queue for 1,000,000 items" in size.notices[0].sentence
    maybe = suggest_buffer(estimated(0.5, 0.4, 1.0 - 1e-9), 1.0, blocked_share=1e-7)
    assert maybe.capacity_at_value == suggest_buffer(0.5, 1.0, blocked_share=1e-7).capacity
    assert codes(maybe) == [(Code.HUGE_BUFFER, "warning"), ASSUMED]


def test_uneven_service_is_warned_of() -> None:
    size = suggest_buffer(80.0, 100.0, process="other", variation=4.0)
    assert codes(size) == [(Code.UNEVEN_SERVICE, "warning"), ASSUMED]
    assert size.capacity is not None
    assert size.capacity > 13


def test_the_notice_says_what_is_assumed() -> None:
    said = [
        suggest_buffer(1.0, 2.0, process=process, variation=variation)
        .notices[-1]
        .evidence["models"]
        for process, variation in (("exponential", None), ("deterministic", None), ("other", 0.3))
    ]
    assert said == ["M/M/1/K", "M/D/1/K", "M/G/1/K with gamma service times"]
    assert "a sender that finds it full waits" in suggest_buffer(1.0, 2.0).notices[-1].sentence
    assert "is lost" in suggest_buffer(1.0, 2.0, when_full="lose").notices[-1].sentence


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


@given(st.floats(1.0, 1e4), st.floats(1.0, 1e4), st.floats(1.0, 1e4), st.floats(0.1, 0.9))
def test_more_arrivals_and_slower_service_take_no_fewer_replicas(
    one: float, other: float, service: float, wanted: float
) -> None:
    low, high = sorted((one, other))
    few = suggest_replicas(low, service, utilisation=wanted)
    many = suggest_replicas(high, service, utilisation=wanted)
    assert few.replicas_at_value <= many.replicas_at_value
    assert (
        suggest_replicas(service, high, utilisation=wanted).replicas_at_value
        <= suggest_replicas(service, low, utilisation=wanted).replicas_at_value
    )


def test_no_number_of_replicas_is_known_where_service_may_be_0() -> None:
    found = suggest_replicas(100.0, estimated(50.0, 0.0, 100.0))
    assert (found.replicas, found.replicas_at_value) == (None, 3)
    assert [notice.code for notice in found.notices] == [Code.SATURATED]


MIXED = estimated(1.0, 0.9, 1.1), estimated(2.0, 1.9, 2.1, confidence=0.9)


@pytest.mark.parametrize(
    ("arrival", "service", "options", "said"),
    [
        (math.nan, 1.0, {}, "arrival is nan, expected a number from 0"),
        (-1.0, 1.0, {}, r"arrival is -1\.0"),
        ("80", 1.0, {}, "arrival is '80', expected a number from 0 to 1e.150, or an Estimate"),
        (1.0, 0.0, {}, r"service is 0\.0, expected a number above 0"),
        (*MIXED, {}, "arrival and service have confidences 0.9 and 0.95"),
        (1.0, 2.0, {"process": "erlang"}, "process is 'erlang', expected one of 'deterministic'"),
        (1.0, 2.0, {"process": None}, "process is None"),
        (1.0, 2.0, {"process": "other"}, "variation is None, expected the squared"),
        (1.0, 2.0, {"process": "other", "variation": math.nan}, "variation is nan"),
        (
            1.0,
            2.0,
            {"process": "other", "variation": 1e3},
            "variation is 1000.0, expected the sq",
        ),
        (
            1.0,
            2.0,
            {"variation": 0.5},
            "variation is 0.5, expected None: the process is 'exponential'",
        ),
        (1.0, 2.0, {"replicas": 0}, "replicas is 0"),
        (1.0, 2.0, {"blocked_share": 0.0}, "blocked_share is 0.0, expected a number between 0"),
        (1.0, 2.0, {"blocked_share": 1.0}, "blocked_share is 1.0"),
        (1.0, 2.0, {"blocked_share": "1%"}, "blocked_share is '1%'"),
        (1.0, 2.0, {"when_full": "drop"}, "when_full is 'drop', expected 'wait' or 'lose'"),
    ],
)
def test_what_gives_no_size_is_named(
    arrival: Quantity, service: Quantity, options: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        suggest_buffer(arrival, service, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arrival", "service", "wanted", "said"),
    [
        (1.0, -2.0, 0.8, r"service is -2\.0"),
        (None, 2.0, 0.8, "arrival is None"),
        (1.0, 2.0, 1.0, "utilisation is 1.0, expected a number between 0 and 1"),
        (1.0, 2.0, math.nan, "utilisation is nan"),
        (*MIXED, 0.8, "have confidences"),
    ],
)
def test_what_gives_no_number_of_replicas_is_named(
    arrival: Quantity, service: Quantity, wanted: float, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        suggest_replicas(arrival, service, utilisation=wanted)
