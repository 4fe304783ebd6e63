"""A command line: its program and arguments, if it runs, and what its output and end mean."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import RoundPlan
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.shell_words import words_of
from benchrigor.protocols import Clock
from benchrigor.safe_text import hide_secrets, hide_values
from benchrigor.units import show_duration
from benchrigor.workloads.processes.process_group import (
    STDERR_KEPT,
    OutputFile,
    ProcessGroup,
    missing_for_processes,
)

GRACE_S = 1.0  # from being asked to end to being killed

_LONGEST_GRACE_S = 3600.0
_WORK = "{work}"
_LONGEST_NAME = 120
PLACES = ("setup", "prepare", "conclude", "cleanup")
LONGEST_S = {"cleanup": 60.0}  # of those that no round limits
_SETUP_S = 3600.0  # a build takes long, and not for ever
_LAST_S = 0.5  # for what concludes a round that took all of its time, and the grace after it
setting_up: list[str] = []  # while a setup runs: no round is under way that could be finished


class CommandLine:
    """A command that can be started for a plan. Parameters are as of `CommandWorkload`.

    InvalidInput when one of them is out of range.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        accept_exit: Collection[int] = (0,),
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        self.argv = checked_argv(argv)
        codes = tuple(accept_exit) if isinstance(accept_exit, Collection) else ()
        are_codes = codes != () and all(isinstance(code, int) for code in codes)
        in_range = isinstance(grace_s, int | float) and 0 <= grace_s <= _LONGEST_GRACE_S
        refuse(
            missing_for_processes(),
            wrong_values(
                [
                    ("accept_exit", accept_exit, are_codes, "exit codes in a list, at least one"),
                    ("grace_s", grace_s, in_range, f"seconds, from 0 to {_LONGEST_GRACE_S:g}"),
                ]
            ),
        )
        self.grace_s, self.accept_exit = grace_s, frozenset(codes)
        self.cwd, self.env = Path(cwd or ".").absolute(), dict(env or {})

    def argv_for(self, plan: RoundPlan) -> list[str]:
        """Return the arguments with the plan's work amount in its places."""
        takes_work = any(_WORK in argument for argument in self.argv)
        if takes_work is (plan.work is None):
            wrong = "has no work amount, but an" if takes_work else "has a work amount, but no"
            raise InvalidInput(
                f"the plan of round {plan.index} {wrong} argument of {shown(self.argv)} holds "
                f"{_WORK}: give a work amount where, and only where, an argument has a place for it"
            )
        if plan.work is None:
            return list(self.argv)
        amount = str(int(plan.work) if float(plan.work).is_integer() else float(plan.work))
        return [argument.replace(_WORK, amount) for argument in self.argv]

    def start(self, argv: Sequence[str], **given: Any) -> ProcessGroup:
        """Start it; WorkloadFailed when it cannot be started.

        ``given`` are further parameters of `ProcessGroup`.
        """
        env = {**os.environ, **self.env}
        return ProcessGroup(
            argv, name=shown(argv), cwd=self.cwd, env=env, grace_s=self.grace_s, **given
        )

    def failure(self, code: int) -> str | None:
        """Return the problem with an exit code, or None."""
        if code in self.accept_exit:
            return None
        if code < 0:
            return f"was killed by {_signal_name(-code)}"
        accepted = " or ".join(str(code) for code in sorted(self.accept_exit))
        return f"exited with code {code}, expected {accepted}"


def shown(argv: Sequence[str]) -> str:
    """Return arguments as a shell would read them, shortened and without secrets."""
    text = shlex.join(hide_secrets(list(argv)))
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def with_stderr(message: str, stderr: bytes, argv: Sequence[str] = ()) -> list[str]:
    """Return the lines of an error message that ends with the last lines of stderr.

    Secrets are hidden: programs repeat their arguments, ``argv``, when they complain of them.
    """
    lines = [f"  | {line}" for line in last_lines(stderr, argv)]
    return [f"{message}; its stderr ends:", *lines] if lines else [message]


