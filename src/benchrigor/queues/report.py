"""Service rates, watched stages and advice as text.

Of a rate the number comes first, then the evidence for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from benchrigor.errors import BenchrigorError
from benchrigor.layout import Part, table, wrapped
from benchrigor.model import Estimate, Notice
from benchrigor.model.notice import Severity
from benchrigor.model.text import show_estimate, show_scaled
from benchrigor.queues.data import (
    PipelineAdvice,
    RateReason,
    ServiceMoments,
    ServiceProcess,
    ServiceRate,
    StageAdvice,
)
from benchrigor.queues.periods import BUSY_TIME, FEWEST_COUNTS, has_moved, share_of_waits
from benchrigor.report.fact import (
    NOTICE,
    Depth,
    Fact,
    known,
    labelled,
    list_rows,
    noticed,
    sentence,
)
from benchrigor.units import Scale, counted, many, percent, scale_for, shortened, show_value

if TYPE_CHECKING:
    from benchrigor.queues.stages import MonitorReport, QueueGrowth, WatchedStage

_MOST_PHASES = 12
_LONGEST = 24  # characters of a unit that the table has room for
_FULL = 0.99  # utilisation from which on more may arrive than a stage can serve
_OF_WAITS = 0.1  # of the variance of service times, from which on waiting is named as its cause
_RECORD = "Record its blocked time (blocked_s)"
_REASONS = {
    RateReason.NO_NONBLOCKING: "too few periods in a row are free of waiting, and others do not "
    f"count. {_RECORD}, or sample shorter periods",
    RateReason.FEW_NONBLOCKING: "fewer than 5% of the periods are free of waiting, and slow "
    f"service chose them. {_RECORD}, or sample shorter periods",
    RateReason.PROVISIONAL: "the sampling period is still sought. Give it time, or a period",
    RateReason.APART: "the quantile is more than 25% above the mean of the same periods, and the "
    f"rate may be anywhere between. {_RECORD}, or sample wider periods",
    RateReason.FEW_ITEMS: "periods hold fewer than 16 items, and some are free of waiting by "
    f"chance. {_RECORD}, or sample longer periods",
    RateReason.UNSTABLE_PERIOD: "hardly any period has the width that is wanted, within 1%. "
    f"{_RECORD}, or sample by a steadier clock",
    RateReason.NO_ITEMS: "it was busy and finished no item. Record for longer",
    RateReason.NEVER_BUSY: "it waited all of the time. Give it work, and record again",
    RateReason.NOT_CONVERGED: f"the quantile is not steady yet. {_RECORD}, or record for longer",
}
_PROCESSES = {
    ServiceProcess.DETERMINISTIC: "nearly constant, like deterministic service",
    ServiceProcess.EXPONENTIAL: "like exponential service",
}


def facts_of_rates(
    rates: Sequence[ServiceRate],
    *,
    unit: str = "items",
    served_per_s: float | None = None,
    item_bytes: float | None = None,
    target: float | None = None,
) -> list[Fact]:
    """Return the last rate of a stage, the evidence for it, its use, and the phases before.

    Parameters
    ----------
    rates
        From `benchrigor.queues.ServiceRateEstimator`, in order.
    unit
        Name of the items, in the plural.
    served_per_s
        Items served per second in the window of the last rate, waiting included, if known.
    item_bytes
        Mean bytes of an item in that window, if known.
    target
        Relative half-width that was wanted, if known.

    Examples
    --------
    >>> from benchrigor.queues import ServiceRateEstimator
    >>> est = ServiceRateEstimator()
    >>> est.tell_many([45, 46] * 50, 0.1, blocked_s=0.009)
    >>> facts_of_rates(est.rates, served_per_s=455.0)[-1].text
    '455 items/s: utilisation 91%'
    """
    if not rates:
        return [labelled("rate", "no number: there is no period")]
    rate, speed = rates[-1], speed_unit(unit)
    served = "" if served_per_s is None else _show_throughput(rate, speed, served_per_s)
    notices = [notice for earlier in rates for notice in earlier.notices]
    if rate.estimate is not None:
        notices += rate.estimate.notices
    latest = {notice.code: notice for notice in notices}  # with the figures of the last phase
    return [
        *known(
            Fact("rate", Depth.PAGE, "rate", _number(rate, speed), rate.estimate),
            Fact("evidence", Depth.PAGE, "rate", _evidence(rate)),
            Fact("converged", Depth.PAGE, "rate", _why_not_converged(rate, target), rate.reason),
            Fact("service", Depth.PAGE, "service", _service(rate), rate.moments),
            Fact("processor", Depth.PAGE, "processor", _processor(rate, speed), rate.cpu_rate),
            Fact("bytes", Depth.PAGE, "bytes", _bytes(rate, item_bytes), item_bytes),
            Fact("served", Depth.PAGE, "served", served, served_per_s),
            list_rows("phases", _phases(rates, speed)),
        ),
        *noticed(latest.values()),
    ]


def speed_unit(unit: str) -> str:
    """Return the unit of a rate, short enough for a table.

    >>> speed_unit("items"), speed_unit("requests of all customers")
    ('items/s', 'requests of…ll customers/s')
    """
    return f"{shortened(unit, _LONGEST)}/s"


def phases_of(rates: Sequence[ServiceRate]) -> list[list[ServiceRate]]:
    """Group successive rates of one phase: the quantile of counts converges again and again."""
    phases: list[list[ServiceRate]] = []
    for rate in rates:
        again = phases and rate.method != BUSY_TIME and rate.converged == phases[-1][0].converged
        if again and not has_moved(phases[-1][0], rate):
            phases[-1].append(rate)
        else:
            phases.append([rate])
    return phases


def convergence(rate: ServiceRate) -> str:
    """Return in a few words whether a rate has converged, and why not."""
    general = rate.reason in {None, RateReason.NOT_CONVERGED}
    return rate.standing if general else f"not converged: {rate.standing}"


def span(start_s: float, stop_s: float, *, shortest_s: float | None = None) -> str:
    """Show a window of time in one scale, with two digits of the shortest one in a table.

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


