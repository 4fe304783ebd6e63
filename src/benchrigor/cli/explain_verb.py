"""``benchrigor explain``: how a number came about."""

from __future__ import annotations

from pathlib import Path

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import outlined, print_result
from benchrigor.cli.recordings import stored_run
from benchrigor.cli.searches import is_search, peak_of
from benchrigor.cli.verb_help import Verb
from benchrigor.model import codec
from benchrigor.report import explain as explanation
from benchrigor.report.peak_text import explain_peak


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
    if is_search(record):
        print_result(
            lambda: explain_peak(peak_of(record), record.name),
            as_json=as_json,
            run_id=record.run_id,
            name=record.name,
            peak=codec.encode(peak_of(record)),
        )
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
