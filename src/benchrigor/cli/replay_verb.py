"""``benchrigor replay``: when other rules would have stopped, and their estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.output import print_result
from benchrigor.cli.recordings import Columns, recording
from benchrigor.cli.verb_help import Verb
from benchrigor.session.replays.replaying import replay as replayed


@click.command(cls=Verb)
@click.argument("source", metavar="RUN|FILE")
@shared.share_option(
    "--target", None, "Half-width at which to stop.  [default: that of the run; 2% for a file]"
)
@shared.confidence_option(None, "Of the intervals.  [default: that of the run; 95% for a file]")
@shared.detector_option("that of the run; ranks for a file")
@shared.metric_option
@shared.column_options
@shared.store_option
@shared.json_option
def replay(
    source: str,
    *,
    column: str | None,
    by: str | None,
    unit: str | None,
    store: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show when other rules would have stopped, and their estimates.

    The readings of a stored run (the beginning of its id is enough), or of a CSV or JSON file
    (- for standard input), are judged as if each rule had been measuring:

    \b
      benchrigor   the rule of this program
      subsessions  merges readings until neighbours hardly correlate
      plain t      Student's t, looked at after each reading

    Each stops once its interval is narrow enough; budgets do not count. Where enough readings
    follow the stop, they show whether the interval held.

    \b
    Examples:
      benchrigor replay 3f2a
      benchrigor replay 3f2a --target 1% --json
      benchrigor replay readings.csv --column time --unit s --target 2%
    """  # noqa: D301  # click wants the backspace itself
    record = recording(source, Columns(column=column, by=by, unit=unit), store=store)
    result = replayed(record, **options)
    print_result(lambda: result, as_json=as_json, run_id=record.run_id, replay=result)
    if all(ruling.estimate is None and ruling.final is None for ruling in result.rulings):
        leave(ExitCode.NOTHING_MEASURED)