def _why_not_converged(rate: ServiceRate, target: float | None) -> str:
    """Return why a rate has not converged, and a remedy; "" if it has."""
    if rate.reason is None:
        return ""
    words = _REASONS[rate.reason]
    if rate.reason is RateReason.NOT_CONVERGED and rate.method == BUSY_TIME:
        words = _too_short(rate, target)
    return f"not converged: {words}"


def _too_short(rate: ServiceRate, target: float | None) -> str:
    if rate.estimate is None:
        return "there is too little data for an interval. Record for longer"
    width = rate.estimate.relative_half_width
    if target is None or width <= target:
        return f"{many(rate.used, 'period')} are too few. Record for longer"
    seconds = rate.length_s * (width / target) ** 2
    return (
        f"the half-width is {percent(width)}, wanted {percent(target)}. Record about "
        f"{show_value(seconds, 's')} in all"
    )


def _service(rate: ServiceRate) -> str:
    moments = rate.moments
    if moments is None:
        return f"variance not known: it needs {FEWEST_COUNTS} counts" * bool(rate.estimate)
    variation = moments.variation
    other = f"{'more' if variation > 1.0 else 'less'} variable than exponential service"
    process = _PROCESSES.get(moments.process, other)
    if moments.process is not ServiceProcess.DETERMINISTIC:
        process += _doubt(moments, rate.delay_share)
    mean = f"{show_value(moments.mean_s, 's')} each"
    return f"{mean}; squared coefficient of variation {variation:.3g}: {process}"


def _doubt(moments: ServiceMoments, delay_share: float | None) -> str:
    """Say if wall time may vary for other reasons than the service itself."""
    if delay_share is None:
        return ", if it never waited for a processor"
    if share_of_waits(moments, delay_share) < _OF_WAITS:
        return ""
    return ", or steadier: it waited for a processor"


def _processor(rate: ServiceRate, speed: str) -> str:
    parts = []
    if rate.cpu_rate is not None:
        parts.append(f"{show_estimate(rate.cpu_rate, speed)} of processor time")
    if rate.delay_share is not None:
        parts.append(f"waited {percent(rate.delay_share)} of the busy time for a processor")
    return "; ".join(parts)


def _bytes(rate: ServiceRate, item_bytes: float | None) -> str:
    if item_bytes is None or rate.estimate is None:
        return ""
    speed = show_value(rate.estimate.value * item_bytes, "B/s")
    return f"{speed} at {show_value(item_bytes, 'B')} each"


