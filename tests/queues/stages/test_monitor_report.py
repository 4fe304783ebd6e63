"""What a report says, and what it suggests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from simulated.estimates import within

from benchrigor import clocks
from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code
from benchrigor.model.codec import decode, encode
from benchrigor.queues import MonitorReport, WatchedStage
from benchrigor.queues.data.service import RateReason, ServiceRate


def rate(value: float, *, servers: int = 1, **more: Any) -> ServiceRate:
    usual = ServiceRate(
        estimate=within(value, 0.05),
        converged=True,
        reason=None,
        method="busy-time",
        start_s=0.0,
        stop_s=2.0,
        periods=40,
        unblocked=8,
        used=40,
        period_s=0.05,
        items=160,
        servers=servers,
    )
    return replace(usual, **more)


def stage(
    name: str,
    value: float,
    *,
    servers: int = 1,
    arrives: float | None = None,
    visits: float | None = None,
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
) -> WatchedStage:
    arrivals = None if arrives is None else within(arrives, 0.05)
    return WatchedStage(
        name=name,
        reads=reads,
        writes=writes,
        servers=servers,
        rates=(rate(value, servers=servers),),
        inputs={reads[0]: arrivals} if arrivals else {},
        arrivals=arrivals,
        last_arrivals=arrivals,
        visits=None if visits is None else within(visits, 0.05),
    )


SOURCE = stage("source", 300.0, writes=("a",))
HASH = stage("hash", 400.0, arrives=200.0, servers=4, reads=("a",), writes=("b",))
SINK = stage("sink", 30.0, visits=0.05, reads=("b",))
REPORT = MonitorReport(stages=(SOURCE, HASH, SINK), watched_s=10.0, cost_s=0.02, period_s=0.05)


def test_it_travels_as_json() -> None:
    text = json.dumps(encode(REPORT))
    assert decode(MonitorReport, json.loads(text)) == REPORT


def test_the_bottleneck_is_the_stage_of_least_capacity_in_items_of_the_source() -> None:
    found = REPORT.bottleneck()
    assert (found.stage, found.certain) == ("hash", True)
    # A sink item for 20 of the source.
    assert [load.capacity.value for load in found.loads] == pytest.approx([400.0, 600.0])
    assert [load.stage.replicas for load in found.loads] == [4, 1]


def test_what_is_to_be_served_is_what_arrives() -> None:
    used = [load.utilisation and load.utilisation.value for load in REPORT.bottleneck().loads]
    assert used == pytest.approx([0.5, 1 / 3])
    used = [
        load.utilisation and load.utilisation.value
        for load in REPORT.bottleneck(source_rate=100.0).loads
    ]
    assert used == pytest.approx([0.25, 100 / 600])


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


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ((WatchedStage(name="idle", reads=("b",), inputs={}),), "Too little is known of 'idle'"),
        ((HASH, stage("odd", 3.0, reads=("a",))), "Too little is known of 'odd'"),
        (
            (replace(stage("odd", 3.0, reads=("a",)), inputs={"a": within(0.0, 0.0)}),),
            "Nothing has arrived at 'odd'",
        ),
        (
            (replace(stage("odd", 3.0, reads=("a", "b")), inputs={"a": within(9.0, 0.1)}),),
            "No producer has been seen at 'b'",
        ),
    ],
)
def test_nothing_is_suggested_while_something_is_not_known(
    stages: tuple[WatchedStage, ...], words: str
) -> None:
    with pytest.raises(NotEstimable, match=words):
        MonitorReport(stages=stages).advice()


@pytest.mark.parametrize("stages", [(), (SOURCE,)])
def test_advice_needs_a_stage_that_reads(stages: tuple[WatchedStage, ...]) -> None:
    with pytest.raises(InvalidInput, match="no stage reads a queue"):
        MonitorReport(stages=stages).advice()


def test_after_the_source_has_stopped_advice_is_for_what_arrived_before() -> None:
    stopped = replace(HASH, arrivals=within(0.0, 0.0), silent_s=3.0)
    report = replace(REPORT, stages=(SOURCE, stopped, SINK))
    found = report.advice()
    assert found.source_rate == HASH.last_arrivals
    assert found.notices[0].code is Code.SOURCE_STOPPED
    assert "for 3 s" in found.notices[0].sentence
    assert Code.SOURCE_STOPPED not in {each.code for each in report.advice(source_rate=9.0).notices}


def test_advice_is_for_the_time_in_which_all_served() -> None:
    ending = rate(30.0, start_s=2.0, stop_s=2.1, converged=False, reason=RateReason.NOT_CONVERGED)
    ended = replace(HASH, servers=1, rates=(*HASH.rates, ending))
    found = replace(REPORT, stages=(SOURCE, ended, SINK)).advice()
    assert found.stages[0].load.stage.replicas == 4
    assert found.stages[0].load.capacity.value == pytest.approx(400.0)


def test_it_reads_as_a_table_with_the_bottleneck_and_the_cost() -> None:
    lines = str(REPORT).splitlines()
    assert lines[0].split()[:3] == ["stage", "servers", "serves/s"]
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["●", "source"],
        ["●", "hash"],
        ["●", "sink"],
    ]
    assert lines[2].split()[2:6] == ["4", "400", "[380,", "420]"]
    assert lines[4].startswith("hash is the bottleneck")
    assert lines[5:] == ["watched for 10 s at 0.2% of a core"]


def test_what_must_be_known_of_a_stage_stands_below_the_table() -> None:
    reason = RateReason.NEVER_BUSY
    idle = stage("a stage of a very long name", 1234.5, reads=("a",))
    doubtful = rate(2.0, start_s=2.0, stop_s=8.0, converged=False, reason=reason, delay_share=0.2)
    idle = replace(idle, rates=(*idle.rates, doubtful), failure="2 wait at once")
    text = str(MonitorReport(stages=(idle, WatchedStage(name="new", inputs={}))))
    assert all(len(line) <= 79 for line in text.splitlines())
    said = " ".join(text.split())
    assert "a stage of a very long name servers 1 serves/s 2.00 95% interval [1.90, 2.10]" in said
    assert "a stage of a very long name: watched no more: 2 wait at once; never busy; 2 of 2" in (
        said
    )
    assert "2 of 2 phases, from 2 to 8 s; waited 20% of its busy time for a processor" in said
    assert "new: no rate yet" in said


def test_a_table_that_would_be_too_wide_is_a_list() -> None:
    wide = stage("a stage of a very long name indeed", 123_456_789.0, arrives=1e6, reads=("a",))
    lines = str(MonitorReport(stages=(wide, SINK))).splitlines()
    assert all(len(line) <= 79 for line in lines)
    said = " ".join(" ".join(lines).split())
    assert "● stage a stage of a very long name indeed servers" in said
    assert "serves/s 123.5 M 95% interval [117.3, 129.6]" in said


def test_a_search_for_a_period_is_told() -> None:
    shown = str(MonitorReport(period_s=0.004, seeking=True))
    assert shown.splitlines()[-1] == "looking for a sampling period, 0.004 s at the moment"


def test_why_it_watches_no_more_is_said() -> None:
    shown = str(MonitorReport(failure="no space left"))
    assert shown.splitlines()[-1] == "watched no more: no space left"
    assert MonitorReport().cost_share == 0.0
