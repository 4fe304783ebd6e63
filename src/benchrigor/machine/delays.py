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
import re
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchrigor.clocks import processors
from benchrigor.machine.kernel_files import (
    ROOT,
    KernelFile,
    Unavailable,
    cgroup_folders,
    open_file,
    read_text,
)


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


_THROTTLED = re.compile(rb"^throttled_(usec|time) (\d+)", re.M)
_UNIT_NS = {b"usec": 1_000, b"time": 1}
_PRESSURE = re.compile(r"^(some|full) .*total=(\d+)", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDelay:
    """Wall time between two readings of the host, and delay by source."""

    wall_ns: int
    delay_ns: Mapping[str, int]


class HostDelays:
    """Reads the delays of the host now and then, between `start` and `close`."""

    def __init__(
        self,
        *,
        root: Path = ROOT,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._root, self._cpu_ns, self._now_ns = root, cpu_ns, now_ns
        self._read_ns = 0
        self._sources: dict[str, Throttling | Steal] = {}
        self._last_ns: dict[str, int] = {}
        self.missing: dict[str, str] = {}  # by source, why it is not read

    def start(self) -> None:
        """Open the sources, in the measured thread."""
        sources: dict[str, Callable[[], Throttling | Steal]] = {
            "throttled": lambda: Throttling(root=self._root),
            "steal": lambda: Steal(root=self._root, cpu_ns=self._cpu_ns),
        }
        for name, make in sources.items():
            try:
                self._sources[name] = make()
                self._last_ns[name] = self._sources[name].delay_ns()
            except (Unavailable, OSError) as error:
                self.missing[name] = str(error)
            except ValueError as error:
                self.missing[name] = f"cannot be understood: {error}"
        self._read_ns = self._now_ns()

    def read(self) -> HostDelay:
        """Return the delay since the last reading."""
        delay_ns = {}
        for name, source in self._sources.items():
            # A reading that fails is made up for by the next one.
            with contextlib.suppress(OSError, ValueError):
                total_ns = source.delay_ns()
                delay_ns[name] = max(0, total_ns - self._last_ns[name])
                self._last_ns[name] = total_ns
        since_ns, self._read_ns = self._read_ns, self._now_ns()
        return HostDelay(wall_ns=self._read_ns - since_ns, delay_ns=delay_ns)

    def close(self) -> None:
        """Close the files."""
        self._sources.clear()


class Throttling:
    """How long the process's control groups were throttled because their quota was used up."""

    def __init__(self, *, root: Path = ROOT) -> None:
        paths = [folder / "cpu.stat" for folder in cgroup_folders(root)]
        files = [open_file(path) for path in paths if path.exists()]
        self._files = [file for file in files if _THROTTLED.search(file.read())]
        if not self._files:
            raise Unavailable(f"{root / 'sys/fs/cgroup'}: no cpu.stat counts throttling")

    def delay_ns(self) -> int:
        """Return nanoseconds of all groups so far."""
        found = (_THROTTLED.search(file.read()) for file in self._files)
        return sum(int(match[2]) * _UNIT_NS[match[1]] for match in found if match)


class Steal:
    """How long a hypervisor ran others although the calling thread had work.

    The host counts steal of all its processors together, in ticks of usually 10 ms. The thread's
    share of it is its share of the busy processor time since the last rise.
    """

    def __init__(
        self, *, root: Path = ROOT, cpu_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        self._file = open_file(root / "proc/stat")
        self._cpu_ns = cpu_ns
        self._tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        self._steal, self._busy = self._ticks()
        self._used_ns = cpu_ns()
        self._delay_ns = 0

    def delay_ns(self) -> int:
        """Return the thread's share of the steal so far, in nanoseconds."""
        steal, busy = self._ticks()
        if steal > self._steal:
            used_ns = self._cpu_ns()
            own_ns = used_ns - self._used_ns
            all_ns = max(own_ns, (busy - self._busy) * self._tick_ns, 1)
            self._delay_ns += (steal - self._steal) * self._tick_ns * own_ns // all_ns
            self._steal, self._busy, self._used_ns = steal, busy, used_ns
        return self._delay_ns

    def _ticks(self) -> tuple[int, int]:
        """Return ticks stolen and ticks busy, of all processors."""
        fields = self._file.read().split(None, 9)
        user, nice, system, _, _, interrupts, soft_interrupts, steal = map(int, fields[1:9])
        return steal, user + nice + system + interrupts + soft_interrupts


def attribute_delay(
    host: HostDelay, duration_ns: Sequence[int], run_delay_ns: Sequence[int]
) -> dict[str, list[int]]:
    """Return by source how much of the host's delay each segment between two readings had.

    Throttled time is part of their run delay (on Linux 6.18, 2.409 s for 2.408 s throttled). Steal
    is not; they have the share of it that they have of the wall time. Segments with most room for
    a delay have it first.
    """
    waits_ns = [*map(min, run_delay_ns, duration_ns)]
    parts_ns = {}
    for source, delay_ns in host.delay_ns.items():
        if source == "throttled":
            parts_ns[source] = _fill(delay_ns, waits_ns)
            continue
        inside_ns = sum(duration_ns)
        room_ns = [duration - wait for duration, wait in zip(duration_ns, waits_ns, strict=True)]
        part_ns = delay_ns * inside_ns // max(inside_ns, host.wall_ns, 1)
        parts_ns[source] = _fill(part_ns, room_ns)
    return parts_ns


def _fill(delay_ns: int, room_ns: Sequence[int]) -> list[int]:
    """Split a delay: items with most room come first, and get no more than their room."""
    parts_ns = [0] * len(room_ns)
    for index in sorted(range(len(room_ns)), key=room_ns.__getitem__, reverse=True):
        parts_ns[index] = min(delay_ns, room_ns[index])
        delay_ns -= parts_ns[index]
    return parts_ns


def read_pressure(*, root: Path = ROOT, of_host: bool = False) -> tuple[str, dict[str, float]]:
    """Read how long tasks of the control group, else of the host, waited so far, by resource.

    With ``of_host`` it is always the host. It includes the program's waits for its own data, so it
    is evidence, not measured delay.
    """
    around = () if of_host else cgroup_folders(root)
    groups = [group for group in around if (group / "cpu.pressure").exists()]
    folder, ending = (groups[0], ".pressure") if groups else (root / "proc/pressure", "")
    totals = {}
    for resource in ("cpu", "io", "memory"):
        text = read_text(folder / f"{resource}{ending}")
        for who, micros in _PRESSURE.findall(text):
            name = f"pressure_{resource}_s" if who == "some" else f"pressure_{resource}_full_s"
            totals[name] = int(micros) / 1e6
    if not totals:
        raise Unavailable(f"{folder}: no totals are there")
    return str(folder), totals
