"""``benchrigor plan``: how much to measure to see a change, from a stored run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import print_result
from benchrigor.cli.recordings import column_options, recording
from benchrigor.cli.verb_help import Verb
from benchrigor.formats.readings import Columns
from benchrigor.session.replays import analyse_file
from benchrigor.session.sample_size import plan as planned


@click.command(cls=Verb)
@click.argument("source", metavar="RUN|FILE")
@shared.share_option("--change", "3%", "Change to be seen.")
@shared.share_option("--power", "80%", "Chance of seeing such a change.")
@shared.setting(
    "margin",
    "Changes below this do not matter: the whole interval must lie beyond.",
    default=0.0,
)
@shared.setting("confidence", "Confidence of its interval.", usual="as in the run", default=None)
@click.option(
    "--half-width",
    "half_widths",
    type=shared.SHARE,
    multiple=True,
    default=("5%", "2%", "1%", "0.5%"),
    show_default=True,
    help="Price an interval of this half-width; may be given several times.",
)
@shared.setting("detector", usual="as in the run; ranks for a file", default=None)
@shared.metric_option
@column_options
@shared.store_option
@shared.json_option
def plan(
    source: str,
    *,
    columns: Columns,
    detector: str | None,
    **options: Any,
) -> None:
    """Plan how much to measure to see a change, from an earlier measurement.

    The source is a stored run (the beginning of its id is enough), or a CSV or JSON file of
    readings (- for standard input). A short run is enough: it may have missed its target.

    Sizes are readings, or invocations if the run's rounds were restarted. A comparison needs the
    given size on either side. The range in brackets shows how well the run knows its own noise.
    The prices are for single intervals.

    \b
    Examples:
      benchrigor plan 3f2a
      benchrigor plan 3f2a --change 2% --margin 1% --power 90%
      benchrigor plan 3f2a --half-width 1% --half-width 0.1% --json
      benchrigor plan starts.csv --column time --round start --unit ms
    """  # noqa: D301  # click wants the backspace itself
    record = recording(source, columns)
    if detector is not None:
        (record,) = analyse_file([record], source, replace(record.options, detector=detector))
    sizes = planned(record, **options)
    print_result(lambda: sizes, run_id=record.run_id, plan=sizes)
