"""The group of the verbs: a verb is loaded when called, and errors end with an exit code.

Standard output and error may be closed, full, or without a reader.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from functools import cache
from importlib import import_module
from typing import Any

import click

from benchrigor.cli.verb_help import HOMES, TASKS, VERBS, HelpContext
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed, used_up

# `exits.ExitCode.WORKLOAD_FAILED` and `STORE_FAILED`, which load the model
_USED_UP, _FAILED = 5, 6


class CannotWrite(Exception):
    """Standard output cannot be written; ``code`` is the exit code that follows from it."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror}")
        self.is_reader_gone = isinstance(error, BrokenPipeError)
        self.code = 128 + signal.SIGPIPE if self.is_reader_gone else _FAILED


class _Output(io.FileIO):
    """A descriptor that raises at its first failed write, if it matters, and drops later ones."""

    def __init__(self, descriptor: int, *, matters: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._matters, self._has_failed = matters, False

    def write(self, data: Any) -> int:
        """Write all of the data."""
        left = memoryview(data)
        size = len(left)
        try:
            while left and not self._has_failed:
                left = left[super().write(left) :]
        except OSError as error:
            self._has_failed = True
            if self._matters:
                raise CannotWrite(error) from None
        return size


def secure_streams() -> None:
    """Have writes to standard output fail with `CannotWrite`, and those to standard error never.

    If this process started without these streams, no opened file takes their place.
    """
    for descriptor, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # it is closed: the next file opened would get its number
            os.open(os.devnull, mode)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False))
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _text(descriptor, stream))


def _text(descriptor: int, before: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor, matters=descriptor == 1)),
        encoding=getattr(before, "encoding", "utf-8"),
        errors=getattr(before, "errors", "backslashreplace"),
        line_buffering=descriptor == 2 or os.isatty(descriptor),
    )


_OWN_SIGNALS = "benchrigor.workloads.processes.own_signals"  # only verbs that measure load it

# Verbs that measure take all settings of a project; the target of a pair is for its ratio.
_MEASURING = ("run", "ab", "timeit", "commands")
_FOR_ALL = {"confidence", "margin", "store"}
_NOT_OF = {"ab": {"target"}}
_WITHOUT_FOLDER = {"doctor", "explain", "export", "list", "show", "track-record"}


class Verbs(click.Group):
    """A group of commands in which benchrigor's errors end with their own exit code."""

    context_class = HelpContext

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which help shows them."""
        return list(VERBS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Load the module of a verb, and return its command."""
        return _command_of(name) if name in VERBS else None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by task with their questions, without loading them."""
        for task, verbs in TASKS.items():
            with formatter.section(task):
                width = max(map(len, VERBS))  # the same column for all tasks
                formatter.write_dl([(f"{name:{width}}", text) for name, text in verbs.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb, with the defaults of the project for its options."""
        name, verb, rest = super().resolve_command(ctx, args)
        ctx.meta["benchrigor.typed"] = args  # for `options.command_line`
        has_folder = _has_folder(name)
        if _OWN_SIGNALS in sys.modules:
            from benchrigor.cli.exits import left_clean  # noqa: PLC0415  # it loads what measures

            ctx.with_resource(left_clean())
        if name is not None and verb is not None:
            from benchrigor.storage.user_settings import defaults  # noqa: PLC0415  # loads

            given = {
                key: value
                for key, value in (defaults() if has_folder else {}).items()
                if (name in _MEASURING or key in _FOR_ALL) and key not in _NOT_OF.get(name, ())
            }
            flags = {f"--{key}": value for key, value in given.items()}
            ctx.default_map = {
                name: {
                    param.name: flags[flag]
                    for param in verb.params
                    for flag in param.opts
                    if flag in flags and param.name is not None
                }
            }
        return name, verb, rest

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line; say in one line if its output cannot be written."""
        secure_streams()
        try:
            return super().main(*args, **kwargs)
        except CannotWrite as error:
            if not error.is_reader_gone:
                from benchrigor.cli.output import remark  # noqa: PLC0415  # loads the model

                remark(str(error))
            sys.exit(error.code)  # noqa: TID251  # the command line

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read what stands before the verb."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            from benchrigor.cli.exits import escaped_usage  # noqa: PLC0415  # loads the model

            raise escaped_usage(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; report an error in one paragraph, or as JSON, instead of a traceback."""
        from benchrigor.clocks import check_room  # noqa: PLC0415  # help does not load it

        try:
            check_room()
        except WorkloadFailed as error:  # there is none for what reports errors, either
            click.echo(f"benchrigor: {error}", err=True)
            ctx.exit(_USED_UP)
        try:
            return super().invoke(ctx)
        except (BenchrigorError, KeyboardInterrupt, click.UsageError) as error:
            ctx.exit(self._report(error, ctx))
        except (OSError, MemoryError, ImportError) as error:
            if (failure := used_up(error)) is None:
                raise
            ctx.exit(self._report(failure, ctx))

    def _report(self, error: BaseException, ctx: click.Context) -> int:
        """Say what went wrong, unless a signal ends that; return the exit code."""
        from benchrigor.cli.exits import report_failure  # noqa: PLC0415  # loads the model

        verb = self.get_command(ctx, ctx.invoked_subcommand or "")
        try:
            return report_failure(error, verb.params if verb else ())
        except KeyboardInterrupt as interrupt:
            return report_failure(interrupt, ())


@cache
def _command_of(verb: str) -> click.Command:
    """Load the module of a verb, and return its command.

    Loaded modules stay. To look for garbage there would take a sixth of a short run, and time of
    functions that are measured in this process.
    """
    home = next(module for module, verbs in HOMES.items() if verb in verbs.split())
    gc.disable()
    module = import_module(f"benchrigor.{home}")
    gc.freeze()
    gc.enable()
    commands = (var for var in vars(module).values() if isinstance(var, click.Command))
    return next(command for command in commands if command.name == verb)


def _has_folder(verb: str | None) -> bool:
    """Return whether there is a current folder; InvalidInput if it was removed and a verb needs it.

    Stored runs can be read without one.
    """
    try:
        os.getcwd()  # noqa: PTH109  # without loading pathlib
    except OSError as error:
        if verb in _WITHOUT_FOLDER:
            return False
        raise InvalidInput(
            f"the current folder cannot be used: {error.strerror}; change to one that exists"
        ) from None
    return True
