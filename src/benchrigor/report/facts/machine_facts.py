"""The machine: its state, what the doctor found, and its speed and other work during a run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from benchrigor.layout import WIDTH, Title, page, table, wrapped
from benchrigor.model import Analysis, Code, Estimate, Interference, Pace, RunRecord
from benchrigor.model.machine import COMMAND_CPU, INTERPRETER, OF_MACHINE, State
from benchrigor.model.notice import Finding, Fitness, verdict_of
from benchrigor.model.readings import Facts
from benchrigor.model.segments import Light
from benchrigor.model.text import MEMORY_FLOOR, PEAK_MEMORY, show_estimate, show_peak_memory
from benchrigor.report.fact import (
    Depth,
    Fact,
    is_undisturbed,
    known,
    list_rows,
    rows_of,
    sentence,
    step,
)
from benchrigor.session.red_rounds import advice, is_disturbed
from benchrigor.units import many, percent, shortened, show_duration, show_value, statistic_of

_FULL_SPEED = (
    "the fastest pace held for a tenth of a run, in the last 20 runs or 14 days of this machine "
    "and interpreter (full_speed.json, in the user's folder for data)"
)
_NEARLY_ALL = 0.98  # of a reading that was work
_KNOWN = 99.5  # per cent of the time that are shown as all of it
_NOTABLE = 0.01  # share of the time
_NAMES = {"cpu": "processors", "io": "disks", "memory": "memory"}
_OF_STATUS = re.compile(rf"{OF_MACHINE}pressure (\w+) (some|full)")
_OF_PROFILE = re.compile(r"pressure_(cpu|io|memory)(_full)?_s")
_Rows = tuple[tuple[str, str], ...]

Pressure = Mapping[tuple[str, str], float]  # share of the time by resource and "some" or "full"


def facts_of_machine(record: RunRecord) -> list[Fact]:
    """Return the facts of the machine during a run, the steps of its light included."""
    lost, pressure = record.interference, show_pressure(pressure_of_run(record))
    disturbed = any(notice.code is Code.DISTURBED for notice in record.session_notices)
    codes = (Code.DISTURBED,) if lost is not None and disturbed else ()
    light = "" if lost is None else _light(lost, record, disturbed=disturbed)
    memory = show_peak_memory(record.facts) if PEAK_MEMORY in record.facts else ""
    pace = next((analysis.pace for analysis in record.analyses if analysis.at_full_pace), None)
    where = record.provenance
    return known(
        Fact("busy", Depth.PAGE, "machine", _busy(record)),
        Fact("pace", Depth.PAGE, "machine", "" if pace is None else show_pace(pace), pace),
        Fact("computer", Depth.PAGE, "machine", "" if where is None else where.machine),
        Fact("host", Depth.DETAILS, "machine", _host(record)),
        Fact("light", Depth.DETAILS, "light", light, lost, codes=codes),
        Fact("pressure", Depth.DETAILS, "pressure", pressure),
        Fact("memory", Depth.PAGE, "memory", f"at its peak {memory}" * bool(memory)),
        Fact("measured", Depth.DETAILS, "measured", _measured(record)),
        *([] if lost is None else [_lost_time(lost, pressure)]),
    )


def facts_of_pace(analysis: Analysis, statistic: str) -> list[Fact]:
    """Return the steps from the readings to the figure at full speed."""
    full, pace = analysis.at_full_pace, analysis.pace
    if full is None or pace is None or analysis.estimate is None:
        return []
    shown, what = show_estimate(full, analysis.metric.unit), "a short fixed loop"
    if pace.of_command:
        what = "a bare start of the interpreter"
    speed = f"{what} was timed, the reference. By that the machine ran {show_pace(pace)}"
    from_what = "The fastest moments" if pace.at_full else "All readings"
    return [
        step("pace", f"In turn with the readings {speed}.", *_reference(pace)),
        step(
            "full speed",
            f"{from_what}, scaled to full speed, give {shown}.",
            *_errors(full, pace, statistic),
        ),
    ]


def show_pace(pace: Pace) -> str:
    """Show the pace of the machine during a run: its mean, and the range over blocks of time.

    For a command, show first its own pace, which includes waits that bare starts share.
    """
    paces = (pace.share, pace.mean, pace.slowest, pace.fastest)
    # Full speed is held for a while: moments of more are as good as full speed.
    share, mean, slowest, fastest = (percent(min(share, 1.0), digits=2) for share in paces)
    over = "" if slowest == fastest else f", over time from {slowest} to {fastest}"
    if pace.of_command:
        return f"at {share} of full speed; its processors at {mean}{over}"
    return f"at {mean} of full speed{over}"


def _reference(pace: Pace) -> _Rows:
    """Say how long the reference takes at full speed, and how the readings follow it."""
    kind, what = (COMMAND_CPU, "processor time") if pace.of_command else (INTERPRETER, "time")
    follows = f"{pace.sensitivity:.2f}% ± {pace.sensitivity_sd:.2f}% more {what}"
    waits, work = "", ""
    if pace.of_command:
        waits = "wall time that is neither processor time nor delay; it counts as far as the "
        waits += "command gave its processor up and bare starts do not"
    elif pace.busy <= _NEARLY_ALL:
        work = f"a processor worked for {percent(pace.busy)} of a reading; the rest, in which it "
        work += "slept or waited, counts as measured"
    return (
        ("full speed", f"{show_value(pace.full_s[kind], 's')} of {what}: {_FULL_SPEED}"),
        ("sensitivity", f"{follows} where the reference takes 1% more"),
        ("waits", waits),
        ("work", work),
    )


def _errors(full: Estimate, pace: Pace, statistic: str) -> _Rows:
    """Say which readings show the level at full speed, and what its standard error is made of."""
    of = f"{many(pace.at_full, 'moment')} with a reference within 10% of the fastest"
    away = percent(math.expm1(abs(pace.away)), digits=2)
    own, distance, between = (
        percent(error, digits=2)
        for error in (pace.error, abs(pace.away) * pace.sensitivity_sd, pace.between)
    )
    own = f"as for the mean of {many(full.n, 'level')}" if pace.by_piece else f"{own} by readings"
    if statistic_of(statistic)[0] != "mean":
        own += f" or by the {statistic} if that is greater"
    errors = f"{own}, {distance} by the sensitivity, {between} by how runs differ (assumed)"
    if pace.widening != 1.0:
        errors += f"; all times {pace.widening:.2g}, by stored runs"
    evidence = f"{of if pace.at_full else 'all readings'}, {away} from full speed"
    return ("evidence", evidence), ("standard errors", errors)


def _busy(record: RunRecord) -> str:
    """Say how busy the machine was, if it was."""
    lost = record.interference
    if lost is None or not is_disturbed(lost):
        return ""
    kept = ", left out of the number" * is_undisturbed(record)
    return f"busy: other programs took {lost.measured_percent:.0f}% of the time{kept}"


def _host(record: RunRecord) -> str:
    where = record.provenance
    if where is None:
        return ""
    load = ""
    if where.load_before is not None and where.load_after is not None:
        load = f"load {where.load_before:.2f} before, {where.load_after:.2f} after"
    return "; ".join(filter(None, [where.host, load]))


def _measured(record: RunRecord) -> str:
    """Show further measurements, of the program and not of the machine."""
    shown = []
    for key, value in record.facts.items():
        if key.startswith(OF_MACHINE) or key in (MEMORY_FLOOR, PEAK_MEMORY):
            continue
        words = key.replace("_", " ")
        if isinstance(value, float) and key.endswith("_s"):
            shown.append(f"{words.removesuffix(' s')} {show_value(value, 's')}")
        elif isinstance(value, int) and key.endswith("_memory"):
            shown.append(f"{words} {show_value(value, 'B')}")
        else:
            shown.append(f"{words} {value}")
    return ", ".join(shown)


# Time that other work took


def show_total(interference: Interference) -> str:
    """Show the light and the share of the time that it stands on."""
    duration = show_value(interference.duration_s, "s")
    if interference.light is Light.UNKNOWN and not interference.is_measured:
        return f"● {interference.light}, of {duration}"
    lost = f"{interference.least}{interference.total_percent:.1f}% of {duration} lost"
    return f"● {interference.light}: {lost}"


def _light(lost: Interference, record: RunRecord, *, disturbed: bool) -> str:
    parts = [show_total(lost)]
    if lost.known_percent < _KNOWN and lost.is_measured:
        parts.append(f"delay is known for {lost.known_percent:.0f}% of the time")
    elif lost.light is Light.UNKNOWN and lost.is_measured:
        parts.append("no light without a number of five readings")
    if disturbed:
        parts.append(advice(lost, record.analyses))
    return "; ".join(parts)


def _lost_time(lost: Interference, pressure: str) -> Fact:
    whole = "green below 7.5%, red above 15%; what slows all readings equally does not show"
    sources = ", ".join(source for source, share in lost.delays.items() if share)
    return step(
        "lost time",
        f"Time that other work took: {show_total(lost)}.",
        ("light", whole),
        ("measured", "" if lost.percent else sources),
        ("pressure", f"{pressure}, the program's own waiting included" if pressure else ""),
    )


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
        return delay
    return f"{delay}: {show_value(waiting.value, analysis.metric.unit)} with all readings"


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
    return f"some task waited {shown}" if shown else ""


def _show_pressure(pressure: Pressure) -> Iterator[str]:
    for resource, name in _NAMES.items():
        some, full = pressure.get((resource, "some")), pressure.get((resource, "full"))
        if some:
            alone = f" ({percent(full, digits=2)} all tasks)" if full else ""
            yield f"{percent(some, digits=2)} of the time for {name}{alone}"


MARKS = {Fitness.UNFIT: "✗", Fitness.DOUBTFUL: "!", Fitness.OK: "✓", Fitness.UNKNOWN: "?"}
_ASKING = (Fitness.UNFIT, Fitness.DOUBTFUL)
_HEADS = {
    Fitness.OK: "fit: measure here",
    Fitness.DOUBTFUL: "doubtful: measure here, with the following in mind",
    Fitness.UNFIT: "unfit: readings taken here say little",
}


def render_findings(findings: Sequence[Finding], *, whole: bool = True) -> str:
    """Return the findings, up to 79 columns wide: the worst first, the unknown last.

    Parameters
    ----------
    findings
        As `session.examine` returns them.
    whole
        Whether all findings are shown, or up to eight of those that ask for something.

    Examples
    --------
    >>> on = Finding(name="turbo", found="on", verdict=Fitness.DOUBTFUL, advice="turn it off")
    >>> print(render_findings([on]))
    doubtful: measure here, with the following in mind
    ──────────────────────────────────────────────────
      ! turbo   on
                →  turn it off
    """
    facts = facts_of_findings(findings)
    lines = rows_of(facts, Depth.DETAILS if whole else Depth.PAGE)
    rest = sum(fact.depth is Depth.DETAILS for fact in facts) * (not whole)
    if rest:
        lines += wrapped(f"{rest} findings that ask for nothing: --details", "  ")
    return page([Title(_HEADS[verdict_of(findings)]), *lines])


def facts_of_findings(findings: Sequence[Finding]) -> list[Fact]:
    """Return the findings, the worst first; a page has those that ask for something."""
    return [
        Fact(
            finding.name,
            Depth.PAGE if verdict in _ASKING else Depth.DETAILS,
            f"{mark} {shortened(finding.name, WIDTH // 2 - 4)}",
            finding.found,
            finding,
            rows=(("→", _advice_of(finding)),) if finding.advice else (),
        )
        for verdict, mark in MARKS.items()
        for finding in findings
        if finding.verdict is verdict
    ]


def _advice_of(finding: Finding) -> str:
    return f"{finding.advice} [{finding.code}]" if finding.code else finding.advice


def facts_of_state(state: State) -> list[Fact]:
    """Return a table of samples, and the unknown ones by reason."""
    over = "" if state.span_s is None else f", rates over {show_duration(state.span_s)}"
    cost = show_value(sum(state.cost_s.values()), "s")
    present = [(sample.name, sample.shown) for sample in state.samples if sample.value is not None]
    missing: dict[str, list[str]] = {}
    for sample in state.samples:
        if sample.value is None:
            missing.setdefault(sample.reason, []).append(sample.name)
    return known(
        sentence("read", f"{type(state).__name__} at {state.at}{over}, read in {cost}"),
        list_rows("samples", table(present, "<>", has_names=False)),
        *(
            sentence("missing", f"not known: {', '.join(names)}: {reason}")
            for reason, names in missing.items()
        ),
    )
