"""Delays that the host counts as a whole: throttled control groups, stolen processors."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchrigor.instrument.kernel_files import ROOT, Unavailable, cgroup_folders, keep_open

__all__ = ["HostDelay", "HostDelays", "Steal", "Throttling", "attribute_delay"]

_THROTTLED = re.compile(rb"^throttled_(usec|time) (\d+)", re.M)
_UNIT_NS = {b"usec": 1_000, b"time": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDelay:
    """The delay between two readings of the host."""

    wall_ns: int
    """Wall time between the readings."""
    delay_ns: Mapping[str, int]
    """By source ("throttled", "steal"), of those that could be read."""


class HostDelays:
    """Reads the delays of the host now and then, between `start` and `close`."""

    def __init__(
        self,
        *,
        root: Path = ROOT,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._now_ns = now_ns
        self._read_ns = 0
        self._makers: dict[str, Callable[[], Throttling | Steal]] = {
            "throttled": lambda: Throttling(root=root),
            "steal": lambda: Steal(root=root, cpu_ns=cpu_ns),
        }
        self._sources: dict[str, Throttling | Steal] = {}
        self._last_ns: dict[str, int] = {}
        self.missing: dict[str, str] = {}
        """By source, why it is not read."""

    def start(self) -> None:
        """Open the sources, in the thread whose delay is measured."""
        for name, make in self._makers.items():
            try:
                self._sources[name] = make()
                self._last_ns[name] = self._sources[name].delay_ns()
            except (Unavailable, OSError, ValueError) as error:
                self.missing[name] = str(error)
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
        for source in self._sources.values():
            with contextlib.suppress(OSError):  # the program may have closed any descriptor
                source.close()


class Throttling:
    """How long the process's control groups were throttled because their quota was used up."""

    def __init__(self, *, root: Path = ROOT) -> None:
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
            raise Unavailable(f"{root / 'sys/fs/cgroup'}: no cpu.stat counts throttling")

    def delay_ns(self) -> int:
        """Return nanoseconds of all groups so far."""
        found = (_THROTTLED.search(os.pread(each, 1024, 0)) for each in self._descriptors)
        return sum(int(each[2]) * _UNIT_NS[each[1]] for each in found if each)

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._descriptors:
            os.close(descriptor)


class Steal:
    """How long a hypervisor ran others although the calling thread had work.

    The host counts steal of all its processors together, in ticks of usually 10 ms. The thread's
    share of it is its share of the busy processor time since the last rise.
    """

    def __init__(
        self, *, root: Path = ROOT, cpu_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        path = root / "proc/stat"
        self._descriptor = keep_open(path)
        self._cpu_ns = cpu_ns
        self._delay_ns = 0
        try:
            self._tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
            self._steal, self._busy = self._ticks()
        except (OSError, ValueError) as error:
            os.close(self._descriptor)
            raise Unavailable(f"{path}: cannot be understood: {error}") from error
        self._used_ns = cpu_ns()

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

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _ticks(self) -> tuple[int, int]:
        """Return ticks stolen and ticks busy, of all processors."""
        fields = os.pread(self._descriptor, 256, 0).split(None, 9)
        user, nice, system, _, _, interrupts, soft_interrupts, steal = map(int, fields[1:9])
        return steal, user + nice + system + interrupts + soft_interrupts


def attribute_delay(
    host: HostDelay, duration_ns: Sequence[int], run_delay_ns: Sequence[int]
) -> dict[str, list[int]]:
    """Return by source how much of the host's delay each segment between two readings had.

    Throttled time is part of the segments' run delay (on Linux 6.18, 2.409 s of run delay for
    2.408 s throttled), at most all of it. Steal is not; the segments have the share of it that they
    have of the wall time. Segments with most room for a delay have it first.

    Examples
    --------
    Segments that took half of the time have half of the steal.

    >>> host = HostDelay(wall_ns=200, delay_ns={"throttled": 70, "steal": 30})
    >>> attribute_delay(host, [60, 40], [5, 10])
    {'throttled': [5, 10], 'steal': [15, 0]}
    """
    attributed = {}
    for source, delay_ns in host.delay_ns.items():
        if source == "steal":
            inside_ns = sum(duration_ns)
            part_ns = delay_ns * inside_ns // max(inside_ns, host.wall_ns, 1)
            pairs = zip(duration_ns, run_delay_ns, strict=True)
            room_ns = [max(0, duration - waited) for duration, waited in pairs]
        else:
            part_ns, room_ns = delay_ns, [*map(min, run_delay_ns, duration_ns)]
        attributed[source] = _fill(part_ns, room_ns)
    return attributed


def _fill(delay_ns: int, room_ns: Sequence[int]) -> list[int]:
    """Give a delay to those with most room for it, each at most as much as it has."""
    parts_ns = [0] * len(room_ns)
    for index in sorted(range(len(room_ns)), key=room_ns.__getitem__, reverse=True):
        parts_ns[index] = min(delay_ns, room_ns[index])
        delay_ns -= parts_ns[index]
    return parts_ns
