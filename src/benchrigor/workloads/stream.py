"""A command that goes on from round to round: readings are taken in as it prints them."""

from __future__ import annotations

import math
import os
import select
import subprocess
import time
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Self, cast

import numpy as np

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import RoundPlan
from benchrigor.protocols import Clock, Recorder
from benchrigor.workloads.processes.command_line import GRACE_S, CommandLine, with_stderr
from benchrigor.workloads.processes.output_file import STDERR_KEPT
from benchrigor.workloads.processes.picking import OutputSearch, Pick

ROUND_S = 1.0  # duration of a round, with the readings that it has
_PIECE = 2**16
_PIPE = 2**20  # bytes that can be printed between two rounds without waiting


class StreamWorkload:
    """Runs a command over all rounds, and takes in the readings that it prints.

    Use it for a server's log, or a load generator that prints a line a second. The command starts
    with the first round, and ends with the session. A round takes the planned number of readings,
    or the readings of a second; a time without readings is not a failure. Between rounds a pipe
    holds up to 1 MiB of output: a command that prints faster waits, and no output is lost.

    Parameters
    ----------
    argv
        The program and its arguments; no shell reads them. ``{work}`` in any of them is replaced
        by the plan's work amount, the same in all rounds.
    picks
        Positions of unit readings in its standard output, one pick per metric; one or more.
    accept_exit
        Exit codes that are not failures when it ends by itself; then the session ends too.
    cwd
        Directory to run it in; None for the current one.
    env
        Variables added to the environment of this process. They are part of the description.
    grace_s
        Seconds from SIGTERM to SIGKILL.
    clock
        The only source of time.

    Raises
    ------
    InvalidInput
        When one of these is out of range.

    Examples
    --------
    >>> import sys
    >>> from benchrigor.clocks import WallClock
    >>> from benchrigor.workloads import Pick, RoundRecorder
    >>> code = "for i in range(9): print('took', i, 'ms', flush=True)"
    >>> log = StreamWorkload(
    ...     [sys.executable, "-c", code],
    ...     picks=[Pick.parse("latency:ms=regex:took ([0-9]+)", unit_readings=True)],
    ...     clock=WallClock(),
    ... )
    >>> plan, recorder = RoundPlan(index=0, readings=3), RoundRecorder()
    >>> log.run(plan, recorder)
    >>> recorder.finish(plan, elapsed_ns=0).unit_readings["latency"]
    array([0., 1., 2.])
    >>> log.close()
    """

    prints_by_time = True

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        picks: Sequence[Pick],
        accept_exit: Collection[int] = (0,),
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        grace_s: float = GRACE_S,
        clock: Clock,
    ) -> None:
        self._line = CommandLine(
            argv, picks=picks, accept_exit=accept_exit, cwd=cwd, env=env, grace_s=grace_s
        )
        single = next((str(pick) for pick in picks if not pick.unit_readings), None)
        if single is not None or not picks:
            raise InvalidInput(
                f"picks hold {'none' if single is None else f'{single!r} for a whole round'}, "
                "expected picks of unit readings: a stream has no other"
            )
        self._clock = clock
        self._running: _Stream | None = None
        self._stopping = False

    @classmethod
    def from_description(cls, description: Mapping[str, Any], *, clock: Clock) -> Self:
        """Make the workload that `describe` described."""
        return cls(**CommandLine.read_description(description), clock=clock)

    def describe(self) -> dict[str, Any]:
        """Return all that `from_description` needs, ready for JSON."""
        return {"kind": "stream", **self._line.describe()}

    @property
    def name(self) -> str:
        """The command line as a shell would read it, shortened."""
        return self._line.name

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Take in new readings until the planned number is reached, or a second is over.

        StopIteration when the command has ended and no readings are left; WorkloadFailed if its
        exit code is not accepted, or it printed no number although one is picked.
        """
        if self._running is None:
            self._running = _Stream(self._line, plan, self._clock)
        stream = self._running
        seconds = ROUND_S if plan.seconds is None else min(ROUND_S, plan.seconds)
        until_ns = self._clock.now_ns() + round(seconds * 1e9)
        while not self._stopping and stream.n < plan.readings and not stream.is_over:
            left_s = (until_ns - self._clock.now_ns()) / 1e9
            if left_s <= 0.0:
                break
            stream.take_in(left_s)
        if stream.n < plan.readings:
            if stream.is_over and not stream.n and not self._stopping:
                stream.check()
                raise StopIteration
            if not stream.is_over or self._stopping:
                recorder.cut()
        recorder.fact("printed", stream.printed)
        for metric, numbers in stream.take(plan.readings):
            recorder.unit_readings(metric, np.frombuffer(numbers))

    def stop(self) -> None:
        """Ask the command to end, and end the round under way with what there is."""
        self._stopping = True
        if self._running is not None:
            self._running.group.ask_to_end()

    def close(self) -> None:
        """End the command and all processes of its group."""
        stream, self._running, self._stopping = self._running, None, False
        if stream is not None:
            stream.close()


class _Stream:
    """The command while it runs, and the readings that no round took yet."""

    def __init__(self, line: CommandLine, plan: RoundPlan, clock: Clock) -> None:
        self._line = line
        self._search = OutputSearch(line.picks, name=line.name)
        self._stderr = b""
        self._has_given = False
        self.is_over = False  # no output will come
        self.group = line.start(
            line.argv_for(plan), stdout=subprocess.PIPE, stderr=subprocess.PIPE, clock=clock
        )
        self._process = self.group.process
        pipes = self._process.stdout, self._process.stderr
        self._stdout, self._stderr_pipe = (cast("IO[bytes]", pipe).fileno() for pipe in pipes)
        self._poll = select.poll()
        for pipe in (self._stdout, self._stderr_pipe):
            self._poll.register(pipe, select.POLLIN)
            with suppress(
                ImportError, AttributeError, OSError
            ):  # only Linux lets us, up to a limit
                import fcntl  # noqa: PLC0415  # not on every system

                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        self._prints = True

    @property
    def n(self) -> int:
        """Number of readings of the metric that has most of them."""
        return max(map(len, self._search.found.values()))

    @property
    def printed(self) -> str:
        """How much it has printed so far."""
        return self._search.printed

    def take_in(self, seconds: float) -> None:
        """Wait up to ``seconds`` for output, and search it."""
        self._search.feed(self._read(seconds))
        if self.is_over and self._line.failure(self._process.returncode) is None:
            self._search.finish()

    def _read(self, seconds: float) -> bytes:
        """Wait up to ``seconds`` for output; once there is none, for the end of the process."""
        if not self._prints:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                self.is_over = True
            seconds = 0.0
        output = b""
        for pipe, _ in self._poll.poll(math.ceil(seconds * 1000)):
            piece = os.read(pipe, _PIECE)
            if not piece:
                self._poll.unregister(pipe)
                self._prints &= pipe != self._stdout
            elif pipe == self._stdout:
                output = piece
            else:
                self._stderr = (self._stderr + piece)[-STDERR_KEPT - 1 :]
        # A child may hold the pipe for long after the command has ended.
        self.is_over |= not output and self._process.poll() is not None
        return output

    def take(self, most: int) -> Iterator[tuple[str, array[float]]]:
        """Give up to ``most`` readings per metric away."""
        for metric, numbers in self._search.found.items():
            if numbers:
                self._has_given = True
                yield metric, numbers[:most]
                del numbers[:most]

    def check(self) -> None:
        """Raise WorkloadFailed unless it ended well, and has given a reading."""
        failure = self._line.failure(self._process.returncode)
        if failure:
            for _ in range(_PIPE // _PIECE):  # its last words
                self._read(0.0)
            failure, argv = f"{self._line.name} {failure}", self._line.describe()["argv"]
            raise WorkloadFailed(*with_stderr(failure, self._stderr, argv))
        self._search.check_tables()
        if not self._has_given:
            self._search.check()

    def close(self) -> None:
        """End the group; read its last output so that it does not wait, but do not search it."""
        grace_s = self._line.grace_s
        until = time.monotonic() + grace_s
        try:
            self.group.ask_to_end()
            while not self.is_over and (left_s := until - time.monotonic()) > 0.0:
                self._read(left_s)
            self.group.end(grace_s=grace_s)
        except BaseException:
            self.group.end(grace_s=0.0)
            raise
        finally:
            for pipe in (self._process.stdout, self._process.stderr):
                cast("IO[bytes]", pipe).close()
