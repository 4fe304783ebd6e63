"""``benchrigor rate``: how fast a stage could go if it never had to wait, from a recording."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import json_option, share
from benchrigor.cli.output import print_json
from benchrigor.cli.picture import plot_option, write_picture
from benchrigor.cli.sources import name_of
from benchrigor.errors import InvalidInput
from benchrigor.model import codec
from benchrigor.queues.rates import METHODS
from benchrigor.queues.recording.outlines import Window
from benchrigor.queues.recording.recorded_rates import PUBLISHED, RecordedEnd, rate_recording
from benchrigor.queues.recording.recordings import Recording
from benchrigor.report import plot_rates, render_rates

__all__ = ["rate"]


@click.command(short_help="Tell how fast a recorded stage could go if it never had to wait.")
@click.argument("source", metavar="FILE")
@click.option("--end", metavar="NAME", help="Look at this end only.")
@click.option(
    "--method",
    type=click.Choice([*METHODS, PUBLISHED]),
    help="busy-time: items over the time not spent waiting. quantile: from periods without waiting "
    "alone; published: the same without guards.  [default: busy-time, or quantile where it is not "
    "recorded how long it waited]",
)
@click.option(
    "--target",
    type=share,
    default="5%",
    show_default=True,
    help="Half-width at which busy-time has converged.",
)
@click.option(
    "--confidence", type=share, default="95%", show_default=True, help="Of the intervals."
)
@plot_option
@json_option
def rate(
    *,
    source: str,
    end: str | None,
    method: str | None,
    target: float,
    confidence: float,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Tell how fast a stage could go if it never had to wait.

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
      t_ns, t_s             when the counters were read; or instead of that
      period_ns, period_s   how long the period was
      items                 that were served
      blocked_ns, blocked_s time spent waiting; or, where that is not known,
      blocked               how often it waited, or 0 and 1
      end                   name of the end, or of the stage
      bytes, item_bytes     bytes served, or the size of one item
      cpu_ns, cpu_s         processor time used
      delay_ns, delay_s     time spent waiting for a processor
      servers               threads or processes that serve side by side

    Rows hold what their period brought, unless a line says '# counters: cumulative'. Other such
    lines: '# servers: 4' (of all ends), '# unit: requests' (what an item is called), and
    '# period_s: 0.05' (the period that was wanted).

    The exit code speaks of the last phase of each end: 3 where one has not converged, 4 where none
    has a rate at all.

    \b
    Examples:
      benchrigor rate stage.csv
      benchrigor rate pipeline.csv --end parse --plot parse.png
      ./sampler | benchrigor rate - --json
    """  # noqa: D301  # click wants the backspace itself
    with _recording(source) as recording:
        ends = rate_recording(
            recording, end=end, method=method, target=target, confidence=confidence
        )
    _tell_of_unfinished(recording)
    if picture and len(ends) > 1:
        names = ", ".join(each.name for each in ends)
        raise InvalidInput(f"--plot draws one end, found {names}: choose one with --end")
    unit = recording.head.unit or "items"
    if as_json:
        document = {
            "name": recording.name,
            "unit": unit,
            "unfinished_line": recording.unfinished,
            "ends": [*map(_document, ends)],
        }
        print_json({**codec.versions(), **document})
    else:
        click.echo("\n\n".join(_text(each, recording.name, unit, target) for each in ends))
    if picture:
        (only,) = ends
        title = _title(only, recording.name)
        stretches = only.outline.stretches()
        write_picture(plot_rates(only.rates, stretches, unit=unit, title=title), picture)
    click.get_current_context().exit(_code(ends))


@contextmanager
def _recording(source: str) -> Iterator[Recording]:
    if source == "-":
        yield Recording(sys.stdin, name=name_of(source))
    else:
        with Recording.open(source) as recording:
            yield recording


def _tell_of_unfinished(recording: Recording) -> None:
    if recording.unfinished is not None:
        click.echo(
            f"benchrigor: {recording.name}, line {recording.unfinished}: the last line was not "
            "finished, and does not count",
            err=True,
        )


def _window(end: RecordedEnd) -> Window | None:
    """Return what passed in the window of the last rate."""
    if not end.rates:
        return None
    return end.outline.window(end.rates[-1].start_s, end.rates[-1].stop_s)


def _text(end: RecordedEnd, name: str, unit: str, target: float) -> str:
    window = _window(end)
    return render_rates(
        end.rates,
        name=_title(end, name),
        unit=unit,
        served_per_s=None if window is None else window.items_per_s,
        item_bytes=None if window is None else window.item_bytes,
        target=target,
    )


def _title(end: RecordedEnd, name: str) -> str:
    shown = click.format_filename(name, shorten=True)
    return f"{shown}: {end.name}" if end.name else shown


def _document(end: RecordedEnd) -> dict[str, Any]:
    window = _window(end)
    return {
        "end": end.name or None,
        "converged": bool(end.rates) and end.rates[-1].converged,
        "served_per_s": None if window is None else window.items_per_s,
        "item_bytes": None if window is None else window.item_bytes,
        "rates": codec.encode(end.rates),
    }


def _code(ends: Sequence[RecordedEnd]) -> ExitCode:
    """Return the exit code that the last rates deserve."""
    last = [each.rates[-1] if each.rates else None for each in ends]
    if all(each is None or each.estimate is None for each in last):
        return ExitCode.NOTHING_MEASURED
    done = all(each is not None and each.converged for each in last)
    return ExitCode.SATISFIED if done else ExitCode.NOT_CONVERGED
