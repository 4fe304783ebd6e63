"""Exit codes, and how errors become them."""

from __future__ import annotations

import enum
from typing import Any, NoReturn

import click

from benchrigor.cli.options import hint
from benchrigor.errors import (
    BenchrigorError,
    ClockFailed,
    NotEstimable,
    StoreFailed,
    WorkloadFailed,
)
from benchrigor.model import RunRecord
from benchrigor.model.text import many


class ExitCode(enum.IntEnum):
    """The exit status of ``benchrigor``."""

    SATISFIED = 0
    BAD_INPUT = 2
    NOT_CONVERGED = 3
    NOTHING_MEASURED = 4
    WORKLOAD_FAILED = 5
    STORE_FAILED = 6
    WORSE = 7
    INTERRUPTED = 130


_BY_ERROR: tuple[tuple[Any, ExitCode], ...] = (
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
    ((WorkloadFailed, ClockFailed), ExitCode.WORKLOAD_FAILED),
    (NotEstimable, ExitCode.NOTHING_MEASURED),
    (StoreFailed, ExitCode.STORE_FAILED),
    (BenchrigorError, ExitCode.BAD_INPUT),
)


def code_for(record: RunRecord) -> ExitCode:
    """Return the exit code of a run that ended without an error."""
    if record.estimate() is None:
        return ExitCode.NOTHING_MEASURED
    satisfied = record.decision is not None and record.decision.satisfied
    return ExitCode.SATISFIED if satisfied else ExitCode.NOT_CONVERGED


def leave(code: ExitCode) -> NoReturn:
    """End the verb with an exit code."""
    click.get_current_context().exit(code)


class Verbs(click.Group):
    """A group of commands in which benchrigor's errors end with their own exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which they were added."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; print an error in one paragraph instead of a traceback."""
        try:
            return super().invoke(ctx)
        except (BenchrigorError, KeyboardInterrupt) as error:
            stopped = isinstance(error, KeyboardInterrupt)
            click.echo(f"benchrigor: {'interrupted' if stopped else error}", err=True)
            _say_what_is_kept(error)
            ctx.exit(next(code for kind, code in _BY_ERROR if isinstance(error, kind)))


def _say_what_is_kept(error: BaseException) -> None:
    """Say how many finished rounds are kept, and how to go on."""
    record = getattr(error, "record", None)
    if isinstance(record, RunRecord) and record.rounds and record.run_id:
        rounds = f"{many(len(record.rounds), 'finished round')} kept"
        click.echo(f"benchrigor: {rounds}: {hint('resume', record.run_id)}", err=True)
