"""The state of a machine: each sampler is guarded and timed; counters become rates."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchrigor.clocks import WallClock
from benchrigor.errors import MissingExtra
from benchrigor.machine.delays import RunDelay, Throttling, read_pressure
from benchrigor.machine.kernel_files import ROOT, Unavailable, read_text
from benchrigor.model import Sample, Status
from benchrigor.model.checks import refuse, wrong_number
from benchrigor.protocols import Clock, Sampler

FIRST = "first reading"


def reason_of(error: Exception) -> str:
    """Say why something could not be read."""
    return str(error) if isinstance(error, Unavailable) else f"cannot be read: {error!r}"


def sample_of(name: str, unit: str, read: Callable[[], float | str]) -> Sample:
    """Return the value that a function reads, or why it cannot."""
    try:
        return Sample(name, read(), unit)
    except Exception as error:  # noqa: BLE001 - a driver may raise anything; the others are read
        return Sample(name, None, unit, reason_of(error))


class GuardedSampler:
    """Makes a sampler of a function that yields samples, and may raise anything.

    Parameters
    ----------
    name
        Its name for itself.
    read
        Yields samples; what came before it raised counts.
    names
        Samples that there always are, "a, b": those that do not come have the reason.
    only
        Whether all other samples are left out.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Iterable[Sample]],
        names: str = "",
        *,
        only: bool = False,
    ) -> None:
        self._name, self._read, self._only = name, read, only
        self._names = names.split(", ") if names else []

    def describe(self) -> str:
        """Return its name."""
        return self._name

    def sample(self) -> list[Sample]:
        """Return the samples; no exception escapes."""
        found: dict[str, Sample] = {}
        missing, reason = self._names, "this system does not say"
        try:
            for sample in self._read():
                if sample.name in self._names or not self._only:
                    found[sample.name] = sample
        except Exception as error:  # noqa: BLE001 - a kernel or a driver may do anything
            missing, reason = missing or [self._name], reason_of(error)
        return [
            *found.values(),
            *(Sample(name, None, reason=reason) for name in missing if name not in found),
        ]


def sample_all(samplers: Iterable[Sampler], clock: Clock) -> dict[str, Any]:
    """Ask all samplers, and return the fields that every state has: samples, at, cost_s."""
    samples: list[Sample] = []
    cost_s = {}
    for sampler in samplers:
        began_ns = clock.now_ns()
        samples += sampler.sample()
        cost_s[sampler.describe()] = (clock.now_ns() - began_ns) / 1e9
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"samples": tuple(samples), "at": at, "cost_s": cost_s}


class Counters:
    """The last totals of one sampler and their time, for rates."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ns, self._last = 0, dict[Any, float]()

    def rises(self, totals: Mapping[Any, float]) -> tuple[float, dict[Any, float]]:
        """Return the seconds since the last totals, and the rises of the totals.

        New totals are left out. A first reading raises `Unavailable`.
        """
        before_ns, self._last_ns = self._last_ns, self._clock.now_ns()
        before, self._last = self._last, dict(totals)
        rises = {key: total - before[key] for key, total in totals.items() if key in before}
        if not rises:
            raise Unavailable(FIRST)
        if self._last_ns <= before_ns:
            raise Unavailable("no time has passed since the last reading")
        return (self._last_ns - before_ns) / 1e9, rises

    def rates(self, totals: Mapping[str, float], unit: str) -> Iterator[Sample]:
        """Yield the rises of the totals per second since the last reading."""
        span_s, rises = self.rises(totals)
        for name in totals:
            rise = rises.get(name, -1.0)
            if rise >= 0.0:
                yield Sample(name, rise / span_s, unit)
            else:
                yield Sample(name, None, unit, "the counter went back" if name in rises else FIRST)


class Gpus:
    """Reads the GPUs that are there; a library or a driver that is missing is looked for once."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._reason = ""
        try:
            import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415  # optional

            # It stays initialised: that takes long, and the library counts its users.
            pynvml.nvmlInit()
            self._nvml = pynvml
            for index in range(pynvml.nvmlDeviceGetCount()):
                self._handles.append(pynvml.nvmlDeviceGetHandleByIndex(index))
        except ImportError:
            self._reason = str(MissingExtra("reading GPUs", package="nvidia-ml-py", extra="gpu"))
        except Exception as error:  # noqa: BLE001 - a driver may raise anything
            self._reason = f"NVIDIA's library: {error}"

    def models(self, *_: object) -> Iterator[Sample]:
        """Yield what each GPU is."""
        return self._of_each(
            {
                ("", ""): lambda nvml, gpu: nvml.nvmlDeviceGetName(gpu),
                (" memory", "B"): lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).total,
            }
        )

    def sample(self, *_: object) -> Iterator[Sample]:
        """Yield how busy, full and hot each GPU is."""
        return self._of_each(
            {
                (" utilisation", "%"): lambda nvml, gpu: (
                    nvml.nvmlDeviceGetUtilizationRates(gpu).gpu
                ),
                (" memory used", "B"): lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
                (" memory free", "B"): lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).free,
                (" temperature", "°C"): lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(
                    gpu, nvml.NVML_TEMPERATURE_GPU
                ),
            }
        )

    def _of_each(
        self, readers: Mapping[tuple[str, str], Callable[[Any, Any], float | str]]
    ) -> Iterator[Sample]:
        if self._reason:
            raise Unavailable(self._reason)
        yield Sample("gpus", len(self._handles))
        for index, handle in enumerate(self._handles):
            for (what, unit), read in readers.items():
                yield sample_of(f"gpu {index}{what}", unit, partial(read, self._nvml, handle))


