"""Exit codes, and how errors become them."""

from __future__ import annotations

import enum
from typing import Any

import click

from benchrigor.cli.options import hint
from benchrigor.errors import (
    BenchrigorError,
    ClockFailed,
    NotEstimable,
    StoreFailed,
    WorkloadFailed,
)
from benchrigor.model import RunRecord, StopReason

__all__ = ["ExitCode", "Verbs", "code_for"]


class ExitCode(enum.IntEnum):
    """What the exit status of ``benchrigor`` says."""

    SATISFIED = 0
    BAD_INPUT = 2
    NOT_CONVERGED = 3
    NOTHING_MEASURED = 4
    WORKLOAD_FAILED = 5
    STORE_FAILED = 6
    WORSE = 7
    INTERRUPTED = 130


_BY_ERROR = (
    (WorkloadFailed, ExitCode.WORKLOAD_FAILED),
    (ClockFailed, ExitCode.WORKLOAD_FAILED),
    (NotEstimable, ExitCode.NOTHING_MEASURED),
    (StoreFailed, ExitCode.STORE_FAILED),
    (BenchrigorError, ExitCode.BAD_INPUT),
)


def code_for(record: RunRecord) -> ExitCode:
    """Return the exit code that a run deserves which came to an end without an error."""
    if record.estimate() is None:
        return ExitCode.NOTHING_MEASURED
    satisfied = record.decision is not None and record.decision.reason is StopReason.SATISFIED
    return ExitCode.SATISFIED if satisfied else ExitCode.NOT_CONVERGED


class Verbs(click.Group):
    """A group of commands in which benchrigor's errors end with their own exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which they were added."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; print an error in one paragraph instead of a traceback."""
        try:
            return super().invoke(ctx)
        except BenchrigorError as error:
            click.echo(f"benchrigor: {error}", err=True)
            _tell_of_kept(error)
            ctx.exit(next(code for kind, code in _BY_ERROR if isinstance(error, kind)))
        except KeyboardInterrupt as stop:
            click.echo("benchrigor: interrupted", err=True)
            _tell_of_kept(stop)
            ctx.exit(ExitCode.INTERRUPTED)


def _tell_of_kept(error: BaseException) -> None:
    """Say where the finished rounds are."""
    record = getattr(error, "record", None)
    if isinstance(record, RunRecord) and record.rounds and record.run_id:
        n = len(record.rounds)
        click.echo(
            f"benchrigor: {n} finished round{' is' if n == 1 else 's are'} kept: "
            + hint("resume", record.run_id),
            err=True,
        )
