"""``benchrigor changes``: change points and phases of recorded readings."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import json_option, readings_options, share
from benchrigor.cli.output import print_json
from benchrigor.cli.picture import plot_option, write_picture
from benchrigor.cli.sources import name_of, read_readings
from benchrigor.model import StablePhase, codec
from benchrigor.model.text import counted, false_alarms, many, percent, show_value
from benchrigor.report import plot_phases
from benchrigor.report.text import WIDTH
from benchrigor.stats import find_stable_phase

__all__ = ["changes"]


@click.command(short_help="Find the change points and phases of recorded readings.")
@readings_options
@click.option(
    "--level", type=share, default="1%", show_default=True, help="Chance of any false change point."
)
@plot_option
@json_option
def changes(
    *,
    source: str,
    column: str | None,
    unit: str,
    level: float,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Find the change points and phases of recorded readings.

    SOURCE is a CSV or JSON file, or - for standard input (the default). Exit code 4 when there
    is no stable phase.

    \b
    Examples:
      benchrigor changes readings.csv --column time --unit s
      benchrigor changes readings.csv --unit s --plot trace.png
      benchrigor changes trace.json --json
    """  # noqa: D301  # click wants the backspace itself
    readings = read_readings(source, column)
    found = find_stable_phase(readings, level=level)
    if as_json:
        print_json({**codec.versions(), **codec.encode(found)})
    else:
        click.echo(_text(found, unit))
    if picture:
        title = click.format_filename(name_of(source), shorten=True)
        write_picture(plot_phases(readings, found, unit=unit, title=title), picture)
    if found.start is None:
        click.get_current_context().exit(ExitCode.NOTHING_MEASURED)


def _text(found: StablePhase, unit: str) -> str:
    points = found.change_points
    where = ", ".join(counted(index) for index in points.indices) or "none"
    phases = (
        f"  {each.label:<9} {counted(each.start):>9} to {counted(each.stop):>9}  "
        f"{percent(each.n / points.n):>6}  median {show_value(each.median, unit)}"
        for each in found.phases
    )
    return "\n".join(
        [
            _wrapped(
                f"change points: {where} (of {many(points.n, 'reading')}, "
                f"{false_alarms(points.level)})",
                hanging=15,
            ),
            *phases,
            *(_wrapped(f"  {notice}", hanging=2) for notice in found.notices),
        ]
    )


def _wrapped(text: str, *, hanging: int) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * hanging, break_on_hyphens=False)
