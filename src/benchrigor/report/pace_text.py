"""How the figure at full pace came to be, in words."""

from __future__ import annotations

import math

from benchrigor.model import Analysis, Estimate, Kind, Pace, quantile_named
from benchrigor.model.pace import COMMAND_CPU, INTERPRETER
from benchrigor.model.run_line import is_corrected
from benchrigor.model.text import counted, many, percent, show_estimate, show_value, show_values
from benchrigor.stats.estimators.pace import SD_OF_FASTEST, SENSITIVITY, SENSITIVITY_SD

_FULL_PACE = (
    "at full pace, the fastest tenth of the best run known of its machine and interpreter "
    "(sessions keep it in full_pace.json, in the user's folder for data)"
)

_NEARLY_ALL = 0.98  # of a reading that was work


def show_pace(pace: Pace) -> str:
    """Show the pace of the machine during a run: its mean, and the range over blocks of time.

    For a command, show first its own pace, which includes waits that bare starts share.
    """
    paces = (pace.share, pace.mean, pace.slowest, pace.fastest)
    share, mean, slowest, fastest = (percent(min(share, 1.0), digits=2) for share in paces)
    over = "" if slowest == fastest else f", {slowest.removesuffix('%')} to {fastest}"
    if pace.of_command:
        return f"the command ran at {share} of its full pace, processors at {mean}{over}"
    return f"the machine ran at {mean} of its full pace{over}"


def explain_pace(analysis: Analysis, statistic: str) -> list[str]:
    """Explain the pace of the machine, and how the figure at full pace came to be."""
    full, pace, measured = analysis.at_full_pace, analysis.pace, analysis.estimate
    if full is None or pace is None or measured is None:
        return []
    headline = _headline(analysis, pace)
    if pace.of_command:
        return _command_pace(full, pace, analysis.metric.unit) + headline
    learned = "as other workloads have it, since the pace moved too little to tell more"
    if pace.sensitivity_sd < pace.busy * SENSITIVITY_SD:
        learned = "from segments between fast and between slow references, and other workloads"
    own = f"{percent(pace.error, digits=2)} from blocks of time"
    if quantile_named(statistic) is not None:
        own += f", or that of the {statistic} where it is greater"
    unit, shared, levels = analysis.metric.unit, "runs", ""
    if pace.by_piece:
        shared = "runs" if analysis.kind is Kind.INVOCATIONS else "processes"
        own = f"that of the mean of {many(full.n, 'level')}"
        shown = show_values([value for value in pace.by_piece if value is not None], unit)
        whose = "invocations" if analysis.kind is Kind.INVOCATIONS else "pieces"
        levels = f" Levels of the {whose} at full pace: {', '.join(shown)}."
    return [
        "Between readings a short loop of byte code was timed, the reference. It takes "
        f"{show_value(pace.full_s[INTERPRETER], 's')} {_FULL_PACE}. By that {show_pace(pace)}.",
        f"Where the reference takes 1% longer, a reading takes {pace.sensitivity:.2f}% ± "
        f"{pace.sensitivity_sd:.2f}% longer: its sensitivity, {learned}.{_say_share(pace)}",
        f"{_say_evidence(pace)} At full pace it is {full.value / measured.value:.3g} of what was "
        f"measured.{levels}",
        _at_full_pace(full, pace, unit, own, f"{shared} and from the fastest references"),
        *headline,
    ]


def _headline(analysis: Analysis, pace: Pace) -> list[str]:
    """Explain how the headline came to be, unless it is the measured number."""
    figure, quiet = analysis.headline, pace.quiet
    if figure is None or quiet is None or not is_corrected(analysis):
        return []
    source = "this run's own references, since fewer than five quiet runs are stored"
    if quiet.runs:
        source = f"the median of {many(quiet.runs, 'quiet run')} that are stored"
    between = percent(pace.between, digits=2)
    learned = "" if pace.widening == 1.0 else f", times {pace.widening:.2g} from stored runs"
    return [
        f"The headline is the same figure at the quiet pace of the machine, as {source} tell it: "
        f"{show_estimate(figure, analysis.metric.unit)}. Its interval holds how far runs differ, "
        f"too: {between} assumed{learned}."
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
    """Say which readings show the level at full pace."""
    away = percent(math.expm1(abs(pace.away)), digits=2)
    fastest = percent(math.expm1(pace.fastest_reference or 0.0), digits=2)
    least = (
        f"The fastest references are {fastest} slower than at full pace: that is the machine, or "
        f"if little in part this process, and counts by {SENSITIVITY} ± {SD_OF_FASTEST}, the "
        "sensitivity of most work."
    )
    if pace.at_full:
        sign, rest = ("less", "left") if pace.away > 0.0 else ("and", "beyond it")
        return (
            f"{least} {many(pace.at_full, 'segment')} of readings lie between two of these, or "
            f"within 10%. Their mean tells the level, {sign} what the sensitivity makes of the "
            f"{away} {rest}."
        )
    return (
        f"{least} Hardly any readings lie between two of these: the mean of all tells the level, "
        f"less what the sensitivity makes of the {away} between."
    )


def _command_pace(full: Estimate, pace: Pace, unit: str) -> list[str]:
    """Explain how the time of a command at full pace came to be."""
    return [
        f"Between runs a bare start of the interpreter was timed {counted(pace.blocks)} times, the "
        f"reference. It takes {show_value(pace.full_s[COMMAND_CPU], 's')} of processor time "
        f"{_FULL_PACE}.",
        "Where a start takes 1% more processor time, a command takes "
        f"{pace.sensitivity:.2f}% ± {pace.sensitivity_sd:.2f}% more, as other commands have it. "
        "There is a rest of the wall time that is neither processor time nor measured delay. A "
        "start only waits in it, and so does a command that never gave a processor up before its "
        "end: theirs is left out. Of one that did, to sleep or to wait for something, what counts "
        "lies between all of the rest and what is beyond that of the starts. That makes the time "
        f"at full pace {pace.factor:.3g} of that measured: {show_pace(pace)}.",
        _at_full_pace(
            full, pace, unit, f"{percent(pace.error, digits=2)} from blocks of time and the rest"
        ),
    ]


def _at_full_pace(full: Estimate, pace: Pace, unit: str, own: str, shared: str = "runs") -> str:
    """Show a figure at full pace with what its standard error is made of."""
    distance = percent(abs(pace.away) * pace.sensitivity_sd, digits=2)
    return (
        f"At full pace: {show_estimate(full, unit)}. Standard errors: {own}; {distance} from the "
        f"sensitivity, by that distance; {percent(pace.between, digits=2)} between "
        f"{shared}, which no single run can tell and is assumed."
    )
