"""The log of a session: a line per decision, with its time."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from benchrigor.cli.options import OutputPath
from benchrigor.cli.output import remark
from benchrigor.errors import InvalidInput

log_option = click.option(
    "--log",
    type=OutputPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Append a line for each decision: round, readings, interval, target, and why.",
)


@contextmanager
def logged_to(path: Path | None) -> Iterator[None]:
    """Append what sessions log meanwhile to a file, if there is one."""
    if path is None:
        yield
        return
    try:
        handler = _LogFile(path, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("benchrigor.session")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        with suppress(OSError):  # of the lines that could not be written
            handler.close()
        if handler.problem is not None:
            remark(f"{path} cannot be written: {handler.problem}; lines of the log are missing")


class _LogFile(logging.FileHandler):
    """Notes the first problem, such as a full disk: the session goes on without the log."""

    problem: BaseException | None = None

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # theirs
        self.problem = self.problem or sys.exc_info()[1]
