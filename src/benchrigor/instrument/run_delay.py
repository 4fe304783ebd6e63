"""How long a thread waited for a processor although it could have run."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from benchrigor.instrument.kernel_files import ROOT, KernelFile, Unavailable, open_file

_TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)
# A main thread with four fifths of the processor time stands for its process, whose own time is
# known in ticks, of usually 10 ms.
_MAIN_SHARE, _TICKS_OFF = 0.8, 2


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
        self._thread = threading.local()
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
        thread = self._thread
        try:
            # A forked process would go on reading the delay of its parent.
            if getattr(thread, "pid", None) != os.getpid():
                self._open()
            thread.last_ns = int(thread.file.read().split(None, 2)[1])
        except (OSError, ValueError, IndexError, Unavailable):
            return int(getattr(thread, "last_ns", 0))
        return int(thread.last_ns)

    def delay_of(self, pid: int) -> int | None:
        """Return the same of the main thread of a child not yet waited for; None if unknown.

        It is unknown where other threads, or children that the process waited for, used more than
        a fifth of its processor time: their delay is not counted.

        Examples
        --------
        >>> RunDelay().delay_of(2**30) is None
        True
        """
        folder = self._root / f"proc/{pid}"
        try:
            ran_ns, waited_ns, slices = map(int, (folder / "schedstat").read_bytes().split())
            # The name of the program, in parentheses, may hold spaces.
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            used_ns = sum(map(int, fields[11:15])) * _TICK_NS
        except (OSError, ValueError):
            return None
        is_main = ran_ns + _TICKS_OFF * _TICK_NS >= _MAIN_SHARE * used_ns
        return waited_ns if slices and is_main else None

    def _open(self) -> None:
        self._thread.file, self._thread.pid = open_schedstat(self._root), os.getpid()


def open_schedstat(root: Path = ROOT) -> KernelFile:
    """Open the calling thread's scheduler statistics, or raise `Unavailable`.

    Its second number is the run delay in nanoseconds.
    """
    path = root / "proc/thread-self/schedstat"
    file = open_file(path)
    try:
        numbers = [*map(int, file.read().split())]
    except (OSError, ValueError) as error:
        raise Unavailable(f"{path}: cannot be understood: {error}") from error
    if not any(numbers):
        raise Unavailable(f"{path}: the kernel does not count")
    return file
