"""Options of all verbs of nodes: the token, which no list of processes shows."""

from __future__ import annotations

import os
from pathlib import Path

import click

from benchrigor.files import readable

TOKEN = "BENCHRIGOR_TOKEN"  # noqa: S105  # the name of a variable


def _token(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(TOKEN) or None
    try:
        return readable(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be read: {error.strerror}") from error


token_option = click.option(
    "--token-file",
    "token",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    callback=_token,
    metavar="FILE",
    help=f"The token is in this file.  [default: the environment variable {TOKEN}]",
)
