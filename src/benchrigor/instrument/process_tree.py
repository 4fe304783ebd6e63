"""How long a process and its descendants waited for processors, as far as Linux shows it.

The kernel keeps the run delay of a thread as long as the thread is there. So all threads of the
tree are read now and then: sooner after a new one has come, for it may not stay. Control groups
show less: their pressure is an average over processors, which halves the delay of a thread that
moves between two of them, and to join one takes 5 to 36 ms (on Linux 6.18).
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from pathlib import Path

from benchrigor.clocks import processors
from benchrigor.instrument.kernel_files import ROOT

# A reading follows after this share of the time since the last new thread, which is what is
# missed of a thread that ends; and it costs one two-hundredth of a processor at most.
_MISSED, _COST = 0.02, 1 / 200
_SHORTEST_S, _LONGEST_S = 0.005, 0.1
_ALONE_S = 0.05  # of the first thread nothing is missed, so that others are only looked for
# Of so much time threads that wait for each other are told from those that wait for others.
_WINDOW_NS = 500_000_000


class ProcessTree:
    """The threads of a child process that was just started, and of its descendants.

    Parameters
    ----------
    pid
        Of the child.
    root
        Folder that holds ``proc``.
    """

    def __init__(self, pid: int, *, root: Path = ROOT) -> None:
        self._pid = pid
        self._proc = str(root / "proc")
        self._processes = [pid]
        self._threads: dict[str, tuple[int, int]] = {}  # folder: ran, waited
        self._gone = (0, 0)
        self._processors = processors()
        self._window = (0, 0, time.monotonic_ns())  # ran, waited, and the time, when it began
        self._lost_ns = 0
        self._new_s = time.monotonic()

    def wait(self) -> None:
        """Read the threads until the child has ended, which is left to be waited for.

        Between two readings the calling thread sleeps; the end wakes it.
        """
        try:
            end = os.pidfd_open(self._pid)
        except (AttributeError, OSError):  # another system, an old kernel, or one that forbids it
            # no waitid either, no child of ours, or none any more
            with contextlib.suppress(AttributeError, OSError):
                os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
            return
        try:
            self._read_until(end)
        finally:
            os.close(end)

    def _read_until(self, end: int) -> None:
        """Read the threads until a descriptor can be read."""
        poll, wait_s = select.poll(), _SHORTEST_S
        poll.register(end, select.POLLIN)
        while not poll.poll(1e3 * wait_s):
            began_s = time.thread_time()
            self.read()
            if time.monotonic_ns() - self._window[2] >= _WINDOW_NS:
                self._close_window()
            is_alone = len(self._threads) <= 1
            missed_s = _ALONE_S if is_alone else _MISSED * (time.monotonic() - self._new_s)
            cost_s = (time.thread_time() - began_s) / _COST
            wait_s = max(_SHORTEST_S, cost_s, min(missed_s, _LONGEST_S))

    def close(self) -> tuple[int, int]:
        """Return nanoseconds lost, and those of processor time of which that is known.

        Threads that waited while others of the tree had all processors lost nothing. Of several
        at once the lost time is the share of their time, waiting included, that they waited.
        """
        self.read()
        self._close_window()
        return self._lost_ns, self._window[0]

    def read(self) -> None:
        """Take in what each thread of the tree has run and waited so far."""
        before, self._threads = self._threads, {}
        processes = dict.fromkeys(self._processes)
        queue = list(processes)
        for pid in queue:
            children = self._read_process(pid)
            if children is None:
                del processes[pid]
                continue
            new = [each for each in children if each not in processes]
            processes.update(dict.fromkeys(new))
            queue += new
        self._processes = list(processes)
        if self._threads.keys() - before.keys():
            self._new_s = time.monotonic()
        for folder, (ran_ns, waited_ns) in before.items():
            # A number may be given to another thread, which starts from 0.
            if self._threads.get(folder, (-1, 0))[0] < ran_ns:
                self._gone = self._gone[0] + ran_ns, self._gone[1] + waited_ns

    def _read_process(self, pid: int) -> list[int] | None:
        """Take in the threads of a process and return its children; None if it is gone."""
        folder = f"{self._proc}/{pid}/task"
        children: list[int] = []
        try:
            tasks = os.listdir(folder)  # noqa: PTH208  # a third of the time
        except OSError:
            return None
        for task in tasks:
            path = f"{folder}/{task}"
            try:
                ran_ns, waited_ns, slices = map(int, _content(f"{path}/schedstat").split())
            except (OSError, ValueError):
                continue
            if slices:
                self._threads[path] = ran_ns, waited_ns
            try:
                children += map(int, _content(f"{path}/children").split())
            except (OSError, ValueError):
                continue
        return children

    def _close_window(self) -> None:
        """Add what was lost since the last window, and begin another."""
        ran_ns = self._gone[0] + sum(ran_ns for ran_ns, _ in self._threads.values())
        waited_ns = self._gone[1] + sum(waited_ns for _, waited_ns in self._threads.values())
        now_ns = time.monotonic_ns()
        window = ran_ns, waited_ns, now_ns
        changes = (after - before for after, before in zip(window, self._window, strict=True))
        self._lost_ns += lost_ns(*changes, processors=self._processors)
        self._window = window


def lost_ns(ran_ns: int, waited_ns: int, wall_ns: int, *, processors: int) -> int:
    """Return how much of a wall time threads lost that ran and waited so long, all together.

    What would not have fitted on the processors, had they been free, is waiting for each other.
    """
    waited_ns = min(waited_ns, max(processors * wall_ns - ran_ns, 0))
    wanted_ns = ran_ns + waited_ns
    return waited_ns if wanted_ns <= wall_ns else waited_ns * wall_ns // wanted_ns


def _content(path: str) -> bytes:
    """Read a small file with three calls of the system."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65_536)
    finally:
        os.close(descriptor)
