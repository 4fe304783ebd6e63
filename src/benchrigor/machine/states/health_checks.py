"""Whether the machine is sound: temperatures, throttling, disks, memory errors, clock."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchrigor.clocks import WallClock
from benchrigor.machine.kernel_files import ROOT, Unavailable, read_text
from benchrigor.machine.states.sampling import GuardedSampler, sample_all
from benchrigor.machine.states.smart_disks import read_disks
from benchrigor.model import Health, Sample
from benchrigor.model.checks import refuse, wrong_number

_SYNCHRONISED = "run/systemd/timesync/synchronized"
_CPU_CHIPS = {"coretemp", "k10temp", "zenpower", "cpu_thermal"}
_USUAL_CELSIUS = 95.0  # Most processors throttle themselves from about there on
_MOST_CELSIUS = 200.0  # Sensors without a limit state 0, or thousands
_UNSYNCHRONISED = 0x0040  # STA_UNSYNC of <sys/timex.h>


def health(*, root: Path = ROOT, timeout_s: float = 3.0) -> Health:
    """Read whether the machine is sound; what cannot be read says why, no exception escapes.

    Parameters
    ----------
    root
        Folder that holds ``proc``, ``sys`` and ``run``.
    timeout_s
        Seconds that smartctl may take to list the disks, and again to report on them.

    Raises
    ------
    InvalidInput
        When the timeout is not a number of seconds above 0.

    Examples
    --------
    >>> found = health(root=Path("/nowhere"))
    >>> found.value("memory errors corrected") is None
    True
    """
    refuse(wrong_number("timeout_s", timeout_s))
    sources: dict[str, tuple[Callable[[], Iterator[Sample]], str]] = {
        "temperatures": (
            _temperatures,
            "temperature cpu, temperature margin, temperature nearest limit",
        ),
        "throttle counts": (
            partial(_throttle_counts, root),
            "throttle count core, throttle count package",
        ),
        "disks": (partial(read_disks, timeout_s), "smart failing disks"),
        "memory errors": (
            partial(_memory_errors, root),
            "memory errors corrected, memory errors uncorrected",
        ),
        "clock": (partial(_synchronisation, root), "clock synchronised, clock error"),
    }
    samplers = [GuardedSampler(name, *source) for name, source in sources.items()]
    return Health(**sample_all(samplers, WallClock()))


def _temperatures() -> Iterator[Sample]:
    if not hasattr(psutil, "sensors_temperatures"):
        raise Unavailable("psutil reads no temperatures on this system")
    hottest: dict[str, tuple[str, Any]] = {}
    for chip, sensors in psutil.sensors_temperatures().items():
        for sensor in sensors:
            name = f"temperature {chip} {sensor.label}".rstrip()
            if name not in hottest or sensor.current > hottest[name][1].current:
                hottest[name] = chip, sensor
    if not hottest:
        raise Unavailable("no sensor is there; a virtual machine has none")
    margins = {}
    for name, (chip, each) in hottest.items():
        yield Sample(name, each.current, "°C")
        limit = _limit(chip, each)
        if limit is not None:
            yield Sample(f"{name} limit", limit, "°C")
            margins[name] = limit - each.current
    processors = [each.current for chip, each in hottest.values() if chip in _CPU_CHIPS]
    if processors:
        yield Sample("temperature cpu", max(processors), "°C")
    if not margins:
        raise Unavailable("no sensor states a critical limit")
    nearest = min(margins, key=margins.__getitem__)
    yield Sample("temperature margin", margins[nearest], "°C")
    yield Sample("temperature nearest limit", nearest)


def _limit(chip: str, sensor: Any) -> float | None:
    """Return the critical limit; of a processor that states none its high or the usual one.

    Boards state high limits also for sensors that are not connected, and read 127 °C.
    """
    stated = [sensor.critical, *((sensor.high, _USUAL_CELSIUS) if chip in _CPU_CHIPS else ())]
    return next((limit for limit in stated if limit and 0.0 < limit < _MOST_CELSIUS), None)


def _throttle_counts(root: Path) -> Iterator[Sample]:
    """Yield the events since the start of the system, of the core and package that had most."""
    for part in ("core", "package"):
        pattern = f"sys/devices/system/cpu/cpu*/thermal_throttle/{part}_throttle_count"
        counts = [int(read_text(path)) for path in root.glob(pattern)]
        if not counts:
            raise Unavailable(f"{root / pattern}: none is there")
        yield Sample(f"throttle count {part}", max(counts))


def _memory_errors(root: Path) -> Iterator[Sample]:
    for name, kind in (("ce_count", "corrected"), ("ue_count", "uncorrected")):
        pattern = f"sys/devices/system/edac/mc/mc*/{name}"
        counts = [int(read_text(path)) for path in root.glob(pattern)]
        if not counts:
            raise Unavailable(f"{root / pattern}: none is there; memory has no ECC, or no driver")
        yield Sample(f"memory errors {kind}", sum(counts))


class _Timex(ctypes.Structure):
    """The beginning of ``struct timex``; the rest is room for the kernel."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 64),
    )


def _synchronisation(root: Path) -> Iterator[Sample]:
    try:
        is_synchronised, error_s = kernel_clock()
    except (AttributeError, OSError, TypeError) as error:
        # No such call, or a container forbids it.
        if not (root / _SYNCHRONISED).exists():
            raise Unavailable(f"adjtimex: {error}; {root / _SYNCHRONISED}: not there") from error
        yield Sample("clock synchronised", "yes")
        return
    yield Sample("clock synchronised", "yes" if is_synchronised else "no")
    if not is_synchronised:
        raise Unavailable("the clock is not synchronised")
    yield Sample("clock error", error_s, "s")


def kernel_clock() -> tuple[bool, float]:
    """Return whether the kernel's clock is synchronised, and its greatest error in seconds."""
    state = _Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return not state.status & _UNSYNCHRONISED, state.maxerror / 1e6
