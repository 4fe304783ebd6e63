"""Estimate from one run of a loop what share of its time is interference.

Each step sorts and compresses, and is delayed now and then. The delays are injected, so that the
truth is known beside the estimate.

    python examples/interference_of_a_loop.py
"""

from __future__ import annotations

import random
import sys
import zlib

import benchrigor as br
from benchrigor.interference import render_interference
from benchrigor.testing import Injector


def main(steps: int = 300) -> tuple[br.Interference, float]:
    """Run the loop; return the estimate, and per cent of its time that was injected."""
    source = random.Random(1)  # no secret
    numbers = [source.random() for _ in range(30_000)]
    text = " ".join(f"{number:.4f}" for number in numbers).encode()
    delay = Injector(mean_s=0.040, sd_s=0.010, probability=0.08, seed=1)

    with br.segments(program="sort and compress") as recorder:
        for _ in range(steps):
            with recorder.segment("sort"):
                delay()
                sorted(numbers)
            with recorder.segment("compress"):
                delay()
                zlib.compress(text)
    estimate = recorder.interference()
    return estimate, 100.0 * delay.injected_s / estimate.duration_s


if __name__ == "__main__":
    lost, injected = main(*map(int, sys.argv[1:]))
    print(render_interference(lost, name="sort and compress"))
    print(f"\ninjected: {injected:.1f}% of the time")
