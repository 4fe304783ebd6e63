"""Maps on two hosts whose controller is killed at random moments."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from coverage_tables import Setting

from benchrigor.storage import Journal
from benchrigor.workbench.maps.map_run import samples_of
from benchrigor.workbench.surfaces.samples import Measured

__all__ = ["kills"]

FILE = """
[hosts]
names = ["elm", "oak"]
[factors.size]
levels = [1, 2, 4, 8, 16, 32]
[factors.kind]
levels = ["a", "b", "c", "d"]
[design]
kind = "full"
[response]
function = "answers:rate"
direction = "higher"
"""
ANSWERS = """
import time
def rate(size, kind):
    time.sleep(0.5)
    return 100.0 * size, 99.0 * size, 101.0 * size
"""


def kills(setting: Setting) -> None:
    """Print how often a controller was killed, and which samples were measured twice."""
    rng = np.random.default_rng(setting.seed)
    most = setting.runs(20, 3)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "map.toml").write_text(FILE)
        (folder / "answers.py").write_text(ANSWERS)
        store = folder / "runs.sqlite"
        words, killed = ["map", "map.toml"], 0
        kept: list[Measured] = []
        while True:
            argv = [sys.executable, "-m", "benchrigor", *words, "--store", str(store)]
            with subprocess.Popen(argv, cwd=folder, stdout=-3, stderr=-3) as running:
                wait_s = float(rng.uniform(2.0, 8.0))
                if killed < most:
                    _wait(running, wait_s)
                    if running.poll() is None:
                        running.send_signal(signal.SIGKILL)
                        killed += 1
                code = running.wait()
            runs = Journal(store).runs() if store.exists() else []
            if not runs:
                continue
            found = samples_of(Journal(store).load(runs[-1]["run_id"]))
            assert all(each in found for each in kept), "a sample that was kept has changed"
            kept = found
            if code != -signal.SIGKILL:
                break
            words = ["resume", runs[-1]["run_id"]]
    points = Counter(tuple(each.sample.point.values()) for each in kept)
    twice = sum(count > 1 for count in points.values())
    met = setting.verdict("nothing repeated", twice == 0 and len(points) == 24 and code == 0)
    print(f"killed {killed} times: {len(points)} of 24 samples, {twice} measured twice: {met}")


def _wait(running: subprocess.Popen[bytes], seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while running.poll() is None and time.monotonic() < until_s:
        time.sleep(0.05)
