"""How long a thread waited for a processor although it could have run."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from benchrigor.instrument.kernel_files import ROOT, Unavailable, keep_open

__all__ = ["RunDelay", "open_schedstat"]

_TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)
_MAIN_SHARE, _TICKS_OFF = 0.8, 2
"""A main thread with four fifths of the processor time stands for its process, whose own time is
known in ticks, of usually 10 ms."""


class RunDelay:
    """Time that the calling thread waited in a run queue, as Linux counts it; a `DelayMeter`.

    A neighbour on the same processor, or a control group whose quota is used up, makes it grow;
    sleeping and waiting for data do not. Reading it takes about a microsecond. The first call in a
    thread opens ``/proc/thread-self/schedstat``, which stays open as long as the thread lives.

    Parameters
    ----------
    root
        Folder that holds ``proc``.

    Attributes
    ----------
    available
        Whether the kernel counts; `delay_ns` is 0 where it does not.
    reason
        Why not; empty where it does.

    Examples
    --------
    >>> meter = RunDelay()
    >>> before = meter.delay_ns()
    >>> meter.delay_ns() >= before
    True
    """

    def __init__(self, *, root: Path = ROOT) -> None:
        self._root = root
        self._threads = threading.local()
        self.reason = ""
        try:
            self._open()
        except Unavailable as error:
            self.reason = str(error)
        self.available = not self.reason

    def delay_ns(self) -> int:
        """Return nanoseconds that the calling thread waited although it could have run."""
        if not self.available:
            return 0
        file: _ThreadFile | None = getattr(self._threads, "file", None)
        try:
            # A forked process would go on reading the delay of its parent.
            if file is None or file.pid != os.getpid():
                file = self._open()
            file.last_ns = int(os.pread(file.descriptor, 64, 0).split(None, 2)[1])
        except (OSError, ValueError, IndexError, Unavailable):
            return file.last_ns if file else 0
        return file.last_ns

    def delay_of(self, pid: int) -> int | None:
        """Return the same of the main thread of a child not yet waited for; None if unknown.

        It is unknown where other threads, or children that the process waited for, used more than
        a fifth of its processor time: their delay is not counted.

        Examples
        --------
        >>> RunDelay().delay_of(2**30) is None
        True
        """
        try:
            text = (self._root / f"proc/{pid}/schedstat").read_bytes()
            ran_ns, waited_ns, slices = map(int, text.split())
            used_ns = _cpu_ns_of(self._root / f"proc/{pid}/stat")
        except (OSError, ValueError, IndexError):
            return None
        is_main = ran_ns + _TICKS_OFF * _TICK_NS >= _MAIN_SHARE * used_ns
        return waited_ns if slices and is_main else None

    def _open(self) -> _ThreadFile:
        file = self._threads.file = _ThreadFile(open_schedstat(self._root))
        return file


class _ThreadFile:
    """The open file of one thread; it is closed when the thread's storage goes."""

    __slots__ = ("descriptor", "last_ns", "pid")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.pid = os.getpid()
        self.last_ns = 0

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def _cpu_ns_of(path: Path) -> int:
    """Return the processor time of all threads of a process, and of its children waited for."""
    fields = path.read_bytes().rpartition(b")")[2].split()  # the name before may hold spaces
    return sum(map(int, fields[11:15])) * _TICK_NS


def open_schedstat(root: Path = ROOT) -> int:
    """Return a descriptor of the calling thread's scheduler statistics, or raise `Unavailable`.

    Its second number is the run delay in nanoseconds.
    """
    path = root / "proc/thread-self/schedstat"
    descriptor = keep_open(path)
    try:
        numbers = [*map(int, os.pread(descriptor, 64, 0).split())]
    except (OSError, ValueError) as error:
        os.close(descriptor)
        raise Unavailable(f"{path}: cannot be understood: {error}") from error
    if not any(numbers):
        os.close(descriptor)
        raise Unavailable(f"{path}: the kernel does not count")
    return descriptor
