"""A monitor of a running program: in a thread, or in a process of its own."""

from __future__ import annotations

import inspect
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.texts.causes.queues import end_of

from benchrigor.model import ServiceRate
from benchrigor.queues import Monitor, MonitorReport, Page, Recording, Stage, Tap
from benchrigor.queues import monitor as monitors
from benchrigor.queues.monitor import FullQueue
from benchrigor.queues.sampler import Sampler

LONG_S = 120.0
THREAD, PROCESS = {"period_s": 0.02}, {"period_s": 0.005}


@pytest.fixture
def tap() -> Iterator[Tap]:
    with Tap(queue.Queue(), name="work") as made:
        yield made


def feed(tap: Tap, true: Callable[[], object] = lambda: True, least: int = 20) -> int:
    """Put items until something is true, and return how many; fail if it does not become so."""
    items, deadline = 0, time.monotonic() + LONG_S
    while not true() or items < least:
        assert time.monotonic() < deadline
        tap.queue.put(items)
        items += 1
        time.sleep(0.001)
    return items


def first_rate(monitor: Monitor) -> ServiceRate | None:
    stages = monitor.report().stages
    return stages[0].rate if stages else None


def counted(monitor: Monitor) -> tuple[int, float]:
    """Return the periods and items of all phases of the first stage."""
    rates = monitor.report().stages[0].rates
    return sum(rate.periods for rate in rates), sum(rate.items for rate in rates)


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
def test_short_periods_are_for_a_process(tap: Tap, options: dict[str, Any], where: str) -> None:
    monitor = Monitor(tap, **options)
    assert monitor.where == where
    monitor.stop()  # it need not have begun
    assert monitor.failure is None


def test_taps_are_two_stages_and_stages_take_taps_for_their_ends(tap: Tap, page: Page) -> None:
    stage = Stage("hash", reads=[tap, end_of(page, "more.head")], writes=[tap], servers=3)
    monitor = Monitor(stage, tap)
    found = {each.name: (each.reads, each.writes) for each in monitor.report().stages}
    assert found == {
        "hash": (("work", "more"), ("work",)),
        "work.tail": ((), ("work",)),
        "work.head": (("work",), ()),
    }
    assert monitor.rates() == {name: [] for name in found}


@pytest.mark.parametrize("options", [THREAD, PROCESS])
def test_it_tells_while_it_watches_and_records_what_counted(
    tap: Tap, tmp_path: Path, options: dict[str, float]
) -> None:
    published = f"{tap.page.path.stem}.*.rates"
    with Monitor(tap, record=tmp_path / "run.csv", **options) as monitor:
        items = feed(tap, lambda: first_rate(monitor))
        before = counted(monitor)
        assert len([*tap.page.path.parent.glob(published)]) == (options is PROCESS)
        items += feed(tap, least=200)
    monitor.stop()  # as often as one likes
    after, report = counted(monitor), monitor.report()
    assert before[0] < after[0]
    assert 0 < after[1] <= items
    assert report.failure is None
    assert 0.0 < report.cost_share == report.cost_s / report.watched_s
    assert (monitor.cost_s, monitor.cost_share) == (report.cost_s, report.cost_share)
    assert [*monitor.rates()["work.tail"]] == [*report.stages[0].rates]
    assert not [*tap.page.path.parent.glob(published)]
    with Recording.open(tmp_path / "run.csv") as recording:
        found = dict(recording.periods())
    # Between two phases, as on a busy machine, a period may belong to none.
    between = len(report.stages[0].rates) - 1
    recorded = (found["work.tail"].size, found["work.tail"].items.sum())
    assert recorded == after if between == 0 else after[0] <= recorded[0] <= after[0] + between


def test_with_other_servers_a_stage_is_another_one_in_a_recording(
    page: Page, tmp_path: Path
) -> None:
    def serve() -> None:
        for _ in range(12):
            first.words[0] += 7
            first.words[1] += 70
            time.sleep(0.02)

    first, stage = page.claim("in.head"), Stage("hash", reads=[end_of(page, "in.head")])
    with Monitor(stage, record=tmp_path / "run.csv", **THREAD):
        serve()
        page.claim("in.head").words[5] = os.getppid() << 32
        serve()
    with Recording.open(tmp_path / "run.csv") as recording:
        found = dict(recording.periods())
    assert recording.head.period_s == 0.02
    assert {name: {*each.servers.tolist()} for name, each in found.items()} == {
        "hash": {1},
        "hash (2 servers)": {2},
    }
    for each in found.values():
        assert each.bytes.sum() == 10 * each.items.sum() > 0


