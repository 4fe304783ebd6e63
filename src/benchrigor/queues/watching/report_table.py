"""What a monitor knows, as people read it: a table, and under it what they must know besides."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from benchrigor.model import Estimate
from benchrigor.model.text import aligned, percent, shortened, show_value
from benchrigor.queues.watching.stage_figures import WatchedStage
from benchrigor.units import digits_for, scale_for

__all__ = ["WIDTH", "stage_table"]

WIDTH = 79
_NAME = 1
_SHORTEST_NAME = 8
_HEADER = ("", "stage", "servers", "serves/s", "{} interval", "per cpu s", "arrive/s", "used")
_SIDES = "<<>><>>>"
_UNKNOWN = "-"
_PER_S = "/s"
_DELAYED = 0.05
"""Share of the busy time from which on waiting for a processor is told."""


def stage_table(stages: Sequence[WatchedStage]) -> list[str]:
    """Return a table of stages, at most 79 columns wide; nothing where there is none.

    Items per second that each serves while it does not wait, of wall time with its interval and
    of processor time; those that arrive; and the share of its time that they take.
    """
    if not stages:
        return []
    given = (each.rate.estimate for each in stages if each.rate and each.rate.estimate)
    confidence = next((percent(each.confidence, digits=10) for each in given), "")
    header = [cell.format(confidence).strip() for cell in _HEADER]
    remarks = [line for stage in stages for line in _remarks(stage)]
    rows = [header, *map(_row, stages)]
    table = aligned(rows, _SIDES)
    if len(table[0]) > WIDTH:
        longest = max(len(row[_NAME]) for row in rows)
        most = max(longest - len(table[0]) + WIDTH, _SHORTEST_NAME)
        table = aligned([_with_name_of(most, row) for row in rows], _SIDES)
    return [*table, *remarks]


def _row(stage: WatchedStage) -> tuple[str, ...]:
    rate = stage.rate
    value, interval = _UNKNOWN, ""
    if rate is not None and rate.estimate is not None:
        value, interval = _shown(rate.estimate)
    return (
        "●" if rate is not None and rate.converged else "○",
        stage.name,
        str(stage.servers if rate is None else rate.servers),
        value,
        interval,
        _short(rate.cpu_rate if rate else None),
        _short(stage.arrivals),
        _UNKNOWN if stage.utilisation is None else percent(stage.utilisation.value),
    )


def _with_name_of(most: int, row: Sequence[str]) -> list[str]:
    return [*row[:_NAME], shortened(row[_NAME], most), *row[_NAME + 1 :]]


def _shown(found: Estimate) -> tuple[str, str]:
    """Show a value and its interval, both in the scale of the value."""
    scale = scale_for(found.value, _PER_S)
    digits = digits_for(found.half_width * scale.factor, found.value * scale.factor)
    value, low, high = (scale.show(each, digits) for each in (found.value, found.low, found.high))
    return f"{value} {scale.name.removesuffix(_PER_S)}".rstrip(), f"[{low}, {high}]"


def _short(found: Estimate | None) -> str:
    return _UNKNOWN if found is None else show_value(found.value, _PER_S).removesuffix(_PER_S)


def _remarks(stage: WatchedStage) -> Iterator[str]:
    said = list(_doubts(stage))
    if said:
        yield from textwrap.wrap(
            f"{stage.name}: {'; '.join(said)}",
            width=WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )


def _doubts(stage: WatchedStage) -> Iterator[str]:
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
    if (rate.delay_share or 0.0) >= _DELAYED:
        yield f"waited {percent(rate.delay_share or 0.0)} of its busy time for a processor"