def _show_throughput(rate: ServiceRate, speed: str, served_per_s: float) -> str:
    """Return the throughput, and its share of the service rate."""
    shown = show_value(served_per_s, speed)
    if rate.estimate is None or rate.estimate.value <= 0.0:
        return shown
    used = served_per_s / rate.estimate.value
    full = "; more may arrive than it can serve" if used >= _FULL else ""
    return f"{shown}: utilisation {percent(used)}{full}"


def _phases(rates: Sequence[ServiceRate], speed: str) -> list[Part]:
    """Return the table of phases, the last one last; empty with only one rate."""
    if len(rates) < 2:
        return []
    phases = phases_of(rates)
    estimates = [rate.estimate for rate in rates if rate.estimate is not None]
    scale = scale_for(max((estimate.value for estimate in estimates), default=0.0), speed)
    unit = scale.name
    if estimates:
        unit += f" [{percent(estimates[0].confidence, digits=10)} interval]"
    shortest_s = min(phase[-1].stop_s - phase[0].start_s for phase in phases)
    shown = phases[-_MOST_PHASES:]
    rows: list[tuple[str, ...]] = [("  phase", unit, "unblocked", "")]
    if len(phases) > len(shown):
        rows.append((f"  … {len(phases) - len(shown)} before", "", "", ""))
    for phase in shown:
        rows.append(_cells(phase, scale, shortest_s))
        if phase[-1].reason is not None:
            rows.append(("", convergence(phase[-1]), "", ""))
    return ["", *table(rows, "<<><", indent=2)]


def _cells(
    phase: Sequence[ServiceRate], scale: Scale, shortest_s: float
) -> tuple[str, str, str, str]:
    """Return the cells of a phase, with its last rate."""
    last = phase[-1]
    window = span(phase[0].start_s, last.stop_s, shortest_s=shortest_s)
    unblocked = sum(rate.unblocked for rate in phase) / sum(rate.periods for rate in phase)
    return (
        f"{'●' if last.converged else '○'} {window}",
        "no number" if last.estimate is None else " ".join(show_scaled(last.estimate, scale)),
        percent(unblocked),
        many(len(phase), "estimate") if len(phase) > 1 else "",
    )


_LONGEST_NAME = 32
_HEADER = ("", "stage", "servers", "serves/s", "{} interval", "per cpu s", "arrive/s", "used")
_SIDES = "<<>><>>>"
_UNKNOWN = "-"
_PER_S = "/s"
_DELAYED = 0.05  # share of the busy time from which on waiting for a processor is reported


def facts_of_monitor(report: MonitorReport) -> list[Fact]:
    """Return a row for every stage, the remarks about their rates, and what watching took."""
    bottleneck, cost = "", percent(report.cost_share)
    with suppress(BenchrigorError):  # too little is known yet
        bottleneck = str(report.bottleneck())
    seeking = f"looking for a sampling period, {report.period_s} s at the moment"
    fixed = f"cannot grow, being no queues of queue or asyncio: {', '.join(report.fixed)}"
    return known(
        list_rows("stages", _stage_table(report.stages)),
        sentence("bottleneck", bottleneck),
        sentence("watched", f"watched for {report.watched_s:.3g} s at {cost} of a core"),
        sentence("period", seeking * report.seeking),
        *(sentence("grown", text) for text in _grown(report.growths)),
        sentence("fixed", fixed * bool(report.fixed)),
        sentence("failure", f"watched no more: {report.failure}" * bool(report.failure)),
    )


def _stage_table(stages: Sequence[WatchedStage]) -> list[Part]:
    """Return a table of stages as wide as a terminal, and below it remarks about its rates."""
    if not stages:
        return []
    estimates = (stage.rate.estimate for stage in stages if stage.rate and stage.rate.estimate)
    confidence = next((percent(estimate.confidence, digits=10) for estimate in estimates), "")
    rows = [[cell.format(confidence).strip() for cell in _HEADER], *map(_stage_row, stages)]
    return [*table(rows, _SIDES), *(line for stage in stages for line in _remarks(stage))]


def _stage_row(stage: WatchedStage) -> list[str]:
    rate = stage.rate
    value, interval = _UNKNOWN, ""
    if rate is not None and rate.estimate is not None:
        value, interval = _show_rate(rate.estimate)
    return [
        "●" if rate is not None and rate.converged else "○",
        stage.name,
        str(stage.servers if rate is None else rate.servers),
        value,
        interval,
        _short(rate.cpu_rate if rate else None),
        _short(stage.arrivals),
        _UNKNOWN if stage.utilisation is None else percent(stage.utilisation.value),
    ]


