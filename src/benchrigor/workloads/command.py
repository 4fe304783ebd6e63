"""A command as a workload: its wall time, and readings picked from its output."""

from __future__ import annotations

import math
import os
import shutil
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, BinaryIO, Self, Unpack

import numpy as np

from benchrigor.clocks import processors
from benchrigor.errors import ClockFailed, WorkloadFailed
from benchrigor.model import Code, Delays, Notice, References, RoundPlan
from benchrigor.model.checks import refuse, wrong_values, wrong_whole
from benchrigor.model.codec import is_there
from benchrigor.model.machine import COMMAND, COMMAND_CPU, COMMAND_REST
from benchrigor.protocols import Clock, DelayMeter, Recorder
from benchrigor.safe_text import hide_values
from benchrigor.stats.series.undisturbed import STOPPED
from benchrigor.units import many, show_value
from benchrigor.workloads.processes import launcher
from benchrigor.workloads.processes.command_line import (
    GRACE_S,
    CommandHooks,
    CommandLine,
    HookLate,
    Where,
    before_rounds,
)
from benchrigor.workloads.processes.picking import OutputSearch, Pick, read_picks, wrong_picks
from benchrigor.workloads.processes.running import Ended, Running, shown
from benchrigor.workloads.processes.worker import MOST_SHARE, repeats_after
from benchrigor.workloads.recorder import RoundRecorder

VERSION = 1  # of the reference: every change of it changes the times
_TIME = "time"
_WARM_UP = RoundPlan(index=1)  # belongs to no session; index 0 has one more run for its memory
_DESCRIBED = (
    *("argv", "accept_exit", "timeout_s", *Where.__annotations__),
    *("grace_s", "hooks", "stdin", "stdout", "ignore_failure", "cpu_times", "memory", "warm_up"),
)
_SEARCH_NS = 1_000_000_000  # for the search of the output after the budget
_MOST_FAILURES = 10  # in a row, if failures are ignored
# Unmeasured processes do not matter if they ran for up to this share of the time.
_NEGLIGIBLE = 0.01
_LEAST_S = 1e-6  # the unit in which the kernel counts


