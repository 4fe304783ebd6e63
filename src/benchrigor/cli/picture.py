"""The picture of the readings, for the verbs that have readings to show."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from benchrigor.cli.options import remember, remembered
from benchrigor.errors import InvalidInput
from benchrigor.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    help="Draw what was found into FILE: readings, segments or rates in time order, durations over "
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
