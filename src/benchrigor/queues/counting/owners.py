"""The processes and threads that count: whether they run, and their processor time."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_ROOT = Path("/")


class Owner(NamedTuple):
    """A thread, as the system numbers it and its process."""

    pid: int
    tid: int


class Used(NamedTuple):
    """Processor use of a thread since it began, in nanoseconds."""

    cpu_ns: int
    delay_ns: int  # time that it waited for a processor although it could have run


class Owners:
    """Asks the system, through files that stay open until `close`, or until their process ends.

    An open file stands for one process or thread, even if another one gets its number.
    """

    def __init__(self, *, root: Path = _ROOT) -> None:
        self._root = root
        self._processes: dict[int, int | None] = {}
        self._threads: dict[Owner, int | None] = {}
        self._gone: set[int] = set()
        self._poll = select.poll() if hasattr(os, "pidfd_open") else None

    def gone(self, pids: Iterable[int]) -> frozenset[int]:
        """Return the processes that have ended, without 0 (unknown) and the one that asks."""
        known = self._processes
        for pid in pids:
            if pid not in known and pid not in (0, os.getpid()):
                known[pid] = self._open(pid)
            if known.get(pid, 0) is None and not _is_there(pid):
                self._gone.add(pid)
        # It only asks if a file is open: any question lets other threads run.
        if self._poll is not None and any(known.values()):
            for descriptor, _ in self._poll.poll(0):
                self._forget(next(pid for pid, fd in known.items() if fd == descriptor))
        return frozenset(self._gone)

    def used(self, owner: Owner) -> Used | None:
        """Return the processor use of a thread; None if it is unknown, or the thread has ended."""
        if owner not in self._threads:
            self._threads[owner] = self._schedstat(owner)
        descriptor = self._threads[owner]
        if descriptor is None:
            return None
        try:
            cpu_ns, delay_ns, slices = map(int, os.pread(descriptor, 64, 0).split())
        except (OSError, ValueError):
            os.close(descriptor)
            self._threads[owner] = None
            return None
        # A kernel that does not count shows only zeros.
        return Used(cpu_ns, delay_ns) if slices else None

    def close(self) -> None:
        """Let go of everything."""
        for descriptor in (*self._processes.values(), *self._threads.values()):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._processes.clear()
        self._threads.clear()

    def _open(self, pid: int) -> int | None:
        """Return a descriptor that is ready when a process ends; None if the system has none."""
        if self._poll is None:
            return None
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return None
        self._poll.register(descriptor, select.POLLIN)
        return descriptor

    def _forget(self, pid: int) -> None:
        descriptor = self._processes[pid]
        if descriptor is not None and self._poll is not None:
            self._poll.unregister(descriptor)
            os.close(descriptor)
        self._processes[pid] = None
        self._gone.add(pid)

    def _schedstat(self, owner: Owner) -> int | None:
        path = self._root / f"proc/{owner.pid}/task/{owner.tid}/schedstat"
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None


def _is_there(pid: int) -> bool:
    """Whether a process is there; one that has ended and was not waited for is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
