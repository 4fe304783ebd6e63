"""Exit codes, and how errors become them."""

from __future__ import annotations

import _thread
import enum
import os
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import click

from benchrigor.cli.options import awaits_json, hint, name_options
from benchrigor.cli.output import print_result, remark, say
from benchrigor.errors import (
    BenchrigorError,
    ClockFailed,
    NotComparable,
    NotEstimable,
    StoreFailed,
    WorkloadFailed,
    WorkTooShort,
    without_our_frames,
)
from benchrigor.model import Analysis, Comparison, Options, RunRecord, StopReason, Verdict
from benchrigor.model.comparison import Family
from benchrigor.model.run import PAIR, are_in_turn
from benchrigor.safe_text import escaped, hide_in_text
from benchrigor.stats.readings.asked_readings import wanted_half_width
from benchrigor.units import first_few, many
from benchrigor.workloads.processes import kinship, own_signals
from benchrigor.workloads.processes.own_signals import ExitedAtOnce
from benchrigor.workloads.processes.running import end_all


class ExitCode(enum.IntEnum):
    """The exit status of ``benchrigor``."""

    RESULT = 0
    BAD_INPUT = 2
    TARGET_MISSED = 3
    NOTHING_MEASURED = 4
    WORKLOAD_FAILED = 5
    STORE_FAILED = 6
    WORSE = 7
    NOT_COMPARABLE = 8
    INTERRUPTED = 130


_BY_ERROR: tuple[tuple[Any, ExitCode], ...] = (
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
    ((WorkloadFailed, ClockFailed), ExitCode.WORKLOAD_FAILED),
    ((NotEstimable, WorkTooShort), ExitCode.NOTHING_MEASURED),
    (StoreFailed, ExitCode.STORE_FAILED),
    (NotComparable, ExitCode.NOT_COMPARABLE),
    (BenchrigorError, ExitCode.BAD_INPUT),
)
_WHOLE = {
    StopReason.SATISFIED,
    StopReason.TIME_BUDGET,
    StopReason.READINGS_BUDGET,
    StopReason.ROUND_LIMIT,
    StopReason.EXHAUSTED,
}


def code_for(record: RunRecord) -> ExitCode:
    """Return the exit code of a run that ended without an error.

    A width that was not asked for need not be reached; a width in the description of a metric
    always was.
    """
    if record.estimate() is None:
        analysis = record.analysis()
        has_minimum = record.options.statistic == "min" and analysis and analysis.observed
        return ExitCode.RESULT if has_minimum else ExitCode.NOTHING_MEASURED
    if record.decision is not None and record.decision.satisfied:
        return ExitCode.RESULT
    required = [analysis for analysis in record.analyses if analysis.metric.must_satisfy]
    missed = any(misses_width(analysis, record.options) for analysis in required)
    return ExitCode.TARGET_MISSED if missed else ExitCode.RESULT


def code_of(
    comparison: Comparison, fail_on: str | None, *, target_missed: bool = False
) -> ExitCode:
    """Return the exit code of a comparison, the same at every verb.

    ``target_missed`` says whether a width that was asked for is not reached. That matters where
    the verdict is still open.
    """
    if comparison.ratio is None:
        return ExitCode.NOTHING_MEASURED
    is_open = comparison.verdict is Verdict.UNDECIDED
    if comparison.fails(fail_on):
        return ExitCode.TARGET_MISSED if is_open else ExitCode.WORSE
    return ExitCode.TARGET_MISSED if is_open and target_missed else ExitCode.RESULT


def code_of_family(family: Family, fail_on: str | None) -> ExitCode:
    """Return the worst exit code of the verdicts of a family."""
    pairs = family.comparisons.items()
    judged = (replace(one, verdict=family.verdicts[name]) for name, one in pairs)
    return max(code_of(one, fail_on) for one in judged)


def misses_width(analysis: Analysis, options: Options) -> bool:
    """Whether the interval of a metric is wider than asked for, or asked for and missing."""
    estimate, metric = analysis.estimate, analysis.metric
    if estimate is None:
        widths = (options.asked, metric.relative_half_width, metric.absolute_half_width)
        return any(width is not None for width in widths)
    return estimate.half_width > wanted_half_width(estimate, metric, options.asked)


def leave(code: ExitCode) -> NoReturn:
    """End the verb with an exit code."""
    click.get_current_context().exit(code)


def _runs_to_finish(error: BaseException) -> list[RunRecord]:
    """Return the stored runs that an error cut short."""
    records: Any = getattr(error, "records", None) or {"": getattr(error, "record", None)}
    return [
        record
        for record in records.values()
        if isinstance(record, RunRecord) and record.run_id and record.rounds
        if record.decision is None or record.decision.reason not in _WHOLE
    ]


