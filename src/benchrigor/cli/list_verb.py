"""``benchrigor list``: the stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.output import print_json, say
from benchrigor.cli.verb_help import Verb
from benchrigor.layout import Line, Part, page
from benchrigor.model import Decision
from benchrigor.model.text import say_end
from benchrigor.safe_text import escaped, hide_secrets
from benchrigor.units import many

_INDENT = 10 * " "


@click.command(name="list", cls=Verb)
@click.argument("query", default="")
@shared.store_option
@shared.json_option
def list_runs(query: str) -> None:
    """List the stored runs with QUERY in their id or name, newest first.

    \b
    Examples:
      benchrigor list
      benchrigor list gzip --json
    """  # noqa: D301  # click wants the backspace itself
    opened = shared.existing_store()
    runs = opened.runs(query)
    if shared.wants_json():
        print_json(runs)
    elif runs:
        say(page(line for run in runs for line in _entry(run)))
    else:
        say(
            escaped(
                f"no runs in {opened.path}" + (f" match {hide_secrets(query)!r}" if query else "")
            )
        )


def _entry(run: Mapping[str, Any]) -> list[Part]:
    """Return two lines: name and time of a run, and its result."""
    head = f"{run['run_id']}  {_shown_time(run['started_at'])}  "
    lines: list[Part] = [Line(f"{run['name']}{_revision(run['commit'])}", head)]
    if "damage" in run:
        return [*lines, f"{_INDENT}damaged: {run['damage']}"]
    reason = run["reason"]
    ending = say_end(Decision(stop=True, reason=reason)) if reason else "unfinished"
    parts = (_number(str(run["headline"]), str(run["name"])), ending, many(run["rounds"], "round"))
    return [*lines, f"{_INDENT}{' · '.join(filter(None, parts))}"]


def _number(headline: str, name: str) -> str:
    """Return the number of a headline without the name before it."""
    old = headline.removeprefix(f"{name}: ")
    if old != headline:  # of a run stored before its line was short
        number = old.partition(" · ")[0]
        return "no number" if number.startswith("no number:") else number
    rest = headline.removeprefix(f"{name}  ")
    number = (rest if rest != headline else headline.partition("  ")[2]).partition("  (")[0]
    return "no number" if number.startswith("no number") else number


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
