"""How long a thread waited for a processor although it could have run."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from benchrigor.instrument.kernel_files import Unavailable, keep_open

__all__ = ["RunDelay", "open_schedstat"]

_ROOT = Path("/")


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

        Examples
        --------
        >>> RunDelay().delay_of(2**30) is None
        True
        """
        try:
            text = (self._root / f"proc/{pid}/schedstat").read_bytes()
            _, waited_ns, slices = map(int, text.split())
        except (OSError, ValueError):
            return None
        return waited_ns if slices else None

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
