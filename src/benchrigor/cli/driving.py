"""Running a session from the command line: the live line, and what Ctrl-C does."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from types import FrameType

from benchrigor.cli.exits import code_for, leave
from benchrigor.cli.output import LiveLine, live_line, print_record
from benchrigor.errors import WorkloadFailed
from benchrigor.model import Progress, RoundPlan
from benchrigor.protocols import Recorder, Workload
from benchrigor.session import Session
from benchrigor.workloads import CommandWorkload, StreamWorkload


def drive_and_print(
    begin: Callable[[Callable[[Progress], object]], Session],
    workload: Workload,
    *,
    target_given: bool,
    as_json: bool,
) -> None:
    """Run a session, print its result, and end with its exit code.

    ``begin`` makes the session from a listener to its progress. What a measured function prints
    goes to stderr: stdout is for the result.
    """
    if isinstance(workload, CommandWorkload):
        workload = _Patient(workload)
    with live_line() as line:
        session = begin(line)
        line.follow(session.name, session.options)
        with _gentle_interrupt(session, workload, line), redirect_stdout(sys.stderr):
            record = session.run(workload)
    print_record(record, as_json=as_json)
    leave(code_for(record, target_given=target_given))


class _Patient:
    """A command whose round is finished after the first Ctrl-C.

    A terminal sends the signal to its whole foreground process group. A command that is just
    starting is still in ours for a moment and dies of it: it is started again.
    """

    fresh_process = True

    def __init__(self, command: CommandWorkload) -> None:
        self.interrupted = False
        self._command = command

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Carry out one plan."""
        try:
            self._command.run(plan, recorder)
        except WorkloadFailed:
            if not self.interrupted:
                raise
            self._command.run(plan, recorder)


@contextmanager
def _gentle_interrupt(session: Session, workload: Workload, line: LiveLine) -> Iterator[None]:
    """Let the first Ctrl-C finish the round under way; a second one, or SIGTERM, ends at once.

    A round of a stream is finished with what there is.
    """

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if isinstance(workload, _Patient):
            workload.interrupted = True
        session.request_stop()
        if isinstance(workload, StreamWorkload):
            workload.stop()
            line.say("stopping the command; press Ctrl-C again to kill it")
        else:
            line.say("stopping after this round; press Ctrl-C again to end at once")

    before = signal.signal(signal.SIGINT, on_interrupt)
    # A command runs in a session of its own: it must not outlive us.
    before_term = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, before_term)
