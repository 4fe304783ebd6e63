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
from coverage_tables import Setting, heading

from benchrigor.instrument import Probe, ProbeRegistry

__all__ = ["exact", "memory", "programs"]

EXAMPLES = Path(__file__).parents[2] / "examples"
THREADS, MOST_B, MOST_ADDED = 8, 1_024, 0.01
PROBES = 1_000
BARRED = {"token", "held", "again"}


def exact(setting: Setting) -> None:
    """Print totals beside a reader that resets."""
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


def memory(setting: Setting) -> None:
    """Print what a probe takes once it was used, and once it was read too."""
    heading(["form", "B", "B once read", "B of its list in heavy use", "at most"])
    for form, use in _uses().items():
        used, read, heavy = _memory_b(use)
        bar = MOST_B if form in BARRED else None
        met = bar is None or used <= bar
        told = "-" if bar is None else f"{bar:,}: {setting.verdict(f'memory, {form}', met)}"
        print(f"| {form} | {used:,.0f} | {read:,.0f} | {heavy:,.0f} | {told} |")


def _uses() -> dict[str, Callable[[Probe], Callable[[], object]]]:
    """Return what makes of a probe a function that times an event, by form."""

    def token(probe: Probe) -> Callable[[], object]:
        return lambda: probe.stop(probe.start())

    def held(probe: Probe) -> Callable[[], object]:
        def event() -> None:
            with probe:
                pass

        return event

    def again(probe: Probe) -> Callable[[], object]:
        def event() -> None:
            with probe.again():
                pass

        return event

    def nested(probe: Probe) -> Callable[[], object]:
        def event() -> None:
            with probe.again(), probe.again():
                pass

        return event

    return {
        "token": token,
        "held": held,
        "again": again,
        "again, in itself": nested,
        "decorated, with its wrapper": lambda probe: probe(nothing),
    }


def nothing() -> None:
    """Do nothing, which `memory` decorates."""


def _memory_b(use: Callable[[Probe], Callable[[], object]]) -> tuple[float, float, float]:
    """Return what a probe takes in one thread after a hundred events, read, and after many."""
    registry = ProbeRegistry()
    probes, kept = [], []
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for each in range(PROBES):
        probe = registry.probe(f"event {each}")
        event = use(probe)
        probes.append(probe)
        if hasattr(event, "__probe__"):
            kept.append(event)
        for _ in range(100):
            event()
    del event
    used, _ = tracemalloc.get_traced_memory()
    registry.read()
    for probe in probes:
        for _ in range(2):
            probe.stop(probe.start())
    read, _ = tracemalloc.get_traced_memory()
    one = use(probes[0])
    for _ in range(20_000):
        one()
    cell = probes[0].cell
    while len(cell) < cell.room - 1:
        one()
    heavy = sys.getsizeof(cell) + sum(map(sys.getsizeof, cell))
    tracemalloc.stop()
    return (used - before) / PROBES, (read - before) / PROBES, heavy


def programs(setting: Setting) -> None:
    """Print what probes add to two programs, in pairs of runs with and without them."""
    sys.path.insert(0, str(EXAMPLES))
    kmeans: Any = import_module("kmeans_probes")
    mjpeg: Any = import_module("mjpeg_probes")
    points = np.random.default_rng(setting.seed).normal(size=(20_000, 2))
    both: dict[str, Callable[[ProbeRegistry], object]] = {
        "k-means": lambda registry: kmeans.k_means(points, 8, 10, registry),
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
