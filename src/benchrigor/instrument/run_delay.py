"""How long a thread waited for a processor although it could have run."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from benchrigor.instrument.kernel_files import Unavailable, keep_open

__all__ = ["RunDelay", "open_schedstat"]

_ROOT = Path("/")
_TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)
_MOST, _TICKS_OFF = 0.8, 2
"""A main thread with four fifths of the processor time speaks for its process; the process's own
time is told in ticks, of usually 10 ms."""


class RunDelay:
    """Time that the calling thread waited in a run queue, as Linux counts it; a `DelayMeter`.

    A neighbour on the same processor, or a control group whose quota is used up, makes it grow;
    sleeping and waiting for data do not. Reading it costs about a microsecond. The first call in a
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
    >>> waited = RunDelay()
    >>> before = waited.delay_ns()
    >>> waited.delay_ns() >= before
    True
    """

    def __init__(self, *, root: Path = _ROOT) -> None:
        self._root = root
        self._threads = threading.local()
        self.reason = ""
        try:
            self._opened()
        except Unavailable as error:
            self.reason = str(error)
        self.available = not self.reason

    def delay_ns(self) -> int:
        """Return nanoseconds that the calling thread waited although it could have run."""
        if not self.available:
            return 0
        kept: _Kept | None = getattr(self._threads, "kept", None)
        try:
            # A forked process would go on reading what its parent waits.
            if kept is None or kept.pid != os.getpid():
                kept = self._opened()
            kept.last_ns = int(os.pread(kept.descriptor, 64, 0).split(None, 2)[1])
        except (OSError, ValueError, IndexError, Unavailable):
            # What cannot be read now has not grown, as far as anybody knows.
            return kept.last_ns if kept else 0
        return kept.last_ns

    def delay_of(self, pid: int) -> int | None:
        """Return the same of the main thread of a child not yet waited for; None if unknown.

        It speaks for the whole process only where the main thread did the work: where other
        threads, or children that the process waited for, took more than a fifth of its processor
        time, what they waited is not known, and so nothing is.

        Examples
        --------
        >>> RunDelay().delay_of(2**30) is None
        True
        """
        try:
            text = (self._root / f"proc/{pid}/schedstat").read_bytes()
            ran_ns, waited_ns, slices = map(int, text.split())
            used_ns = _used_ns(self._root / f"proc/{pid}/stat")
        except (OSError, ValueError, IndexError):
            return None
        alone = ran_ns + _TICKS_OFF * _TICK_NS >= _MOST * used_ns
        return waited_ns if slices and alone else None

    def _opened(self) -> _Kept:
        kept = self._threads.kept = _Kept(open_schedstat(self._root))
        return kept


class _Kept:
    """The open file of one thread; it goes when the thread's storage does."""

    __slots__ = ("descriptor", "last_ns", "pid")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.pid = os.getpid()
        self.last_ns = 0

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def _used_ns(path: Path) -> int:
    """Return the processor time of all threads of a process, and of its children waited for."""
    fields = path.read_bytes().rpartition(b")")[2].split()  # the name before may hold spaces
    return sum(map(int, fields[11:15])) * _TICK_NS


def open_schedstat(root: Path = _ROOT) -> int:
    """Return a descriptor of the calling thread's scheduler statistics, or say why there is none.

    Its second number is the run delay in nanoseconds.
    """
    path = root / "proc/thread-self/schedstat"
    descriptor = keep_open(path)
    try:
        running, waiting, slices = map(int, os.pread(descriptor, 64, 0).split())
    except (OSError, ValueError) as error:
        os.close(descriptor)
        raise Unavailable(f"{path}: cannot be understood: {error}") from error
    if not running and not waiting and not slices:
        os.close(descriptor)
        raise Unavailable(f"{path}: the kernel does not count")
    return descriptor
