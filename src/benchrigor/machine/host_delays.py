"""Delays that the host counts as a whole: throttled control groups, stolen processors, pressure."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchrigor.machine.kernel_files import ROOT, Unavailable, cgroup_folders, open_file, read_text

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
