"""``benchrigor timeit``: measure a statement, as `timeit` of the standard library takes it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.driving import drive_and_print
from benchrigor.cli.targets import statement_target
from benchrigor.cli.verb_help import Verb
from benchrigor.model import Options
from benchrigor.session import Session
from benchrigor.session.measuring import TIME


@click.command(cls=Verb)
@click.argument("lines", nargs=-1, required=True, metavar="STATEMENT [LINE]...")
@click.option(
    "-s", "--setup", "setup", multiple=True, metavar="STATEMENT", help="Run once before; by lines."
)
@shared.settings(
    *("target", "confidence", "statistic", "detector", "budget_s", "max_rounds"),
    *("budget_readings", "gc", "batch", "seed"),
)
@shared.kept_options
@shared.details_option
@shared.json_option
def timeit(lines: tuple[str, ...], **given: Any) -> None:
    """Measure a statement of Python until its interval is narrow enough.

    Several statements, and several of --setup, are lines of one program, indented as they are
    given. As `python -m timeit` does, the statement stands in the timed loop itself, what --setup
    defines is local to it, and imports look in the current folder first.

    \b
    Examples:
      benchrigor timeit '"-".join(map(str, range(100)))'
      benchrigor timeit -s 'rows = list(range(999, 0, -1))' 'sorted(rows)'
      benchrigor timeit 'for i in range(9):' '  str(i)' --json
    """  # noqa: D301  # click wants the backspace itself
    subject = {
        "kind": "statement",
        "name": lines[0] if len(lines) == 1 else f"{lines[0]} [...]",
        "statement": "\n".join(lines),
        "setup": "\n".join(given["setup"]),
        "gc": given["gc"],
        "batch": given["batch"],
        "cwd": str(Path.cwd()),
    }
    begin = partial(
        Session,
        Options(**shared.given_options(given)),
        (TIME,),
        name=subject["name"],
        subject=subject,
        seed=given["seed"],
        store=shared.store_to_keep(),
    )
    drive_and_print(begin, statement_target(subject))
