"""A process that watches: what it tells, and what its end does to the program."""

from __future__ import annotations

import queue
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.queues import Page, Tap
from benchrigor.queues.counting.ends import End
from benchrigor.queues.recording.recordings import Recording
from benchrigor.queues.stages.stage import Stage, stages_of
from benchrigor.queues.stages.stage_figures import Watching
from benchrigor.queues.watching import process_watch as module
from benchrigor.queues.watching.process_watch import Order, ProcessWatch

PERIOD_S = 0.005
PATIENCE_S = 120.0


@pytest.fixture
def tap() -> Iterator[Tap]:
    with Tap(queue.Queue(), name="work") as made:
        yield made


def watch_of(tap: Tap, record: Path | None = None) -> ProcessWatch:
    return ProcessWatch(stages_of([tap]), Watching(period_s=PERIOD_S), record)


def feed(tap: Tap, items: int = 20) -> int:
    for item in range(items):
        tap.queue.put(item)
        time.sleep(0.001)
    return items


def feed_until(tap: Tap, true: Callable[[], object]) -> int:
    """Put items until something comes true, and return how many; fail if it does not."""
    items, deadline = 0, time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        items += feed(tap)
    return items


@pytest.mark.slow
def test_it_tells_while_it_watches_and_all_it_knows_at_the_end(tap: Tap, tmp_path: Path) -> None:
    watch = watch_of(tap, tmp_path / "run.csv")
    watch.start()
    during = watch.report()  # it has begun to watch when it has been started
    assert [stage.name for stage in during.stages] == ["work.tail", "work.head"]
    items = feed(tap)
    assert len(list(tap.page.path.parent.glob(f"{tap.page.path.stem}.*.rates"))) == 1
    items += feed(tap, 300)
    watch.stop()
    report = watch.report()
    assert report.failure is None
    assert report.watched_s > during.watched_s
    assert report.stages[0].rate is not None
    assert 0 < report.stages[0].rate.items <= items
    assert report.cost_s > 0.0
    assert not list(tap.page.path.parent.glob(f"{tap.page.path.stem}.*.rates"))
    with Recording.open(tmp_path / "run.csv") as recording:
        found = dict(recording.periods())
    assert found["work.tail"].n == report.stages[0].rate.periods


@pytest.mark.slow
def test_a_watcher_that_is_killed_takes_nothing_with_it(tap: Tap) -> None:
    watch = watch_of(tap)
    watch.start()
    feed_until(tap, lambda: watch.report().stages and watch.report().stages[0].rate)
    before = watch.report().stages[0].rate
    watch.signal(signal.SIGKILL)
    feed_until(tap, lambda: watch.report().failure)
    began_s = time.monotonic()
    feed(tap)
    watch.stop()
    assert time.monotonic() - began_s < 60.0
    report = watch.report()
    assert report.failure is not None
    assert "was killed by signal 9" in report.failure
    assert report.stages[0].rate is not None
    assert before is not None
    assert report.stages[0].rate.items >= before.items


@pytest.mark.slow
def test_a_watcher_that_fails_says_why(tap: Tap) -> None:
    with Page.create() as page:
        watch = ProcessWatch(
            stages_of([Tap(queue.Queue(), name="late", page=page)]), Watching(), None
        )
    watch.start()
    feed_until(tap, lambda: watch.report().failure)
    watch.stop()
    assert watch.report().failure is not None
    assert page.path.name in watch.report().failure


def test_what_a_process_says_last_is_passed_on(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; raise SystemExit('no module named numpy')"
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-S", "-c", code))
    watch = watch_of(tap)
    watch.start()
    feed_until(tap, lambda: watch.report().failure)
    watch.stop()
    assert watch.report().failure is not None
    assert watch.report().failure.endswith("ended with code 1: no module named numpy")
    assert watch.report().stages == ()


def test_where_no_process_can_be_started_nothing_is_known(
    tap: Tap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND", (str(tap.page.path), "-c", ""))
    watch = watch_of(tap)
    watch.start()
    watch.stop()
    assert watch.report().failure is not None
    assert "no process can be started" in watch.report().failure


def test_one_that_does_not_end_is_made_to(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import time; time.sleep(600)"
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-S", "-c", code))
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    monkeypatch.setattr(module, "LOADING_S", 0.1)
    watch = watch_of(tap)
    watch.start()
    began_s = time.monotonic()
    watch.stop()
    assert time.monotonic() - began_s < 60.0
    assert watch.report().failure is not None


def test_a_watch_that_never_began_can_be_stopped(tap: Tap) -> None:
    watch = watch_of(tap)
    watch.stop()
    assert watch.report().stages == ()


def test_an_order_travels_as_a_line(page: Page, tmp_path: Path) -> None:
    ends = [End(page, name, servers=2) for name in ("a.head", "b.head")]
    page.claim("b.head").count()
    watching = Watching(period_s=None, method="quantile", guards=False, target=0.1)
    order = Order(
        stages=[Stage("hash", reads=ends, servers=3)],
        watching=watching,
        state=tmp_path / "state.rates",
        record=None,
        launcher=7,
    )
    line = order.to_line()
    assert line.count(b"\n") == 1
    received = Order.from_line(line)
    (stage,) = received.stages
    assert (stage.name, stage.servers, received.watching) == ("hash", 3, watching)
    assert [(end.name, end.servers) for end in stage.reads] == [("a.head", 2), ("b.head", 2)]
    assert not stage.reads[0].page.writable
    assert [each.items for each in stage.reads[1].read()] == [1]
    page.path.unlink()
    with pytest.warns(RuntimeWarning), pytest.raises(InvalidInput, match=page.path.name):
        Order.from_line(line)
