from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.queues.arithmetic.bottleneck import advise_pipeline, find_bottleneck, stage_of
from benchrigor.queues.arithmetic.capacity import suggest_buffer, suggest_replicas
from benchrigor.queues.arithmetic.rate_arithmetic import utilisation_of
from benchrigor.queues.data.pipeline import PipelineStage
from benchrigor.queues.data.service import RateReason, ServiceMoments, ServiceProcess, ServiceRate


def rate(value: float, reach: float, **given: Any) -> Estimate:
    return estimated(value, value - reach, value + reach, **given)


def stage(name: str, served: Any, **given: Any) -> PipelineStage:
    return PipelineStage(name=name, rate=served, **given)


NOTICE = Notice.warning(Code.NOT_CONVERGED, "Not converged.")
SEARCH = (
    stage("hash", rate(1000.0, 50.0)),
    stage("verify", rate(30.0, 2.0), visits=rate(0.02, 0.001), replicas=2),
    stage("reduce", 400.0, visits=0.01, process=ServiceProcess.DETERMINISTIC),
)


def test_the_bottleneck_is_the_stage_of_lowest_capacity_in_items_of_the_source() -> None:
    found = find_bottleneck(SEARCH)
    assert [load.capacity.value for load in found.loads] == pytest.approx([1000.0, 3000.0, 40000.0])
    assert (found.stage, found.rivals, found.certain) == ("hash", (), True)
    assert (found.capacity.low, found.capacity.high) == pytest.approx((950.0, 1050.0))
    assert found.notices == ()
    assert all(load.utilisation is None for load in found.loads)


def test_utilisation_is_told_where_the_source_is_known() -> None:
    found = find_bottleneck(SEARCH, source_rate=rate(800.0, 10.0))
    used = [load.utilisation for load in found.loads]
    assert used[0] is not None
    assert used[1] is not None
    assert used[0].value == pytest.approx(0.8)
    wanted = utilisation_of(rate(800.0, 10.0), rate(1000.0, 50.0))
    assert (used[0].low, used[0].high) == pytest.approx((wanted.low, wanted.high))
    assert used[1].value == pytest.approx(800.0 * 0.02 / 60.0)


def test_stages_whose_intervals_overlap_are_rivals() -> None:
    stages = [
        stage("a", rate(100.0, 5.0)),
        stage("b", rate(104.0, 5.0)),
        stage("c", rate(115.0, 5.0)),
        stage("d", rate(95.0, 9.0)),
    ]
    found = find_bottleneck(stages)
    assert (found.stage, found.rivals, found.certain) == ("d", ("a", "b"), False)
    assert [notice.code for notice in found.notices] == [Code.SEVERAL_BOTTLENECKS]
    assert "the capacity of d, 95.0 items/s" in found.notices[0].sentence
    assert "overlaps with that of a, b:" in found.notices[0].sentence
    assert found.capacity.low == pytest.approx(86.0)
    assert 95.0 < found.capacity.high < 108.0
    assert found.capacity.method == "MOVER, least of 3"


def test_equal_stages_known_exactly_are_rivals() -> None:
    found = find_bottleneck([stage("a", 5.0), stage("b", 5.0)])
    assert (found.stage, found.rivals) == ("a", ("b",))
    assert found.capacity.low == found.capacity.high == 5.0


def test_a_single_stage_is_the_bottleneck() -> None:
    found = find_bottleneck([stage("only", rate(7.0, 1.0))])
    assert (found.stage, found.certain, found.capacity.value) == ("only", True, 7.0)


