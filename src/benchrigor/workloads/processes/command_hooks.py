"""Untimed commands before and after the runs of a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import DEVNULL

from benchrigor.errors import WorkloadFailed
from benchrigor.model.checks import refuse
from benchrigor.model.text import show_duration
from benchrigor.protocols import Clock
from benchrigor.workloads.processes.command_line import (
    GRACE_S,
    CommandLine,
    checked_argv,
    shown,
    with_stderr,
)
from benchrigor.workloads.processes.output_file import OutputFile

PLACES = ("setup", "prepare", "conclude", "cleanup")
LONGEST_S = {"cleanup": 60.0}  # of those that no round limits
_SETUP_S = 3600.0  # a build takes long, and not for ever
_LAST_S = 0.5  # for what concludes a round that took all of its time, and the grace after it
setting_up: list[str] = []  # while a setup runs: no round is under way that could be finished


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
    clock: Clock,
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
        if ended.overran and seconds is not None:
            return False
        if ended.code != 0:
            stderr.check_room()
            code = ended.code
            how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
            if ended.overran:
                how = f"ran longer than {show_duration(limit_s)} and was killed"
            raise WorkloadFailed(*with_stderr(f"{place} {shown(argv)} {how}", stderr.end(), argv))
    return True
