"""``benchrigor export``: a run as CSV files."""

from __future__ import annotations

from pathlib import Path

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import print_result
from benchrigor.cli.recordings import recorded_run, stored_run
from benchrigor.cli.tables import force_option, refuse_those_there, write_files
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.model.text_tables import csv_text
from benchrigor.report.figures import TABLES
from benchrigor.safe_text import page


@click.command(cls=Verb)
@click.argument("source", metavar="[RUN]", required=False)
@click.option(
    "--output",
    "-o",
    "folder",
    type=shared.OutputPath(file_okay=False, path_type=Path),
    required=True,
    help="Where to write them; made if it is not there.",
)
@force_option
@shared.store_option
@shared.json_option
def export(source: str | None, *, folder: Path, force: bool) -> None:
    """Write a run as CSV files, for other programs.

    RUN is a stored run (the beginning of its id is enough) or a saved record; without one it is the
    last run. Into the folder go

    \b
      readings.csv  every reading: metric, unit, round, index in the round, value,
                    phase, and whether it is kept
      rounds.csv    every round: work, durations, delay, and whether it counts
      summary.csv   the number of each metric: value, interval, n, method, notices

    Numbers have all their digits: read again they are the same.

    \b
    Examples:
      benchrigor export -o results
      benchrigor export record.json -o results --force
    """  # noqa: D301  # click wants the backspace itself
    record = stored_run(None) if source is None else recorded_run(source)
    if record is None:
        raise InvalidInput(f"{source} is not a saved record, expected one that show --json printed")
    paths = {name: folder / name for name in TABLES}
    refuse_those_there([*paths.values()], force=force)
    write_files({path: csv_text(TABLES[name](record)) for name, path in paths.items()})
    written = [str(path) for path in paths.values()]
    print_result(lambda: page(written), run_id=record.run_id, files=written)
