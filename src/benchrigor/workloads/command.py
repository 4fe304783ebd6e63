"""A command as a workload: its wall time, and readings picked from what it prints."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import threading
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Self

import numpy as np

from benchrigor.errors import ClockFailed, InvalidInput, WorkloadFailed
from benchrigor.model import Code, Notice, RoundPlan
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.protocols import Clock, DelayMeter, Recorder
from benchrigor.workloads.picking import Pick, read_picks
from benchrigor.workloads.process_delay import record_process

_TIME = "time"
_WORK = "{work}"
_LONGEST_NAME = 120
_STDERR_KEPT = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How a process ended."""

    code: int  # its exit code, or minus the signal that killed it
    elapsed_ns: int
    cpu_s: float
    overran: bool
    delay: tuple[int, int] | None  # as `DelayMeter.wait_for` tells it


class CommandWorkload:
    """Runs a command once per round.

    It has no standard input, and a session and process group of its own. Its wall time, from
    start to end, is the round's reading of "time" in seconds, unless that metric is picked from
    its output. The processor time of the command and of the children it waited for is the fact
    "cpu_s".

    Parameters
    ----------
    argv
        The program and its arguments; no shell reads them. ``{work}`` in any of them is replaced
        by the plan's work amount, which must stand in one where the plan has it.
    picks
        Where readings stand in its standard output, each for another metric.
    accept_exit
        Exit codes that are no failure; minus the number of a signal that may kill it.
    timeout_s
        Kill it, with all processes of its group, when it runs longer; None waits for ever.
    cwd
        Directory to run it in; None for that of this process.
    env
        Variables added to the environment of this process. They are part of the description.
    clock
        The only source of time.
    meter
        Measures how long the command and its descendants waited for processors; None measures
        nothing.

    Raises
    ------
    InvalidInput
        When one of these is out of range.

    Examples
    --------
    >>> import sys
    >>> from benchrigor.clocks import WallClock
    >>> from benchrigor.workloads import Pick, RoundRecorder
    >>> half = CommandWorkload(
    ...     [sys.executable, "-c", "print('half:', {work} / 2)"],
    ...     picks=[Pick.parse("half=regex:half: (.+)")],
    ...     clock=WallClock(),
    ... )
    >>> plan, recorder = RoundPlan(index=0, work=3.0), RoundRecorder()
    >>> half.run(plan, recorder)
    >>> finished = recorder.finish(plan, elapsed_ns=0)
    >>> finished.readings["half"], finished.readings["time"] > 0
    (1.5, True)
    """

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        picks: Sequence[Pick] = (),
        accept_exit: Collection[int] = (0,),
        timeout_s: float | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        clock: Clock,
        meter: DelayMeter | None = None,
    ) -> None:
        self._argv = _checked_argv(argv)
        codes = tuple(accept_exit) if isinstance(accept_exit, Collection) else ()
        are_codes = codes != () and all(isinstance(code, int) for code in codes)
        in_time = timeout_s is None or 0 < timeout_s <= threading.TIMEOUT_MAX
        picked = Counter(pick.metric for pick in picks)
        refuse(
            wrong_values(
                [
                    ("timeout_s", timeout_s, in_time, "seconds, more than 0, or None for no limit"),
                    ("accept_exit", accept_exit, are_codes, "exit codes in a list, at least one"),
                ]
            ),
            (
                f"two picks for metric {metric!r}, expected one for each"
                for metric, times in picked.items()
                if times > 1
            ),
        )
        self._picks = tuple(picks)
        self._accept_exit = frozenset(codes)
        self._timeout_s = timeout_s
        self._cwd = Path(cwd or ".").absolute()
        self._env = dict(env or {})
        self._clock = clock
        self._meter = meter

    @classmethod
    def from_description(
        cls,
        description: Mapping[str, Any],
        *,
        clock: Clock,
        meter: DelayMeter | None = None,
    ) -> Self:
        """Make the workload that `describe` described."""
        return cls(
            description["argv"],
            picks=[
                *(Pick.parse(text) for text in description["picks"]),
                *(Pick.parse(text, unit_readings=True) for text in description["unit_picks"]),
            ],
            accept_exit=description["accept_exit"],
            timeout_s=description["timeout_s"],
            cwd=description["cwd"],
            env=description["env"],
            clock=clock,
            meter=meter,
        )

    def describe(self) -> dict[str, Any]:
        """Return all that `from_description` needs, ready for JSON."""
        return {
            "kind": "command",
            "argv": list(self._argv),
            "picks": [str(pick) for pick in self._picks if not pick.unit_readings],
            "unit_picks": [str(pick) for pick in self._picks if pick.unit_readings],
            "accept_exit": sorted(self._accept_exit),
            "timeout_s": self._timeout_s,
            "cwd": str(self._cwd),
            "env": self._env,
        }

    @property
    def name(self) -> str:
        """The command line as a shell would read it, shortened."""
        return _shown(self._argv)

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Run the command once and record its wall time and what is picked from its output.

        WorkloadFailed when it cannot be started, runs too long, exits with a code that is not
        accepted, or prints no number where one is picked.
        """
        argv = self._argv_for(plan)
        # Files, not pipes: nothing is read while the command runs, so nothing disturbs it.
        with TemporaryFile() as stdout, TemporaryFile() as stderr:
            ended = self._ended(argv, stdout if self._picks else subprocess.DEVNULL, stderr)
            failure = self._failure(ended)
            if failure:
                raise WorkloadFailed(f"{_shown(argv)} {failure}{_end_of(stderr)}")
            if ended.elapsed_ns <= 0:
                raise ClockFailed(
                    f"the clock moved by {ended.elapsed_ns} ns while {_shown(argv)} ran, "
                    "expected more than 0; use a monotonic clock"
                )
            recorder.fact("exit_code", ended.code)
            recorder.fact("cpu_s", ended.cpu_s)
            if ended.delay is not None:
                record_process(recorder, *ended.delay, ended.elapsed_ns / 1e9, ended.cpu_s)
            if all(pick.metric != _TIME for pick in self._picks):
                recorder.reading(_TIME, ended.elapsed_ns / 1e9)
            if self._picks:
                self._record(read_picks(stdout, self._picks, name=_shown(argv)), recorder)

    def _argv_for(self, plan: RoundPlan) -> list[str]:
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

    def _ended(self, argv: list[str], stdout: BinaryIO | int, stderr: BinaryIO) -> _Ended:
        """Start the process and wait until it has ended, whatever ends it."""
        environment = {**os.environ, **self._env}
        start = self._clock.now_ns()
        process = self._started(argv, stdout, stderr, environment)
        overran = threading.Event()

        def stop() -> None:
            overran.set()
            _kill_group(process)

        # Popen.wait with a timeout polls, up to 50 ms apart, which would round the durations up.
        watchdog = threading.Timer(self._timeout_s or 0.0, stop)
        try:
            if self._timeout_s is not None:
                watchdog.start()
            ended_ns = delay = None
            if self._meter is not None:
                delay_of = self._meter.wait_for(process.pid)
                ended_ns = self._clock.now_ns()
                delay = delay_of()
            _, status, usage = os.wait4(process.pid, 0)
            ended_ns = ended_ns or self._clock.now_ns()
        except BaseException:
            _kill_group(process)
            process.wait()
            raise
        finally:
            watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        return _Ended(
            code=process.returncode,
            elapsed_ns=ended_ns - start,
            cpu_s=usage.ru_utime + usage.ru_stime,
            overran=overran.is_set(),
            delay=delay,
        )

    def _started(
        self, argv: list[str], stdout: BinaryIO | int, stderr: BinaryIO, env: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603  # the caller's own command, without a shell
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=self._cwd,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkloadFailed(
                f"{_shown(argv)} cannot be started: {error.strerror}: {str(error.filename)!r}"
            ) from error

    def _failure(self, ended: _Ended) -> str | None:
        """Return what is wrong with how the process ended; None when nothing is."""
        if ended.overran:
            return f"ran longer than {self._timeout_s:g} s and was killed"
        if ended.code in self._accept_exit:
            return None
        if ended.code < 0:
            return f"was killed by {_signal_name(-ended.code)}"
        accepted = " or ".join(str(code) for code in sorted(self._accept_exit))
        return f"exited with code {ended.code}, expected {accepted}"

    def _record(self, picked: Mapping[str, array[float]], recorder: Recorder) -> None:
        for pick in self._picks:
            numbers = np.frombuffer(picked[pick.metric])
            if pick.unit_readings:
                recorder.unit_readings(pick.metric, numbers)
                continue
            recorder.reading(pick.metric, float(numbers[-1]))
            if numbers.size > 1:
                sentence = (
                    f"{numbers.size} numbers were found for metric {pick.metric!r} in one round, "
                    "and the last one was taken as its reading."
                )
                name, n = pick.metric, numbers.size
                recorder.notice(Notice.note(Code.SEVERAL_MATCHES, sentence, metric=name, matches=n))


def _checked_argv(argv: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    if isinstance(argv, str | bytes):
        raise InvalidInput(
            f"argv is the text {argv!r}, expected a list of the program and its arguments: "
            "no shell splits it, shlex.split does"
        )
    arguments = tuple(os.fspath(each) if isinstance(each, os.PathLike) else each for each in argv)
    if not arguments:
        raise InvalidInput("argv is empty, expected a program and its arguments")
    for index, each in enumerate(arguments):
        if not isinstance(each, str) or "\0" in each:
            raise InvalidInput(f"argv[{index}] is {each!r}, expected text without NUL")
    return arguments


def _shown(argv: Sequence[str]) -> str:
    text = shlex.join(argv)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end_of(stderr: BinaryIO) -> str:
    """Return the last lines of stderr, as the end of an error message."""
    size = stderr.seek(0, io.SEEK_END)
    stderr.seek(max(0, size - _STDERR_KEPT))
    text = stderr.read(_STDERR_KEPT).decode(errors="replace")
    if size > _STDERR_KEPT:
        text = text.partition("\n")[2] or text
    return f"; its stderr ends:\n{text.strip()}" if text.strip() else ""
