"""Two agents as processes, a hub, an alarm by real pressure, and a kill."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchrigor.instrument import Hub
from benchrigor.machine import read_thresholds
from benchrigor.testing import cpu_hog

LONG_S = 60.0
BUSY = read_thresholds(
    """
    [busy]
    when = [{ sample = "cpu busy", above = 80, clear = 30 }]
    hold_s = 1.0
    sentence = "Every processor of this node is busy."
    """
)


@contextmanager
def agent(port: int = 0, config: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = ["-m", "benchrigor", "agent", "--port", str(port)]
    words += ["--config", str(config)] if config else []
    command = [sys.executable, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[1]
        finally:
            process.kill()


def until(hub: Hub, holds: Callable[[Any], bool]) -> Any:
    last_s = time.monotonic() + LONG_S
    while not holds(views := hub.pull()):
        assert time.monotonic() < last_s, views
        time.sleep(0.1)
    return views


def test_a_hub_sees_pressure_and_a_node_that_is_killed_and_comes_back(tmp_path):
    config = tmp_path / "agent.json"
    with ExitStack() as stack:
        process, one = stack.enter_context(agent(config=config))
        _, other = stack.enter_context(agent())
        hub = stack.enter_context(Hub([one, other], timeout_s=10.0))
        until(hub, lambda views: all(each.condition == "well" for each in views))
        assert set(hub.configure(BUSY).values()) == {""}

        with cpu_hog(2 * (os.cpu_count() or 1)):
            views = until(hub, lambda views: all(each.report.alarms for each in views))
        for view in views:
            assert [each.code for each in view.report.alarms if each.code == "busy"] == ["busy"]

        first = views[0]
        process.kill()
        process.wait()
        gone, well = until(hub, lambda views: views[0].condition != "well")
        assert gone.report.node == first.report.node  # what it told last is kept
        assert well.condition == "well"
        stack.enter_context(agent(int(one.rpartition(":")[2]), config))
        back, _ = until(hub, lambda views: views[0].condition == "well")
        assert back.restarts == 1
        assert back.report.node != first.report.node
        assert "busy" in config.read_text()  # the thresholds are kept over the kill
