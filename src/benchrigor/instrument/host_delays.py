"""Delays that the host counts as a whole: throttled control groups, stolen processors."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchrigor.instrument.kernel_files import Unavailable, cgroup_folders, keep_open

__all__ = ["HostDelays", "Steal", "Throttling", "shares"]

_ROOT = Path("/")
_THROTTLED = re.compile(rb"^throttled_(usec|time) (\d+)", re.M)
_UNIT_NS = {b"usec": 1_000, b"time": 1}


class HostDelays:
    """Reads what the host counts as a whole, now and then, between `start` and `close`.

    Parameters
    ----------
    root
        Folder that holds ``proc`` and ``sys``.
    cpu_ns
        Tells the thread's processor time.

    Attributes
    ----------
    missing
        By source, why it is not read.
    """

    def __init__(
        self, *, root: Path = _ROOT, cpu_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        self._makers: dict[str, Callable[[], Throttling | Steal]] = {
            "throttled": partial(Throttling, root=root),
            "steal": partial(Steal, root=root, cpu_ns=cpu_ns),
        }
        self._sources: dict[str, Throttling | Steal] = {}
        self._last_ns: dict[str, int] = {}
        self.missing: dict[str, str] = {}

    def start(self) -> None:
        """Open what there is to read, in the thread that is to be charged."""
        for name, maker in self._makers.items():
            try:
                self._sources[name] = maker()
                self._last_ns[name] = self._sources[name].lost_ns()
            except (Unavailable, OSError, ValueError) as error:
                self.missing[name] = str(error)

    def rises_ns(self) -> dict[str, int]:
        """Return by source what was lost since the last reading, in nanoseconds."""
        rises = {}
        for name, source in self._sources.items():
            # What cannot be read now is read with the next rise.
            with contextlib.suppress(OSError, ValueError):
                now_ns = source.lost_ns()
                rises[name] = max(0, now_ns - self._last_ns[name])
                self._last_ns[name] = now_ns
        return rises

    def close(self) -> None:
        """Close the files."""
        for source in self._sources.values():
            source.close()


class Throttling:
    """How long the process's control groups were kept off the processors, their quota used up.

    Parameters
    ----------
    root
        Folder that holds ``proc`` and ``sys``.

    Raises
    ------
    Unavailable
        When no group around the process has a quota to count by.
    """

    def __init__(self, *, root: Path = _ROOT) -> None:
        self._descriptors: list[int] = []
        for folder in cgroup_folders(root):
            if not (folder / "cpu.stat").exists():
                continue
            descriptor = keep_open(folder / "cpu.stat")
            if _THROTTLED.search(os.pread(descriptor, 1024, 0)):
                self._descriptors.append(descriptor)
            else:
                os.close(descriptor)
        if not self._descriptors:
            raise Unavailable(f"{root / 'sys/fs/cgroup'}: no cpu.stat tells of throttling")

    def lost_ns(self) -> int:
        """Return nanoseconds of all groups so far."""
        return sum(map(self._of_group, self._descriptors))

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._descriptors:
            os.close(descriptor)

    @staticmethod
    def _of_group(descriptor: int) -> int:
        found = _THROTTLED.search(os.pread(descriptor, 1024, 0))
        return int(found[2]) * _UNIT_NS[found[1]] if found else 0


class Steal:
    """How long a hypervisor ran others although the calling thread had work.

    The host counts steal of all its processors together, in ticks of usually 10 ms. Of each rise
    the thread is charged its share of the processor time that was busy since the rise before.

    Parameters
    ----------
    root
        Folder that holds ``proc``.
    cpu_ns
        Tells the thread's own processor time.

    Raises
    ------
    Unavailable
        When the host does not count.
    """

    def __init__(
        self, *, root: Path = _ROOT, cpu_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        path = root / "proc/stat"
        self._descriptor = keep_open(path)
        self._cpu_ns = cpu_ns
        self._lost_ns = 0
        try:
            self._tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
            self._steal, self._busy = self._ticks()
        except (OSError, ValueError) as error:
            os.close(self._descriptor)
            raise Unavailable(f"{path}: cannot be understood: {error}") from error
        self._used_ns = cpu_ns()

    def lost_ns(self) -> int:
        """Return the thread's share of what was stolen so far, in nanoseconds."""
        steal, busy = self._ticks()
        if steal > self._steal:
            used_ns = self._cpu_ns()
            own_ns = used_ns - self._used_ns
            all_ns = max(own_ns, (busy - self._busy) * self._tick_ns, 1)
            self._lost_ns += (steal - self._steal) * self._tick_ns * own_ns // all_ns
            self._steal, self._busy, self._used_ns = steal, busy, used_ns
        return self._lost_ns

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _ticks(self) -> tuple[int, int]:
        """Return ticks stolen and ticks busy, of all processors."""
        fields = os.pread(self._descriptor, 256, 0).split(None, 9)
        user, nice, system, _, _, interrupts, soft_interrupts, steal = map(int, fields[1:9])
        return steal, user + nice + system + interrupts + soft_interrupts


def shares(lost_ns: int, room_ns: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Charge a delay to those with most room for it, each at most as much as it has.

    Parameters
    ----------
    lost_ns
        What was lost in all.
    room_ns
        The most that each can have lost.

    Yields
    ------
    tuple
        Index and nanoseconds, of those charged; what finds no room is charged to nobody.

    Examples
    --------
    >>> list(shares(70, [10, 50, 30]))
    [(1, 50), (2, 20)]
    """
    for index in sorted(range(len(room_ns)), key=room_ns.__getitem__, reverse=True):
        if lost_ns <= 0:
            return
        share_ns = min(lost_ns, room_ns[index])
        yield index, share_ns
        lost_ns -= share_ns
