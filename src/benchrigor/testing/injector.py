"""Interference of known size: delays injected into calls and I/O, and real busy neighbours."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, AnyStr, ParamSpec, TypeVar, cast

import numpy as np

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.checks import refuse, wrong_number, wrong_values, wrong_whole
from benchrigor.protocols import Clock

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# Methods of a file that may wait for a device.
_DELAYED = {
    *("read", "read1", "readall", "readinto", "readinto1", "readline", "readlines"),
    *("write", "writelines", "flush", "truncate"),
}


class Injector:
    """Delays calls now and then by known times: the truth to test an estimate against.

    A draw depends on the seed and the order of the calls alone; a negative one is not a delay.

    Parameters
    ----------
    mean_s, sd_s
        Mean and standard deviation of the delays, in seconds.
    probability
        Of a delay, 0 to 1.
    seed
        Of the draws.
    clock
        Sleeps; the wall clock unless given.

    Raises
    ------
    InvalidInput
        When a time or the probability is out of range.

    Notes
    -----
    After the tool intM in Shah, Mueller, Wolf et al. (Euro-Par 2018), section 3.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> injector = Injector(0.010, 0.002, 0.5, seed=1, clock=FakeClock())
    >>> total = injector.wrap(sum)
    >>> [total([1, 2]) for _ in range(100)] == [3] * 100
    True
    >>> injector.calls, injector.hits, round(injector.injected_s, 3)
    (100, 46, 0.458)
    """

    def __init__(
        self,
        mean_s: float,
        sd_s: float,
        probability: float,
        *,
        seed: int,
        clock: Clock | None = None,
    ) -> None:
        seconds = "a finite number of seconds from 0 on"
        checks = [
            ("mean_s", mean_s, 0.0 <= mean_s < math.inf, seconds),
            ("sd_s", sd_s, 0.0 <= sd_s < math.inf, seconds),
            ("probability", probability, 0.0 <= probability <= 1.0, "0 to 1"),
        ]
        refuse(wrong_values(checks))
        self.calls = 0
        self.hits = 0  # calls that were drawn for a delay, also of 0
        self._mean_s, self._sd_s, self._probability = mean_s, sd_s, probability
        self._rng = np.random.default_rng(seed)
        self._clock = WallClock() if clock is None else clock
        self._injected_ns = 0

    @property
    def injected_s(self) -> float:
        """All delays so far, in seconds, as the clock measured them around each sleep."""
        return self._injected_ns / 1e9

    def __call__(self) -> float:
        """Delay the caller, perhaps; return by how many seconds."""
        self.calls += 1
        if self._rng.random() >= self._probability:
            return 0.0
        self.hits += 1
        wanted_ns = round(self._rng.normal(self._mean_s, self._sd_s) * 1e9)
        if wanted_ns <= 0:
            return 0.0
        start_ns = self._clock.now_ns()
        self._clock.sleep_ns(wanted_ns)
        delay_ns = self._clock.now_ns() - start_ns
        self._injected_ns += delay_ns
        return delay_ns / 1e9

    def wrap(self, func: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        """Return a function that calls ``func``, after a delay now and then."""

        @functools.wraps(func)
        def delayed(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            self()
            return func(*args, **kwargs)

        return delayed

    def file(self, fileobj: IO[AnyStr]) -> IO[AnyStr]:
        r"""Return a stand-in for an open file, with reading, writing and flushing delayed.

        Each line of an iteration is a call. What passes these methods by (a file descriptor handed
        to another program) is not delayed.

        Examples
        --------
        >>> import io
        >>> from benchrigor.testing import FakeClock
        >>> always = Injector(1.0, 0.0, 1.0, seed=1, clock=FakeClock())
        >>> with always.file(io.StringIO("a\nb\n")) as file:
        ...     lines = [file.readline(), *file]
        >>> lines, always.injected_s
        (['a\n', 'b\n'], 3.0)
        """
        return cast("IO[AnyStr]", _DelayedFile(fileobj, self))


class _DelayedFile:
    """Hands every call on to a file, some of them late."""

    def __init__(self, fileobj: IO[Any], injector: Injector) -> None:
        self._file, self._injector = fileobj, injector

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._file, name)
        return self._injector.wrap(found) if name in _DELAYED else found

    def __iter__(self) -> _DelayedFile:
        return self

    def __next__(self) -> Any:
        self._injector()
        return next(self._file)

    def __enter__(self) -> _DelayedFile:
        self._file.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._file.__exit__(*raised)


# The thread that waits for the end of the input uses no time, and sees it even when the parent is
# killed: no hog outlives the process that started it.
_BUSY = """
import os, random, sys, threading, time

