"""What an event of a probe costs, by its form, in rounds that are interleaved."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np
from coverage_tables import Setting, heading

from benchrigor.instrument import ProbeRegistry

__all__ = ["cost", "threads"]

EVENTS = 20_000
THREADS, APART = 4, 0.15
BARS: dict[str, float | None] = {
    "token": 3.0,
    "held": 4.0,
    "again": 6.5,
    "again, asyncio loaded": None,
    "decorated": 4.5,
    "token, off": 0.8,
    "held, off": 1.6,
    "decorated, off": 1.1,
    "if probe.on": 0.3,
}
Loop = Callable[[], object]


def _bare() -> None:
    now = time.perf_counter_ns
    for _ in repeat(None, EVENTS):
        now()
        now()


def _empty() -> None:
    for _ in repeat(None, EVENTS):
        pass


def _calls(func: Callable[[], object]) -> Loop:
    def loop() -> None:
        for _ in repeat(None, EVENTS):
            func()

    return loop


def _nothing() -> None:
    pass


def _forms(*, on: bool) -> dict[str, Loop]:  # noqa: C901  # a loop for each, written out
    """Return a loop for each way to use a probe."""
    probe = ProbeRegistry(on=on).probe("event")

    def token() -> None:
        for _ in repeat(None, EVENTS):
            probe.stop(probe.start())

    def held() -> None:
        for _ in repeat(None, EVENTS):
            with probe:
                pass

    def again() -> None:
        for _ in repeat(None, EVENTS):
            with probe.again():
                pass

    def guarded() -> None:
        for _ in repeat(None, EVENTS):
            if probe.on:
                probe.stop(probe.start())

    found: dict[str, Loop] = {"token": token, "held": held, "decorated": _calls(probe(_nothing))}

    def again_beside_asyncio() -> None:
        sys.modules.setdefault("asyncio", sys)  # its name is all that is asked for
        again()
        if sys.modules["asyncio"] is sys:
            del sys.modules["asyncio"]

    if on:
        return found | {"again": again, "again, asyncio loaded": again_beside_asyncio}
    return {f"{name}, off": loop for name, loop in found.items()} | {"if probe.on": guarded}


def _others() -> dict[str, Loop]:
    """Return loops of what others have, where it is installed."""
    found: dict[str, Loop] = {}
    try:
        prometheus: Any = import_module("prometheus_client")
    except ImportError:
        print("prometheus-client is not installed.")
    else:
        registry = prometheus.CollectorRegistry()
        summary = prometheus.Summary("event", "an event", registry=registry)

        def timed() -> None:
            for _ in repeat(None, EVENTS // 10):
                with summary.time():
                    pass

        found["prometheus Summary.time()"] = timed
    try:
        metrics: Any = import_module("opentelemetry.sdk.metrics")
    except ImportError:
        print("opentelemetry-sdk is not installed.")
    else:
        histogram = metrics.MeterProvider().get_meter("evidence").create_histogram("event")

        def recorded() -> None:
            now = time.perf_counter_ns
            for _ in repeat(None, EVENTS // 10):
                begun = now()
                histogram.record(now() - begun)

        found["OpenTelemetry histogram.record"] = recorded
    return found


def cost(setting: Setting) -> None:
    """Print medians of ratios to a bare pair of the same round, processor time."""
    loops = {**_forms(on=True), **_forms(on=False), **_others()}
    calls = _calls(_nothing)
    ratios: dict[str, list[float]] = {name: [] for name in loops}
    bare_s = []
    for _ in range(setting.runs(31, 7)):
        empty_s, call_s = _spent_s(_empty), _spent_s(calls)
        pair_s = _spent_s(_bare) - empty_s
        bare_s.append(pair_s)
        for name, loop in loops.items():
            rest_s = call_s if name.startswith("decorated") else empty_s
            times = 1.0 if name in BARS else 10.0
            ratios[name].append((_spent_s(loop) * times - rest_s) / pair_s)
    print(f"a bare pair: {np.median(bare_s) / EVENTS * 1e9:.0f} ns\n")
    heading(["form", "pairs", "at most"])
    slack = 1.5 if setting.quick else 1.0
    for name, found in ratios.items():
        ratio, bar = float(np.median(found)), BARS.get(name)
        told = "-" if bar is None else f"{bar:g}: {setting.verdict(name, ratio <= bar * slack)}"
        print(f"| {name} | {ratio:.2f} | {told} |")


def _spent_s(loop: Loop) -> float:
    begun = time.process_time()
    loop()
    return time.process_time() - begun


def threads(setting: Setting) -> None:
    """Print the processor time of an event in four threads, over that in one."""
    loop = _forms(on=True)["token"]
    ratios = []
    for _ in range(setting.runs(21, 5)):
        one_s = _spent_s(loop)
        ratios.append(_spent_s(lambda: _in_threads(loop)) / THREADS / one_s)
    ratio = float(np.median(ratios))
    met = ratio <= 1.0 + (3.0 if setting.quick else 1.0) * APART
    print(f"{ratio:.3f} times, at most {1.0 + APART:g}: {setting.verdict('threads', met)}")


def _in_threads(loop: Loop) -> None:
    started = [threading.Thread(target=loop) for _ in range(THREADS)]
    for each in started:
        each.start()
    for each in started:
        each.join()
