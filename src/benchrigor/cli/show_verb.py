"""``benchrigor show``: the report of a stored run."""

from __future__ import annotations

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import print_json, print_record, say
from benchrigor.cli.record_kinds import is_special, module_for
from benchrigor.cli.recordings import stored_run
from benchrigor.cli.tables import (
    are_wanted,
    is_replaced,
    plot_option,
    table_options,
    write_picture,
    write_tables,
)
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.report import plot_trace
from benchrigor.report.fact import facts_of


@click.command(cls=Verb)
@shared.last_run_argument
@shared.store_option
@shared.details_option
@plot_option
@table_options
@shared.json_option
def show(run_id: str | None) -> None:
    """Show the report of a stored run.

    The beginning of RUN_ID is enough; without one it is the last run. With --json the whole
    record is printed, raw readings included.

    \b
    Examples:
      benchrigor show
      benchrigor show 3f2a
      benchrigor show 3f2a --plot trace.png
      benchrigor show 3f2a --json > record.json
    """  # noqa: D301  # click wants the backspace itself
    record = stored_run(run_id)
    special = module_for(record) if is_special(record) else None
    if special is not None and are_wanted():
        raise InvalidInput(
            f"--markdown and --csv are for runs, and this is {special.noun_of(record)}"
        )
    if shared.wants_json():
        print_json(record.to_dict())
    elif special is not None:
        special.show(record)
    elif not is_replaced():
        print_record(record)
    if special is None:
        write_tables(lambda: facts_of(record), say)
    write_picture(lambda: plot_trace(record) if special is None else special.draw(record))
