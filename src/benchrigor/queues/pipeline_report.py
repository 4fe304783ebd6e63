"""Pipelines as text: the stages that a monitor watches, and the advice about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from benchrigor.errors import BenchrigorError
from benchrigor.layout import Page, Part, page, table, wrapped
from benchrigor.model import Estimate, Notice
from benchrigor.model.notice import Severity
from benchrigor.model.text import show_scaled
from benchrigor.queues.data import PipelineAdvice, StageAdvice
from benchrigor.queues.stages import MonitorReport, QueueGrowth, WatchedStage
from benchrigor.units import counted, percent, scale_for, shortened, show_value

_LONGEST_NAME = 32
_HEADER = ("", "stage", "servers", "serves/s", "{} interval", "per cpu s", "arrive/s", "used")
_SIDES = "<<>><>>>"
_UNKNOWN = "-"
_PER_S = "/s"
_DELAYED = 0.05  # share of the busy time from which on waiting for a processor is reported


def monitor_page(report: MonitorReport) -> Page:
    """Return a row for every stage, and below them the remarks about the rates."""
    lines = _stage_table(report.stages)
    with suppress(BenchrigorError):  # too little is known yet
        lines += wrapped(str(report.bottleneck()))
    lines.append(f"watched for {report.watched_s:.3g} s at {percent(report.cost_share)} of a core")
    if report.seeking:
        lines.append(f"looking for a sampling period, {report.period_s} s at the moment")
    lines += _grown(report.growths, report.fixed)
    if report.failure is not None:
        lines += wrapped(f"watched no more: {report.failure}")
    return page(lines)


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


def _grown(growths: Sequence[QueueGrowth], fixed: Sequence[str]) -> Iterator[Part]:
    """Yield the lines about queues that were grown, and queues that cannot grow."""
    for name in dict.fromkeys(growth.name for growth in growths):
        own = [growth for growth in growths if growth.name == name]
        times = ", ".join(f"{growth.at_s:.3g}" for growth in own)
        yield from wrapped(
            f"{name} was full, and grew from {own[0].before} to {own[-1].after} items, at {times} s"
        )
    if fixed:
        yield from wrapped(f"cannot grow, being no queues of queue or asyncio: {', '.join(fixed)}")


def advice_page(advice: PipelineAdvice) -> Page:
    """Return the bottleneck of a pipeline, and below it a row of advice for every stage."""
    asked = advice.source_rate
    rate = show_value(asked.value if isinstance(asked, Estimate) else asked, "items/s")
    first = advice.stages[0]
    used, blocked = map(percent, (first.replicas.utilisation, first.buffer.blocked_share))
    header = ("stage", "used", "replicas", "room in each queue")
    return page(
        [
            *wrapped(str(advice.bottleneck)),
            f"to serve {rate} of the source, at most {used} used, {blocked} blocked:",
            *table([header, *map(_cells, advice.stages)], "<>><"),
            *_warnings(advice.notices),
        ]
    )


def _cells(advice: StageAdvice) -> tuple[str, str, str, str]:
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


def _warnings(notices: Iterable[Notice]) -> Iterator[Part]:
    """Yield the lines of all but notes: the first with a code, and the stages with the same."""
    alike: dict[str, list[Notice]] = {}
    for notice in notices:
        if notice.severity is not Severity.NOTE:
            alike.setdefault(notice.code, []).append(notice)
    for notices_of_code in alike.values():
        first = notices_of_code[0]
        stages = dict.fromkeys(str(notice.evidence.get("stage", "")) for notice in notices_of_code)
        others = ", ".join([*stages][1:])
        also = f" The same holds for {others}." if others else ""
        yield from wrapped(f"{first.sentence}{also} [{first.code}]", "! ")
