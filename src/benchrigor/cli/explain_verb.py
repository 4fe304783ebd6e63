"""``benchrigor explain``: how a number came about."""

from __future__ import annotations

from pathlib import Path

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import outline, print_result
from benchrigor.cli.record_kinds import is_special, module_for
from benchrigor.cli.recordings import recorded_run, stored_run
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.layout import page, wrapped
from benchrigor.model.codec import is_there
from benchrigor.report import explain as explanation
from benchrigor.report.facts.reading_facts import explain_reading


@click.command(cls=Verb)
@click.argument("source", required=False, metavar="[RUN|FILE]")
@shared.metric_option
@click.option("--column", metavar="NAME", help="Which benchmark of a file of several.")
@click.option(
    "--reading",
    type=int,
    metavar="N",
    help="Why a reading of the whole run counts, or does not; the first is 0.",
)
@shared.store_option
@shared.json_option
def explain(
    source: str | None, *, metric: str | None, column: str | None, reading: int | None
) -> None:
    """Explain step by step how the number of a run came about.

    That is a stored run (the beginning of its id is enough; without one the last), or a file of
    results: a saved record, or what another tool wrote.

    \b
    Examples:
      benchrigor explain
      benchrigor explain 3f2a
      benchrigor explain 3f2a --metric rate --json
      benchrigor explain 3f2a --reading 17
      benchrigor explain hyperfine.json --column "sleep 1"
    """  # noqa: D301  # click wants the backspace itself
    is_stored = source is None or not is_there(Path(source))
    record = stored_run(source) if is_stored else recorded_run(str(source), column)
    if record is None:
        raise InvalidInput(
            f"{source} is of no known tool: `benchrigor analyze --explain` reads columns"
        )
    if is_special(record) and reading is None:
        module_for(record).explain(record)
        return
    if reading is not None:
        told = explain_reading(record, reading, metric)
        print_result(lambda: page(wrapped(told["sentence"])), run_id=record.run_id, **told)
        return
    chosen = record.analysis(metric)
    print_result(
        lambda: explanation(record, metric),
        run_id=record.run_id,
        name=record.name,
        analysis=None if chosen is None else outline(chosen),
        decision=record.decision,
    )
