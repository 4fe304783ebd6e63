"""What follows from a report for the pipeline: its bottleneck, replicas and queue sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.simulations.simulated.estimates import estimated, within
from tests.texts.causes.queue_rates import moments
from tests.texts.causes.queues import HASH, REPORT, SINK, SOURCE, rate, stage

from benchrigor import clocks
from benchrigor.model import Code, Notice, PipelineStage
from benchrigor.queues import MonitorReport, WatchedStage
from benchrigor.stats import find_bottleneck, suggest_buffer

NOTICE = Notice.of(Code.NOT_CONVERGED)


def watched(
    name: str, value: float, *, servers: int = 1, visits: float = 1.0, **known: Any
) -> WatchedStage:
    """Return a stage that reads, and of whose rate this is known."""
    made = stage(name, value, servers=servers, visits=visits, reads=(name,))
    return replace(made, rates=(replace(made.rates[0], **known),))


def advised(*stages: WatchedStage, source: Any, processors: int = 1000) -> Any:
    return MonitorReport(stages=stages).advice(source_rate=source, processors=processors)


def told(notices: Any) -> list[tuple[Code, object]]:
    return [(notice.code, notice.evidence.get("stage")) for notice in notices]


def test_advice_is_for_one_replica_each() -> None:
    found = REPORT.advice(utilisation=0.5)
    assert [each.load.stage.name for each in found.stages] == ["hash", "sink"]
    assert found.stages[0].replicas.replicas_at_value == 4
    assert found.source_rate == within(200.0, 0.05)


def test_advice_is_for_the_time_in_which_all_served() -> None:
    ending = rate(30.0, start_s=2.0, stop_s=2.1, converged=False, reason="not-converged")
    ended = replace(HASH, servers=1, rates=(*HASH.rates, ending))
    found = replace(REPORT, stages=(SOURCE, ended, SINK)).advice()
    assert found.stages[0].load.stage.replicas == 4
    assert found.stages[0].load.capacity.value == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("rates", "lowest", "rivals"),
    [
        ([(100.0, 5.0), (104.0, 5.0), (115.0, 5.0), (95.0, 9.0)], "d", ("a", "b")),
        ([(5.0, 0.0), (5.0, 0.0)], "a", ("b",)),  # known exactly
    ],
)
def test_stages_whose_intervals_overlap_are_rivals(
    rates: list[tuple[float, float]], lowest: str, rivals: tuple[str, ...]
) -> None:
    ends = [(value - reach, value + reach) for value, reach in rates]
    found = find_bottleneck(
        PipelineStage(name=name, rate=estimated(value, *end))
        for name, (value, _), end in zip("abcd", rates, ends, strict=False)
    )
    assert (found.stage, found.rivals, found.certain) == (lowest, rivals, False)
    assert [notice.code for notice in found.notices] == [Code.SEVERAL_BOTTLENECKS]
    near = [end for name, end in zip("abcd", ends, strict=False) if name in {lowest, *rivals}]
    assert found.capacity.low == pytest.approx(min(low for low, _ in near))
    least = min(high for _, high in near)
    assert least <= found.capacity.high < 1.04 * least  # all upper ends hold at once


def test_what_is_wrong_with_a_stage_is_said_with_its_name() -> None:
    advice = advised(
        watched("hash", 1000.0, notices=(NOTICE,)),
        watched("verify", 100.0, moments=moments("other", 3.0)),
        source=1200.0,
    )
    assert told(advice.notices[1:]) == [
        (Code.SATURATED, "hash"),
        (Code.NOT_CONVERGED, "hash"),
        (Code.EXPONENTIAL_ASSUMED, "hash"),
        (Code.SATURATED, "verify"),
        (Code.UNEVEN_SERVICE, "verify"),
    ]
    assert [each.buffer_now.capacity for each in advice.stages] == [None, None]
    assert all(each.buffer.capacity is not None for each in advice.stages)


def test_advice_asks_for_no_more_replicas_than_the_processors_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy = watched("parse", 200.0, servers=2)
    assert advised(busy, source=600.0).stages[0].replicas.replicas == 8
    limited = advised(busy, source=600.0, processors=2)
    replicas = limited.stages[0].replicas
    assert (replicas.replicas, replicas.replicas_at_value) == (2, 2)
    assert told(limited.notices)[1] == (Code.PROCESSORS_LIMIT, "parse")
    monkeypatch.setattr(clocks, "processors", lambda: 6)
    by_default, of_six, of_nine = (
        REPORT.advice(source_rate=2_000.0, processors=each).stages[0].replicas.most
        for each in (None, 6, 9)
    )
    assert by_default == of_six
    assert of_nine == (of_six or 0) + 3


@pytest.mark.parametrize(
    ("known", "processors"),
    [
        ({}, 1.0),
        # It waited for more than was measured: who waits for processors does not want for a device.
        ({"cpu_rate": within(200.0), "delay_share": 0.5}, 1.0),
        ({"cpu_rate": within(2000.0), "delay_share": 0.0}, 0.05),
    ],
)
def test_stages_share_the_processors_and_those_that_wait_for_a_device_take_less(
    known: dict[str, Any], processors: float
) -> None:
    one, other = watched("one", 100.0, **known), watched("other", 400.0, servers=2)
    wanted = advised(one, other, source=240.0, processors=8).stages
    assert wanted[0].load.stage.processors == pytest.approx(processors)
    assert [each.replicas.replicas for each in wanted] == [4, 2]
    # "other" takes 1.2 of them.
    limited = advised(one, other, source=240.0, processors=3)
    assert [each.replicas.replicas for each in limited.stages] == [2 if processors == 1.0 else 4, 2]
    limits = [each for each in told(limited.notices) if each[0] is Code.PROCESSORS_LIMIT]
    assert limits == [(Code.PROCESSORS_LIMIT, "one")] * (processors == 1.0)


def test_a_stage_of_which_little_is_known_does_not_hide_the_others() -> None:
    unknown = watched("unknown", 100.0, estimate=estimated(100.0, -20.0, 220.0))
    advice = advised(watched("known", 100.0), unknown, source=50.0)
    assert advice.bottleneck.loads[1].utilisation is None
    assert advice.stages[1].replicas.replicas is None
    assert advice.stages[1].buffer.capacity_at_value is not None
    assert (Code.SATURATED, "unknown") in told(advice.notices)


@pytest.mark.parametrize(
    ("process", "seen", "variation"),
    [
        ("deterministic", 0.01, None),
        ("exponential", 1.1, None),
        ("other", 0.3, 0.3),
        ("other", 166.0, 100.0),  # more than models go: sized all the same
    ],
)
def test_the_moments_tell_what_service_times_look_like(
    process: Any, seen: float, variation: float | None
) -> None:
    advice = advised(watched("hash", 100.0, moments=moments(process, seen)), source=70.0)
    (found,) = advice.stages
    assert found.load.stage.process == process
    assert found.load.stage.variation == (variation and pytest.approx(variation))
    wanted = suggest_buffer(70.0, within(100.0, 0.05), process=process, variation=variation)
    assert found.buffer_now.capacity == wanted.capacity
    uneven = [each.evidence.get("variation") for each in advice.notices]
    assert uneven.count(pytest.approx(166.0)) == (seen == 166.0)