def _show_rate(rate: Estimate) -> tuple[str, str]:
    """Show a value and its interval, both in the scale of the value."""
    scale = scale_for(rate.value, _PER_S)
    value, interval = show_scaled(rate, scale)
    return f"{value} {scale.name.removesuffix(_PER_S)}".rstrip(), interval


def _short(rate: Estimate | None) -> str:
    return _UNKNOWN if rate is None else show_value(rate.value, _PER_S).removesuffix(_PER_S)


def _remarks(stage: WatchedStage) -> list[Part]:
    parts = "; ".join(_qualifications(stage))
    return wrapped(f"{stage.name}: {parts}", first="  ") if parts else []


def _qualifications(stage: WatchedStage) -> Iterator[str]:
    rate = stage.rate
    if stage.failure is not None:
        yield f"watched no more: {stage.failure}"
    if rate is None:
        yield "no rate yet"
        return
    if not rate.converged:
        yield rate.standing
    if len(stage.rates) > 1:
        yield (
            f"{stage.rates.index(rate) + 1} of {len(stage.rates)} phases, from "
            f"{rate.start_s:.3g} to {rate.stop_s:.3g} s"
        )
    if rate.byte_rate is not None:
        yield f"serves {show_value(rate.byte_rate.value, 'B/s')}"
    if (rate.delay_share or 0.0) >= _DELAYED:
        yield f"waited {percent(rate.delay_share or 0.0)} of its busy time for a processor"


def _grown(growths: Sequence[QueueGrowth]) -> Iterator[str]:
    """Say which queues were grown, and when."""
    for name in dict.fromkeys(growth.name for growth in growths):
        own = [growth for growth in growths if growth.name == name]
        times = ", ".join(f"{growth.at_s:.3g}" for growth in own)
        sizes = f"{own[0].before} to {own[-1].after} items"
        yield f"{name} was full, and grew from {sizes}, at {times} s"


def facts_of_advice(advice: PipelineAdvice) -> list[Fact]:
    """Return the bottleneck of a pipeline, and a row of advice for every stage."""
    asked = advice.source_rate
    rate = show_value(asked.value if isinstance(asked, Estimate) else asked, "items/s")
    first = advice.stages[0]
    used, blocked = map(percent, (first.replicas.utilisation, first.buffer.blocked_share))
    names = ("stage", "used", "replicas", "room in each queue")
    return [
        sentence("bottleneck", str(advice.bottleneck)),
        sentence(
            "asked", f"to serve {rate} of the source, at most {used} used, {blocked} blocked:"
        ),
        list_rows("stages", table([names, *map(_advice_cells, advice.stages)], "<>><")),
        *_warnings(advice.notices),
    ]


def _advice_cells(advice: StageAdvice) -> tuple[str, str, str, str]:
    """Return the row of a stage."""
    load, wanted, buffer = advice.load, advice.replicas, advice.buffer
    replicas = str(load.stage.replicas)
    if wanted.replicas != load.stage.replicas:
        replicas = f"{replicas} → {_least(wanted.replicas, wanted.replicas_at_value)}"
    return (
        shortened(load.stage.name, _LONGEST_NAME),
        "-" if load.utilisation is None else percent(load.utilisation.value),
        replicas,
        _least(buffer.capacity, buffer.capacity_at_value),
    )


def _least(number: int | None, at_value: int | None) -> str:
    """Show a number that is enough, or a lower limit if none is known to be."""
    if number is not None:
        return counted(number)
    return "no size is enough" if at_value is None else f"{counted(at_value)} or more"


def _warnings(notices: Iterable[Notice]) -> Iterator[Fact]:
    """Yield all but notes: the first with a code, and the stages with the same."""
    alike: dict[str, list[Notice]] = {}
    for notice in notices:
        if notice.severity is not Severity.NOTE:
            alike.setdefault(notice.code, []).append(notice)
    for first, *others in alike.values():
        stages = dict.fromkeys(str(notice.evidence.get("stage", "")) for notice in others)
        also = f" The same holds for {', '.join(stages)}." if stages else ""
        text = f"{first.sentence}{also} [{first.code}]"
        yield Fact(NOTICE, Depth.PAGE, "", text, first.severity)
