"""What is measured, a command line or a function given as module:function, and its log and line."""

from __future__ import annotations

import inspect
import logging
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.exits import code_for, leave
from benchrigor.cli.options import OutputPath, store_to_keep
from benchrigor.cli.output import LiveLine, live_line, print_record, remark
from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed
from benchrigor.model import Code, Metric, Notice, Options, RoundPlan, RunRecord
from benchrigor.model.checks import refuse
from benchrigor.model.shell_words import words_of
from benchrigor.protocols import Recorder, Workload
from benchrigor.safe_text import holds_hidden
from benchrigor.session import Session
from benchrigor.session.engine import Engine
from benchrigor.session.measuring import TIME, records_of, rotate
from benchrigor.session.schedules import check_seed, seed_of
from benchrigor.session.session import as_workload, meter_for
from benchrigor.storage.user_settings import picked_metrics, time_metric
from benchrigor.workloads import (
    AmountWorkload,
    CallableWorkload,
    CommandWorkload,
    InterpreterWorkload,
    Pick,
    StatementWorkload,
    StepwiseWorkload,
)
from benchrigor.workloads.named_functions import (
    imported,
    names_function,
    search_first,
    takes_amount,
)
from benchrigor.workloads.processes.command_line import setting_up
from benchrigor.workloads.processes.own_signals import end, handle
from benchrigor.workloads.processes.running import missing_for_processes


def trailing_words(words: Sequence[str], *, several: bool = True) -> list[str]:
    """Return the problems with the words after a function: only functions may follow."""
    wrong = [word for word in words[1:] if not (several and names_function(word))]
    expected = "nothing but functions" if several else "nothing"
    return [
        f"{word!r} follows the function {words[0]}, expected {expected}: functions take no "
        "arguments, and options stand before them"
        for word in wrong[:1]
    ]


def command_words(words: Sequence[str], *, shell: bool) -> list[str]:
    """Return a program and its arguments as they are; with ``shell``, have sh read the only word.

    InvalidInput if the program is missing, and only a shell can read that word.
    """
    if shell and len(words) > 1:
        raise InvalidInput(
            f"--shell is given, and the command has {len(words)} words: give it as one text, quoted"
        )
    text = words_of(words[0], by_shell=shell) if shell or not shutil.which(words[0]) else []
    return text if shell else list(words)


def command_target(argv: Sequence[str], given: Mapping[str, Any], **own: Any) -> CommandWorkload:
    """Make a workload of a command, with the time limit that is given."""
    clock = WallClock()
    timing: dict[str, Any] = {"clock": clock, "meter": meter_for(clock)}
    return CommandWorkload(argv, timeout_s=given["timeout_s"], **timing, **own)


def interpreter_target(
    target: str, given: Mapping[str, Any], *, python: str | None, **own: Any
) -> InterpreterWorkload:
    """Make a workload of a function in fresh interpreters, by the options that are given."""
    own |= {name: given[name] for name in (*shared.OF_PROCESSES, "timeout_s")}
    gc = given["gc"] or "on"
    return InterpreterWorkload(target, python=python, inner=given["batch"], gc=gc, **own)


def function_target(
    target: str,
    *,
    gc: str,
    batch: int | None,
    cwd: str,
    fresh: bool,
    timeout_s: float | None = None,
) -> Workload:
    """Import ``module:function``, as ``python -m`` would in ``cwd``, and make it a workload.

    With ``fresh``, a generator function starts again in every round. ``batch`` calls of a function
    make a reading; None chooses the number. A function with an argument receives work amounts. A
    call, or a step of a generator, that lasts longer than ``timeout_s`` is ended.
    """
    function = imported(target, cwd)
    clock = WallClock()
    meter = meter_for(clock)
    workload = as_workload(function, clock, fresh=fresh, meter=meter)
    timing: dict[str, Any] = {"clock": clock, "meter": meter, "timeout_s": timeout_s}
    if isinstance(workload, AmountWorkload):
        return AmountWorkload(function, gc=gc, **timing)
    if isinstance(workload, CallableWorkload):
        return CallableWorkload(function, inner=batch, gc=gc, **timing)
    if isinstance(workload, StepwiseWorkload):
        return StepwiseWorkload(function, fresh=fresh, **timing)
    return workload


