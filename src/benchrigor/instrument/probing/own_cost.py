"""The cost of probes themselves, measured on empty events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import repeat

from benchrigor.instrument.data.probe_reading import ProbeReading
from benchrigor.instrument.probing.probes import Probe
from benchrigor.model.notice import Code, Notice

_BATCHES, _EVENTS = 21, 50
_MUCH = 0.01  # of the run time


def calibrate(probe: Probe) -> dict[str, float]:
    """Return the median cost of an event in seconds, by its form; it takes a few milliseconds.

    The cost of the loop around the events, and of the decorated call, is subtracted.
    """

    def call() -> None:
        pass

    def token() -> None:
        probe.stop(probe.start())

    def enter() -> None:
        with probe:
            pass

    def again() -> None:
        with probe.again():
            pass

    forms = {"token": token, "held": enter, "again": again, "decorated": probe(call)}
    times_s = {name: _median_s(form) for name, form in {"": call, **forms}.items()}
    return {name: max(times_s[name] - times_s[""], 0.0) for name in forms}


def _median_s(event: Callable[[], object]) -> float:
    batches_ns = []
    for _ in range(_BATCHES):
        begun_ns = time.perf_counter_ns()
        for _ in repeat(None, _EVENTS):
            event()
        batches_ns.append(time.perf_counter_ns() - begun_ns)
    return sorted(batches_ns)[_BATCHES // 2] / _EVENTS * 1e-9


def warn_of_own_cost(readings: Iterable[ProbeReading], elapsed_s: float) -> tuple[Notice, ...]:
    """Warn if probes took a notable share of the run time."""
    given = tuple(readings)
    cost_s = sum(probe.count * probe.own_cost_s for probe in given)
    if cost_s <= _MUCH * elapsed_s:
        return ()
    from benchrigor.model.text import counted, percent  # noqa: PLC0415  # takes 30 ms

    dearest = max(given, key=lambda probe: probe.count * probe.own_cost_s)
    sentence = (
        f"Probes themselves took about {percent(cost_s / elapsed_s, digits=2)} of the run "
        f"time; {dearest.name} was used most, {counted(dearest.count)} times. Time larger "
        "units of work, or switch it off."
    )
    figures = {"cost_s": cost_s, "elapsed_s": elapsed_s, "dearest": dearest.name}
    return (Notice.warning(Code.PROBE_COST, sentence, **figures),)
