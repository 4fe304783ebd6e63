"""Tables that verbs write next to, or in place of, their report: Markdown and CSV.

It writes all files of a verb or none, also the picture of its readings, and replaces existing ones
only with --force.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from benchrigor.cli.options import Decorator, awaits_json, remember, remembered
from benchrigor.errors import InvalidInput
from benchrigor.files import replacing, write_whole
from benchrigor.model.checks import refuse
from benchrigor.model.codec import is_there

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchrigor.report.fact import Fact


force_option = click.option("--force", is_flag=True, help="Replace files that are there.")


def refuse_those_there(paths: list[Path], *, force: bool) -> None:
    """Raise InvalidInput for files that may not be replaced."""
    if not force:
        there = [path for path in paths if is_there(path)]
        refuse([f"{path} is there already: --force replaces it" for path in there])


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write files, and make the folders of those that have none; InvalidInput if one cannot be."""
    try:
        with ExitStack() as replaced:
            for path, content in contents.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                replaced.enter_context(replacing(path, content))
    except OSError as error:
        name = error.filename or next(iter(contents))
        raise InvalidInput(f"{name} cannot be written: {error.strerror or error}") from error


_SUFFIXES = (".png", ".svg", ".pdf")


def _check(context: click.Context, option: click.Parameter, path: Path | None) -> Any:
    if path is not None and path.suffix.lower() not in _SUFFIXES:
        raise click.BadParameter(f"'{path}' ends otherwise than in {', '.join(_SUFFIXES)}")
    return remember(context, option, path)


plot_option = click.option(
    "--plot",
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    expose_value=False,  # what draws asks for it
    callback=_check,
    metavar="FILE",
    help="Draw the result into FILE: readings, segments or rates in time order, durations over "
    "work, the trials of a search, or a map; png, svg or pdf, by its suffix.",
)


def wants_picture() -> bool:
    """Return whether the current verb is to draw a picture."""
    return remembered("picture", None) is not None


def write_picture(draw: Callable[[], Axes]) -> None:
    """Write a figure, if one is wanted; comes last, so that a failure loses no output."""
    path = remembered("picture", None)
    if path is None:
        return
    axes = draw()
    try:
        drawn = io.BytesIO()
        cast("Figure", axes.figure).savefig(drawn, format=path.suffix[1:].lower())
        write_whole(path, drawn.getvalue())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error


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
        raise click.BadParameter(f"no folder {folder}")
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


def write_tables(facts: Callable[[], Sequence[Fact]], say: Callable[[str], object]) -> None:
    """Write the tables that were asked for; comes last, so that a failure loses no output."""
    if not are_wanted():
        return
    from benchrigor.report.figures import csv_of, markdown_of  # noqa: PLC0415  # slow to load

    for form, target in click.get_current_context().meta[_TABLES].items():
        text = (csv_of if form == "csv" else markdown_of)(facts())
        if target == _STDOUT:
            say(text)
            continue
        try:
            write_whole(target, f"{text}\n")
        except OSError as error:
            raise InvalidInput(f"{target} cannot be written: {error.strerror or error}") from error