def statement_target(subject: Mapping[str, Any]) -> StatementWorkload:
    """Make a workload of a statement, which imports from the current folder first."""
    search_first(subject.get("cwd", str(Path.cwd())))
    clock = WallClock()
    return StatementWorkload(
        subject["statement"],
        setup=subject["setup"],
        clock=clock,
        inner=subject["batch"],
        gc=subject["gc"],
        meter=meter_for(clock),
    )


def refuse_hidden(record: RunRecord) -> None:
    """Refuse to resume a run that needs secrets, which its record does not keep."""
    if holds_hidden(record.subject):
        raise InvalidInput(
            f"run {record.run_id} cannot be resumed: its record keeps no secrets, and the program "
            f"measured needs them ({record.name}). Start it again; a secret in an environment "
            "variable or a file of its own is not part of the command, which can be resumed then"
        )


def workload_of(record: RunRecord) -> Workload:
    """Rebuild the workload of a stored run that was started from the command line."""
    refuse_hidden(record)
    subject, clock = record.subject, WallClock()
    if subject.get("kind") == "command":
        return CommandWorkload.from_description(dict(subject), clock=clock, meter=meter_for(clock))
    if subject.get("kind") == "statement":
        return statement_target(subject)
    if subject.get("kind") == "interpreter":
        return InterpreterWorkload.from_description(dict(subject))
    if subject.get("kind") == "target":
        return function_target(
            subject["target"],
            gc=subject["gc"],
            batch=subject.get("batch"),
            timeout_s=subject.get("timeout_s"),
            cwd=subject["cwd"],
            fresh=record.options.rounds == "restarted",
        )
    raise InvalidInput(
        f"this run measured {subject.get('name', 'something')!r} from within a program: "
        "take it up there, with Session.resume"
    )


def metrics_for(picks: Sequence[Pick], speed: Metric | None = None) -> tuple[Metric, ...]:
    """Return the metrics of a run: those picked from a command's output, and the wall time.

    ``speed`` is the metric of rounds of various work, None if all are the same. It must be
    satisfied unless readings of units of work are picked, which say more; other picks need not
    be. The time is the duration of a round then, and no metric.
    """
    picked = picked_metrics({pick.metric: pick.description for pick in picks})
    if speed is None:
        must_satisfy = not any(metric.must_satisfy for metric in picked.values())
        time = replace(time_metric(), must_satisfy=must_satisfy)
        return (*picked.values(), *(() if TIME.name in picked else (time,)))
    refuse(*(_name_problems(pick, speed) for pick in picks))
    units = tuple(picked.pop(pick.metric) for pick in picks if pick.unit_readings)
    picked.pop(TIME.name, None)
    first = (*units, replace(speed, must_satisfy=not units))
    return (*first, *(replace(metric, must_satisfy=False) for metric in picked.values()))


def _name_problems(pick: Pick, speed: Metric) -> Iterator[str]:
    """Yield the problems with the name of a pick if work varies."""
    if pick.metric == speed.name:
        yield f"{str(pick)!r}: {speed.name!r} follows from work and duration; give another name"
    if pick.metric == TIME.name and (pick.unit_readings or pick.unit not in ("", TIME.unit)):
        yield (
            f"{str(pick)!r}: {TIME.name!r} is how long a round took, expected one reading in "
            f"{TIME.unit}; give another name"
        )


# Workload, metrics and subject of a session, and its notices
Chosen = tuple[Workload, tuple[Metric, ...], dict[str, Any], *tuple[Notice, ...]]

