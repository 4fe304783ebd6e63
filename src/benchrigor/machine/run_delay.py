"""How long a thread waited for a processor although it could have run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from benchrigor.machine.kernel_files import ROOT, KernelFile, Unavailable, open_file
from benchrigor.machine.process_tree import ProcessTree


class RunDelay:
    """Time that the calling thread waited in a run queue, as Linux counts it; a `DelayMeter`.

    A neighbour on the same processor, or a control group without quota left, makes it grow;
    sleeping and waiting for data do not. Reading it takes about a microsecond. The first call in a
    thread opens ``/proc/thread-self/schedstat``, which stays open as long as the thread lives.

    Parameters
    ----------
    root
        Folder that holds ``proc``.

    Attributes
    ----------
    available
        Whether the kernel counts; `delay_ns` is 0 if it does not.
    reason
        Why not; empty if it does.

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

    def wait_for(self, pid: int) -> Callable[[], tuple[int, int]]:
        """Measure a child that was just started, and its descendants; see `ProcessTree`."""
        tree = ProcessTree(pid, root=self._root, own_ns=self.delay_ns)
        tree.wait()
        return tree

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
