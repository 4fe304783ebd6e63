"""``benchrigor changes``: change points and phases of recorded readings."""

from __future__ import annotations

from pathlib import Path

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import print_result
from benchrigor.cli.picture import plot_option, write_picture
from benchrigor.cli.sources import name_of, read_readings
from benchrigor.model import StablePhase, codec
from benchrigor.model.text import counted, false_alarms, many, marked, wrapped
from benchrigor.report import plot_phases
from benchrigor.report.text import phase_table
from benchrigor.stats import find_stable_phase
from benchrigor.stats.changepoints.named_detector import detector_named


@click.command(short_help="Find the change points and phases of recorded readings.")
@shared.readings_options
@shared.share_option("--level", "1%", "Chance of any false change point.")
@shared.choice_option("--detector", shared.DETECTOR)
@plot_option
@shared.json_option
def changes(
    *,
    source: str,
    column: str | None,
    unit: str,
    level: float,
    detector: str,
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
    detect = detector_named(detector)
    points = None if detect is None else detect(readings)
    stable = find_stable_phase(readings, level=level, change_points=points)
    print_result(lambda: "\n".join(_report(stable, unit)), as_json=as_json, **codec.encode(stable))
    if picture:
        title = click.format_filename(name_of(source), shorten=True)
        write_picture(plot_phases(readings, stable, unit=unit, title=title), picture)
    if stable.start is None:
        leave(ExitCode.NOTHING_MEASURED)


def _report(stable: StablePhase, unit: str) -> list[str]:
    points = stable.change_points
    where = ", ".join(counted(index) for index in points.indices) or "none"
    size = many(points.n, "reading")
    return [
        *wrapped(f"{where} (of {size}, {false_alarms(points.level)})", "change points: "),
        *(f"  {line}" for line in phase_table(stable, unit)),
        *(line for notice in stable.notices for line in marked(notice)),
    ]
