"""Counters of the calling thread and its interpreter, read in a few microseconds."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchrigor.errors import InvalidInput
from benchrigor.machine.delays import open_schedstat
from benchrigor.machine.kernel_files import (
    ROOT,
    KernelFile,
    Unavailable,
    open_counter,
    open_file,
    open_floating_point,
    read_counter,
)

try:
    from resource import getrusage
except ImportError:  # Windows
    getrusage = None  # type: ignore[assignment]

_IO = ("reads", "writes", "read_bytes", "written_bytes")
NOMINAL = ("opens", "closes", *_IO, "gc_young", "gc_full")
_SWITCHES = ("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults")
FLOATING_POINT = "floating_point"
EVIDENCE = (*_SWITCHES, FLOATING_POINT)
_RUSAGE_THREAD = 1


class ThreadCounters:
    """Cumulative counters of one thread, from `start` to `close`, without its own readings.

    If the processor does not count instructions, computation is processor time.
    """

    def __init__(
        self, *, root: Path = ROOT, cpu_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        self._root = root
        self._cpu_ns = cpu_ns
        self.missing: dict[str, str] = {}  # by name, why something is not counted; it stays 0
        # Name of the counter of computation: "instructions" or "cpu_s" (in nanoseconds).
        self.computation = "cpu_s"
        self._instructions: KernelFile | None = None
        self._floating_point: KernelFile | None = None
        self._schedstat: KernelFile | None = None
        self._io: KernelFile | None = None
        self._folder: KernelFile | None = None
        self._usage = getrusage is not None and sys.platform == "linux"
        self._opened = [0]
        self._collected = [0, 0]  # garbage collections: of generations 0 and 1, and of 2
        # Delay, computation and operations of the recorder itself and of pauses; its own reads.
        self._own = self._paused = 0, 0, 0
        self._own_reads = self._own_bytes = 0
        self._last = 0

    def start(self) -> None:
        """Open the counters, in the thread that is counted."""
        self._opened = count_opens()  # first, since it may refuse
        self._instructions = self._try(open_counter, "instructions")
        if self._instructions is not None:
            self.computation = "instructions"
        self._floating_point = self._try(open_floating_point, FLOATING_POINT)
        self._schedstat = self._try(lambda: open_schedstat(self._root), "run queue")
        self._io = self._try(lambda: open_file(self._root / "proc/thread-self/io"), *_IO)
        self._folder = self._try(self._open_folder, "closes")
        if not self._usage:
            self.missing.update(dict.fromkeys(_SWITCHES, "this system does not count by thread"))
        gc.callbacks.append(self._count_collection)

    def read(self) -> tuple[int, ...]:
        """Return run delay in nanoseconds, computation, and what `NOMINAL`, `EVIDENCE` name."""
        delay, computation, floating_point = self._levels()
        self._last = computation
        own_delay, own_computation, own_floating_point = self._own
        reads = writes = read_bytes = written_bytes = 0
        closes = opens = self._opened[0]
        if self._io is not None:
            text = self._io.read()
            fields = text.split(None, 8)
            read_bytes = int(fields[1]) - self._own_bytes
            written_bytes = int(fields[3])
            reads = int(fields[5]) - self._own_reads
            writes = int(fields[7])
            # A read shows in the counters from the next one on.
            self._own_reads += 1
            self._own_bytes += len(text)
        if self._folder is not None:
            closes -= os.fstat(self._folder.descriptor).st_size
        usage = getrusage(_RUSAGE_THREAD) if self._usage else (0,) * 16
        return (
            *(delay - own_delay, computation - own_computation),
            *(opens, closes, reads, writes, read_bytes, written_bytes),
            *self._collected,
            *(usage[14], usage[15], usage[6], usage[7]),
            floating_point - own_floating_point,
        )

    def exclude_own(self) -> None:
        """Leave out the computation since the last `read`: that was the recorder."""
        delay, computation, floating_point = self._own
        self._own = delay, computation + self._compute() - self._last, floating_point

    def pause(self) -> None:
        """Leave out computation and delay until `proceed`."""
        self._paused = self._levels()

    def proceed(self) -> None:
        """Count again."""
        levels = zip(self._own, self._levels(), self._paused, strict=True)
        delay, computation, floating_point = (own + now - before for own, now, before in levels)
        self._own = delay, computation, floating_point

    def close(self) -> None:
        """Stop counting."""
        forget_opens(self._opened)
        with contextlib.suppress(ValueError):  # the program may have cleared the list
            gc.callbacks.remove(self._count_collection)
        self._instructions = self._schedstat = self._io = self._folder = None
        self._floating_point = None

    def _count_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            self._collected[info["generation"] == 2] += 1

    def _levels(self) -> tuple[int, int, int]:
        """Return delay, computation and floating-point operations, the recorder's own included."""
        computation = self._compute()
        delay = 0
        if self._schedstat is not None:
            text = self._schedstat.read()
            self._own_reads += 1
            self._own_bytes += len(text)
            delay = int(text.split(None, 2)[1])
        operations = 0 if self._floating_point is None else self._read(self._floating_point)
        return delay, computation, operations

    def _compute(self) -> int:
        return self._cpu_ns() if self._instructions is None else self._read(self._instructions)

    def _read(self, counter: KernelFile) -> int:
        self._own_reads += 1
        self._own_bytes += 8
        return read_counter(counter)

    def _try(self, opener: Callable[[], KernelFile], *names: str) -> KernelFile | None:
        try:
            return opener()
        except Unavailable as error:
            self.missing.update(dict.fromkeys(names, str(error)))
            return None

    def _open_folder(self) -> KernelFile:
        """Open the folder of open descriptors; its size is their number."""
        path = self._root / "proc/self/fd"
        folder = open_file(path)
        if os.fstat(folder.descriptor).st_size == 0:
            raise Unavailable(f"{path}: its size is not their number before Linux 6.2")
        return folder


_opens: dict[int, list[int]] = {}  # by recorded thread, how many files it has opened
_hook_lock = threading.Lock()
_hooked: list[bool] = []


def count_opens() -> list[int]:
    """Begin to count the files that the calling thread opens, in the one item of the list.

    Calls from Python count (`open`, `os.open`, imports), whether they succeed or not; files that a
    C library opens do not. Python cannot remove the audit hook that the first call installs; it
    costs almost no time while there is no count.
    """
    thread = threading.get_ident()
    if thread in _opens:
        raise InvalidInput(
            "this thread is being recorded already, expected one recorder at a time; "
            "label segments of the first instead"
        )
    with _hook_lock:
        if not _hooked:
            sys.addaudithook(_on_event)
            _hooked.append(True)
    return _opens.setdefault(thread, [0])


def forget_opens(count: list[int]) -> None:
    """Stop the count that `count_opens` returned, in whichever thread."""
    for thread, opens in tuple(_opens.items()):
        if opens is count:
            del _opens[thread]


def _on_event(event: str, _args: tuple[object, ...]) -> None:
    if event == "open" and _opens:
        count = _opens.get(threading.get_ident())
        if count is not None:
            count[0] += 1
