"""The picture of phases: ``docs/pictures/trace.png``, from ``examples/recorded_cache.csv``.

The readings are real, taken on an otherwise idle virtual machine (2 cores of an Intel Xeon,
CPython 3.11). An asyncio server renders pages and keeps the last 2000 of 3000 in a cache; two
clients ask for pages at random and are served in turn. A reading is how long 20 requests of the
first client took. While the cache fills, most pages are rendered: that is the warm-up. The second
client asks for less and leaves first; from then on the first one is served twice as fast: that is
the cool-down.

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
from benchrigor.report import plot_trace
from benchrigor.session import Engine

HERE = Path(__file__).parent
RECORDING = HERE.parents[1] / "examples" / "recorded_cache.csv"
PAGES, KEPT, REQUESTS = 3000, 2000, 20


@lru_cache(maxsize=KEPT)
def page(number: int) -> str:
    """Render a page of 20 rows."""
    tags = ["a", "b"] * 3
    rows = [{"id": i, "name": f"row {i * number % 977}", "tags": tags} for i in range(20)]
    return json.dumps(rows)


def requests(readings: int, seed: int) -> list[int]:
    """Draw the pages that a client asks for."""
    rng = np.random.default_rng(seed)
    return [int(number) for number in rng.integers(PAGES, size=readings * REQUESTS)]


async def client(wanted: list[int]) -> list[int]:
    """Ask for pages, and return how long every 20 requests took, in nanoseconds."""
    taken = []
    for first in range(0, len(wanted), REQUESTS):
        start = time.perf_counter_ns()
        for number in wanted[first : first + REQUESTS]:
            page(number)
            await asyncio.sleep(0)  # the other client's turn
        taken.append(time.perf_counter_ns() - start)
    return taken


async def both() -> list[int]:
    """Serve two clients in turn, and return the readings of the first."""
    taken, _ = await asyncio.gather(client(requests(1000, seed=1)), client(requests(850, seed=2)))
    return taken


def record() -> None:
    """Take the readings anew."""
    lines = [f"{ns / 1e9:.9f}" for ns in asyncio.run(both())]
    RECORDING.write_text("\n".join(["seconds", *lines, ""]), encoding="utf-8")


def analysed() -> br.RunRecord:
    """Return what a session makes of the readings."""
    with RECORDING.open(newline="", encoding="utf-8") as lines:
        seconds = [float(row["seconds"]) for row in csv.DictReader(lines)]
    options = br.Options(readings_per_round=len(seconds))
    engine = Engine(options, name="20 requests to a server with a cache")
    plan = engine.ask()
    assert plan is not None  # noqa: S101  # a new engine always has a plan
    engine.tell(br.Round(plan=plan, elapsed_ns=0, unit_readings={"time": seconds}))
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