def end():
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=end, daemon=True).start()
print("busy", flush=True)
"""
_HOG = f"""{_BUSY}
while True:
    pass
"""
_BURSTS = f"""{_BUSY}
low, high = map(float, sys.argv[1:])
while True:
    until = time.monotonic() + random.uniform(low, high)
    while time.monotonic() < until:
        pass
    time.sleep(random.uniform(low, high))
"""
_COPIES = f"""{_BUSY}
source = bytearray(int(sys.argv[1]))
target = bytearray(len(source))
while True:
    target[:] = source
"""
_COPIED_BYTES = 64 * 2**20


@contextmanager
def cpu_hog(
    n: int = 1, *, core: int | None = None, bursts_s: tuple[float, float] | None = None
) -> Iterator[tuple[int, ...]]:
    """Run processes that keep processors busy, from the beginning of the body to its end.

    Parameters
    ----------
    n
        How many.
    core
        Processor to pin them to, on Linux; without one they run wherever the caller may.
    bursts_s
        Each is busy and asleep by turns, for times drawn again between these two, in seconds; None
        for busy all the time.

    Yields
    ------
    tuple of int
        Their process ids.

    Raises
    ------
    InvalidInput
        When the number, the processor or the times are out of range.
    WorkloadFailed
        When a process ends before it is busy.

    Examples
    --------
    >>> with cpu_hog(2) as hogs:
    ...     len(hogs)
    2
    >>> with cpu_hog(2, bursts_s=(0.2, 5.0)) as hogs:
    ...     len(hogs)
    2
    """
    expected = "(low, high) in seconds, above 0, or None"
    refuse(
        wrong_values([("bursts_s", bursts_s, bursts_s is None or _is_range(bursts_s), expected)])
    )
    code, times = (_HOG, ()) if bursts_s is None else (_BURSTS, bursts_s)
    with _running(n, code, *times, core=core) as pids:
        yield pids


@contextmanager
def memory_hog(n: int = 1, *, core: int | None = None) -> Iterator[tuple[int, ...]]:
    """Run processes that copy 64 MB over and over, from the beginning of the body to its end.

    They take the memory's bandwidth and the caches that processors share, and a processor each.

    Parameters
    ----------
    n, core
        As of `cpu_hog`, also for the value yielded and the error raised.

    Examples
    --------
    >>> with memory_hog() as hogs:
    ...     len(hogs)
    1
    """
    with _running(n, _COPIES, _COPIED_BYTES, core=core) as pids:
        yield pids


def _is_range(given: object) -> bool:
    """Whether this is a pair of numbers above 0, the lower one first."""
    if not isinstance(given, tuple) or len(given) != 2 or any(wrong_number("", e) for e in given):
        return False
    return bool(given[0] <= given[1])


@contextmanager
def _running(n: int, code: str, *arguments: float, core: int | None) -> Iterator[tuple[int, ...]]:
    """Run processes of this code until the body ends, which begins when all of them are busy."""
    refuse(wrong_whole("n", n))
    argv = [sys.executable, "-I", "-S", "-c", code, *map(str, arguments)]
    with ExitStack() as running:
        hogs = []
        for _ in range(n):
            hog = subprocess.Popen(  # noqa: S603  # this module's own text
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            running.enter_context(hog)
            running.callback(hog.kill)
            if core is not None:
                _pin(hog.pid, core)
            hogs.append(hog)
        for hog in hogs:
            assert hog.stdout is not None  # noqa: S101  # for the type checker: a pipe
            if not hog.stdout.readline():
                raise WorkloadFailed(f"process {hog.pid} ended before it was busy")
        yield tuple(hog.pid for hog in hogs)


def _pin(pid: int, core: int) -> None:
    """Let a process run on one processor only, on Linux."""
    if sys.platform != "linux":
        return
    try:
        os.sched_setaffinity(pid, {core})
    except (OSError, OverflowError, TypeError, ValueError) as error:
        allowed = sorted(os.sched_getaffinity(0))
        raise InvalidInput(f"core is {core!r}, expected one of {allowed}: {error}") from error