class CommandWorkload:
    """Runs a command once per round.

    Its wall time in seconds is the reading of "time", unless a pick reads that metric from the
    output. Two facts describe the command and the children it waited for: their processor time
    ("cpu_s"), and how often they gave up a processor by themselves ("voluntary_switches").

    The command runs in a session and a process group of its own; the workload ends the processes
    that it leaves in the group. When the seconds of a plan are up, the group gets SIGTERM, and
    SIGKILL after a grace period. Such a round keeps only the unit readings in whole lines.

    Parameters
    ----------
    argv
        The program and its arguments, without a shell. ``{work}`` in them is replaced by the
        plan's work amount; it must be there if plans have work amounts.
    picks
        Positions of readings in its standard output, one pick per metric.
    accept_exit
        Exit codes of successful runs; -N if signal N may kill the command.
    timeout_s
        A command that runs longer is killed with its group; None for no limit.
    hooks
        Commands that run untimed, as arguments by name: "setup" and "cleanup" once around all
        rounds, "prepare" and "conclude" around every run. When the seconds of a plan are up, a
        "prepare" is killed, a "conclude" two seconds later, and the round does not count. A
        "setup" may take an hour, a "cleanup" a minute; neither is part of a round.
    stdin, stdout
        Files to read from and write to, opened for every run; "inherit" for the output of this
        process, None for none.
    ignore_failure
        Whether a failed run is counted (``failed_runs``, ``failed_time_s``) and repeated, up to
        ten times in a row.
    cpu_times
        Whether its processor times are the readings of "user_time" and "system_time".
    memory
        Whether a further run measures the fact ``peak_memory``, in bytes;
        ``peak_memory_floor`` is the least that any command shows.
    warm_up
        Number of runs after the setup, before all rounds, that are not recorded.
    grace_s
        Seconds between SIGTERM, when the budget is spent, and SIGKILL.
    clock
        The only source of time.
    meter
        Measures how long the command and its descendants waited for processors; None for no
        measurement.
    **where
        ``cwd``, the directory to run it in; None for the current one. ``env``, variables added to
        this process's environment, and part of the description.

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

    fresh_process = True

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        picks: Sequence[Pick] = (),
        accept_exit: Collection[int] = (0,),
        timeout_s: float | None = None,
        grace_s: float = GRACE_S,
        hooks: Mapping[str, Sequence[str]] | None = None,
        stdin: str | os.PathLike[str] | None = None,
        stdout: str | os.PathLike[str] | None = None,
        ignore_failure: bool = False,
        cpu_times: bool = False,
        memory: bool = False,
        warm_up: int = 0,
        clock: Clock,
        meter: DelayMeter | None = None,
        **where: Unpack[Where],
    ) -> None:
        self._line = CommandLine(argv, accept_exit=accept_exit, grace_s=grace_s, **where)
        in_time = timeout_s is None or 0 < timeout_s <= threading.TIMEOUT_MAX
        limit = "seconds, more than 0, or None for no limit"
        wrong = wrong_values([("timeout_s", timeout_s, in_time, limit)])
        refuse(wrong, wrong_whole("warm_up", warm_up, least=0), wrong_picks(picks))
        self._picks, self._timeout_s = tuple(picks), timeout_s
        self._hooks = CommandHooks(hooks or {}, self._line, clock)
        self._options: dict[str, Any] = {
            "hooks": self._hooks.argvs,
            "stdin": None if stdin is None else os.fspath(stdin),
            "stdout": None if stdout is None else os.fspath(stdout),
            "ignore_failure": ignore_failure,
            "cpu_times": cpu_times,
            "memory": memory,
            "warm_up": warm_up,
        }
        self._left_to_warm_up = warm_up
        self._failed_ns: list[int] = []  # of runs that failed, and are ignored
        self._clock, self._now_ns = clock, clock.now_ns
        self._until_ns: float | None = None  # of the round under way
        self._meter = meter
        self._reference: ReferenceCommand | None = None

    def take_turns(self) -> None:
        """Run a reference command in turn with this one."""
        self._reference = ReferenceCommand(self._clock, self._meter)

    @classmethod
    def from_description(
        cls, description: Mapping[str, Any], *, clock: Clock, meter: DelayMeter | None = None
    ) -> Self:
        """Make the workload that `describe` described."""
        kinds = {"picks": False, "unit_picks": True}
        given = {name: description[name] for name in _DESCRIBED if name in description}
        given["picks"] = [
            Pick.parse(text, unit_readings=is_unit)
            for kind, is_unit in kinds.items()
            for text in description[kind]
        ]
        return cls(**given, clock=clock, meter=meter)

    def describe(self) -> dict[str, Any]:
        """Return all that `from_description` needs, ready for JSON."""
        return {
            "kind": "command",
            "argv": list(self._line.argv),
            "picks": [str(pick) for pick in self._picks if not pick.unit_readings],
            "unit_picks": [str(pick) for pick in self._picks if pick.unit_readings],
            "accept_exit": sorted(self._line.accept_exit),
            **self._line.where,
            "grace_s": self._line.grace_s,
            "timeout_s": self._timeout_s,
            # An option that is not given is left out: so were options that did not exist yet.
            **{name: value for name, value in self._options.items() if value},
        }

    @property
    def name(self) -> str:
        """The command line as a shell would read it, shortened."""
        return shown(self._line.argv)

    @property
    def source_files(self) -> tuple[Path, ...]:
        """The program, and the arguments that are files."""
        line = self._line
        program = shutil.which(line.argv[0], path=line.env.get("PATH"))
        paths = (line.cwd / name for name in (program or line.argv[0], *line.argv[1:]))
        return tuple(path for path in paths if is_there(path, Path.is_file))

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Run the command once, and record its wall time and the readings in its output.

        WorkloadFailed when it cannot be started, runs too long, exits with a code that is not
        accepted, or prints no number if one is picked.
        """
        argv = self._line.argv_for(plan)
        self.set_up()
        self._until_ns = None if plan.seconds is None else self._now_ns() + 1e9 * plan.seconds
        try:
            self._run_until_well(argv, plan, recorder)
        except HookLate as late:
            self._record_late(str(late), plan, recorder)
        if self._failed_ns:
            recorder.fact("failed_runs", len(self._failed_ns))
            recorder.fact("failed_time_s", float(np.median(self._failed_ns)) / 1e9)

    def set_up(self) -> None:
        """Run the setup and the warm-up, as the first round does otherwise."""
        self._hooks.set_up()
        while self._left_to_warm_up:
            self._left_to_warm_up -= 1
            with before_rounds():
                self._run_until_well(self._line.argv_for(_WARM_UP), _WARM_UP, RoundRecorder())
            self._failed_ns.clear()

    def _run_until_well(self, argv: Sequence[str], plan: RoundPlan, recorder: Recorder) -> None:
        """Run the command once, and again if its failures are ignored."""
        for left in reversed(range(_MOST_FAILURES if self._options["ignore_failure"] else 1)):
            if self._once(argv, plan, recorder, is_last=not left):
                break

    def close(self) -> None:
        """Clean up."""
        self._hooks.close()

    def _left_s(self) -> float | None:
        """Return the rest of the round in seconds, a millisecond or more."""
        if self._until_ns is None:
            return None
        return max((self._until_ns - self._now_ns()) / 1e9, 1e-3)

    def _once(
        self, argv: Sequence[str], plan: RoundPlan, recorder: Recorder, *, is_last: bool
    ) -> bool:
        """Run the command once; return whether that is the round's run, else it failed."""
        with self._between_hooks(argv, self._meter) as (running, ended):
            if ended.failure and not is_last:
                self._failed_ns.append(ended.elapsed_ns)
                return False
            if ended.failure:
                is_often = self._options["ignore_failure"]
                often = f", {_MOST_FAILURES} times in a row" if is_often else ""
                raise ended.error(f"{ended.failure}{often}")
            if ended.elapsed_ns <= 0:
                raise ClockFailed(
                    f"the clock moved by {ended.elapsed_ns} ns while {shown(argv)} ran, "
                    "expected more than 0; use a monotonic clock"
                )
            picked = self._pick(ended, running.printed if self._picks else BytesIO())
            for notice in ended.left_behind(self.name):
                sentence = hide_values(notice.sentence, argv)
                recorder.notice(replace(notice, sentence=sentence))
            if ended.cut or not picked.is_whole:
                self._record_cut(ended, picked, plan, recorder)
                return True
            self._record(ended, picked, recorder)
            self._pace(ended, recorder)
        if self._options["memory"] and plan.index == 0:
            with suppress(HookLate):
                self._record_memory(argv, recorder)
        return True

    @contextmanager
    def _between_hooks(
        self, argv: Sequence[str], meter: DelayMeter | None, **given: Any
    ) -> Iterator[tuple[Running, Ended]]:
        """Run a command once between its hooks, and give it with how it ended."""
        self._hooks.prepare(self._left_s())
        with ExitStack() as files:
            streams: dict[str, Any] = {"stdout": PIPE} if self._picks else {}
            for name in {"stdin", "stdout"} - {*streams}:
                streams[name] = self._opened(name, files)
            running = self._line.start(
                argv,
                clock=self._clock,
                timeout_s=self._timeout_s,
                seconds=self._left_s(),
                **streams | given,
            )
        with running:
            ended = running.wait(meter)
            self._hooks.conclude(self._left_s())
            yield running, ended

    def _pick(self, ended: Ended, printed: BinaryIO) -> OutputSearch:
        """Search the output, or what can be searched until soon after the time of the round."""
        now_ns, latest_ns = self._now_ns, math.inf
        if self._until_ns is not None:
            latest_ns = max(self._until_ns + _SEARCH_NS, now_ns() + _SEARCH_NS / 4)
        return read_picks(
            printed,
            [pick for pick in self._picks if pick.unit_readings or not ended.cut],
            name=self.name,
            cut=ended.cut,
            is_late=lambda: now_ns() > latest_ns,
        )

    def _opened(self, name: str, stack: ExitStack) -> BinaryIO | int | None:
        """Open the file of a stream; None has the command inherit it."""
        file = self._options[name]
        if file is None or (name, file) == ("stdout", "inherit"):
            return None if file else DEVNULL
        try:
            return stack.enter_context(Path(file).open("rb" if name == "stdin" else "wb"))
        except OSError as error:
            raise WorkloadFailed(f"{file} cannot be opened: {error.strerror}") from None

    def _record_memory(self, argv: Sequence[str], recorder: Recorder) -> None:
        """Record the peak memory of a run that does not fail, and the least that would show."""
        for _ in range(_MOST_FAILURES if self._options["ignore_failure"] else 1):
            ended, report = self._launch(argv)
            *memory, code = [int(number) for number in report.split()] or [ended.code]
            failure = replace(ended, code=code).failure
            if memory and not failure:
                recorder.fact("peak_memory", memory[0])
                recorder.fact("peak_memory_floor", memory[1])
            if ended.cut or (memory and not failure):
                return
        why = failure or "cannot be started"
        raise WorkloadFailed(f"{shown(argv)} {why}, in the run for its peak memory")

    def _launch(self, argv: Sequence[str]) -> tuple[Ended, bytes]:
        """Run the command by the launcher, and return the end and the launcher's report."""
        source, sink = os.pipe()
        launched = [sys.executable, "-I", "-S", launcher.__file__, str(sink), *argv]
        with os.fdopen(source, "rb") as pipe:
            try:
                with self._between_hooks(launched, None, stderr=DEVNULL, pass_fds=(sink,)) as ran:
                    ended = ran[1]
            finally:
                os.close(sink)
            return ended, pipe.read()

    def _pace(self, ended: Ended, recorder: Recorder) -> None:
        """Time the reference if it is due and the wall time of the command is a reading."""
        if self._reference is None or any(pick.metric == _TIME for pick in self._picks):
            return
        if seconds := self._reference.measure(ended.elapsed_ns):
            timed = {kind: [value] for kind, value in seconds.items()}
            recorder.references(References(stops=[1], seconds=timed))

    def _record_cut(
        self, ended: Ended, picked: OutputSearch, plan: RoundPlan, recorder: Recorder
    ) -> None:
        """Record the unit readings in whole lines, and that the round was cut."""
        metrics = [pick.metric for pick in self._picks if pick.unit_readings]
        found = {metric: picked.found[metric] for metric in metrics}
        for metric, numbers in found.items():
            if numbers:
                recorder.unit_readings(metric, np.frombuffer(numbers))
        readings = max(map(len, found.values()), default=0)
        if readings:
            record_delay(ended, recorder)
        counts = "nothing of it counts"
        if readings:
            counts = f"its {many(readings, 'unit reading')} count, its duration does not"
        how = f"was ended after {show_value(plan.seconds or 0.0, 's')}"
        if not ended.cut:
            how = f"printed more than could be searched: {picked.printed} were"
        figures = {"round": plan.index, "seconds": plan.seconds, "readings": readings}
        recorder.notice(Notice.of(Code.CUT_ROUND, "command", how_=how, which_=counts, **figures))
        recorder.cut()

    def _record_late(self, place: str, plan: RoundPlan, recorder: Recorder) -> None:
        """Record that a hook was killed, so that the round does not count."""
        figures = {"round": plan.index, "seconds": plan.seconds, "readings": 0}
        command = shown(self._hooks.argvs[place])
        recorder.notice(Notice.of(Code.CUT_ROUND, "hook", hook=place, command_=command, **figures))
        recorder.cut()

    def _record(self, ended: Ended, picked: OutputSearch, recorder: Recorder) -> None:
        picks = self._picks
        recorder.fact("exit_code", ended.code)
        recorder.fact("cpu_s", ended.cpu_s)
        recorder.fact("voluntary_switches", ended.switches)
        record_delay(ended, recorder)
        if all(pick.metric != _TIME for pick in picks):
            recorder.reading(_TIME, ended.elapsed_ns / 1e9)
        if self._options["cpu_times"]:
            recorder.reading("user_time", ended.user_s)
            recorder.reading("system_time", ended.system_s)
        for pick in picks:
            numbers = np.frombuffer(picked.found[pick.metric])
            if pick.unit_readings:
                recorder.unit_readings(pick.metric, numbers)
                continue
            weight = picked.trials.get(pick.metric)
            recorder.reading(pick.metric, float(numbers[-1]), weight=weight)
            if numbers.size > 1:
                figures = {"metric": pick.metric, "matches": numbers.size}
                recorder.notice(Notice.of(Code.SEVERAL_MATCHES, **figures))