def _say_how_to_go_on(unfinished: Sequence[RunRecord]) -> Iterator[str]:
    """Say how to go on with runs, or how to look at sides of a comparison, which do not go on."""
    if are_in_turn(unfinished):
        rounds = " and ".join(str(len(run.rounds)) for run in unfinished)
        ids = [str(run.run_id) for run in unfinished]
        yield f"{rounds} finished rounds kept: {hint('compare', '--paired', *ids)}"
        return
    for run in unfinished:
        rounds = f"{many(len(run.rounds), 'finished round')} "
        is_short = run.decision is not None and run.decision.reason is StopReason.WORK_TOO_SHORT
        is_over = PAIR in run.subject or is_short
        rounds += f"of {run.name} " if len(unfinished) > 1 or is_over else ""
        yield f"{rounds}kept: {hint('show' if is_over else 'resume', str(run.run_id))}"


def report_failure(error: BaseException, params: Iterable[click.Parameter]) -> int:
    """Say on stderr what went wrong, with --json also as JSON on stdout; return the exit code.

    ``params`` are the parameters of the verb, which name the fields of `Options` in the message.

    Errors in how the command line is written are left to click.
    """
    usage = error if isinstance(error, click.UsageError) else None
    message = usage.format_message() if usage else name_options(str(error), params) or "interrupted"
    message = hide_in_text(message)
    unfinished = _runs_to_finish(error)
    if awaits_json():
        fields: dict[str, Any] = {"error": {"type": type(error).__name__, "message": message}}
        ids = [run.run_id for run in unfinished]
        fields |= {"run_id": ids[0]} if len(ids) == 1 else {"run_ids": ids} if ids else {}
        print_result(str, **fields)
    if usage:
        raise escaped_usage(usage)
    # The call of `os._exit` is in a frame of ours, and the message names it.
    if isinstance(error, WorkloadFailed) and not isinstance(error.__cause__, _NO_TRACE):
        raised = traceback.format_exception(without_our_frames(error.__cause__))
        say("\n".join(map(_mark_further_lines, raised)), err=True)
    say(f"benchrigor: {message}", err=True)
    for line in _say_how_to_go_on(unfinished):
        remark(line)
    by_signal: int | None = getattr(error, "code", None)  # of `own_signals.EndedBySignal`
    return by_signal or next(code for kind, code in _BY_ERROR if isinstance(error, kind))


def escaped_usage(error: click.UsageError) -> click.UsageError:
    """Return an error in how the command line is written, without secrets, and escaped."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error  # a page of ours
    message = hide_in_text(error.format_message())
    if not isinstance(error, click.MissingParameter):  # it lists choices, not the typed words
        message = escaped(message)
    return click.UsageError(message, error.ctx)


_NO_TRACE = (type(None), ExitedAtOnce)
_LONGEST = 4_000  # characters of a part of a traceback: messages may have any length


def _mark_further_lines(part: str) -> str:
    """Mark the further lines of an exception's message, which might pass for ours."""
    part = hide_in_text(part.removesuffix("\n")[: 2 * _LONGEST])[:_LONGEST]
    return part if part[:1].isspace() else part.replace("\n", "\n  | ")


_spared: list[set[int]] = []  # earlier processes, per verb that killed descendants
_EXIT_S = 2.0
_MOST_NAMED = 10


@contextmanager
def left_clean() -> Iterator[None]:
    """End all processes that are started inside, and name those that escaped.

    A signal that ends programs raises `EndedBySignal` inside.
    """
    before = kinship.descendants()
    os.environ[kinship.MARK] = str(os.getpid())  # of what functions start, too
    kinship.adopt_orphans(True)
    with own_signals.ended_by_signals():
        try:
            yield
        finally:
            own_signals.too_late()
            end_all()
            if kinship.kill_descendants(spared=before):
                _spared.append(before)
            kinship.kill_orphans()
            if escaped := kinship.escapees():  # of any number: process numbers begin again
                remark(f"still running: {first_few(escaped, _MOST_NAMED)}")
            kinship.adopt_orphans(False)
            os.environ.pop(kinship.MARK, None)  # a function may have cleared them


def end_program(code: int) -> None:
    """End this program at once if it would wait for threads or killed processes; else soon."""
    main, running = threading.main_thread(), threading.enumerate()
    threads = [thread.name for thread in running if thread is not main and not thread.daemon]
    if threads:
        names = first_few(threads, _MOST_NAMED)
        remark(f"ended although the measured code left threads running: {names}")
    if own_signals.left_calls or _spared or threads:
        own_signals.refuse_forks()  # a pool replaces its killed processes
        kinship.kill_descendants(spared=set().union(*_spared))
        own_signals.end_at_once(code)
    try:
        _thread.start_new_thread(_end_later, (code,))
    except RuntimeError:  # the measured code left no memory, or no number, for another
        own_signals.end_at_once(code)


def _end_later(code: int) -> None:
    time.sleep(_EXIT_S)
    remark(f"ended without exit functions of the measured code: they took more than {_EXIT_S:g} s")
    own_signals.end_at_once(code)
