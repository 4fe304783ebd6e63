"""A command line: its program and arguments, if it runs, and what its output and end mean."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack

from benchrigor.errors import InvalidInput
from benchrigor.model import RoundPlan
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.shell_words import words_of
from benchrigor.protocols import Clock, DelayMeter
from benchrigor.safe_text import hide_secrets
from benchrigor.workloads.processes.running import Ended, Running, missing_for_processes, shown

GRACE_S = 1.0  # from being asked to end to being killed

_LONGEST_GRACE_S = 3600.0
_WORK = "{work}"
PLACES = ("setup", "prepare", "conclude", "cleanup")
LONGEST_S = {"cleanup": 60.0}  # of those that no round limits
SETUP_S = 3600.0  # a build takes long, and not for ever
_LAST_S = 0.5  # for what concludes a round that took all of its time, and the grace after it
setting_up: list[str] = []  # while a setup runs: no round is under way that could be finished


# What fresh interpreters inherit, besides names with these beginnings and ends.
INHERITED = (
    *("HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PYTHONPATH", "TEMP"),
    *("TMP", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV"),
)
_INHERITED_FIRST, _INHERITED_LAST = "LC_", "_NUM_THREADS"


class Where(TypedDict, total=False):
    """Where processes run; `CommandLine` starts them so, and workloads are described by it.

    ``cwd`` is their folder, None for the current one; ``env`` are variables added to those that
    they inherit: of this process all, or with ``inherit_env`` these names and `INHERITED`.
    """

    cwd: str | os.PathLike[str] | None
    env: Mapping[str, str] | None
    inherit_env: Collection[str] | None


class CommandLine:
    """A command that can be started for a plan. Parameters are as of `CommandWorkload`.

    InvalidInput when one of them is out of range.
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        accept_exit: Collection[int] = (0,),
        grace_s: float = GRACE_S,
        **where: Unpack[Where],
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
        self.cwd = Path(where.get("cwd") or ".").absolute()
        self.env, inherited = dict(where.get("env") or {}), where.get("inherit_env")
        self.where: Where = {"cwd": str(self.cwd), "env": self.env}
        if inherited is not None:
            self.where["inherit_env"] = [*inherited]

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

    def start(
        self,
        argv: Sequence[str],
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        **given: Any,
    ) -> Running:
        """Start it; WorkloadFailed when it cannot be started.

        ``env`` are variables of this start alone, ``given`` further parameters of `Running`.
        """
        own: dict[str, Any] = {"grace_s": self.grace_s, "accept_exit": self.accept_exit}
        env = {**self._inherited(), **(env or {}), **self.env}
        return Running(argv, name=name or shown(argv), cwd=self.cwd, env=env, **own | given)

    def _inherited(self) -> Mapping[str, str]:
        if (wanted := self.where.get("inherit_env")) is None:
            return os.environ
        return {
            name: value
            for name, value in os.environ.items()
            if name in {*INHERITED, *wanted}
            or name.startswith(_INHERITED_FIRST)
            or name.endswith(_INHERITED_LAST)
        }

    def run(self, argv: Sequence[str], meter: DelayMeter | None = None, **given: Any) -> Ended:
        """Start it, and wait for its end."""
        with self.start(argv, **given) as running:
            return running.wait(meter)


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
        The command; they run in its folder and environment.
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

    def prepare(self, left_s: float | None) -> None:
        """Run what prepares a round; HookLate if it takes more than the time that is left."""
        self._run("prepare", left_s)

    def conclude(self, left_s: float | None) -> None:
        """Run what concludes a round; HookLate if it takes more than the rest and a grace."""
        self._run("conclude", None if left_s is None else max(left_s + GRACE_S, _LAST_S))

    def close(self) -> None:
        """Clean up, if anything was set up."""
        if self._is_set_up:
            self._is_set_up = False
            self._run("cleanup")

    def _run(self, place: str, seconds: float | None = None) -> None:
        if place in self.argvs:
            run_hook(place, self.argvs[place], self._line, self._clock, seconds=seconds)


class HookLate(Exception):
    """A hook was killed because the time of its round was up."""


def run_hook(
    place: str,
    argv: Sequence[str],
    line: CommandLine,
    clock: Clock | None = None,
    *,
    seconds: float | None = None,
) -> None:
    """Run a hook, with a limit of ``seconds`` for what is left of a round, or that of its place.

    WorkloadFailed when it fails, HookLate when it takes longer than is left of the round.
    """
    limit_s = LONGEST_S.get(place, SETUP_S) if seconds is None else seconds
    ended = line.run(
        argv, name=f"{place} {shown(argv)}", clock=clock, timeout_s=limit_s, accept_exit=(0,)
    )
    if ended.limit_s and seconds is not None:
        raise HookLate(place)
    if ended.failure:
        raise ended.error()
