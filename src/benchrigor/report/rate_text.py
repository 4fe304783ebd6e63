"""How fast a stage could go, as text: the rate first, then what it stands on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchrigor.model import Estimate, RateReason, ServiceMoments, ServiceProcess, ServiceRate
from benchrigor.model.text import counted, many, percent, show_estimate, show_value
from benchrigor.report.lines import WIDTH, marked, row
from benchrigor.stats.service.busy_time_rate import BUSY_TIME, moved
from benchrigor.stats.service.flows import utilisation_of
from benchrigor.units import Scale, digits_for, scale_for

__all__ = ["phases_of", "render_rates", "span", "speed_unit", "standing"]

_MOST_PHASES = 12
_LONGEST = 24
"""Characters of a unit that the table has room for."""
_FULL = 0.99
"""Utilisation from which on more may come than a stage can serve."""
_INSTEAD = "record how long it waited (blocked_s)"
_REASONS = {
    RateReason.NO_NONBLOCKING: "too few periods in a row were free of waiting, and others do not "
    f"count: {_INSTEAD}, or sample shorter periods",
    RateReason.FEW_NONBLOCKING: "so few periods were free of waiting that those which were are a "
    f"lucky choice: {_INSTEAD}, or sample shorter periods",
    RateReason.APART: "the quantile lies more than a quarter above the mean of the same periods, "
    f"and the rate anywhere between: {_INSTEAD}, or sample wider periods",
    RateReason.FEW_ITEMS: "periods hold so few items (fewer than 16) that staying free of waiting "
    f"is luck: {_INSTEAD}, or sample longer periods",
    RateReason.UNSTABLE_PERIOD: "hardly any period kept to the width that was wanted, within 1%: "
    f"sample by a steadier clock, or {_INSTEAD}",
    RateReason.NO_ITEMS: "it was busy and finished nothing: record for longer",
    RateReason.NEVER_BUSY: "it waited all of the time: give it work, and record again",
    RateReason.NOT_CONVERGED: f"it is still moving: record for longer, or {_INSTEAD}",
}
_PROCESSES = {
    ServiceProcess.DETERMINISTIC: "hardly varies, like deterministic service",
    ServiceProcess.EXPONENTIAL: "like exponential service",
}


def render_rates(
    rates: Sequence[ServiceRate],
    *,
    name: str = "",
    unit: str = "items",
    served_per_s: float | None = None,
    item_bytes: float | None = None,
    target: float | None = None,
) -> str:
    """Return the service rates of a stage as plain text, at most 79 columns wide.

    The last rate comes first, with its interval and what it stands on, then the phases where there
    are several, and every Notice.

    Parameters
    ----------
    rates
        As `benchrigor.queues.ServiceRateEstimator` has them, in order.
    name
        Of the stage; empty for no title.
    unit
        What an item is called, in the plural.
    served_per_s
        Items that passed per second in the window of the last rate, waiting or not; None where it
        is not known.
    item_bytes
        Bytes of one item in that window, in the mean; None where it is not known.
    target
        Relative half-width that was wanted; None where it is not known.

    Examples
    --------
    >>> from benchrigor.queues import ServiceRateEstimator
    >>> est = ServiceRateEstimator()
    >>> est.tell_many([45, 46] * 50, 0.1, blocked_s=0.009)
    >>> print(render_rates(est.rates, served_per_s=455.0).splitlines()[-1])
      served    455 items/s: utilisation 91%
    """
    speed = speed_unit(unit)
    title = [name, "─" * min(len(name), WIDTH)] if name else []
    if not rates:
        return "\n".join([*title, *row("rate", ["no number: there is no period"])])
    now = rates[-1]
    return "\n".join(
        [
            *title,
            *row("rate", [_number(now, speed)]),
            *row("", [_evidence(now)]),
            *row("", [_doubt(now, target)]),
            *row("service", _service(now.moments)),
            *row("processor", _processor(now, speed)),
            *row("bytes", _bytes(now, item_bytes)),
            *row("served", _served(now, speed, served_per_s)),
            *_phases(rates, speed),
            *_notices(rates),
        ]
    )


def speed_unit(unit: str) -> str:
    """Return the unit of a rate, short enough for a table.

    Examples
    --------
    >>> speed_unit("items"), speed_unit("requests of all customers")
    ('items/s', 'requests of all custome…/s')
    """
    return f"{unit if len(unit) <= _LONGEST else unit[: _LONGEST - 1] + '…'}/s"


def phases_of(rates: Sequence[ServiceRate]) -> list[list[ServiceRate]]:
    """Return rates that say the same one after the other together.

    The busy time of a phase gives one rate; the quantile of counts is found again and again.
    """
    phases: list[list[ServiceRate]] = []
    for rate in rates:
        again = phases and rate.method != BUSY_TIME and rate.converged == phases[-1][0].converged
        if again and not moved(phases[-1][0], rate):
            phases[-1].append(rate)
        else:
            phases.append([rate])
    return phases


def standing(rate: ServiceRate) -> str:
    """Say in a few words whether a rate has converged, and why not."""
    said = rate.standing
    return said if rate.reason in {None, RateReason.NOT_CONVERGED} else f"not converged: {said}"


def span(start_s: float, stop_s: float, *, shortest_s: float | None = None) -> str:
    """Show a stretch of time, both ends in one scale, with two digits of the shortest in a table.

    Examples
    --------
    >>> span(0.0, 12.34), span(0.0, 0.05), span(0.4, 2000.0, shortest_s=0.4)
    ('0 to 12 s', '0 to 50 ms', '0.40 to 2,000.00 s')
    """
    scale = scale_for(stop_s, "s")
    shortest = scale.factor * (stop_s - start_s if shortest_s is None else shortest_s)
    digits = min(max(0, 1 - math.floor(round(math.log10(shortest), 6))), 9) if shortest > 0.0 else 0
    return f"{scale.show(start_s, digits)} to {scale.show(stop_s, digits)} {scale.name}"


def _number(rate: ServiceRate, speed: str) -> str:
    if rate.estimate is None:
        return "no number"
    ending = "converged" if rate.converged else "the best so far"
    return f"{show_estimate(rate.estimate, speed)}, {ending}"


def _evidence(rate: ServiceRate) -> str:
    method = "busy time" if rate.method == BUSY_TIME else "quantile"
    return (
        f"{method}, {span(rate.start_s, rate.stop_s)}: {many(rate.periods, 'period')} of "
        f"{show_value(rate.period_s, 's')}, {percent(rate.unblocked_share)} unblocked"
    )


def _doubt(rate: ServiceRate, target: float | None) -> str:
    """Say why a rate has not converged, and what to do; nothing where it has."""
    if rate.reason is None:
        return ""
    words = _REASONS[rate.reason]
    if rate.reason is RateReason.NOT_CONVERGED and rate.method == BUSY_TIME:
        words = _wide(rate, target)
    return f"not converged: {words}"


def _wide(rate: ServiceRate, target: float | None) -> str:
    """Say how much longer would do."""
    if rate.estimate is None:
        return "too little was recorded to tell its interval: record for longer"
    width = rate.estimate.relative_half_width
    if target is None or width <= target:
        return f"{many(rate.used, 'period')} are too few: record for longer"
    seconds = (rate.stop_s - rate.start_s) * (width / target) ** 2
    return (
        f"its half-width is {percent(width)}, wanted {percent(target)}: about "
        f"{show_value(seconds, 's')} like these would do"
    )


def _service(moments: ServiceMoments | None) -> list[str]:
    if moments is None:
        return []
    variation = moments.variation
    like = _PROCESSES.get(
        moments.process,
        f"{'more' if variation > 1.0 else 'less'} variable than exponential service",
    )
    each = f"{show_value(moments.mean_s, 's')} each"
    return [each, f"squared variation {variation:.3g}: {like}"]


def _processor(rate: ServiceRate, speed: str) -> list[str]:
    found = []
    if rate.cpu_rate is not None:
        found.append(f"{show_estimate(rate.cpu_rate, speed)} of processor time")
    if rate.delay_share is not None:
        found.append(f"{percent(rate.delay_share)} of the busy time waited for a processor")
    return found


def _bytes(rate: ServiceRate, item_bytes: float | None) -> list[str]:
    if item_bytes is None or rate.estimate is None:
        return []
    speed = show_value(rate.estimate.value * item_bytes, "B/s")
    return [f"{speed} at {show_value(item_bytes, 'B')} each"]


def _served(rate: ServiceRate, speed: str, served_per_s: float | None) -> list[str]:
    """Say how much passed, and how much of its capacity that is."""
    if served_per_s is None:
        return []
    shown = show_value(served_per_s, speed)
    if rate.estimate is None or rate.estimate.value <= 0.0:
        return [shown]
    used = utilisation_of(served_per_s, rate.estimate.value).value
    full = "more may come than it can serve" if used >= _FULL else ""
    return [f"{shown}: utilisation {percent(used)}", full]


def _phases(rates: Sequence[ServiceRate], speed: str) -> list[str]:
    """Return the table of phases, the last one last; nothing where there is only one."""
    phases = phases_of(rates)
    if len(phases) < 2 and len(phases[0]) < 2:
        return []
    shown = phases[-_MOST_PHASES:]
    scale = scale_for(_largest(rates), speed)
    rows = [
        _header(rates, scale),
        *(_phase(each, scale, _shortest_s(phases)) for each in shown),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [""]
    for phase, cells in zip([None, *shown], rows, strict=True):
        mark, when, rate, unblocked, times = cells
        line = f"  {mark:1} {when:<{widths[1]}}  {rate:<{widths[2]}}  {unblocked:>{widths[3]}}"
        lines.append(f"{line}  {times}".rstrip())
        if phase and phase[-1].reason is not None:
            lines.append(f"    {'':{widths[1]}}  {standing(phase[-1])}")
    more = len(phases) - len(shown)
    return [*lines[:2], f"    … {more} before", *lines[2:]] if more else lines


def _largest(rates: Sequence[ServiceRate]) -> float:
    return max((each.estimate.value for each in rates if each.estimate is not None), default=0.0)


def _header(rates: Sequence[ServiceRate], scale: Scale) -> tuple[str, str, str, str, str]:
    confidence = next((each.estimate.confidence for each in rates if each.estimate), None)
    interval = "" if confidence is None else f" [{percent(confidence, digits=10)} interval]"
    return ("", "phase", f"{scale.name}{interval}", "unblocked", "")


def _shortest_s(phases: Sequence[Sequence[ServiceRate]]) -> float:
    return min(phase[-1].stop_s - phase[0].start_s for phase in phases)


def _phase(
    phase: Sequence[ServiceRate], scale: Scale, shortest_s: float
) -> tuple[str, str, str, str, str]:
    """Return the cells of a phase: its last rate speaks for it."""
    last = phase[-1]
    unblocked = sum(each.unblocked for each in phase) / sum(each.periods for each in phase)
    return (
        "●" if last.converged else "○",
        span(phase[0].start_s, last.stop_s, shortest_s=shortest_s),
        "no number" if last.estimate is None else _scaled(last.estimate, scale),
        percent(unblocked),
        f"found {counted(len(phase))} times" if len(phase) > 1 else "",
    )


def _scaled(found: Estimate, scale: Scale) -> str:
    digits = digits_for(found.half_width * scale.factor, found.value * scale.factor)
    value, low, high = (scale.show(each, digits) for each in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def _notices(rates: Sequence[ServiceRate]) -> list[str]:
    """Show every Notice once, with the figures of the last phase that has it."""
    notices = [each for rate in rates for each in rate.notices]
    if rates[-1].estimate is not None:
        notices += rates[-1].estimate.notices
    told = {each.code: each for each in notices}
    return ["", *(line for each in told.values() for line in marked(each))] if told else []
