"""``benchrigor explain``: how a number came about."""

from __future__ import annotations

from pathlib import Path

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import outlined, print_result
from benchrigor.cli.record_kinds import is_special, module_for
from benchrigor.cli.recordings import stored_run
from benchrigor.cli.verb_help import Verb
from benchrigor.report import explain as explanation


@click.command(cls=Verb)
@shared.last_run_argument
@shared.metric_option
@shared.store_option
@shared.json_option
def explain(run_id: str | None, metric: str | None, store: Path | None, as_json: bool) -> None:
    """Explain step by step how the number of a stored run came about.

    The beginning of RUN_ID is enough; without one it is the last run.

    \b
    Examples:
      benchrigor explain
      benchrigor explain 3f2a
      benchrigor explain 3f2a --metric rate --json
    """  # noqa: D301  # click wants the backspace itself
    record = stored_run(run_id, store)
    if is_special(record):
        module_for(record).explain(record, as_json=as_json)
        return
    chosen = record.analysis(metric)
    print_result(
        lambda: explanation(record, metric),
        as_json=as_json,
        run_id=record.run_id,
        name=record.name,
        analysis=None if chosen is None else outlined(chosen),
        decision=record.decision,
    )
