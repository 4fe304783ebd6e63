"""A thread that watches, and keeps to itself what becomes of it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchrigor.queues import Tap
from benchrigor.queues.recording.recordings import Recording
from benchrigor.queues.stages.stage import stages_of
from benchrigor.queues.stages.stage_figures import Watching
from benchrigor.queues.watching.sampler import Sampler
from benchrigor.queues.watching.thread_watch import ThreadWatch

PERIOD_S = 0.02


@pytest.fixture
def tap() -> Iterator[Tap]:
    with Tap(queue.Queue(), name="work") as made:
        yield made


def watch_of(tap: Tap, record: Path | None = None) -> ThreadWatch:
    return ThreadWatch(stages_of([tap]), Watching(period_s=PERIOD_S), record)


def until_ended() -> None:
    """Wait until no thread watches; the test fails if one still does."""
    deadline = time.monotonic() + 60.0
    while any(each.name == "benchrigor-monitor" for each in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def feed(tap: Tap, seconds: float) -> int:
    """Put items for a while; return how many."""
    items, until_s = 0, time.monotonic() + seconds
    while time.monotonic() < until_s:
        tap.queue.put(items)
        items += 1
        time.sleep(0.001)
    return items


@pytest.mark.slow
def test_what_passes_while_it_watches_is_counted(tap: Tap) -> None:
    watch = watch_of(tap)
    watch.start()
    items = feed(tap, 0.6)
    watch.stop()
    report = watch.report()
    source = report.stages[0]
    assert source.rate is not None
    assert 0 < source.rate.items <= items
    assert 0.0 < report.cost_s < report.watched_s
    assert (report.failure, watch.failure) == (None, None)


@pytest.mark.slow
def test_what_is_known_can_be_asked_for_at_any_time(tap: Tap) -> None:
    watch = watch_of(tap)
    assert watch.report().stages[0].rate is None
    watch.start()
    feed(tap, 0.3)
    during = watch.report().stages[0].rate
    feed(tap, 0.2)
    watch.stop()
    after = watch.report().stages[0].rate
    assert during is not None
    assert after is not None
    assert after.periods > during.periods


def test_the_program_goes_on_while_the_watch_is_held_up(tap: Tap) -> None:
    watch = watch_of(tap)
    watch.start()
    feed(tap, 0.1)
    with watch.sampler.lock:
        program = threading.Thread(target=feed, args=(tap, 0.2), daemon=True)
        program.start()
        program.join(5.0)
        assert not program.is_alive()
    watch.stop()
    assert watch.failure is None


@pytest.mark.slow
def test_an_error_ends_the_watching_and_no_more(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watch_of(tap)
    watch.start()
    feed(tap, 0.4)
    before = watch.report().stages[0].rate

    def broken(*_: object) -> None:
        raise RuntimeError("the page is torn")

    monkeypatch.setattr(Sampler, "sample", broken)
    until_ended()
    assert feed(tap, 0.05) > 0
    watch.stop()
    report = watch.report()
    assert report.failure == watch.failure == "RuntimeError: the page is torn"
    assert before is not None
    assert report.stages[0].rate is not None
    assert report.stages[0].rate.items >= before.items


def test_an_error_that_shows_when_somebody_asks_is_kept_as_well(
    tap: Tap, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watch_of(tap)
    watch.start()
    feed(tap, 0.2)

    def broken(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Sampler, "work_off", broken)
    assert watch.report().failure == "OSError: no space left"
    until_ended()


@pytest.mark.slow
def test_a_tap_may_be_closed_while_it_is_watched() -> None:
    with Tap(queue.Queue(), name="work") as tap:
        watch = watch_of(tap)
        watch.start()
        feed(tap, 0.3)
    time.sleep(4 * PERIOD_S)
    watch.stop()
    report = watch.report()
    assert report.failure is None
    assert report.stages[0].rate is not None


@pytest.mark.slow
def test_the_recording_holds_what_counted(tap: Tap, tmp_path: Path) -> None:
    watch = watch_of(tap, tmp_path / "run.csv")
    watch.start()
    feed(tap, 0.4)
    watch.stop()
    rate = watch.report().stages[0].rate
    assert rate is not None
    with Recording.open(tmp_path / "run.csv") as recording:
        found = dict(recording.periods())
    assert found["work.tail"].n == rate.periods
    assert found["work.tail"].items.sum() == rate.items


def test_a_recording_that_cannot_be_written_is_a_failure(tap: Tap, tmp_path: Path) -> None:
    watch = watch_of(tap, tmp_path / "nowhere" / "run.csv")
    watch.start()
    watch.stop()
    assert watch.failure is not None
    assert "FileNotFoundError" in watch.failure
