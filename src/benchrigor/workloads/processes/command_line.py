"""A command line: its program and arguments, if it runs, and what its output and end mean."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from benchrigor.errors import InvalidInput
from benchrigor.model import RoundPlan
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.codec import is_there
from benchrigor.model.secret_values import hide_secrets
from benchrigor.model.shell_words import words_of
from benchrigor.protocols import Clock
from benchrigor.secret_texts import hide_values
from benchrigor.workloads.processes.output_file import STDERR_KEPT, OutputFile
from benchrigor.workloads.processes.picking import Pick
from benchrigor.workloads.processes.process_group import ProcessGroup, missing_for_processes

GRACE_S = 1.0  # from being asked to end to being killed

_LONGEST_GRACE_S = 3600.0
_WORK = "{work}"
_LONGEST_NAME = 120


class CommandLine:
    """A command that can be started for a plan. Parameters are as of `CommandWorkload`.

    InvalidInput when one of them is out of range.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        picks: Sequence[Pick] = (),
        accept_exit: Collection[int] = (0,),
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        self._argv = checked_argv(argv)
        codes = tuple(accept_exit) if isinstance(accept_exit, Collection) else ()
        are_codes = codes != () and all(isinstance(code, int) for code in codes)
        in_range = isinstance(grace_s, int | float) and 0 <= grace_s <= _LONGEST_GRACE_S
        picked = Counter(pick.metric for pick in picks)
        refuse(
            missing_for_processes(),
            wrong_values(
                [
                    ("accept_exit", accept_exit, are_codes, "exit codes in a list, at least one"),
                    ("grace_s", grace_s, in_range, f"seconds, from 0 to {_LONGEST_GRACE_S:g}"),
                ]
            ),
            (
                f"two picks for metric {metric!r}, expected one for each"
                for metric, times in picked.items()
                if times > 1
            ),
        )
        self.picks = tuple(picks)
        self.grace_s = grace_s
        self._accept_exit = frozenset(codes)
        self._cwd = Path(cwd or ".").absolute()
        self._env = dict(env or {})

    @staticmethod
    def read_description(description: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that `describe` described."""
        return {
            "argv": description["argv"],
            "picks": [
                *(Pick.parse(text) for text in description["picks"]),
                *(Pick.parse(text, unit_readings=True) for text in description["unit_picks"]),
            ],
            "accept_exit": description["accept_exit"],
            "cwd": description["cwd"],
            "env": description["env"],
            "grace_s": description.get("grace_s", GRACE_S),
        }

    def describe(self) -> dict[str, Any]:
        """Return all that `read_description` needs, ready for JSON."""
        return {
            "argv": list(self._argv),
            "picks": [str(pick) for pick in self.picks if not pick.unit_readings],
            "unit_picks": [str(pick) for pick in self.picks if pick.unit_readings],
            "accept_exit": sorted(self._accept_exit),
            "cwd": str(self._cwd),
            "env": self._env,
            "grace_s": self.grace_s,
        }

    @property
    def source_files(self) -> tuple[Path, ...]:
        """The program, and the arguments that are files."""
        program = shutil.which(self._argv[0], path=self._env.get("PATH"))
        named = [program or self._argv[0], *self._argv[1:]]
        paths = (self._cwd / name for name in named)
        return tuple(path for path in paths if is_there(path, Path.is_file))

    @property
    def name(self) -> str:
        """The command line as a shell would read it, shortened."""
        return shown(self._argv)

    def argv_for(self, plan: RoundPlan) -> list[str]:
        """Return the arguments with the plan's work amount in its places."""
        takes_work = any(_WORK in argument for argument in self._argv)
        if takes_work is (plan.work is None):
            wrong = "has no work amount, but an" if takes_work else "has a work amount, but no"
            raise InvalidInput(
                f"the plan of round {plan.index} {wrong} argument of {self.name} holds {_WORK}: "
                "give a work amount where, and only where, an argument has a place for it"
            )
        if plan.work is None:
            return list(self._argv)
        amount = str(int(plan.work) if float(plan.work).is_integer() else float(plan.work))
        return [argument.replace(_WORK, amount) for argument in self._argv]

    def start(
        self,
        argv: Sequence[str],
        *,
        stdout: OutputFile | IO[bytes] | int | None,
        stderr: OutputFile | IO[bytes] | int,
        clock: Clock,
        timeout_s: float | None = None,
        seconds: float | None = None,
        **given: Any,
    ) -> ProcessGroup:
        """Start it, to end after that many seconds; WorkloadFailed when it cannot be started.

        ``given`` are further parameters of `ProcessGroup`.
        """
        return ProcessGroup(
            argv,
            name=shown(argv),
            stdout=stdout,
            stderr=stderr,
            cwd=self._cwd,
            env={**os.environ, **self._env},
            clock=clock,
            timeout_s=timeout_s,
            seconds=seconds,
            grace_s=self.grace_s,
            **given,
        )

    def failure(self, code: int) -> str | None:
        """Return the problem with an exit code, or None."""
        if code in self._accept_exit:
            return None
        if code < 0:
            return f"was killed by {_signal_name(-code)}"
        accepted = " or ".join(str(code) for code in sorted(self._accept_exit))
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
