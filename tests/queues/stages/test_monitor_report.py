"""What follows from a report for the pipeline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated.estimates import within
from tests.texts.causes.queues import HASH, REPORT, SINK, SOURCE, STOPPED, rate

from benchrigor import clocks
from benchrigor.model import Code
from benchrigor.queues.data.service import RateReason


def test_the_bottleneck_is_the_stage_of_least_capacity_in_items_of_the_source() -> None:
    found = REPORT.bottleneck()
    assert (found.stage, found.certain) == ("hash", True)
    # A sink item for 20 of the source.
    assert [load.capacity.value for load in found.loads] == pytest.approx([400.0, 600.0])
    assert [load.stage.replicas for load in found.loads] == [4, 1]


@pytest.mark.parametrize(("source", "used"), [(None, [0.5, 1 / 3]), (100.0, [0.25, 1 / 6])])
def test_what_is_to_be_served_is_what_arrives(source: float | None, used: list[float]) -> None:
    loads = REPORT.bottleneck(source_rate=source).loads
    assert [load.utilisation and load.utilisation.value for load in loads] == pytest.approx(used)


def test_advice_is_for_one_replica_each() -> None:
    found = REPORT.advice(utilisation=0.5)
    assert [each.load.stage.name for each in found.stages] == ["hash", "sink"]
    assert found.stages[0].replicas.replicas_at_value == 4
    assert found.source_rate == within(200.0, 0.05)


def test_advice_is_for_the_processors_that_this_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "processors", lambda: 6)
    by_default, of_six, of_nine = (
        REPORT.advice(source_rate=2_000.0, processors=each).stages[0].replicas.most
        for each in (None, 6, 9)
    )
    assert by_default == of_six
    assert of_nine == (of_six or 0) + 3


def test_after_the_source_has_stopped_advice_is_for_what_arrived_before() -> None:
    report = replace(REPORT, stages=(SOURCE, STOPPED, SINK))
    found = report.advice()
    assert found.source_rate == HASH.last_arrivals
    assert found.notices[0].code is Code.SOURCE_STOPPED
    assert Code.SOURCE_STOPPED not in {each.code for each in report.advice(source_rate=9.0).notices}


def test_advice_is_for_the_time_in_which_all_served() -> None:
    ending = rate(30.0, start_s=2.0, stop_s=2.1, converged=False, reason=RateReason.NOT_CONVERGED)
    ended = replace(HASH, servers=1, rates=(*HASH.rates, ending))
    found = replace(REPORT, stages=(SOURCE, ended, SINK)).advice()
    assert found.stages[0].load.stage.replicas == 4
    assert found.stages[0].load.capacity.value == pytest.approx(400.0)