@pytest.mark.slow
@given(st.lists(st.floats(1.0, 100.0), min_size=2, max_size=5, unique=True), st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(values: list[float], unit: float) -> None:
    def pipeline(factor: float) -> list[PipelineStage]:
        return [
            stage(str(index), rate(value * factor, 0.1 * value * factor))
            for index, value in enumerate(values)
        ]

    one, other = find_bottleneck(pipeline(1.0)), find_bottleneck(pipeline(unit))
    assert one.stage == other.stage
    assert other.capacity.high == pytest.approx(one.capacity.high * unit)


def test_advice_is_that_for_each_stage_by_itself() -> None:
    source = rate(900.0, 20.0)
    advice = advise_pipeline(SEARCH, source_rate=source)
    hashing, verifying, reducing = advice.stages
    assert hashing.replicas == suggest_replicas(source, rate(1000.0, 50.0))
    for found, replicas in ((hashing.buffer, 2), (hashing.buffer_now, 1)):
        alone = suggest_buffer(source, rate(1000.0, 50.0), replicas=replicas)
        assert found == replace(alone, worst_utilisation=found.worst_utilisation)
        assert found.worst_utilisation == pytest.approx(alone.worst_utilisation)
    assert verifying.replicas.replicas == 1
    assert verifying.buffer.utilisation == pytest.approx(900.0 / 1500.0)
    assert verifying.buffer_now.utilisation == pytest.approx(900.0 / 3000.0)
    assert reducing.buffer == suggest_buffer(source, 40_000.0, process="deterministic")
    assert advice.bottleneck.stage == "hash"
    assert advice.source_rate is source


def test_the_first_notice_says_what_is_assumed_of_all_stages() -> None:
    advice = advise_pipeline(SEARCH, source_rate=500.0)
    assert [notice.code for notice in advice.notices] == [Code.QUEUE_MODEL]
    assert advice.notices[0].evidence["models"] == "M/M/1/K, M/D/1/K"


def test_what_is_wrong_with_a_stage_is_said_with_its_name() -> None:
    doubtful = replace(rate(1000.0, 50.0), notices=(NOTICE,))
    uneven = {"process": ServiceProcess.OTHER, "variation": 3.0}
    advice = advise_pipeline(
        [stage("hash", doubtful), stage("verify", 100.0, **uneven)], source_rate=1200.0
    )
    found = [(notice.code, notice.evidence.get("stage")) for notice in advice.notices[1:]]
    assert found == [
        (Code.SATURATED, "hash"),
        (Code.NOT_CONVERGED, "hash"),
        (Code.SATURATED, "verify"),
        (Code.UNEVEN_SERVICE, "verify"),
    ]
    assert advice.notices[1].sentence.startswith("hash: The utilisation is 120%")
    assert [each.buffer_now.capacity for each in advice.stages] == [None, None]
    assert all(each.buffer.capacity is not None for each in advice.stages)


def test_advice_asks_for_no_more_replicas_than_the_processors_run() -> None:
    busy = stage("parse", rate(100.0, 5.0), replicas=2)
    (free,) = advise_pipeline([busy], source_rate=600.0).stages
    assert free.replicas.replicas == 8
    advice = advise_pipeline([busy], source_rate=600.0, processors=2)
    (limited,) = advice.stages
    assert (limited.replicas.replicas, limited.replicas.replicas_at_value) == (2, 2)
    limit = advice.notices[1]
    assert (limit.code, limit.evidence["stage"]) == (Code.PROCESSORS_LIMIT, "parse")
    assert limit.sentence.startswith("parse: 8 replicas would be needed, and the processors can ")
    assert "→" not in str(advice)
    assert "processors-limit" in str(advice)


def test_stages_share_the_processors_and_those_that_wait_take_none() -> None:
    one, other = stage("one", 100.0), stage("other", 200.0, replicas=2)
    wanted = advise_pipeline([one, other], source_rate=240.0, processors=8).stages
    assert [each.replicas.replicas for each in wanted] == [3, 2]
    # "other" takes 1.2 of them.
    limited = advise_pipeline([one, other], source_rate=240.0, processors=3).stages
    assert [each.replicas.replicas for each in limited] == [2, 2]
    waiting = replace(one, processors=0.01)
    told = advise_pipeline([waiting, other], source_rate=240.0, processors=2)
    assert [each.replicas.replicas for each in told.stages] == [3, 2]
    assert Code.PROCESSORS_LIMIT not in [each.code for each in told.notices]


def test_a_stage_that_waits_for_a_device_takes_less_of_a_processor() -> None:
    alone = ServiceRate(
        estimate=rate(50.0, 2.0),
        converged=True,
        reason=None,
        method="busy-time",
        start_s=0.0,
        stop_s=1.0,
        periods=20,
        unblocked=20,
        used=20,
        period_s=0.05,
        items=50,
    )
    assert stage_of("a", alone).processors == 1.0
    # It waited for more than was measured: who waits for processors does not want for a device.
    crowded = replace(alone, cpu_rate=rate(200.0, 2.0), delay_share=0.5)
    assert stage_of("a", crowded).processors == 1.0
    waiting = replace(alone, cpu_rate=rate(1000.0, 2.0), delay_share=0.0)
    assert stage_of("a", waiting).processors == pytest.approx(0.05)


def test_a_stage_of_which_little_is_known_does_not_hide_the_others() -> None:
    advice = advise_pipeline(
        [stage("known", 100.0), stage("unknown", rate(100.0, 120.0))], source_rate=50.0
    )
    assert advice.bottleneck.loads[1].utilisation is None
    assert advice.stages[1].replicas.replicas is None
    assert advice.stages[1].buffer.capacity_at_value is not None
    assert (Code.SATURATED, "unknown") in [
        (notice.code, notice.evidence.get("stage")) for notice in advice.notices
    ]


def test_visits_that_may_be_0_allow_no_capacity() -> None:
    with pytest.raises(NotEstimable, match=r"of the visits of 'hash' reaches down to -0\.1"):
        find_bottleneck([stage("hash", 10.0, visits=rate(0.1, 0.2))])


def service(**given: Any) -> ServiceRate:
    known: dict[str, Any] = {
        "estimate": rate(100.0, 5.0),
        "converged": True,
        "reason": None,
        "method": "busy-time",
        "start_s": 0.0,
        "stop_s": 2.0,
        "periods": 40,
        "unblocked": 8,
        "used": 40,
        "period_s": 0.05,
        "items": 160,
    }
    return ServiceRate(**{**known, **given})


def moments(process: ServiceProcess, variation: float) -> ServiceMoments:
    return ServiceMoments(
        n=40, mean_s=0.01, variance_s2=variation * 1e-4, third_s3=0.0, process=process
    )


def test_a_stage_is_made_of_what_was_measured() -> None:
    rate = service(notices=(NOTICE,), moments=moments(ServiceProcess.EXPONENTIAL, 1.0))
    found = stage_of("hash", rate, visits=0.5, replicas=2)
    assert isinstance(found.rate, Estimate)
    assert found.rate.notices == (NOTICE,)
    assert (found.name, found.visits, found.replicas) == ("hash", 0.5, 2)
    assert (found.process, found.variation) == (ServiceProcess.EXPONENTIAL, None)


def test_service_that_is_more_uneven_than_models_go_is_sized_all_the_same() -> None:
    found = stage_of("hash", service(moments=moments(ServiceProcess.OTHER, 166.0)))
    assert found.variation == 100.0
    told = advise_pipeline([found], source_rate=5.0).notices
    assert [each.evidence.get("variation") for each in told].count(166.0) == 1


@pytest.mark.parametrize("process", list(ServiceProcess))
def test_the_moments_tell_what_service_times_look_like(process: ServiceProcess) -> None:
    found = stage_of("hash", service(moments=moments(process, 0.3)))
    assert found.process is process
    assert found.variation == (pytest.approx(0.3) if process is ServiceProcess.OTHER else None)
    assert advise_pipeline([found], source_rate=70.0).stages[0].buffer.capacity is not None


def test_a_stage_without_moments_says_that_service_is_taken_for_exponential() -> None:
    found = stage_of("hash", service())
    assert found.process is ServiceProcess.EXPONENTIAL
    assert isinstance(found.rate, Estimate)
    (notice,) = found.rate.notices
    assert (notice.code, notice.evidence["stage"]) == (Code.EXPONENTIAL_ASSUMED, "hash")
    assert "at least 30 counts" in notice.sentence


def test_a_service_rate_without_an_estimate_makes_no_stage() -> None:
    refused = service(estimate=None, converged=False, reason=RateReason.NEVER_BUSY)
    with pytest.raises(InvalidInput, match="service rate of 'hash' has no estimate: never-busy"):
        stage_of("hash", refused)
    with pytest.raises(InvalidInput, match=r"rate is 3\.0, expected a ServiceRate"):
        stage_of("hash", 3.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([], "stages is empty, expected at least one PipelineStage"),
        (None, "stages is None, expected a sequence of PipelineStage"),
        ("hash", "stages is 'hash', expected a sequence"),
        ([3.0], r"stages\[0\] is 3.0, expected a PipelineStage"),
        ([stage("a", 1.0), stage("a", 2.0)], r"stages\[1\].name is 'a' like an earlier one"),
        (
            [stage("a", rate(1.0, 0.1)), stage("b", rate(1.0, 0.1, confidence=0.9))],
            "the rates and visits of stages have confidences 0.9 and 0.95",
        ),
    ],
)
def test_stages_that_do_not_fit_are_named(stages: Any, said: str) -> None:
    for call in (find_bottleneck, advise_pipeline):
        with pytest.raises(InvalidInput, match=said):
            call(stages, source_rate=1.0)  # type: ignore[operator]


def test_all_that_does_not_fit_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        find_bottleneck([3.0, stage("b", 1.0)], source_rate="fast")  # type: ignore[arg-type,list-item]
    assert len(caught.value.problems) == 2
    with pytest.raises(InvalidInput) as caught:
        advise_pipeline(SEARCH, source_rate=0.0, utilisation=1.0, blocked_share=0.0)
    assert len(caught.value.problems) == 3


def test_the_source_must_be_estimated_with_the_same_confidence() -> None:
    with pytest.raises(InvalidInput, match=r"confidences 0\.9 and 0\.95"):
        advise_pipeline(SEARCH, source_rate=rate(10.0, 1.0, confidence=0.9))
