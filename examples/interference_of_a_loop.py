"""Tell from one run of a loop how much of its time was lost to others.

Each step sorts and compresses; now and then something holds it up. That is injected here, so that
the truth is known beside the estimate.

    python examples/interference_of_a_loop.py
"""

from __future__ import annotations

import random
import sys
import zlib

import benchrigor as br
from benchrigor.report import render_interference
from benchrigor.testing import Injector


def main(steps: int = 300) -> tuple[br.Interference, float]:
    """Run the loop; return what was lost, and per cent of its time that was injected."""
    source = random.Random(1)  # noqa: S311  # no secret
    numbers = [source.random() for _ in range(30_000)]
    text = " ".join(f"{number:.4f}" for number in numbers).encode()
    hold_up = Injector(mean_s=0.040, sd_s=0.010, probability=0.08, seed=1)

    with br.segments(program="sort and compress") as recorder:
        for _ in range(steps):
            with recorder.segment("sort"):
                hold_up()
                sorted(numbers)
            with recorder.segment("compress"):
                hold_up()
                zlib.compress(text)
    found = recorder.interference()
    return found, 100.0 * hold_up.injected_s / found.duration_s


if __name__ == "__main__":
    lost, injected = main(*map(int, sys.argv[1:]))
    print(render_interference(lost, name="sort and compress"))
    print(f"\ninjected: {injected:.1f}% of the time")
