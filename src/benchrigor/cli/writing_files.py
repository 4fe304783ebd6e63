"""Files that a verb makes: all or none, and existing ones are replaced only with --force."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import click

from benchrigor.errors import InvalidInput
from benchrigor.files import replacing
from benchrigor.model.checks import refuse
from benchrigor.model.codec import is_there

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
