from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated

from benchrigor.model import Code, Estimate, Notice, PipelineStage, ServiceRate
from benchrigor.queues.arithmetic.bottleneck import advise_pipeline, stage_of
from benchrigor.queues.data.service import ServiceMoments, ServiceProcess
from benchrigor.stats import find_bottleneck, suggest_buffer, suggest_replicas


def rate(value: float, reach: float, **given: Any) -> Estimate:
    return estimated(value, value - reach, value + reach, **given)


def stage(name: str, served: Any, **given: Any) -> PipelineStage:
    return PipelineStage(name=name, rate=served, **given)


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


NOTICE = Notice.warning(Code.NOT_CONVERGED, "Not converged.")
SEARCH = (
    stage("hash", rate(1000.0, 50.0)),
    stage("verify", rate(30.0, 2.0), visits=rate(0.02, 0.001), replicas=2),
    stage("reduce", 400.0, visits=0.01, process=ServiceProcess.DETERMINISTIC),
)


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
    assert found.capacity.low == pytest.approx(86.0)
    assert 95.0 < found.capacity.high < 108.0


def test_equal_stages_known_exactly_are_rivals() -> None:
    found = find_bottleneck([stage("a", 5.0), stage("b", 5.0)])
    assert (found.stage, found.rivals) == ("a", ("b",))
    assert found.capacity.low == found.capacity.high == 5.0


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
    alone = service(estimate=rate(50.0, 2.0), stop_s=1.0, items=50)
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


def moments(process: ServiceProcess, variation: float) -> ServiceMoments:
    return ServiceMoments(
        n=40, mean_s=0.01, variance_s2=variation * 1e-4, third_s3=0.0, process=process
    )


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