def test_a_tap_may_be_closed_while_it_is_watched(tap: Tap) -> None:
    with Monitor(tap, **THREAD) as monitor:
        feed(tap, lambda: first_rate(monitor))
        tap.close()
        time.sleep(0.08)
    assert monitor.failure is None
    assert first_rate(monitor) is not None


def test_the_program_goes_on_while_the_watch_is_held_up(
    tap: Tap, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, let_go = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        held.set()
        let_go.wait(LONG_S)

    monkeypatch.setattr(Sampler, "sample", hold)
    with Monitor(tap, **THREAD) as monitor:
        feed(tap, held.is_set)
        feed(tap)
        let_go.set()
    assert monitor.failure is None


@pytest.mark.parametrize("step", ["sample", "work_off"])
def test_an_error_ends_the_watching_and_no_more(
    tap: Tap, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("torn")

    with Monitor(tap, **THREAD) as monitor:
        feed(tap, lambda: first_rate(monitor))
        items = counted(monitor)[1]
        monkeypatch.setattr(Sampler, step, broken)
        feed(tap, lambda: monitor.failure)
        feed(tap)
    assert monitor.failure == "RuntimeError: torn"
    monkeypatch.undo()
    assert counted(monitor)[1] >= items > 0  # of all phases: a busy machine begins a new one


def watchers(program: int | None = None) -> list[psutil.Process]:
    """Return the processes that watch for a program."""
    children = psutil.Process(program).children()
    return [each for each in children if "queues.monitor" in " ".join(each.cmdline())]


def test_a_watcher_that_is_killed_takes_nothing_with_it(tap: Tap) -> None:
    with Monitor(tap, **PROCESS) as monitor:
        feed(tap, lambda: first_rate(monitor))
        before, items, told = first_rate(monitor), counted(monitor)[1], time.monotonic()
        feed(tap, lambda: first_rate(monitor) != before)
        assert time.monotonic() - told < 30.0  # the first does not keep the next from being told
        (watcher,) = watchers()
        watcher.send_signal(signal.SIGKILL)
        feed(tap, lambda: monitor.failure)
        (state,) = tap.page.path.parent.glob(f"{tap.page.path.stem}.*.rates")
        for torn in ("", "{", '{"stages": [3]}'):
            state.write_text(torn)
            assert first_rate(monitor) is not None
    assert "signal 9" in str(monitor.failure)
    assert counted(monitor)[1] >= items > 0  # of all phases: a busy machine begins a new one


def test_a_process_tells_what_it_knows_once_a_second(tap: Tap) -> None:
    with Monitor(tap, **PROCESS):
        (state,) = tap.page.path.parent.glob(f"{tap.page.path.stem}.*.rates")
        until_s, told = time.monotonic() + 2.0, set[int]()
        feed(tap, lambda: told.add(state.stat().st_mtime_ns) or time.monotonic() > until_s)
    assert 1 <= len(told) <= 4


@pytest.mark.parametrize("options", [THREAD, PROCESS])
def test_where_no_recording_can_be_made_the_rest_is_known(
    tap: Tap, tmp_path: Path, options: dict[str, float]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monitor = Monitor(tap, record=folder / "run.csv", **options)
    folder.rmdir()
    with monitor:
        feed(tap, lambda: monitor.failure)
    assert "FileNotFoundError" in str(monitor.failure)
    assert [stage.name for stage in monitor.report().stages] == ["work.tail", "work.head"]


def test_a_watcher_that_fails_says_why(tap: Tap) -> None:
    with Page.create() as page:
        late = Tap(queue.Queue(), name="late", page=page)
        monitor = Monitor(late, where="process")
    with monitor:
        feed(tap, lambda: monitor.failure)
    assert page.path.name in str(monitor.failure)


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("raise SystemExit('no numpy')", "code 1: no numpy"),
        ("import time; time.sleep(600)", "signal 9"),
        (None, "Permission denied: "),
    ],
)
def test_a_process_that_cannot_watch_is_told_of_and_made_to_end(
    tap: Tap, monkeypatch: pytest.MonkeyPatch, code: str | None, ends: str
) -> None:
    command = (sys.executable, "-S", "-c", code) if code else (str(tap.page.path),)
    monkeypatch.setattr(monitors, "COMMAND", command)
    if code and "sleep" in code:
        monkeypatch.setattr(monitors, "PATIENCE_S", 0.1)
        monkeypatch.setattr(monitors, "LOADING_S", 0.1)
    began_s = time.monotonic()
    with Monitor(tap, **PROCESS) as monitor:
        feed(tap)
    assert time.monotonic() - began_s < 60.0
    words = str(monitor.failure)
    assert all(each in words for each in ends.split(": "))
    assert monitor.report().stages == ()


PROGRAM = """
import queue, sys, time
from benchrigor.queues import Monitor, Tap
tap = Tap(queue.Queue(), name="work")
monitor = Monitor(tap, period_s=0.005, record=sys.argv[1]).start()
print(tap.page.path, flush=True)
while True:
    tap.queue.put(1)
    time.sleep(0.002)
"""


def test_when_the_program_is_killed_nothing_is_lost(tmp_path: Path) -> None:
    record = tmp_path / "run.csv"
    command = [sys.executable, "-c", PROGRAM, record]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        page = Path(program.stdout.readline().strip())
        (watcher,) = watchers(program.pid)
        deadline = time.monotonic() + LONG_S
        while len(record.read_text().splitlines()) < 50:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        program.kill()
    gone, _ = psutil.wait_procs([watcher], LONG_S)
    assert gone == [watcher]
    (state,) = page.parent.glob(f"{page.stem}.*.rates")
    report = json.loads(state.read_text())
    state.unlink()
    page.unlink(missing_ok=True)
    assert report["failure"] is None
    with Recording.open(record) as recording:
        n = {end: each.size for end, each in recording.periods()}
    assert n["work.tail"] == report["stages"][0]["rates"][-1]["periods"] >= 40


@pytest.fixture
def full() -> Iterator[Tap]:
    """Yield the tap of a queue for two items into which a thread puts 300."""
    with Tap(queue.Queue(maxsize=2), name="work") as tap:
        thread = threading.Thread(target=lambda: [tap.queue.put(item) for item in range(300)])
        thread.start()
        yield tap
        for _ in range(300):
            tap.queue.get()
        thread.join()


def until_bound(tap: Tap, size: int) -> None:
    deadline = time.monotonic() + LONG_S
    while tap.queue.maxsize != size:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("end", ["reads", "writes"])
def test_a_full_queue_is_doubled_up_to_a_limit_until_its_tap_is_closed(full: Tap, end: str) -> None:
    with Monitor(Stage("serve", **{end: [full]}), grow=True, **THREAD) as monitor:
        until_bound(full, 128)  # 64 times its own
        time.sleep(0.1)
        growths = monitor.report().growths
        full.close()
        time.sleep(0.1)
        assert full.queue.maxsize == 2
    assert [(each.name, each.before, each.after) for each in growths] == [
        ("work", 2**n, 2 ** (n + 1)) for n in range(1, 7)
    ]
    times = [each.at_s for each in growths]
    assert times == sorted(times)
    assert times[0] >= 0.05  # after three periods


def test_without_being_asked_nothing_grows_and_what_cannot_is_named(full: Tap) -> None:
    with Tap(queue.SimpleQueue(), name="simple") as simple, Tap(queue.Queue(), name="any") as tap:
        with Monitor(Stage("serve", reads=[simple], writes=[tap]), grow=True, **THREAD) as monitor:
            time.sleep(0.1)
        assert (monitor.report().fixed, monitor.report().growths) == (("simple",), ())
    with Monitor(full, **THREAD) as monitor:
        time.sleep(0.2)
    assert (full.queue.maxsize, monitor.report().growths) == (2, ())


def test_a_queue_is_full_after_three_periods_of_waiting() -> None:
    seen = FullQueue()
    waited = [0, 9, 18, 27, 36, 45, 54, 60, 69, 78]  # one period of six
    full = [seen.is_full(10 * (n + 1), each) for n, each in enumerate(waited)]
    assert [n for n, each in enumerate(full) if each] == [3, 6]


def test_a_monitor_names_what_advice_asks_for_as_its_report_does() -> None:
    asked = inspect.signature(MonitorReport.advice)
    assert inspect.signature(Monitor.advice) == asked
    assert [*asked.parameters][1:] == ["source_rate", "utilisation", "blocked_share", "processors"]
