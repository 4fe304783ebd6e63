"""Tables that verbs write next to, or in place of, their report: Markdown and CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchrigor.cli.options import Decorator, awaits_json
from benchrigor.errors import InvalidInput
from benchrigor.files import write_whole
from benchrigor.model.codec import is_there

if TYPE_CHECKING:
    from benchrigor.report.tables.figures import Figures

_TABLES = "benchrigor.tables"
_STDOUT = "-"


def _remember(context: click.Context, option: click.Parameter, target: str | None) -> None:
    if target is None:
        return
    known: dict[str, str] = context.meta.setdefault(_TABLES, {})
    if target == _STDOUT and (awaits_json() or _STDOUT in known.values()):
        raise click.BadParameter("'-' is standard output, which has another document: name a file")
    folder = Path(target).absolute().parent
    if target != _STDOUT and not is_there(folder, Path.is_dir):
        raise click.BadParameter(f"there is no folder {folder}")
    known[str(option.name)] = target


def _option(form: str, text: str) -> Decorator:
    return click.option(
        f"--{form}",
        type=click.Path(dir_okay=False, allow_dash=True),
        expose_value=False,  # printers of results ask for it
        callback=_remember,
        metavar="FILE|-",
        help=f"{text}; - prints it in place of the report.",
    )


_MARKDOWN = _option("markdown", "Write names, values, intervals, ratios and verdicts as Markdown")
_CSV = _option("csv", "Write them as CSV, with all digits")


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --markdown and --csv."""
    return _MARKDOWN(_CSV(command))


def are_wanted() -> bool:
    """Return whether the current verb is to write a table."""
    return bool(click.get_current_context().meta.get(_TABLES))


def is_replaced() -> bool:
    """Return whether a table stands on standard output in place of the report."""
    return _STDOUT in click.get_current_context().meta.get(_TABLES, {}).values()


def write_tables(figures: Callable[[], Figures], say: Callable[[str], object]) -> None:
    """Write the tables that were asked for; comes last, so that a failure loses no output."""
    if not are_wanted():
        return
    from benchrigor.report.tables.figures import csv_of, markdown_of  # noqa: PLC0415  # slow to load

    for form, target in click.get_current_context().meta[_TABLES].items():
        text = (csv_of if form == "csv" else markdown_of)(figures())
        if target == _STDOUT:
            say(text)
            continue
        try:
            write_whole(target, f"{text}\n")
        except OSError as error:
            raise InvalidInput(f"{target} cannot be written: {error.strerror or error}") from error