def last_lines(output: bytes, argv: Sequence[str] = ()) -> list[str]:
    """Return the last lines of a command's output, with secrets hidden as above."""
    text = output[-STDERR_KEPT:].decode(errors="replace")
    if len(output) > STDERR_KEPT:
        text = text.partition("\n")[2] or text
    text = text.replace("\r\n", "\n").strip()
    return [hide_values(line, argv) for line in text.split("\n")] if text else []


def checked_argv(argv: Sequence[str | os.PathLike[str]], name: str = "argv") -> tuple[str, ...]:
    """Return a program and its arguments; InvalidInput if ``name`` is anything else."""
    if isinstance(argv, str | bytes):
        if isinstance(argv, str):
            words_of(argv, f"{name} is a text", instead='give ["sh", "-c", text]')
        raise InvalidInput(
            f"{name} is the text {hide_secrets(argv)!r}, expected a list of the program and its "
            "arguments: no shell splits it, shlex.split does"
        )
    arguments = tuple(os.fspath(part) if isinstance(part, os.PathLike) else part for part in argv)
    if not arguments:
        raise InvalidInput(f"{name} is empty, expected a program and its arguments")
    for index, argument in enumerate(arguments):
        if not isinstance(argument, str) or "\0" in argument:
            raise InvalidInput(f"{name}[{index}] is {argument!r}, expected text without NUL")
    return arguments


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def before_rounds() -> Iterator[None]:
    """Note that what runs belongs to no round."""
    setting_up.append("setup")
    try:
        yield
    finally:
        setting_up.pop()


class CommandHooks:
    """Commands to run once before all rounds, before and after every round, and once after all.

    WorkloadFailed when one fails, with its name and the end of its stderr.

    Parameters
    ----------
    argvs
        Arguments by place: "setup", "prepare", "conclude", "cleanup".
    line
        The command, in whose folder and environment they run.
    clock
        The source of time.
    """

    def __init__(self, argvs: Mapping[str, Sequence[str]], line: CommandLine, clock: Clock) -> None:
        expected = f"some of {', '.join(PLACES)}"
        refuse(f"hooks has {name!r}, expected {expected}" for name in sorted({*argvs} - {*PLACES}))
        self.argvs = {
            place: list(checked_argv(argv, f"hooks[{place!r}]")) for place, argv in argvs.items()
        }
        self._line, self._clock = line, clock
        self._is_set_up = False

    def set_up(self) -> None:
        """Run the setup, if it did not run yet."""
        if not self._is_set_up:
            self._is_set_up = True
            with before_rounds():
                self._run("setup")

    def prepare(self, left_s: float | None) -> bool:
        """Run what prepares a round; return whether it ended within the time that is left."""
        return self._run("prepare", left_s)

    def conclude(self, left_s: float | None) -> bool:
        """Run what concludes a round, with a grace; return whether it ended by itself."""
        return self._run("conclude", None if left_s is None else max(left_s + GRACE_S, _LAST_S))

    def close(self) -> None:
        """Clean up, if anything was set up."""
        if self._is_set_up:
            self._is_set_up = False
            self._run("cleanup")

    def _run(self, place: str, seconds: float | None = None) -> bool:
        argv = self.argvs.get(place)
        return argv is None or run_hook(place, argv, self._line, self._clock, seconds=seconds)


def run_hook(
    place: str,
    argv: Sequence[str],
    line: CommandLine,
    clock: Clock | None = None,
    *,
    seconds: float | None = None,
) -> bool:
    """Run a hook, and return False if it was killed after the ``seconds`` of its round.

    WorkloadFailed when it fails, or exceeds the limit of its place.
    """
    limit_s = LONGEST_S.get(place, _SETUP_S) if seconds is None else seconds
    with OutputFile(keeps_end=True) as stderr:
        try:
            group = line.start(argv, stdout=DEVNULL, stderr=stderr, clock=clock, timeout_s=limit_s)
        except WorkloadFailed as error:
            raise WorkloadFailed(f"{place}: {error}") from None
        ended = group.wait(None)
        if ended.limit_s and seconds is not None:
            return False
        if ended.code != 0:
            stderr.check_room()
            code = ended.code
            how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
            if ended.limit_s:
                how = f"ran longer than {show_duration(limit_s)} and was killed"
            raise WorkloadFailed(*with_stderr(f"{place} {shown(argv)} {how}", stderr.end(), argv))
    return True
