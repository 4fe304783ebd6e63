"""The picture of phases: ``docs/pictures/trace.png``, from ``examples/recorded_cache.csv``.

The readings are real, taken on an otherwise idle virtual machine (2 cores of an Intel Xeon,
CPython 3.11). Two tasks of one process take turns and look up numbers at random, of 3000, in a
function that takes a while and whose last 2000 results ``lru_cache`` keeps. A reading is how long
20 look-ups of the first task took, with the turns of the second between them. While the cache
fills, most results are computed: that is the warm-up. The second task has less to look up and ends
first; from then on the first one has no turn to wait for and is twice as fast: that is the
cool-down.

    python docs/pictures/trace.py            # draw the recording again
    python docs/pictures/trace.py --record   # take a new one first, on this machine
"""

from __future__ import annotations

import asyncio
import csv
import json
import sys
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import benchrigor as br
from benchrigor.model import StopReason
from benchrigor.report import plot_trace
from benchrigor.session import Engine

HERE = Path(__file__).parent
RECORDING = HERE.parents[1] / "examples" / "recorded_cache.csv"
NUMBERS, KEPT, LOOK_UPS = 3000, 2000, 20


@lru_cache(maxsize=KEPT)
def rows(number: int) -> str:
    """Write 20 rows as JSON."""
    tags = ["a", "b"] * 3
    return json.dumps(
        [{"id": i, "name": f"row {i * number % 977}", "tags": tags} for i in range(20)]
    )


def wanted(readings: int, seed: int) -> list[int]:
    """Draw the numbers that a task looks up."""
    rng = np.random.default_rng(seed)
    return [int(number) for number in rng.integers(NUMBERS, size=readings * LOOK_UPS)]


async def task(numbers: list[int]) -> list[int]:
    """Look numbers up, and return how long every 20 of them took, in nanoseconds."""
    taken = []
    for first in range(0, len(numbers), LOOK_UPS):
        start = time.perf_counter_ns()
        for number in numbers[first : first + LOOK_UPS]:
            rows(number)
            await asyncio.sleep(0)  # the other task's turn
        taken.append(time.perf_counter_ns() - start)
    return taken


async def both() -> list[int]:
    """Let two tasks take turns, and return the readings of the first."""
    taken, _ = await asyncio.gather(task(wanted(1000, seed=1)), task(wanted(850, seed=2)))
    return taken


def record() -> None:
    """Take the readings anew."""
    lines = [f"{ns / 1e9:.9f}" for ns in asyncio.run(both())]
    RECORDING.write_text("\n".join(["seconds", *lines, ""]), encoding="utf-8")


def analysed() -> br.RunRecord:
    """Return what a session makes of the readings."""
    with RECORDING.open(newline="", encoding="utf-8") as lines:
        seconds = [float(row["seconds"]) for row in csv.DictReader(lines)]
    engine = Engine(name="20 look-ups through a cache")
    plan = engine.ask()
    assert plan is not None  # noqa: S101  # a new engine always has a plan
    engine.tell(br.Round(plan=plan, elapsed_ns=0, unit_readings={"time": seconds}))
    engine.end(StopReason.EXHAUSTED)  # both tasks ended by themselves
    return engine.result()


def main(path: Path = HERE / "trace.png") -> None:
    """Draw the picture."""
    figure = Figure(figsize=(8.0, 4.0), dpi=150, layout="constrained")
    plot_trace(analysed(), axes=figure.add_subplot())
    figure.savefig(path)


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    main()
