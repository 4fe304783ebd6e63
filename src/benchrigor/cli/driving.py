"""The log of a session: a line per decision, with its time."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import click

from benchrigor.cli.exits import code_for, leave
from benchrigor.cli.options import OutputPath, store_to_keep
from benchrigor.cli.output import LiveLine, live_line, print_record, remark
from benchrigor.cli.targets import Chosen
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed
from benchrigor.model import Options, RoundPlan, RunRecord
from benchrigor.protocols import Recorder, Workload
from benchrigor.session import Session
from benchrigor.session.engine import Engine
from benchrigor.session.measuring import records_of, rotate
from benchrigor.session.schedules import check_seed, seed_of
from benchrigor.workloads import CommandWorkload
from benchrigor.workloads.processes.command_line import setting_up
from benchrigor.workloads.processes.own_signals import end, handle

log_option = click.option(
    "--log",
    type=OutputPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Append a line for each decision: round, readings, interval, target, and why.",
)


@contextmanager
def logged_to(path: Path | None) -> Iterator[None]:
    """Append what sessions log meanwhile to a file, if there is one."""
    if path is None:
        yield
        return
    try:
        handler = _LogFile(path, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("benchrigor.session")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        with suppress(OSError):  # of the lines that could not be written
            handler.close()
        if handler.problem is not None:
            remark(f"{path} cannot be written: {handler.problem}; lines of the log are missing")


class _LogFile(logging.FileHandler):
    """Notes the first problem, such as a full disk: the session goes on without the log."""

    problem: BaseException | None = None

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # theirs
        self.problem = self.problem or sys.exc_info()[1]


def drive_and_print(
    begin: Callable[..., Session],
    workload: Workload,
    *,
    over_s: float | None = None,
) -> None:
    """Run a session, print its result, and end with its exit code.

    ``begin`` makes the session from ``progress``, a listener. The output of a measured function
    goes to stderr: stdout is for the result.
    """
    if isinstance(workload, CommandWorkload):
        workload = _Patient(workload)
    with live_line() as line:
        session = begin(progress=line)
        line.follow(session.subject.name, session.options)
        with gentle_interrupt([session.engine], workload, line), redirect_stdout(sys.stderr):
            record = session.run(workload, over_s=over_s)
    print_record(record)
    leave(code_for(record))


def session_of(chosen: Chosen, options: Options, **given: Any) -> Session:
    """Begin the session of a workload with its metrics, subject and Notices."""
    _, metrics, subject, *notices = chosen
    session = Session(options, metrics, subject=subject, **given)
    for notice in notices:
        session.note(notice)
    return session


def driven_in_turn(
    chosen: Mapping[str, Chosen],
    options: Options,
    *,
    seed: int | None,
    over_s: float | None = None,
    by_round: bool = False,
) -> tuple[dict[str, RunRecord], BaseException | None]:
    """Run sessions in turn; return records with rounds, and the error that ended them early."""
    drawn, store = check_seed(seed), store_to_keep()
    error: BaseException | None = None
    with live_line() as line:
        runs: dict[str, tuple[Session, Workload]] = {}
        for index, (name, one) in enumerate(chosen.items()):
            given = {"name": name, "seed": seed_of(drawn, index), "store": store, "progress": line}
            runs[name] = session_of(one, options, **given), one[0]
        line.follow("", options)
        engines = [session.engine for session, _ in runs.values()]
        with gentle_interrupt(engines, None, line), redirect_stdout(sys.stderr):
            try:
                records = rotate(runs, seed=drawn, over_s=over_s, by_round=by_round)
            except (BenchrigorError, KeyboardInterrupt) as failed:
                records, error = records_of(runs), failed
    return records, error


class _Patient:
    """A command that finishes its round after the first Ctrl-C.

    A terminal sends the signal to its whole foreground process group. A command that is just
    starting is still in ours for a moment and dies of it: it is started again.
    """

    fresh_process = True

    def __init__(self, command: CommandWorkload) -> None:
        self.interrupted = False
        self._command = command
        self.source_files = command.source_files

    def take_turns(self) -> None:
        """Run a reference in turn with the command."""
        self._command.take_turns()

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Carry out one plan."""
        try:
            self._command.run(plan, recorder)
        except WorkloadFailed:
            if not self.interrupted:
                raise
            self._command.run(plan, recorder)


@contextmanager
def gentle_interrupt(
    engines: Sequence[Engine[Any]], workload: Workload | None, line: LiveLine
) -> Iterator[None]:
    """Let the first Ctrl-C finish the round under way; a second one ends at once.

    A setup comes before all rounds: the first Ctrl-C ends it.
    """

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, end)
        if setting_up:
            end(number, frame)
            return
        if isinstance(workload, _Patient):
            workload.interrupted = True
        for engine in engines:
            engine.request_stop()
        line.say("stopping after this round; press Ctrl-C again to end at once")

    with handle({signal.SIGINT: on_interrupt}):
        yield
