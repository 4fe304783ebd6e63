"""The group of the verbs: each is loaded when it is called, and errors end with an exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from benchrigor.cli.standard_streams import CannotWrite, secure_streams
from benchrigor.errors import BenchrigorError, InvalidInput

# Help shows these without loading the verbs, in this order.
VERBS = {
    "run": "Measure a command or a function.",
    "ab": "Measure two functions or commands in turn, and compare them.",
    "commands": "Measure several commands in turn, and rank them.",
    "timeit": "Measure a statement of Python.",
    "doctor": "Look whether this machine is fit to be measured on.",
    "peak": "Find the greatest load at which a server keeps its limits.",
    "analyze": "Estimate the mean or a quantile of recorded readings.",
    "changes": "Find the change points and phases of recorded readings.",
    "compare": "Compare a candidate with a baseline, or rank several.",
    "replay": "Show when other rules would have stopped, and their estimates.",
    "list": "List the stored runs, newest first.",
    "show": "Show the report of a stored run.",
    "explain": "Explain step by step how the number of a run came about.",
    "export": "Write a run as CSV files.",
    "interference": "Estimate what share of a run's time is interference.",
    "rate": "Show the service rate of a recorded stage.",
    "plan": "Plan how much to measure to see a change, from an earlier run.",
    "track-record": "Show how often the intervals of stored runs held.",
    "agent": "Serve this machine's state to those who ask for it.",
    "watch": "Show how nodes are that run an agent.",
    "resume": "Take up a run that was killed, stopped or ran out of budget.",
}


_OWN_SIGNALS = "benchrigor.workloads.processes.own_signals"  # only verbs that measure load it

# Verbs that measure take all settings of a project; the target of a pair is that of its ratio.
_MEASURING = ("run", "ab", "timeit", "commands")
_FOR_ALL = {"confidence", "margin", "store"}
_NOT_OF = {"ab": {"target"}}


class Verbs(click.Group):
    """A group of commands in which benchrigor's errors end with their own exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which help shows them."""
        return list(VERBS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Load the module of a verb, and return its command."""
        if name not in VERBS:
            return None
        module = import_module(f"benchrigor.cli.{name.replace('-', '')}_verb")
        commands = (each for each in vars(module).values() if isinstance(each, click.Command))
        return next(each for each in commands if each.name == name)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs and what they do, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb, for whose options the project may give defaults."""
        name, verb, rest = super().resolve_command(ctx, args)
        ctx.meta["benchrigor.typed"] = args  # for `options.command_line`
        _check_folder()
        if _OWN_SIGNALS in sys.modules:
            from benchrigor.cli.leaving import left_clean  # noqa: PLC0415  # it loads what measures

            ctx.with_resource(left_clean())
        if name is not None and verb is not None:
            from benchrigor.storage.project_settings import defaults  # noqa: PLC0415  # loads

            given = {
                each: value
                for each, value in defaults().items()
                if (name in _MEASURING or each in _FOR_ALL) and each not in _NOT_OF.get(name, ())
            }
            flags = {f"--{each}": value for each, value in given.items()}
            ctx.default_map = {
                name: {
                    each.name: flags[flag]
                    for each in verb.params
                    for flag in each.opts
                    if flag in flags and each.name is not None
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
        try:
            return super().invoke(ctx)
        except (BenchrigorError, KeyboardInterrupt, click.UsageError) as error:
            ctx.exit(self._told(error, ctx))

    def _told(self, error: BaseException, ctx: click.Context) -> int:
        """Say what went wrong, unless a signal ends that; return the exit code."""
        from benchrigor.cli.exits import report_failure  # noqa: PLC0415  # loads the model

        verb = self.get_command(ctx, ctx.invoked_subcommand or "")
        try:
            return report_failure(error, verb.params if verb else ())
        except KeyboardInterrupt as interrupt:
            return report_failure(interrupt, ())


def _check_folder() -> None:
    """Raise InvalidInput where the current folder was removed: little works without one."""
    try:
        os.getcwd()  # noqa: PTH109  # without loading pathlib
    except OSError as error:
        raise InvalidInput(
            f"the current folder cannot be used: {error.strerror}; change to one that exists"
        ) from None
