"""``benchrigor list``: the stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import print_json, say
from benchrigor.cli.verb_help import Verb
from benchrigor.control_characters import escaped, page
from benchrigor.model import Decision
from benchrigor.model.text import WIDTH, ended, many, shortened

_INDENT = 10 * " "


@click.command(name="list", cls=Verb)
@click.argument("query", default="")
@shared.store_option
@shared.json_option
def list_runs(query: str, store: Path | None, as_json: bool) -> None:
    """List the stored runs whose id or name holds QUERY, newest first.

    \b
    Examples:
      benchrigor list
      benchrigor list gzip --json
    """  # noqa: D301  # click wants the backspace itself
    opened = shared.existing_store(store)
    runs = opened.runs(query)
    if as_json:
        print_json(runs)
    elif runs:
        say(page(line for each in runs for line in _entry(each)))
    else:
        say(escaped(f"no runs in {opened.path}" + (f" match {query!r}" if query else "")))


def _entry(run: Mapping[str, Any]) -> list[str]:
    """Return two lines: what was measured and when, and its result.

    With the figure at full pace where there is room, for which the count of rounds may go.
    """
    headline, name = escaped(str(run["headline"])), escaped(str(run["name"]))
    head = f"{run['run_id']}  {_shown_time(run['started_at'])}  "
    revision = _revision(run["commit"])
    head += shortened(name, WIDTH - len(head) - len(revision)) + revision
    if "damage" in run:
        return [head, f"{_INDENT}damaged: {run['damage']}"]
    # A headline is the name, the number, its evidence and its ending.
    number, *others = headline.removeprefix(f"{name}: ").split(" · ")
    if number.startswith("no number:"):  # of runs stored before headlines told what was observed
        number = "no number"
    reason = run["reason"]
    ending = ended(Decision(stop=True, reason=reason)) if reason else "unfinished"
    rounds = many(run["rounds"], "round")
    shapes = [[number, ending, rounds], [number, ending]]
    for each in others:
        if each.startswith("at full pace "):
            paced = each.removeprefix("at ").partition(" [")[0]
            shapes = [[number, paced, ending, rounds], [number, paced, ending], *shapes]
    lines = [_INDENT + " · ".join(filter(None, shape)) for shape in shapes]
    result = next((line for line in lines if len(line) <= WIDTH), lines[-1])
    return [head, shortened(result, WIDTH)]


def _revision(commit: str | None) -> str:
    """Show the commit that was measured as git does; + stands for changes that it lacks."""
    if commit is None:
        return ""
    return f"  {commit[:7]}{'+' if commit.endswith('+dirty') else ''}"


def _shown_time(started_at: object) -> str:
    """Show when a run began, in local time; of a run that is damaged, it may be no time."""
    try:
        return f"{datetime.fromisoformat(str(started_at)).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return "unknown time"
