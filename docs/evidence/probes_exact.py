"""Whether probes lose events, and what they add to two programs."""

from __future__ import annotations

import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from coverage_tables import Setting

from benchrigor.instrument import ProbeRegistry

__all__ = ["exact", "programs"]

EXAMPLES = Path(__file__).parents[2] / "examples"
THREADS, MOST_KIB, MOST_ADDED = 8, 1.0, 0.01
PROBES = 1_000


def exact(setting: Setting) -> None:
    """Print totals beside a reader that resets, and the memory of a probe in a thread."""
    events = 20_000 if setting.quick else 1_250_000
    registry = ProbeRegistry()
    probe = registry.probe("event")

    def count() -> None:
        for _ in repeat(None, events):
            probe.stop(probe.start())

    workers = [threading.Thread(target=count) for _ in range(THREADS)]
    reader, counted, resets = registry.reader(), 0, 0
    for each in workers:
        each.start()
    while any(each.is_alive() for each in workers):
        counted += reader.since_last()["event"].count
        resets += 1
        time.sleep(0.001)
    counted += reader.since_last()["event"].count
    met = counted == probe.read().count == events * THREADS
    print(
        f"{events * THREADS:,} events of {THREADS} threads, read with a reset {resets:,} times: "
        f"{counted:,} counted: {setting.verdict('exact', met)}"
    )
    kib = _memory_kib()
    verdict = setting.verdict("memory", kib <= MOST_KIB)
    print(f"{kib:.2f} KiB for a probe in a thread, at most {MOST_KIB:g}: {verdict}")


def _memory_kib() -> float:
    """Return what a probe takes once it is used, in a thread."""
    registry = ProbeRegistry()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    probes = [registry.probe(f"event {each}") for each in range(PROBES)]
    for probe in probes:
        for _ in range(100):
            probe.stop(probe.start())
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / PROBES / 1024.0


def programs(setting: Setting) -> None:
    """Print what probes add to two programs, in pairs of runs with and without them."""
    sys.path.insert(0, str(EXAMPLES))
    kmeans: Any = import_module("kmeans_probes")
    mjpeg: Any = import_module("mjpeg_probes")
    points = np.random.default_rng(setting.seed).normal(size=(2_000, 2))
    both: dict[str, Callable[[ProbeRegistry], object]] = {
        "k-means": lambda registry: kmeans.k_means(points, 8, 3, registry),
        "motion JPEG": lambda registry: mjpeg.encode(2, 352, 288, registry),
    }
    for name, program in both.items():
        added = []
        for run in range(setting.runs(61, 9)):
            order = (True, False) if run % 2 else (False, True)
            spent = {on: _spent_s(program, on=on) for on in order}
            added.append(spent[True] / spent[False] - 1.0)
        median = float(np.median(added))
        reach = 1.25 * float(np.std(added)) / len(added) ** 0.5  # standard error of a median
        met = median <= (0.1 if setting.quick else MOST_ADDED)
        print(
            f"{name}: {median:+.2%} (standard error {reach:.2%}), at most {MOST_ADDED:.0%}: "
            f"{setting.verdict(name, met)}"
        )


def _spent_s(program: Callable[[ProbeRegistry], object], *, on: bool) -> float:
    registry = ProbeRegistry(on=on)
    begun = time.process_time()
    program(registry)
    return time.process_time() - begun
