"""What a report says, and what it suggests."""

from __future__ import annotations

import json

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate, ServiceRate
from benchrigor.model.codec import decode, encode
from benchrigor.queues import MonitorReport, WatchedStage


def estimate(value: float) -> Estimate:
    return Estimate(
        value=value,
        low=0.95 * value,
        high=1.05 * value,
        confidence=0.95,
        n=40,
        n_effective=40.0,
        method="busy-time",
        standard_error=0.025 * value,
        degrees_of_freedom=39.0,
    )


def rate(value: float) -> ServiceRate:
    return ServiceRate(
        estimate=estimate(value),
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
    )


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
    arrivals = None if arrives is None else estimate(arrives)
    return WatchedStage(
        name=name,
        reads=reads,
        writes=writes,
        servers=servers,
        rates=(rate(value),),
        inputs={reads[0]: arrivals} if arrivals else {},
        arrivals=arrivals,
        visits=None if visits is None else estimate(visits),
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


def test_the_source_asks_for_what_it_gives_while_it_does_not_wait() -> None:
    used = [load.utilisation and load.utilisation.value for load in REPORT.bottleneck().loads]
    assert used == pytest.approx([0.75, 0.5])
    used = [
        load.utilisation and load.utilisation.value
        for load in REPORT.bottleneck(source_rate=100.0).loads
    ]
    assert used == pytest.approx([0.25, 100 / 600])


def test_without_a_source_it_is_what_arrives() -> None:
    found = MonitorReport(stages=(HASH, SINK)).bottleneck()
    assert found.loads[0].utilisation is not None
    assert found.loads[0].utilisation.value == pytest.approx(0.5)


def test_advice_is_for_one_replica_each() -> None:
    found = REPORT.advice(utilisation=0.5)
    assert [each.load.stage.name for each in found.stages] == ["hash", "sink"]
    assert found.stages[0].replicas.replicas_at_value == 6
    assert found.source_rate == estimate(300.0)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ((), "no stage reads a queue"),
        ((SOURCE,), "no stage reads a queue"),
        ((WatchedStage(name="idle", reads=("b",), inputs={}),), "too little is known of 'idle'"),
        ((HASH, stage("odd", 3.0, reads=("a",))), "too little is known of 'odd'"),
        ((stage("odd", 3.0, reads=("a",)),), "nobody counts what arrives, expected source_rate"),
    ],
)
def test_nothing_is_suggested_while_something_is_not_known(
    stages: tuple[WatchedStage, ...], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        MonitorReport(stages=stages).advice()


def test_it_reads_stage_by_stage_with_the_bottleneck_and_the_cost() -> None:
    lines = str(REPORT).splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["source", "hash", "sink"]
    assert lines[3].startswith("hash is the bottleneck")
    assert lines[4:] == ["watched for 10 s at 0.2% of a core"]


def test_why_it_watches_no_more_is_said() -> None:
    shown = str(MonitorReport(failure="no space left"))
    assert shown.splitlines()[-1] == "watched no more: no space left"
    assert MonitorReport().cost_share == 0.0
