"""How much of its time a run lost to other work, in words: its light, and what tasks waited for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from benchrigor.model import Analysis, Interference, RunRecord
from benchrigor.model.interference import Light
from benchrigor.model.machine import OF_MACHINE
from benchrigor.model.readings import Facts
from benchrigor.model.text import percent, show_value

_NOTABLE = 0.01  # share of the time
_NAMES = {"cpu": "processors", "io": "disks", "memory": "memory"}
_OF_STATUS = re.compile(rf"{OF_MACHINE}pressure (\w+) (some|full)")
_OF_PROFILE = re.compile(r"pressure_(cpu|io|memory)(_full)?_s")

Pressure = Mapping[tuple[str, str], float]  # share of the time by resource and "some" or "full"


def show_total(interference: Interference) -> str:
    """Show the light and the share of the time that it stands on."""
    duration = show_value(interference.duration_s, "s")
    if interference.light is Light.UNKNOWN and not interference.is_measured:
        return f"● {interference.light}, of {duration}"
    lost = f"{interference.least}{interference.total_percent:.1f}% of {duration} lost"
    return f"● {interference.light}: {lost}"


def with_waiting(analysis: Analysis) -> str:
    """Show the number of all readings, and their delay, if that is much and does not count."""
    disturbed = analysis.disturbed
    if disturbed is None or not disturbed.matters:
        return ""
    delay = f"{percent(max(disturbed.lost - disturbed.stopped, 0.0), digits=2)} run delay"
    if disturbed.stopped:
        delay += f" and {percent(disturbed.stopped, digits=2)} stopped"
    number, waiting = analysis.estimate, disturbed.estimate
    by_chance = number and waiting and analysis.metric.is_duration and waiting.value < number.value
    if waiting is None or by_chance:
        return f"without {delay}"
    return f"{show_value(waiting.value, analysis.metric.unit)} with waiting, {delay}"


def pressure_of_run(record: RunRecord) -> Pressure:
    """Return the pressure during the rounds of a run, from their facts about the machine."""
    waited_s: dict[tuple[str, str], float] = {}
    told_s = 0.0
    for finished in record.rounds:
        span_s = _number(finished.facts, f"{OF_MACHINE}span_s")
        found = {
            (match[1], match[2]): _number(finished.facts, name) / 100.0 * span_s
            for name in finished.facts
            if (match := _OF_STATUS.fullmatch(name))
        }
        told_s += span_s if found else 0.0
        for key, seconds in found.items():
            waited_s[key] = waited_s.get(key, 0.0) + seconds
    return {key: seconds / told_s for key, seconds in waited_s.items()} if told_s else {}


def pressure_of_profile(facts: Facts) -> Pressure:
    """Return the pressure during the run of a segment profile, from its facts."""
    wall_s = _number(facts, "wall_s")
    return {
        (match[1], "full" if match[2] else "some"): _number(facts, name) / wall_s
        for name in facts
        if wall_s > 0.0 and (match := _OF_PROFILE.fullmatch(name))
    }


def _number(facts: Facts, name: str) -> float:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def show_pressure(pressure: Pressure) -> str:
    """Show which share of the time tasks waited for a resource; empty if that is unknown."""
    if pressure and max(pressure.values()) < _NOTABLE:
        return f"hardly any: tasks waited less than {percent(_NOTABLE)} of the time"
    shown = ", ".join(_show_pressure(pressure))
    return f"some task waited, of the time: {shown}" if shown else ""


def _show_pressure(pressure: Pressure) -> Iterator[str]:
    for resource, name in _NAMES.items():
        some, full = pressure.get((resource, "some")), pressure.get((resource, "full"))
        if some is not None:
            alone = f" (nothing else was done: {percent(full, digits=2)})" if full else ""
            yield f"{percent(some, digits=2)} for {name}{alone}"


def explain_pressure(pressure: Pressure) -> list[str]:
    """Explain the pressure and its meaning."""
    shown = show_pressure(pressure)
    if not shown:
        return []
    return [
        f"Pressure on the machine: {shown}. It is told by the kernel of all tasks of the machine, "
        "the program's own waiting included, and no part of the light: where disks or memory are "
        "waited for, readings are slow although nobody took a processor away."
    ]
