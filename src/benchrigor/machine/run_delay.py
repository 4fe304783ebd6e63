"""How long threads waited for a processor although they could have run, as far as Linux shows it.

Of a process and its descendants all threads are read now and then: the kernel keeps the run delay
of a thread as long as it exists. Sooner after a new one has started, for it may end soon. Control
groups show less: their pressure is an average over processors, which halves the delay of a thread
that moves between two of them, and joining one takes 5 to 36 ms (on Linux 6.18).

The end of the child wakes the calling thread, which may then wait for a processor, too. Neighbours
cause that wait, not the child, so it counts as lost. Earlier waits of the calling thread do not
count: the child goes on meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchrigor.clocks import processors
from benchrigor.machine.kernel_files import ROOT, KernelFile, Unavailable, open_file


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


# A reading follows after this share of the time since the last new thread; a thread that ends
# meanwhile loses as much. Readings cost up to one two-hundredth of a processor.
_MISSED, _COST = 0.02, 1 / 200
_SHORTEST_S, _LONGEST_S = 0.005, 0.1
_ALONE_S = 0.05  # the first thread misses no delay, so this only looks for others
# Window in which waits of the threads for each other are separated from waits for others.
_WINDOW_NS = 500_000_000


@dataclass(slots=True)
class _Window:
    """Running and waiting of threads since a time."""

    since_ns: int
    ran_ns: Counter[str] = field(default_factory=Counter)  # by thread
    waited_ns: int = 0  # of all threads together
    longest_ns: int = 0  # the same, but of each reading only the thread that waited longest


class ProcessTree:
    """The threads of a child process that was just started, and of its descendants.

    Parameters
    ----------
    pid
        Of the child.
    root
        Folder that holds ``proc``.
    own_ns
        Returns nanoseconds that the calling thread has waited for a processor so far.
    """

    def __init__(
        self, pid: int, *, root: Path = ROOT, own_ns: Callable[[], int] = lambda: 0
    ) -> None:
        self._pid, self._own_ns = pid, own_ns
        self._proc = str(root / "proc")
        self._processes = [pid]
        self._threads: dict[str, tuple[int, int]] = {}  # folder: ran, waited
        self._processors = processors()
        self._window = _Window(time.monotonic_ns())
        self._lost_ns = self._ran_ns = 0
        self.together_ns = 0  # how much longer all threads waited than one at a time
        self._new_s = time.monotonic()
        self.stopped_s = 0.0  # for how long a signal stopped the child
        self._stopped_since_s: float | None = None

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
            self._go_on()

    def _read_until(self, end: int) -> None:
        """Read the threads until a descriptor can be read."""
        poll, wait_s = select.poll(), _SHORTEST_S
        poll.register(end, select.POLLIN)
        while True:
            since_ns, before_ns = time.monotonic_ns(), self._own_ns()
            if poll.poll(1e3 * wait_s):
                waited_ns = self._own_ns() - before_ns
                # Else its time was up, and the child went on while this thread waited.
                if time.monotonic_ns() - since_ns - waited_ns < 1e9 * wait_s:
                    self._lost_ns += waited_ns
                return
            began_s = time.thread_time()
            self._check_for_stop()
            self.read()
            if time.monotonic_ns() - self._window.since_ns >= _WINDOW_NS:
                self._close_window()
            is_alone = len(self._threads) <= 1
            missed_s = _ALONE_S if is_alone else _MISSED * (time.monotonic() - self._new_s)
            cost_s = (time.thread_time() - began_s) / _COST
            wait_s = max(_SHORTEST_S, cost_s, min(missed_s, _LONGEST_S))

    def _check_for_stop(self) -> None:
        """Take in whether the child was stopped by a signal, or went on, since the last look."""
        with contextlib.suppress(OSError):  # it has been waited for
            flags = os.WSTOPPED | os.WCONTINUED | os.WNOHANG
            while (change := os.waitid(os.P_PID, self._pid, flags)) is not None:
                self._go_on()
                if change.si_code == os.CLD_STOPPED:
                    self._stopped_since_s = time.monotonic()

    def _go_on(self) -> None:
        if self._stopped_since_s is not None:
            self.stopped_s += time.monotonic() - self._stopped_since_s
        self._stopped_since_s = None

    def close(self) -> tuple[int, int]:
        """Return lost nanoseconds, and nanoseconds of processor time with a known delay.

        Threads that waited while others of the tree had all processors lost no time. For several
        threads at once, the lost share of wall time is the share of their time, waits included,
        that they waited. It is limited by the longest wait of one thread, and by the wall time that
        the busiest thread did not run.
        """
        self.read()
        self._close_window()
        return self._lost_ns, self._ran_ns

    __call__ = close

    def read(self) -> None:
        """Read the running and waiting times of all threads of the tree so far."""
        before, self._threads = self._threads, {}
        processes = dict.fromkeys(self._processes)
        queue = list(processes)
        for pid in queue:
            children = self._read_process(pid)
            if children is None:
                del processes[pid]
                continue
            new = [child for child in children if child not in processes]
            processes.update(dict.fromkeys(new))
            queue += new
        self._processes = list(processes)
        if self._threads.keys() - before.keys():
            self._new_s = time.monotonic()
        waits_ns, now_ns = [0], time.monotonic_ns()
        for folder, (ran_ns, waited_ns) in self._threads.items():
            ran_before, waited_before = before.get(folder, (0, 0))
            if ran_ns < ran_before:  # the number was given to another thread, which starts from 0
                ran_before = waited_before = 0
            self._window.ran_ns[folder] += ran_ns - ran_before
            waits_ns.append(waited_ns - waited_before)
            # The child was there before this tree, however late its parent got a processor back.
            lasted_ns = ran_ns - ran_before + waits_ns[-1]
            self._window.since_ns = min(self._window.since_ns, now_ns - lasted_ns)
        self._window.waited_ns += sum(waits_ns)
        self._window.longest_ns += max(waits_ns)

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
        """Add the lost time of the window, and begin another."""
        window, self._window = self._window, _Window(time.monotonic_ns())
        wall_ns = self._window.since_ns - window.since_ns
        ran_ns, busiest_ns = window.ran_ns.total(), max(window.ran_ns.values(), default=0)
        lost = lost_ns(ran_ns, window.waited_ns, wall_ns, processors=self._processors)
        self._lost_ns += max(min(lost, window.longest_ns, wall_ns - busiest_ns), 0)
        self._ran_ns += ran_ns
        self.together_ns += window.waited_ns - window.longest_ns


def lost_ns(ran_ns: int, waited_ns: int, wall_ns: int, *, processors: int) -> int:
    """Return the part of a wall time that threads lost, from their sums of running and waiting.

    Waits that would not have fitted on free processors are waits of the threads for each other.
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