_FOR_COMMANDS = ("read", "read_units", "accept_exit", "shell")


def chosen_function(
    words: tuple[str, ...],
    given: Mapping[str, Any],
    speed: Metric | None,
    *,
    in_turn: bool = False,
) -> Chosen:
    """Return how the function that the words name is measured; a Notice says if it is in here."""
    target = words[0]
    problems = [
        f"{flag} is for commands, and {target} is a function"
        for flag in shared.flags_given(given, *_FOR_COMMANDS)
    ]
    refuse(problems, trailing_words(words))
    given = {**given, "speed": speed, "in_turn": in_turn}
    why = None if given["fresh"] and not given["in_process"] else _why_in_process(target, given)
    if why is None:
        return _in_interpreters(target, given)
    refuse(
        f"{flag} is for fresh interpreters: {why}"
        for flag in shared.flags_given(given, "fresh", *shared.FRESH)
    )
    notice = Notice.of(Code.THIS_PROCESS_ONLY, "here", why_=why)
    return *_in_process(target, given, speed), notice


def _in_process(
    target: str, given: Mapping[str, Any], speed: Metric | None
) -> tuple[Workload, tuple[Metric, ...], dict[str, Any]]:
    timing = {
        "gc": given["gc"] or "on",
        "batch": given["batch"],
        "timeout_s": given["timeout_s"],
        "cwd": str(Path.cwd()),
    }
    workload = function_target(target, **timing, fresh=given["rounds"] == "restarted")
    amount = isinstance(workload, AmountWorkload)
    if given["batch"] is not None and (amount or not isinstance(workload, CallableWorkload)):
        timed = "is called once for each work amount" if amount else "is measured step by step"
        raise InvalidInput(f"--batch is for plain functions, and {target} {timed}")
    if getattr(workload, "takes_amount", False) and not (given["work"] or speed):
        module, _, function = target.partition(":")
        raise InvalidInput(
            f"{target} takes a work amount: give one, or a range, with --work. To time calls with "
            f"one argument: benchrigor timeit -s 'import {module}' '{module}.{function}(...)'"
        )
    subject = {"kind": "target", "name": target, "target": target, **timing}
    if speed is not None and isinstance(workload, StepwiseWorkload):
        return workload, (TIME, replace(speed, must_satisfy=False)), subject
    return workload, metrics_for((), speed), subject


def _in_interpreters(target: str, given: Mapping[str, Any]) -> Chosen:
    wrong = [option for option in _for_one_process(given) if option != "--timeout"]
    refuse(f"--fresh goes without {option}" for option in wrong)
    workload = interpreter_target(target, given, python=given["python"])
    return workload, metrics_for(()), {**workload.describe(), "name": target}


def _why_in_process(target: str, given: Mapping[str, Any]) -> str | None:
    """Return why a function is measured in this process; None if fresh interpreters measure it."""
    option = next(_for_one_process(given), None)
    if given["in_process"]:
        return "--in-process is given"
    if given["in_turn"]:
        return "several functions take turns in it"
    if option is not None:
        return f"{option} is for one process"
    if missing := missing_for_processes():
        return missing[0]
    if given["python"]:  # which may have what this interpreter lacks
        return None
    function = imported(target, str(Path.cwd()))
    if inspect.isgeneratorfunction(function):
        return f"{target} is a generator function"
    is_plain = callable(function) and not inspect.isasyncgenfunction(function)
    if not is_plain or takes_amount(function):
        return f"{target} is not a function that is called without arguments"
    if "<locals>" in getattr(function, "__qualname__", ""):
        return f"{target} is made inside of another function"
    return f"{target} is of the program itself" if target.startswith("__main__:") else None


def _for_one_process(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that measure one process only."""
    if given["rounds"] == "continuous":
        yield "--rounds continuous"
    if given["speed"] and not given["work"]:
        yield "--analysis wps"
    yield from shared.flags_given(given, "work", "pieces", "over", "timeout_s")


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
