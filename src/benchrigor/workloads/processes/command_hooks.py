"""What is run around the runs of a command, and is never timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from subprocess import DEVNULL

from benchrigor.errors import WorkloadFailed
from benchrigor.model.checks import refuse
from benchrigor.protocols import Clock
from benchrigor.workloads.processes.command_line import CommandLine, shown, with_stderr
from benchrigor.workloads.processes.output_file import OutputFile

PLACES = ("setup", "prepare", "conclude", "cleanup")


class CommandHooks:
    """Commands to run once before all rounds, before and after each, and once after all.

    WorkloadFailed when one fails, with its name and the end of what it wrote to stderr.

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
        refuse(f"hooks has {each!r}, expected {expected}" for each in sorted({*argvs} - {*PLACES}))
        self.argvs = {place: list(argv) for place, argv in argvs.items()}
        self._line, self._clock = line, clock
        self._is_set_up = False

    def begin(self) -> None:
        """Run the setup before the first round, and what prepares each."""
        if not self._is_set_up:
            self._is_set_up = True
            self._run("setup")
        self._run("prepare")

    def conclude(self) -> None:
        """Run what concludes a round."""
        self._run("conclude")

    def close(self) -> None:
        """Clean up, if anything was set up."""
        if self._is_set_up:
            self._is_set_up = False
            self._run("cleanup")

    def _run(self, place: str) -> None:
        if place in self.argvs:
            run_hook(place, self.argvs[place], self._line, self._clock)


def run_hook(place: str, argv: Sequence[str], line: CommandLine, clock: Clock) -> None:
    """Run what prepares or concludes; WorkloadFailed when it fails, naming its place."""
    with OutputFile(keeps_end=True) as stderr:
        try:
            group = line.start(argv, stdout=DEVNULL, stderr=stderr, clock=clock)
        except WorkloadFailed as error:
            raise WorkloadFailed(f"{place}: {error}") from None
        code = group.wait(None).code
        if code != 0:
            stderr.check_room()
            how = f"exited with code {code}" if code > 0 else f"was killed by signal {-code}"
            raise WorkloadFailed(*with_stderr(f"{place} {shown(argv)} {how}", stderr.end()))
