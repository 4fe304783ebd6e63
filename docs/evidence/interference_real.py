"""Real runs on this machine, delayed by known times, by a busy neighbour, or by nothing known.

A run is 900 loops of plain Python in three sizes, about 1 to 5 ms each, in random order; each is a
segment. An injector sleeps at the end of about 6 % of them. The truth is the time that it slept, as
measured around each sleep, over the wall time of the run. Waiting for a processor is measured and
taken off before the estimate; both stand beside each other.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row
from interference_programs import accuracy

import benchrigor as br
from benchrigor.interference import segments
from benchrigor.model import Interference, Light
from benchrigor.stats import light_of
from benchrigor.testing import Injector, cpu_hog

__all__ = ["busy", "idle", "injected", "neighbours"]

INJECTED, NEIGHBOURS, IDLE = 86, 87, 88
SIZES = (25_000, 55_000, 120_000)
EACH = 300
HIT, SPREAD = 0.06, 0.3
LEVELS = (
    *(0.0, 0.01, 0.02, 0.035, 0.05, 0.06),
    *(0.09, 0.1, 0.11, 0.115, 0.125, 0.135),
    *(0.19, 0.24, 0.3, 0.38, 0.48, 0.58),
)
"""Six shares for each light; what is injected differs a little, as hits and delays are drawn."""
BESIDE = (0.0, 0.0, 0.05, 0.1, 0.2, 0.4)
IDLE_RUNS = 9
MEDIAN, LEAST, OF_EACH_LIGHT = 0.95, 0.75, 4
MEASURED, MOST_IDLE = 15.0, 2.0
LIGHTS = (Light.GREEN, Light.YELLOW, Light.RED)
KINDS = ("work given", "counted")
"""Computation: loops as the program states them, or whatever the recorder counts."""


def busy(loops: int) -> int:
    """Compute for a while."""
    total = 0
    for each in range(loops):
        total += each * each
    return total


class Ran(NamedTuple):
    """One run, and the computation feature that its segments were grouped by."""

    truth: float
    found: Interference
    feature: str
    load: float

    @property
    def accuracy(self) -> float:
        """How close the estimate is to the truth."""
        return accuracy(self.truth, self.found.percent)


def run(key: Sequence[int], level: float, kind: str, base_s: float) -> Ran:
    """Run the loops once; delays should take the share ``level`` of its wall time."""
    rng = np.random.default_rng(key)
    order = rng.permutation(np.repeat(SIZES, EACH)).tolist()
    mean_s = level / (1.0 - level) * base_s / (HIT * len(order))
    probability = HIT if level else 0.0
    seed = int(rng.integers(2**32))
    injector = Injector(mean_s, SPREAD * mean_s, probability, seed=seed)
    with segments(program="loops") as recorder:
        start = time.perf_counter()
        for size in order:
            with recorder.segment(work=size if kind == "work given" else None):
                busy(size)
                injector()
        wall_s = time.perf_counter() - start
    truth = 100.0 * injector.injected_s / wall_s
    feature = ", ".join(recorder.profile.computation)
    return Ran(truth, recorder.interference(), feature, os.getloadavg()[0])


def warmed() -> float:
    """Return how long a run's loops take, after the first have warmed up."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        for size in SIZES:
            for _ in range(EACH // 3):
                busy(size)
        times.append(3.0 * (time.perf_counter() - start))
    return min(times)


def show(ran: Ran) -> None:
    """Print one run."""
    found = ran.found
    row(
        ran.feature,
        f"{ran.truth:.1f}",
        f"{found.percent:.1f}",
        f"{found.measured_percent:.1f}",
        found.light,
        f"{ran.accuracy:.3f}",
        f"{found.unclustered_percent:.1f}",
        f"{ran.load:.1f}",
        ", ".join(each.code for each in found.notices),
    )


def runs(setting: Setting, section: int, levels: Sequence[float]) -> dict[str, list[Ran]]:
    """Run and print each level twice, with work given and as counted, in random order."""
    base_s = warmed()
    print(f"{len(levels)} runs in random order, each twice, with the work given and as counted;")
    print(f"{base_s:.1f} s without delays. In per cent of the wall time:\n")
    columns = ["feature", "truth", "estimated", "measured", "light", "accuracy", "in no group"]
    heading([*columns, "load", "Notices"])
    ran: dict[str, list[Ran]] = {kind: [] for kind in KINDS}
    order = np.random.default_rng([setting.seed, section]).permutation(len(levels)).tolist()
    for index in order[: setting.repetitions]:
        for number, kind in enumerate(KINDS):
            key = (setting.seed, section, index, number)
            ran[kind].append(run(key, levels[index], kind, base_s))
            show(ran[kind][-1])
    print()
    return ran


def injected(setting: Setting) -> None:
    """Print runs of every light, and how accurate they are."""
    ran = runs(setting, INJECTED, LEVELS)
    bars = (f"median {MEDIAN}", f"least {LEAST}", f"at least {OF_EACH_LIGHT} of each light")
    heading(["feature", "median accuracy", bars[0], "least", bars[1], "largest error", bars[2]])
    for kind, found in ran.items():
        accuracies = [each.accuracy for each in found]
        median, least = float(np.median(accuracies)), min(accuracies)
        offs = [each.found.percent - each.truth for each in found]
        lights = Counter(light_of(each.truth) for each in found)
        enough = min(lights[light] for light in LIGHTS) >= OF_EACH_LIGHT
        row(
            kind,
            f"{median:.3f}",
            setting.verdict(f"{kind}, {bars[0]}", median >= MEDIAN),
            f"{least:.3f}",
            setting.verdict(f"{kind}, {bars[1]}", least >= LEAST),
            f"{max(offs, key=abs):+.1f} points",
            f"{', '.join(f'{lights[light]} {light}' for light in LIGHTS)}: "
            f"{setting.verdict(f'{kind}, {bars[2]}', enough)}",
        )


@contextmanager
def pinned() -> Iterator[int]:
    """Stay on one processor for a while."""
    if not hasattr(os, "sched_setaffinity"):
        raise br.InvalidInput("this system pins no process, expected Linux")
    allowed = os.sched_getaffinity(0)
    core = max(allowed)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, allowed)


def neighbours(setting: Setting) -> None:
    """Print runs that share their processor with a process that is always busy."""
    with pinned() as core, cpu_hog(core=core):
        ran = runs(setting, NEIGHBOURS, BESIDE)
    everything = [each for found in ran.values() for each in found]
    much = [each for each in everything if each.found.measured_percent > MEASURED]
    red = sum(each.found.light is Light.RED for each in much)
    verdict = setting.verdict("neighbours are red", bool(much) and red == len(much))
    print(
        f"{len(much)} of {len(everything)} runs above {MEASURED:g} % measured, {red} red: {verdict}"
    )


def idle(setting: Setting) -> None:
    """Print runs without injection."""
    for kind, found in runs(setting, IDLE, [0.0] * IDLE_RUNS).items():
        percents = [each.found.percent for each in found]
        median = float(np.median(percents))
        verdict = setting.verdict(f"idle, {kind}", median < MOST_IDLE)
        print(
            f"{kind}: median {median:.2f} %, most {max(percents):.2f} %, "
            f"below {MOST_IDLE:g} %: {verdict}"
        )
