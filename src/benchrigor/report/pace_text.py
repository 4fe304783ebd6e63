"""How the figure at full speed came to be, in words.

How much of its time a run lost to other work, in words: its light, and what tasks waited for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from benchrigor.model import Analysis, Estimate, Interference, Pace, RunRecord
from benchrigor.model.analysis import Kind
from benchrigor.model.interference import Light
from benchrigor.model.machine import OF_MACHINE
from benchrigor.model.pace import COMMAND_CPU, INTERPRETER
from benchrigor.model.readings import Facts
from benchrigor.model.text import counted, many, percent, show_estimate, show_value, show_values
from benchrigor.stats.series.full_speed import SENSITIVITY_SD
from benchrigor.units import statistic_of

_FULL_SPEED = (
    "at full speed, the fastest level at which it spent at least a tenth of a run, of the newest "
    "20 runs and 14 days on this machine and interpreter (kept in full_speed.json, in the user's "
    "folder for data)"
)

_NEARLY_ALL = 0.98  # of a reading that was work


def show_pace(pace: Pace) -> str:
    """Show the pace of the machine during a run: its mean, and the range over blocks of time.

    For a command, show first its own pace, which includes waits that bare starts share.
    """
    paces = (pace.share, pace.mean, pace.slowest, pace.fastest)
    share, mean, slowest, fastest = (percent(share, digits=2) for share in paces)
    over = "" if slowest == fastest else f", {slowest.removesuffix('%')} to {fastest}"
    if pace.of_command:
        return f"the command ran at {share} of its full speed, processors at {mean}{over}"
    return f"the machine ran at {mean} of its full speed{over}"


def explain_pace(analysis: Analysis, statistic: str) -> list[str]:
    """Explain the pace of the machine, and how the figure at full speed came to be."""
    full, pace, measured = analysis.at_full_pace, analysis.pace, analysis.estimate
    if full is None or pace is None or measured is None:
        return []
    if pace.of_command:
        return _command_pace(full, pace, analysis.metric.unit)
    learned = "as other workloads have it, since the pace moved too little to tell more"
    if pace.sensitivity_sd < pace.busy * SENSITIVITY_SD:
        learned = "from segments between fast and between slow references, and other workloads"
    own = f"{percent(pace.error, digits=2)} from blocks of time"
    if statistic_of(statistic)[0] != "mean":
        own += f", or that of the {statistic} where it is greater"
    unit, shared, levels = analysis.metric.unit, "runs", ""
    if pace.by_piece:
        shared = "runs" if analysis.kind is Kind.INVOCATIONS else "processes"
        own = f"that of the mean of {many(full.n, 'level')}"
        shown = show_values([value for value in pace.by_piece if value is not None], unit)
        whose = "invocations" if analysis.kind is Kind.INVOCATIONS else "pieces"
        levels = f" Levels of the {whose} at full speed: {', '.join(shown)}."
    return [
        "Between readings a short loop of byte code was timed, the reference. It takes "
        f"{show_value(pace.full_s[INTERPRETER], 's')} {_FULL_SPEED}. By that {show_pace(pace)}.",
        f"Where the reference takes 1% longer, a reading takes {pace.sensitivity:.2f}% ± "
        f"{pace.sensitivity_sd:.2f}% longer: its sensitivity, {learned}.{_say_share(pace)}",
        f"{_say_evidence(pace)} At full speed it is {full.value / measured.value:.3g} of what was "
        f"measured.{levels}",
        _at_full_speed(full, pace, unit, own, f"{shared} and from the fastest references"),
    ]


def _say_share(pace: Pace) -> str:
    """Say how much of the readings the pace changes, unless it is nearly all."""
    if pace.busy > _NEARLY_ALL:
        return ""
    return (
        f" A processor worked for {percent(pace.busy)} of a reading. The rest, in which it slept "
        "or waited for something else than a processor, counts as it was measured."
    )


def _say_evidence(pace: Pace) -> str:
    """Say which readings show the level at full speed."""
    away = percent(math.expm1(abs(pace.away)), digits=2)
    sign, rest = ("less", "left") if pace.away > 0.0 else ("and", "beyond it")
    if pace.at_full:
        those = (
            f"{many(pace.at_full, 'segment')} of readings lie between two references within 10% of "
            "that level. Their mean tells the time"
        )
    else:
        those = "The mean of all readings tells the time best"
    return f"{_say_fastest(pace)} {those}, {sign} what the sensitivity makes of the {away} {rest}."


def _say_fastest(pace: Pace) -> str:
    """Say how far the fastest level of the run is from full speed."""
    distance = pace.fastest_reference or 0.0
    far = percent(math.expm1(abs(distance)), digits=2)
    if not round(distance, 3):
        return "At the fastest level of this run the reference takes as long as at full speed."
    return (
        f"At the fastest level of this run the reference is {far} "
        f"{'slower' if distance > 0.0 else 'faster'} than at full speed: that is the machine, or "
        f"if little in part this process, and counts by {pace.to_full:.2f} ± {pace.to_full_sd:.2f}."
    )


def _command_pace(full: Estimate, pace: Pace, unit: str) -> list[str]:
    """Explain how the time of a command at full speed came to be."""
    return [
        f"Between runs a bare start of the interpreter was timed {counted(pace.blocks)} times, the "
        f"reference. It takes {show_value(pace.full_s[COMMAND_CPU], 's')} of processor time "
        f"{_FULL_SPEED}.",
        "Where a start takes 1% more processor time, a command takes "
        f"{pace.sensitivity:.2f}% ± {pace.sensitivity_sd:.2f}% more, as other commands have it. "
        "There is a rest of the wall time that is neither processor time nor measured delay. A "
        "start only waits in it, and so does a command that never gave a processor up before its "
        "end: theirs is left out. Of one that did, to sleep or to wait for something, what counts "
        "lies between all of the rest and what is beyond that of the starts. That makes the time "
        f"at full speed {pace.factor:.3g} of that measured: {show_pace(pace)}.",
        _at_full_speed(
            full, pace, unit, f"{percent(pace.error, digits=2)} from blocks of time and the rest"
        ),
    ]


def _at_full_speed(full: Estimate, pace: Pace, unit: str, own: str, shared: str = "runs") -> str:
    """Show a figure at full speed with what its standard error is made of."""
    distance = percent(abs(pace.away) * pace.sensitivity_sd, digits=2)
    learned = "" if pace.widening == 1.0 else f". All times {pace.widening:.2g}, by stored runs"
    return (
        f"At full speed: {show_estimate(full, unit)}. Standard errors: {own}; {distance} from the "
        f"sensitivity, by that distance; {percent(pace.between, digits=2)} between "
        f"{shared}, which no single run can tell and is assumed{learned}."
    )


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