_IDLE = {"idle", "iowait", "steal"}
_INSIDE = {"guest", "guest_nice"}  # Linux counts them in user and nice already
_LOOPBACK = re.compile(r"lo\d*|Loopback.*")


class StatusReader:
    """Reads the status of the machine again and again, with rates since its last reading.

    It keeps the counters of that reading, so that several readers do not disturb each other. No
    exception escapes from a reading: what cannot be read is a sample without a value, that says
    why. Names are listed in ``docs/machine-state.md``.

    Parameters
    ----------
    root
        Folder that holds ``proc`` and ``sys``.
    short
        Read only what disturbs a measurement: thirteen samples.
    samplers
        What to ask; None for all that is built in.
    clock
        Measures spans and costs; None for the wall clock.

    Examples
    --------
    >>> reader = StatusReader(short=True)
    >>> reader.read().span_s is None
    True
    >>> status = reader.read()
    >>> status.span_s > 0.0, 0.0 <= status.value("memory available")
    (True, True)
    """

    def __init__(
        self,
        *,
        root: Path = ROOT,
        short: bool = False,
        samplers: Iterable[Sampler] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or WallClock()
        self._lock = threading.Lock()
        self._last_ns: int | None = None
        if samplers is None:
            self._samplers = _samplers(root, self._clock, short=short)
        else:
            self._samplers = [GuardedSampler(part.describe(), part.sample) for part in samplers]

    def read(self) -> Status:
        """Read the status; rates are over the time since the last reading."""
        with self._lock:
            last_ns, self._last_ns = self._last_ns, self._clock.now_ns()
            span_s = None if last_ns is None else (self._last_ns - last_ns) / 1e9
            return Status(span_s=span_s, **sample_all(self._samplers, self._clock))


def status(*, interval_s: float = 0.1, root: Path = ROOT) -> Status:
    """Read the status of the machine, with rates over a short interval.

    Parameters
    ----------
    interval_s
        Seconds to wait between two readings; most kernels count processor time in ticks of 10 ms.
    root
        As in `StatusReader`, which does not wait.

    Raises
    ------
    InvalidInput
        When the interval is not a number of seconds.

    Examples
    --------
    >>> print(status(interval_s=0.01))  # doctest: +SKIP
    Status at 2026-11-24T19:12:03.251+00:00, rates over 14.6 ms, read in 4.6 ms
    ...
    """
    refuse(wrong_number("interval_s", interval_s, zero=True))
    reader = StatusReader(root=root)
    reader.read()
    WallClock().sleep_ns(round(interval_s * 1e9))
    return reader.read()


def _samplers(root: Path, clock: Clock, *, short: bool) -> list[GuardedSampler]:
    """Return the built-in samplers, with their own counters."""
    sources = _SHORT if short else {**_SOURCES, "gpu": (Gpus().sample, "gpus")}
    return [
        GuardedSampler(name, partial(read, Counters(clock), root), names, only=short)
        for name, (read, names) in sources.items()
    ]


def _processors(counters: Counters, _: Path) -> Iterator[Sample]:
    totals = {
        (core, mode): seconds
        for core, times in enumerate(psutil.cpu_times(percpu=True))
        for mode, seconds in times._asdict().items()
        if mode not in _INSIDE
    }
    rises = counters.rises(totals)[1]
    modes, busy, whole = (defaultdict[str | int, float](float) for _ in range(3))
    for (core, mode), rise in rises.items():
        spent = max(rise, 0.0)  # what Linux counts as iowait may go back
        modes[mode] += spent
        whole[core] += spent
        busy[core] += 0.0 if mode in _IDLE else spent
    shares = {f"cpu core {core}": 100.0 * busy[core] / whole[core] for core in whole if whole[core]}
    if not shares:
        raise Unavailable("no tick of the processors since the last reading")
    percent = 100.0 / sum(whole.values())
    yield Sample("cpu busy", percent * sum(busy.values()), "%")
    yield Sample("cpu busiest core", max(shares.values()), "%")
    for mode, spent in modes.items():
        yield Sample("steal" if mode == "steal" else f"cpu {mode}", percent * spent, "%")
    for name, share in shares.items():
        yield Sample(name, share, "%")


def _load(*_: object) -> Iterator[Sample]:
    for minutes, load in zip((1, 5, 15), psutil.getloadavg(), strict=True):
        yield Sample(f"load {minutes} min", load)


def _memory(*_: object) -> Iterator[Sample]:
    memory = psutil.virtual_memory()
    yield Sample("memory available", memory.available, "B")
    yield Sample("memory available share", 100.0 * memory.available / memory.total, "%")
    yield Sample("memory used", memory.used, "B")
    yield Sample("memory total", memory.total, "B")


def _swap(counters: Counters, _: Path) -> Iterator[Sample]:
    swap, reason = swap_space()
    yield Sample("swap used", swap.used, "B")
    yield Sample("swap free", swap.free, "B")
    if reason:
        raise Unavailable(reason)
    yield from counters.rates({"swap in": swap.sin, "swap out": swap.sout}, "B/s")


def swap_space() -> tuple[Any, str]:
    """Return the swap space by psutil, and why its traffic is not known; empty if it is.

    If it is not known, psutil would warn, and return 0.
    """
    reason = _why_not_counted(Path(psutil.PROCFS_PATH) / "vmstat") if psutil.LINUX else ""
    if not reason:
        return psutil.swap_memory(), reason
    with warnings.catch_warnings():  # nowhere else, for it changes the filters of all threads
        warnings.simplefilter("ignore")
        return psutil.swap_memory(), reason


@cache  # of a kernel, and psutil reads the file for each status itself
def _why_not_counted(vmstat: Path) -> str:
    try:
        return "" if "pswpin" in read_text(vmstat) else f"{vmstat}: pswpin is not in it"
    except Unavailable as error:
        return str(error)


def _pressure(counters: Counters, root: Path) -> Iterator[Sample]:
    _, totals_s = read_pressure(root=root, of_host=True)
    shares = {name: 100.0 * totals_s[key] for name, key in _PRESSURE.items() if key in totals_s}
    yield from counters.rates(shares, "%")


def _run_delay(counters: Counters, root: Path) -> Iterator[Sample]:
    meter = RunDelay(root=root)
    if not meter.available:
        raise Unavailable(meter.reason)
    # Another thread has no previous reading.
    span_s, rises = counters.rises({threading.get_ident(): meter.delay_ns() / 1e9})
    yield Sample("run delay", 100.0 * sum(rises.values()) / span_s, "%")


def _read_throttling(counters: Counters, root: Path) -> Iterator[Sample]:
    yield from counters.rates({"throttled": Throttling(root=root).delay_ns() / 1e7}, "%")


def _storage(*_: object) -> Iterator[Sample]:
    # One of a device, for a container has parts of it mounted in several places; a file system that
    # is never written to is always full. Unlike Path.is_dir, isdir does not raise for a place that
    # the user may not enter.
    places = {
        part.device: part.mountpoint
        for part in reversed(psutil.disk_partitions())
        if "ro" not in part.opts.split(",") and os.path.isdir(part.mountpoint)  # noqa: PTH112
    }
    usage = {}
    for place in sorted(places.values()) or [os.sep]:
        with suppress(OSError):  # of other users, or gone
            usage[place] = psutil.disk_usage(place)
    if not usage:
        raise Unavailable("no file system can be asked")
    fullest = max(usage, key=lambda each: usage[each].percent)
    yield Sample("storage used", usage[fullest].percent, "%")
    yield Sample("storage free", usage[fullest].free, "B")
    yield Sample("storage fullest", fullest)
    for place, space in usage.items():
        yield Sample(f"storage {place} free", space.free, "B")


def _disks(counters: Counters, root: Path) -> Iterator[Sample]:
    found = psutil.disk_io_counters(perdisk=True, nowrap=True) or {}
    totals = {
        name: (found[name].read_bytes, found[name].write_bytes)
        for name in devices(root, "block", found)
    }
    yield from counters.rates(_in_all("disk", totals, ("read", "written")), "B/s")


def _network(counters: Counters, root: Path) -> Iterator[Sample]:
    found = psutil.net_io_counters(pernic=True, nowrap=True) or {}
    totals = {
        name: (found[name].bytes_recv, found[name].bytes_sent)
        for name in devices(root, "class/net", found)
    }
    yield from counters.rates(_in_all("network", totals, ("received", "sent")), "B/s")


def devices(root: Path, folder: str, names: Iterable[str]) -> list[str]:
    """Return physical devices: not parts of other devices, and not on top of them like bridges.

    If the system does not say, return all but the loopback.
    """
    known = sorted(name for name in names if not _LOOPBACK.fullmatch(name))
    return [name for name in known if (root / f"sys/{folder}/{name}/device").exists()] or known


def _in_all(
    what: str, totals: Mapping[str, tuple[float, float]], ways: tuple[str, str]
) -> dict[str, float]:
    """Name totals of devices, the sum of all before them."""
    if not totals:
        raise Unavailable(f"no {what} is there")
    sums = {
        f"{what} {way}": sum(column)
        for way, column in zip(ways, zip(*totals.values(), strict=True), strict=True)
    }
    return sums | {
        f"{what} {name} {way}": total
        for name, pair in totals.items()
        for way, total in zip(ways, pair, strict=True)
    }


_PRESSURE = {
    "pressure cpu some": "pressure_cpu_s",
    "pressure io some": "pressure_io_s",
    "pressure io full": "pressure_io_full_s",
    "pressure memory some": "pressure_memory_s",
    "pressure memory full": "pressure_memory_full_s",
}
_Sources = dict[str, tuple[Callable[[Counters, Path], Iterable[Sample]], str]]

# Readers of the parts of the status, and the samples that they always have.
_SOURCES: _Sources = {
    "cpu": (_processors, "cpu busy, cpu busiest core, cpu user, cpu system, cpu idle, steal"),
    "load": (_load, "load 1 min, load 5 min, load 15 min"),
    "memory": (_memory, "memory available, memory available share, memory used, memory total"),
    "swap": (_swap, "swap used, swap free, swap in, swap out"),
    "pressure": (_pressure, ", ".join(_PRESSURE)),
    "run delay": (_run_delay, "run delay"),
    "throttled": (_read_throttling, "throttled"),
    "storage": (_storage, "storage used, storage free, storage fullest"),
    "disk": (_disks, "disk read, disk written"),
    "network": (_network, "network received, network sent"),
}
_SHORT: _Sources = {
    "cpu": (_processors, "cpu busy, steal"),
    "load": (_load, "load 1 min"),
    "memory": (_memory, "memory available"),
    "swap": (_swap, "swap in, swap out"),
    "pressure": (_pressure, ", ".join(_PRESSURE)),
    "run delay": (_run_delay, "run delay"),
    "throttled": (_read_throttling, "throttled"),
}
SHORT_NAMES = tuple(", ".join(names for _, names in _SHORT.values()).split(", "))
