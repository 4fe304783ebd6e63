"""Two streaming applications in processes, watched, beside their stages run alone.

Machines that run tests are noisy, and have fewer processors than the applications have processes:
what a stage does per second of wall time is bounded only from above, and what it does per second of
its own processor time by a factor.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchrigor.queues import Monitor, MonitorReport, Page, WatchedStage

EXAMPLES = Path(__file__).parents[2] / "examples"
START = "spawn"
"""This process may have threads: only those that the tests start from a script are forked."""
PERIOD_S, ENOUGH = 0.02, 8
PATIENCE_S = 300.0
SIZE, BLOCK = 1536, 48
TEXT = b"foobar" * 1_000_000
FACTOR = 2.5
"""How far a rate may be off that of the same stage alone, with and without pauses before items."""
SLOWER = 6.0
"""Alone, a stage of 11 µs finds its data in its cache; in the pipeline another processor has it.

That takes 2.4 to 3.6 times as long on an EPYC, which some 20 readings tell to a third.
"""


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let processes find the examples, and none of them be left."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    assert multiprocessing.active_children() == []


def matrices(size: int) -> tuple[Any, Any]:
    a, b = np.random.default_rng(3).random((2, size, size), dtype=np.float32)
    return a, b


def places_of(pattern: bytes, text: bytes) -> list[int]:
    found, place = [], text.find(pattern)
    while place >= 0:
        found.append(place)
        place = text.find(pattern, place + 1)
    return found


def main_rate(stage: WatchedStage) -> Any:
    """Return the rate of the time in which all processes were there."""
    return import_module("streaming").longest(stage)


def is_known(stage: WatchedStage) -> bool:
    return known(main_rate(stage))


def known(rate: Any) -> bool:
    return rate is not None and rate.estimate is not None and rate.periods >= ENOUGH


def check(report: MonitorReport, truth: Callable[..., dict[str, Any]]) -> None:
    """Every stage has a rate, and it is near to what the same stage does alone."""
    assert report.failure is None
    truths = [truth({}), truth(import_module("streaming").pauses(report))]
    for stage in report.stages:
        assert stage.failure is None
        assert is_known(stage), stage
        rate = main_rate(stage)
        assert rate.estimate.low <= rate.estimate.value <= rate.estimate.high
        if stage.name in truths[0]:
            least, most = sorted(each[stage.name].cpu_rate for each in truths)
            assert 0.0 < rate.estimate.value < FACTOR * most, (stage, truths)
            if sys.platform == "linux":
                cpu = rate.cpu_rate
                assert least / SLOWER < cpu.high, (stage, truths)
                assert cpu.low < FACTOR * most, (stage, truths)


def wait_for(what: Callable[[], Any]) -> Any:
    """Return what there is as soon as there is something."""
    last_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < last_s:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def test_a_matrix_is_multiplied_and_its_stages_have_their_rates() -> None:
    example = import_module("matrix_multiply")
    a, b = matrices(SIZE)
    with example.multiplying(a, b, block=BLOCK, start=START) as pipeline:
        page = pipeline.stages[0].writes[0].page.path
        with Monitor(*pipeline.stages, period_s=PERIOD_S) as monitor:
            whole = pipeline.result()
    np.testing.assert_allclose(whole, a @ b, rtol=1e-4)
    report = monitor.report()
    check(report, partial(example.truth, a, b, block=BLOCK, items=300))
    assert report.stages[-1].reads == ("parts 0", "parts 1")
    assert not page.exists()


def test_places_in_a_text_are_found_and_stages_have_their_rates() -> None:
    example = import_module("rabin_karp")
    with example.searching(TEXT, start=START) as pipeline:
        page = pipeline.stages[0].writes[0].page.path
        with Monitor(*pipeline.stages, period_s=PERIOD_S) as monitor:
            places = pipeline.result()
    assert places.tolist() == places_of(example.PATTERN, TEXT)
    check(monitor.report(), partial(example.truth, TEXT, items=100))
    assert not page.exists()


def test_rates_stay_when_a_worker_is_killed() -> None:
    example = import_module("rabin_karp")
    text = b"foobar" * 4_000_000
    with (
        example.searching(text, verifying=1, start=START) as pipeline,
        Monitor(*pipeline.stages, period_s=PERIOD_S) as monitor,
    ):
        wait_for(lambda: all(map(is_known, monitor.report().stages)))
        victim = next(each for each in pipeline.processes if each.name == "hash 1")
        os.kill(victim.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="hash 1 died"):
            pipeline.result()
        before = monitor.report()
        wait_for(lambda: monitor.report().watched_s > before.watched_s + 0.2)
        after = monitor.report()
    for report in (before, after, monitor.report()):
        assert report.failure is None
        # Of any phase: those left behind may serve more, though for a moment, than all did before.
        assert all(any(map(known, stage.rates)) for stage in report.stages)


@pytest.mark.parametrize(
    ("script", "size"), [("matrix_multiply", "--size=1024"), ("rabin_karp", "--megabytes=1")]
)
def test_a_script_says_what_its_stages_could_do(script: str, size: str) -> None:
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / f"{script}.py"), size]
    done = subprocess.run(
        [*command, "--start", "fork", "--truth"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"^[●○]  reduce ", done.stdout, re.MULTILINE)
    assert all(len(line) < 80 for line in done.stdout.splitlines())
    assert "\nwatched for " in done.stdout


@pytest.mark.parametrize(
    ("script", "start"),
    [
        ("matrix_multiply", START),
        ("rabin_karp", "fork"),
    ],
)
def test_an_interrupted_script_leaves_nothing_behind(script: str, start: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"{script}.py"), "--start", start]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    places = [Path("/dev/shm"), Path(tempfile.gettempdir())]  # noqa: S108  # to look there

    def pages() -> list[Path]:
        name = f"benchrigor-{running.pid}-*"
        return [page for place in places for page in place.glob(name)]

    def is_under_way() -> bool:
        """Items have passed from one process to another."""
        for path in pages():
            with Page.open(path) as page:
                if any(cell.read().items for cell in page.cells()):
                    return True
        return False

    def gone() -> bool:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, 0)
            return False
        return True

    try:
        wait_for(is_under_way)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it
        out, err = running.communicate(timeout=PATIENCE_S)
        wait_for(gone)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    assert (running.returncode, out, err) == (130, "", "")
    assert pages() == []