def record_delay(ended: Ended, recorder: Recorder) -> None:
    """Record the delay of a round's process, with the known share of its processor time.

    The delay leaves enough time for the work on all processors. While the process was stopped, it
    neither worked nor waited for a processor.
    """
    if ended.delay is None:
        return
    lost_ns, known_ns = ended.delay
    elapsed_s, cpu_s = ended.elapsed_ns / 1e9, ended.cpu_s
    lost_s = min(lost_ns / 1e9, max(elapsed_s - cpu_s / processors(), 0.0))
    unseen_s = max(cpu_s - known_ns / 1e9 - _NEGLIGIBLE * elapsed_s, 0.0)
    known = 1.0 - unseen_s / cpu_s if unseen_s else 1.0
    seconds = {"run queue": [lost_s]}
    if ended.stopped_s:
        seconds[STOPPED] = [min(ended.stopped_s, max(elapsed_s - cpu_s - lost_s, 0.0))]
    recorder.delays(
        Delays(stops=[1], seconds=seconds, duration_s=[elapsed_s], known=[known], busy=[cpu_s])
    )
    if ended.together_ns:
        recorder.fact("waited_together_s", ended.together_ns / 1e9)


class ReferenceCommand:
    """Times bare starts of the interpreter, as commands are timed, at intervals.

    A fixed command that is run in turn with a measured one shows the pace of the machine.

    The first start, which reads files from a disk, does not count.

    Parameters
    ----------
    clock, meter
        As for the commands.

    Examples
    --------
    >>> from benchrigor.clocks import WallClock
    >>> found = ReferenceCommand(WallClock(), None).measure(lasting_ns=10**9)
    >>> found["command"] > found["command cpu"] > 0.0
    True
    """

    def __init__(self, clock: Clock, meter: DelayMeter | None) -> None:
        self._clock, self._meter = clock, meter
        # Not the link of a virtual environment, which first looks for the real interpreter.
        self._argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", ""]
        self._cost_ns = 0
        for _ in range(2):
            ended = self._run()
            self._cost_ns = 0 if ended is None else ended.elapsed_ns
        self._due_ns = 0

    def measure(self, lasting_ns: int) -> dict[str, float]:
        """Return seconds by kind after a command of this duration; empty if not due.

        After a long command they are means of several runs.
        """
        if not self._cost_ns or self._clock.now_ns() < self._due_ns:
            return {}
        began_ns = self._clock.now_ns()
        runs = [self._run() for _ in range(repeats_after(lasting_ns, self._cost_ns))]
        stop_ns = self._clock.now_ns()
        self._due_ns = stop_ns + int((stop_ns - began_ns) / MOST_SHARE)
        ended = [run for run in runs if run is not None]
        if len(ended) < len(runs):
            return {}
        wall_s = sum(run.elapsed_ns for run in ended) / len(ended) / 1e9
        cpu_s = sum(run.cpu_s for run in ended) / len(ended)
        waited_s = sum(run.delay[0] for run in ended if run.delay) / len(ended) / 1e9
        rest_s = max(wall_s - cpu_s - waited_s, _LEAST_S)
        return {COMMAND: wall_s, COMMAND_CPU: max(cpu_s, _LEAST_S), COMMAND_REST: rest_s}

    def _run(self) -> Ended | None:
        """Run it once; None if it cannot be run."""
        try:
            line = CommandLine(self._argv)
            ended = line.run(self._argv, self._meter, clock=self._clock, stderr=DEVNULL)
        except WorkloadFailed:
            return None
        return None if ended.failure else ended
