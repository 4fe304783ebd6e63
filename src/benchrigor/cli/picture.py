"""The picture of the readings, for the verbs that have readings to show."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from benchrigor.errors import InvalidInput
from benchrigor.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg", ".pdf")


def _check(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in _SUFFIXES:
        raise click.BadParameter(f"'{path}' ends otherwise than in {', '.join(_SUFFIXES)}")
    return path


plot_option = click.option(
    "--plot",
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_check,
    metavar="FILE",
    help="Draw what was found into FILE: readings, segments or rates in time order, durations over "
    "work, the trials of a search, or a map; png, svg or pdf, by its suffix.",
)


def write_picture(axes: Axes, path: Path) -> None:
    """Write the figure of these axes to a file; comes last, so that a failure loses no output."""
    try:
        drawn = io.BytesIO()
        cast("Figure", axes.figure).savefig(drawn, format=path.suffix[1:].lower())
        write_whole(path, drawn.getvalue())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error
