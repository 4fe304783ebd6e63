"""``benchrigor replay``: what other rules would have said of recorded readings, and when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from benchrigor.cli.exits import ExitCode
from benchrigor.cli.options import json_option, share, store_option
from benchrigor.cli.output import print_json
from benchrigor.cli.recordings import recording
from benchrigor.cli.sources import name_of
from benchrigor.model import RunRecord, codec
from benchrigor.session.replays.replaying import replay as replayed

__all__ = ["replay"]


@click.command(
    short_help="Tell when other rules would have stopped, and what they would have said."
)
@click.argument("source", metavar="RUN|FILE")
@click.option(
    "--target",
    type=share,
    help="Half-width at which to stop.  [default: that of the run; 5% for a file]",
)
@click.option(
    "--confidence",
    type=share,
    help="Of the intervals.  [default: that of the run; 95% for a file]",
)
@click.option("--metric", help="Of a run.  [default: the first that must be satisfied]")
@click.option(
    "--column", help="Name or number (from 0) of the CSV column, or key of the JSON objects."
)
@click.option("--unit", default="", help="Unit of a file's readings, such as s or B/s.")
@store_option
@json_option
def replay(
    *,
    source: str,
    target: float | None,
    confidence: float | None,
    metric: str | None,
    column: str | None,
    unit: str,
    store: Path | None,
    as_json: bool,
) -> None:
    """Tell when other rules would have stopped, and what they would have said.

    The readings of a stored run (the beginning of its id is enough), or of a CSV or JSON file
    (- for standard input), are judged as if each rule had been measuring:

    \b
      benchrigor   the rule of this program
      subsessions  merges readings until neighbours hardly correlate
      plain t      Student's t, looked at after each reading

    Each stops once its interval is narrow enough; budgets do not count. Where enough readings
    follow the stop, they tell whether the interval held.

    \b
    Examples:
      benchrigor replay 3f2a
      benchrigor replay 3f2a --target 1% --json
      benchrigor replay readings.csv --column time --unit s --target 2%
    """  # noqa: D301  # click wants the backspace itself
    given = recording(source, column=column, store=store)
    found = replayed(given, target=target, confidence=confidence, metric=metric, unit=unit)
    run_id = given.run_id if isinstance(given, RunRecord) else None
    if not isinstance(given, RunRecord):
        found = replace(found, name=name_of(source))
    if as_json:
        print_json({**codec.versions(), "run_id": run_id, "replay": found})
    else:
        click.echo(found)
    if all(each.estimate is None and each.final is None for each in found.rulings):
        click.get_current_context().exit(ExitCode.NOTHING_MEASURED)
