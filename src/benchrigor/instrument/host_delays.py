"""Delays that the host counts as a whole: throttled control groups, stolen processors."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchrigor.instrument.kernel_files import Unavailable, cgroup_folders, keep_open

__all__ = ["HostDelays", "Rises", "Steal", "Throttling", "charge", "shares"]

_ROOT = Path("/")
_THROTTLED = re.compile(rb"^throttled_(usec|time) (\d+)", re.M)
_UNIT_NS = {b"usec": 1_000, b"time": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rises:
    """What was lost between two readings of the host.

    Parameters
    ----------
    wall_ns
        Wall time between the readings.
    lost_ns
        By source ("throttled", "steal"), what was lost; a source that cannot be read has none.
    """

    wall_ns: int
    lost_ns: Mapping[str, int]


class HostDelays:
    """Reads what the host counts as a whole, now and then, between `start` and `close`.

    Parameters
    ----------
    root
        Folder that holds ``proc`` and ``sys``.
    cpu_ns
        Tells the thread's processor time.
    now_ns
        Tells wall time.

    Attributes
    ----------
    missing
        By source, why it is not read.
    """

    def __init__(
        self,
        *,
        root: Path = _ROOT,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._now_ns = now_ns
        self._read_ns = 0
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
        self._read_ns = self._now_ns()

    def rises(self) -> Rises:
        """Return what was lost since the last reading."""
        lost_ns = {}
        for name, source in self._sources.items():
            # What cannot be read now is read with the next rise.
            with contextlib.suppress(OSError, ValueError):
                now_ns = source.lost_ns()
                lost_ns[name] = max(0, now_ns - self._last_ns[name])
                self._last_ns[name] = now_ns
        since_ns, self._read_ns = self._read_ns, self._now_ns()
        return Rises(wall_ns=self._read_ns - since_ns, lost_ns=lost_ns)

    def close(self) -> None:
        """Close the files."""
        for source in self._sources.values():
            with contextlib.suppress(OSError):  # the program may have closed whatever was open
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


def charge(
    rises: Rises, duration_ns: Sequence[int], waited_ns: Sequence[int]
) -> dict[str, list[int]]:
    """Charge what a host lost to the segments that ran between its two readings.

    A thread whose control group is throttled waits in its run queue (on Linux 6.18, 2.409 s of run
    delay for 2.408 s throttled): so much of the segments' run delay is called throttled, and what
    exceeds it befell another process, or this one outside of the segments. A stolen processor
    shows in no run queue: of what was stolen, the segments are charged by how much of the wall time
    between the readings they took. Those with most room are charged first.

    Parameters
    ----------
    rises
        What was lost between the readings.
    duration_ns
        How long each segment took, in nanoseconds.
    waited_ns
        How much of that was waited in the run queue.

    Returns
    -------
    dict
        By source, nanoseconds of each segment; what is throttled is part of ``waited_ns``.

    Examples
    --------
    Segments that took half of the time are charged half of what was stolen.

    >>> rises = Rises(wall_ns=200, lost_ns={"throttled": 70, "steal": 30})
    >>> charge(rises, [60, 40], [5, 10])
    {'throttled': [5, 10], 'steal': [15, 0]}
    """
    room_ns = {
        "throttled": [*map(min, waited_ns, duration_ns)],
        "steal": [max(0, took - wait) for took, wait in zip(duration_ns, waited_ns, strict=True)],
    }
    took_ns = sum(duration_ns)
    charged: dict[str, list[int]] = {}
    for source, lost_ns in rises.lost_ns.items():
        if source == "steal":
            lost_ns = lost_ns * took_ns // max(took_ns, rises.wall_ns, 1)  # noqa: PLW2901
        charged[source] = [0] * len(duration_ns)
        for index, share_ns in shares(lost_ns, room_ns[source]):
            charged[source][index] = share_ns
    return charged


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
