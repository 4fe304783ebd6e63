"""A monitor of a running program."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate
from benchrigor.queues import Monitor, Stage, Tap
from benchrigor.queues.data.service import RateReason

SERVICE_S = 0.002


class Pipeline:
    """A source, a stage that takes 2 ms for each item, and a sink, in three threads."""

    def __init__(self) -> None:
        self.work = Tap(queue.Queue(maxsize=8), name="work")
        self.done = Tap(queue.Queue(maxsize=8), name="done")
        self.stages = (
            Stage("source", writes=[self.work.tail]),
            Stage("serve", reads=[self.work.head], writes=[self.done.tail]),
            Stage("sink", reads=[self.done.head]),
        )

    def run(self, items: int) -> None:
        """Let so many items pass."""
        steps = (self.source, self.serve, self.sink)
        threads = [threading.Thread(target=each, args=(items,)) for each in steps]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    def source(self, items: int) -> None:
        for item in range(items):
            self.work.queue.put(item)

    def serve(self, items: int) -> None:
        for _ in range(items):
            item = self.work.queue.get()
            time.sleep(SERVICE_S)
            self.done.queue.put(item)

    def sink(self, items: int) -> None:
        for _ in range(items):
            self.done.queue.get()

    def close(self) -> None:
        self.work.close()
        self.done.close()


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    made = Pipeline()
    yield made
    made.close()


@pytest.mark.slow
def test_a_stage_that_sleeps_is_found_to_be_as_fast_as_it_can_be(pipeline: Pipeline) -> None:
    with Monitor(*pipeline.stages, period_s=0.02, target=0.2) as monitor:
        pipeline.run(500)
    assert monitor.failure is None
    rates = monitor.rates()
    assert list(rates) == ["source", "serve", "sink"]
    rate = rates["serve"][-1]
    assert rate.estimate is not None
    # Sleeping takes longer than asked for, never less.
    assert 0.1 / SERVICE_S < rate.estimate.value <= 1.02 / SERVICE_S
    report = monitor.report()
    assert report.bottleneck().stage == "serve"
    assert report.stages[1].filter_ratio is not None
    assert report.stages[1].filter_ratio.value == pytest.approx(1.0, abs=0.2)
    assert monitor.advice().bottleneck.stage == "serve"
    assert re.search("serve (is|may be) the bottleneck", str(monitor))


@pytest.mark.slow
def test_a_process_finds_the_same(pipeline: Pipeline) -> None:
    with Monitor(*pipeline.stages, period_s=0.005, target=0.2) as monitor:
        assert monitor.where == "process"
        deadline = time.monotonic() + 120.0
        while not monitor.rates() and time.monotonic() < deadline:
            pipeline.run(50)
        pipeline.run(300)
    assert monitor.failure is None
    rate = monitor.rates()["serve"][-1]
    assert rate.estimate is not None
    assert 0.1 / SERVICE_S < rate.estimate.value <= 1.02 / SERVICE_S
    assert monitor.cost_s > 0.0
    assert monitor.cost_share > 0.0


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({}, "thread"),
        ({"period_s": 0.02}, "thread"),
        ({"period_s": 0.019}, "process"),
        ({"period_s": None}, "thread"),
        ({"period_s": 0.005, "where": "thread"}, "thread"),
        ({"period_s": 1.0, "where": "process"}, "process"),
    ],
)
def test_short_periods_are_for_a_process(
    pipeline: Pipeline, options: dict[str, Any], where: str
) -> None:
    assert Monitor(*pipeline.stages, **options).where == where


@pytest.mark.slow
def test_taps_will_do(pipeline: Pipeline) -> None:
    with Monitor(pipeline.work, pipeline.done, period_s=0.02) as monitor:
        pipeline.run(200)
    assert list(monitor.rates()) == ["work.tail", "work.head", "done.tail", "done.head"]
    assert monitor.rates()["work.head"][-1].items > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["busy-time", "quantile"])
def test_a_period_is_looked_for_where_none_is_given(pipeline: Pipeline, method: str) -> None:
    """Within a second or two there are rates, marked as provisional, at little cost."""
    with Monitor(*pipeline.stages, period_s=None, method=method) as monitor:
        pipeline.run(500)
        report = monitor.report()
    assert monitor.failure is None
    assert (report.period_s or 0.0) >= 0.05
    rate = report.stages[1].rate
    assert rate is not None
    assert rate.estimate is not None
    assert 0.1 / SERVICE_S < rate.estimate.value <= 1.02 / SERVICE_S
    if report.seeking:
        assert (rate.converged, rate.reason) == (False, RateReason.PROVISIONAL)
        assert "provisional" in str(report)
    # At 50 ms; the processor may be slow to wake, and others run on it.
    assert report.cost_share < 0.03


def test_it_begins_once_and_ends_as_often_as_one_likes(pipeline: Pipeline) -> None:
    monitor = Monitor(pipeline.work)
    monitor.stop()
    assert monitor.start() is monitor
    with pytest.raises(InvalidInput, match="started already"):
        monitor.start()
    monitor.stop()
    monitor.stop()
    assert monitor.failure is None


def test_nothing_is_suggested_before_anything_is_known(pipeline: Pipeline) -> None:
    monitor = Monitor(*pipeline.stages)
    assert monitor.rates() == {"source": [], "serve": [], "sink": []}
    with pytest.raises(NotEstimable, match="Too little is known of 'serve' yet"):
        monitor.advice()


@pytest.mark.slow
def test_advice_can_be_asked_for_once_the_source_has_stopped() -> None:
    """The source fills the queue, and ends; then the stage works off what is left, slower."""
    with (
        Tap(queue.Queue(), name="work") as work,
        Monitor(Stage("serve", reads=[work]), period_s=0.02) as monitor,
    ):
        for item in range(400):
            work.queue.put(item)
            if item % 2:
                work.queue.get()
                time.sleep(0.002)
        for _ in range(190):
            work.queue.get()
            time.sleep(0.008)
        found = monitor.advice()
    assert isinstance(found.source_rate, Estimate)
    assert found.source_rate.value > 0.0
    assert Code.SOURCE_STOPPED in {each.code for each in found.notices}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"period_s": 0.0}, "period_s is 0.0"),
        ({"period_s": float("nan")}, "period_s is nan"),
        ({"period_s": "a"}, "period_s is 'a', expected seconds from 0.0001 on, or None"),
        ({"period_s": True}, "period_s is True"),
        ({"period_s": 1e-9}, "period_s is 1e-09, expected seconds from 0.0001 on"),
        ({"method": "quantile", "guards": False, "period_s": -1}, "^period_s is -1, expected"),
        ({"record": 5}, "record is 5, expected a path"),
        ({"record": "."}, "record is '.', a folder, expected the path of a file"),
        ({"method": "mean"}, "method is 'mean'"),
        ({"where": "elsewhere"}, "where is 'elsewhere'"),
        ({"record": Path("nowhere/run.csv")}, "record is"),
        ({"confidence": 1.0}, "confidence"),
        ({"target": 0.0}, "target is 0.0"),
    ],
)
def test_what_makes_no_sense_is_refused(
    pipeline: Pipeline, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        Monitor(*pipeline.stages, **options)


def test_nothing_to_watch_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to watch"):
        Monitor()
