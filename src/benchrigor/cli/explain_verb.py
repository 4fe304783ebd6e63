"""``benchrigor explain``: how a number came about."""

from __future__ import annotations

from pathlib import Path

import click

from benchrigor.cli.options import existing_store, json_option, store_option
from benchrigor.cli.output import print_json, summary
from benchrigor.model import codec
from benchrigor.report import explain as explanation
from benchrigor.session import retraced

__all__ = ["explain"]


@click.command(short_help="Tell step by step how the number of a run came about.")
@click.argument("run_id")
@click.option("--metric", help="Which metric.  [default: the first that must be satisfied]")
@store_option
@json_option
def explain(run_id: str, metric: str | None, store: Path | None, as_json: bool) -> None:
    """Tell step by step how the number of a stored run came about.

    The beginning of RUN_ID is enough.

    \b
    Examples:
      benchrigor explain 3f2a
      benchrigor explain 3f2a --metric rate --json
    """  # noqa: D301  # click wants the backspace itself
    record = retraced(existing_store(store).load(run_id))
    if not as_json:
        click.echo(explanation(record, metric))
        return
    chosen = record.analysis(metric)
    found = [
        each
        for each in summary(record)["analyses"]
        if chosen is not None and each["metric"]["name"] == chosen.metric.name
    ]
    print_json(
        {
            **codec.versions(),
            "run_id": record.run_id,
            "name": record.name,
            "analysis": found[0] if found else None,
            "decision": record.decision,
        }
    )
