"""``benchrigor rate``: the service rate of a stage, from a recording."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import click

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import details_option, json_option, setting
from benchrigor.cli.output import (
    plot_option,
    print_result,
    remark,
    shown_depth,
    wants_picture,
    write_picture,
)
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.layout import Page, join_pages
from benchrigor.model import codec
from benchrigor.queues.periods import METHODS
from benchrigor.queues.picture import plot_rates
from benchrigor.queues.recordings import PUBLISHED, RecordedEnd, Recording, rate_recording
from benchrigor.queues.report import facts_of_rates
from benchrigor.report.fact import page_of_facts, title


@click.command(cls=Verb)
@click.argument("source", metavar="FILE")
@click.option("--end", metavar="NAME", help="Analyse this end only.")
@click.option(
    "--method",
    type=click.Choice([*METHODS, PUBLISHED]),
    help="busy-time: items over the time not spent waiting. quantile: from periods without waiting "
    "alone; published: the same without guards.  [default: busy-time, or quantile where the "
    "recording has no blocked times]",
)
@setting("target", "Half-width at which busy-time has converged.", default=0.05)
@setting("confidence")
@details_option
@plot_option
@json_option
def rate(
    *,
    source: str,
    target: float,
    **asked: Any,
) -> None:
    """Show the service rate of a stage: its speed while it does not wait.

    FILE is a recording of counters, a row for each period; - is standard input. It is CSV that
    any program can write: time, items, how long the stage waited (or whether), and a name where
    there are several ends of queues.

    \b
      # counters: cumulative
      t_ns,end,items,blocked_ns
      1000000,parse,0,0
      51000000,parse,41,8200000

    \b
    Columns, in any order:
      t_ns, t_s             when the counters were read; or instead
      period_ns, period_s   length of the period
      items                 items served
      blocked_ns, blocked_s time spent waiting; or, if that is not known,
      blocked               how often it waited, or 0 and 1
      end                   name of the end, or of the stage
      bytes, item_bytes     bytes served, or the size of one item
      cpu_ns, cpu_s         processor time used
      delay_ns, delay_s     time spent waiting for a processor
      servers               threads or processes that serve side by side

    Rows count within their period, unless a line says '# counters: cumulative'. Other such lines:
    '# servers: 4' (of all ends), '# unit: requests' (name of the items), and '# period_s: 0.05'
    (period that was wanted).

    The exit code is about the last phase of each end: 3 where one has not converged, 4 where none
    has a rate.

    \b
    Examples:
      benchrigor rate stage.csv
      benchrigor rate pipeline.csv --end parse --plot parse.png
      ./sampler | benchrigor rate - --json
    """  # noqa: D301  # click wants the backspace itself
    stdin = nullcontext(Recording(sys.stdin, name="standard input")) if source == "-" else None
    with stdin or Recording.open(source) as recording:
        ends = rate_recording(recording, target=target, **asked)
    if recording.unfinished is not None:
        remark(f"{recording.name} {recording.unfinished}")
    if wants_picture() and len(ends) > 1:
        names = ", ".join(found.name for found in ends)
        raise InvalidInput(f"--plot draws one end, found {names}: choose one with --end")
    unit = recording.head.unit or "items"
    print_result(
        lambda: join_pages(_page(found, recording.name, unit, target) for found in ends),
        name=recording.name,
        unit=unit,
        unfinished_line=recording.unfinished and recording.unfinished.number,
        ends=[*map(_document, ends)],
    )
    if wants_picture():
        (only,) = ends
        shown, stretches = _title(only, recording.name), only.stretches()
        write_picture(lambda: plot_rates(only.rates, stretches, unit=unit, title=shown))
    click.get_current_context().exit(_code(ends))


def _page(end: RecordedEnd, name: str, unit: str, target: float) -> Page:
    facts = facts_of_rates(end.rates, unit=unit, target=target, **_throughput(end))
    return page_of_facts([title(_title(end, name)), *facts], shown_depth())


def _throughput(end: RecordedEnd) -> dict[str, float | None]:
    """Return items per second, and bytes of an item, in the window of the last rate."""
    last = end.rates[-1:]
    served, size = end.throughput(last[0].start_s, last[0].stop_s) if last else (None, None)
    return {"served_per_s": served, "item_bytes": size}


def _title(end: RecordedEnd, name: str) -> str:
    shown = click.format_filename(name, shorten=True)
    return f"{shown}: {end.name}" if end.name else shown


def _document(end: RecordedEnd) -> dict[str, Any]:
    return {
        "end": end.name or None,
        "converged": bool(end.rates) and end.rates[-1].converged,
        **_throughput(end),
        "rates": codec.encode(end.rates),
    }


def _code(ends: Sequence[RecordedEnd]) -> ExitCode:
    """Return the exit code for the last rates."""
    last = [end.rates[-1] for end in ends if end.rates]
    if all(rate.estimate is None for rate in last):
        return ExitCode.NOTHING_MEASURED
    done = len(last) == len(ends) and all(rate.converged for rate in last)
    return ExitCode.RESULT if done else ExitCode.TARGET_MISSED
