"""The equipment of a machine, processors to network, and whether it is well."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchrigor.clocks import WallClock
from benchrigor.machine.kernel_files import ROOT, Unavailable, cgroup_folders, read_text
from benchrigor.machine.status_readers import Gpus, GuardedSampler, devices, sample_all, swap_space
from benchrigor.model import Capability, Health, Sample
from benchrigor.model.checks import refuse, wrong_number

_CPUS = "sys/devices/system/cpu"
_SECTOR = 512  # Bytes: the unit in which Linux shows the size of a disk, regardless of its own
_UNLIMITED = 1 << 60  # Version 1 of control groups writes a number near 2**63 for "no limit"
_CPUINFO = {
    "cpu model": r"model name|Model",
    "cpu vendor": r"vendor_id|CPU implementer",
    "cpu bogomips": r"bogomips|BogoMIPS",
    "cpu flags": r"flags|Features",
}


def further_capabilities(root: Path) -> list[Capability]:
    """Return the equipment of the machine as text; missing values have a reason."""
    samplers = [
        GuardedSampler("cpu packages", partial(_packages, root)),
        GuardedSampler("cpu layout", partial(_layout, root)),
        GuardedSampler("cpu", _processors, "cpu cores, cpu threads, cpu mhz"),
        GuardedSampler("cpu information", partial(_cpu_information, root), ", ".join(_CPUINFO)),
        GuardedSampler("cpu caches", partial(_caches, root)),
        GuardedSampler("memory", _memory, "ram, swap"),
        GuardedSampler("memory limit", partial(_memory_limit, root)),
        GuardedSampler("gpus", Gpus().models),
        GuardedSampler("disks", partial(_disks, root)),
        GuardedSampler("networks", partial(_networks, root)),
    ]
    return [
        Capability(
            name=sample.name,
            available=sample.value is not None,
            value=sample.value if isinstance(sample.value, str) else sample.shown or None,
            reason=sample.reason,
        )
        for sampler in samplers
        for sample in sampler.sample()
    ]


def _packages(root: Path) -> Iterator[Sample]:
    pattern = f"{_CPUS}/cpu*/topology/physical_package_id"
    packages = {read_text(path) for path in root.glob(pattern)}
    if not packages:
        raise Unavailable(f"{root / pattern}: none is there")
    yield Sample("cpu packages", len(packages))


def _layout(root: Path) -> Iterator[Sample]:
    """Yield the places of the logical processors; a thread is numbered within its core."""
    pattern = f"{_CPUS}/cpu[0-9]*/topology"
    folders = {int(path.parent.name[3:]): path for path in root.glob(pattern)}
    if not folders:
        raise Unavailable(f"{root / pattern}: none is there")
    dies = {number: _die(folder) for number, folder in folders.items()}
    shows_dies = len({*dies.values()}) > 1  # cores of two dies may have the same number
    threads = Counter[str]()
    for number, folder in sorted(folders.items()):
        package, core = (read_text(folder / file) for file in ("physical_package_id", "core_id"))
        die = f", die {dies[number]}" if shows_dies else ""
        place = f"package {package}{die}, core {core}"
        yield Sample(f"cpu {number}", f"{place}, thread {threads[place]}")
        threads[place] += 1


def _die(folder: Path) -> str:
    path = folder / "die_id"
    return read_text(path) if path.exists() else ""


def _processors() -> Iterator[Sample]:
    for name, logical in (("cpu cores", False), ("cpu threads", True)):
        count = psutil.cpu_count(logical=logical)
        if count:
            yield Sample(name, count)
    speed = psutil.cpu_freq()
    if speed:
        most = f", at most {speed.max:.0f}" if speed.max else ""
        yield Sample("cpu mhz", f"{speed.current:.0f}{most}")


def _cpu_information(root: Path) -> Iterator[Sample]:
    text = read_text(root / "proc/cpuinfo")
    for name, keys in _CPUINFO.items():
        # Cores of one machine may differ.
        found = dict.fromkeys(re.findall(rf"^(?:{keys})\s*:\s*(.+)$", text, re.M))
        if found:
            yield Sample(name, "; ".join(found))


def _caches(root: Path) -> Iterator[Sample]:
    folders = sorted((root / _CPUS / "cpu0/cache").glob("index*"))
    if not folders:
        raise Unavailable(f"{root / _CPUS / 'cpu0/cache'}: none is there")
    for folder in folders:
        level, kind, size, cpus = (
            read_text(folder / file) for file in ("level", "type", "size", "shared_cpu_list")
        )
        yield Sample(f"cpu cache L{level} {kind.lower()}", f"{size} of cpus {cpus}")


def _memory() -> Iterator[Sample]:
    yield Sample("ram", psutil.virtual_memory().total, "B")
    yield Sample("swap", swap_space()[0].total, "B")


def _memory_limit(root: Path) -> Iterator[Sample]:
    files = [
        folder / name
        for folder in cgroup_folders(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        if (folder / name).exists()
    ]
    if not files:
        raise Unavailable(f"{root / 'sys/fs/cgroup'}: no memory.max is there")
    limits = [int(text) for path in files if (text := read_text(path)) != "max"]
    tightest = min(limits, default=_UNLIMITED)
    yield Sample("memory limit", "none" if tightest >= _UNLIMITED else tightest, "B")


def _disks(root: Path) -> Iterator[Sample]:
    folders = [path.parent for path in sorted(root.glob("sys/block/*/device"))]
    if not folders:
        raise Unavailable(f"{root / 'sys/block'}: no disk is there")
    for folder in folders:
        size = Sample("size", _SECTOR * int(read_text(folder / "size")), "B").shown
        spins = read_text(folder / "queue/rotational") == "1"
        model = folder / "device/model"
        parts = [size, "rotating" if spins else "solid", read_text(model) if model.exists() else ""]
        yield Sample(f"disk {folder.name}", ", ".join(filter(None, parts)))


def _networks(root: Path) -> Iterator[Sample]:
    found = psutil.net_if_stats()
    for name in devices(root, "class/net", found):
        each = found[name]
        speed = f", {each.speed} Mb/s" if each.speed else ""
        yield Sample(f"network {name}", f"{'up' if each.isup else 'down'}{speed}, MTU {each.mtu}")


_OLDEST = 7  # Version of smartctl from which on it writes JSON
_KILLED_S = 0.2  # A killed process may be held by the kernel as long as its disk hangs
_LEAST_S = 0.1  # For what one wrote while another one hung
_ATTRIBUTES = {
    5: "reallocated sectors",
    197: "pending sectors",
    198: "uncorrectable sectors",
    199: "crc errors",
}


def read_disks(timeout_s: float) -> Iterator[Sample]:
    """Yield the samples of all disks by smartctl, asked at once, and the number that fail."""
    program = shutil.which("smartctl")
    if program is None:
        raise Unavailable("smartctl is not installed; it comes with smartmontools")
    (listed,) = _answers([[program, "--json", "--scan"]], timeout_s)
    disks = {_name_of(device): device for device in _report(listed).get("devices", ())}
    if not disks:
        raise Unavailable("smartctl finds no disk that it can ask")
    command = [program, "--json", "--all", "--nocheck=standby"]
    answers = _answers([[*command, *_device(device)] for device in disks.values()], timeout_s)
    verdicts = []
    for name, answer in zip(disks, answers, strict=True):
        disk = f"smart {name}"
        samples = GuardedSampler(disk, partial(_read_answer, disk, answer), disk).sample()
        verdicts += [sample.value for sample in samples if sample.name == disk and sample.value]
        yield from samples
    if not verdicts:
        raise Unavailable("no disk reports whether it is failing")
    yield Sample("smart failing disks", verdicts.count("failing"))


def _name_of(device: Mapping[str, Any]) -> str:
    """Return "sda", or "bus/0 megaraid,3" for a disk on a controller."""
    name = str(device["name"]).removeprefix("/dev/")
    return f"{name} {device['type']}" if "," in device.get("type", "") else name


def _device(device: Mapping[str, Any]) -> list[str]:
    # With the type "scsi", smartctl would not check whether it is a SATA disk.
    kind = device.get("type", "scsi")
    return [*([] if kind == "scsi" else [f"--device={kind}"]), device["name"]]


def _answers(commands: Sequence[Sequence[str]], timeout_s: float) -> list[str | Unavailable]:
    """Run commands side by side, and return their outputs; one that takes long is killed."""
    end_s = time.monotonic() + timeout_s
    running = [
        subprocess.Popen(  # noqa: S603 - no shell; names of devices come from smartctl
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
        for command in commands
    ]
    answers: list[str | Unavailable] = []
    for process in running:
        try:
            answers.append(process.communicate(timeout=max(_LEAST_S, end_s - time.monotonic()))[0])
        except subprocess.TimeoutExpired:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_KILLED_S)
            if process.stdout is not None:
                process.stdout.close()
            answers.append(Unavailable(f"smartctl did not answer in {timeout_s:g} s: killed"))
    return answers


def _report(answer: str | Unavailable) -> dict[str, Any]:
    """Understand what smartctl wrote."""
    if isinstance(answer, Unavailable):
        raise answer
    try:
        report: Any = json.loads(answer)
        version = report["smartctl"]["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        first = answer.strip().partition("\n")[0][:60]
        raise Unavailable(
            f"smartctl wrote {first!r}, expected JSON: version {_OLDEST} or newer is needed"
        ) from None
    if version[0] < _OLDEST:
        raise Unavailable(f"smartctl is of version {version[0]}, expected {_OLDEST} or newer")
    return dict(report)


def _read_answer(disk: str, answer: str | Unavailable) -> Iterator[Sample]:
    """Yield the samples of one disk."""
    report = _report(answer)
    passed = report.get("smart_status", {}).get("passed")
    if passed is None:
        said = "; ".join(message["string"] for message in report["smartctl"].get("messages", ()))
        raise Unavailable(said or "the disk does not say")
    yield Sample(disk, "passed" if passed else "failing")
    log = report.get("nvme_smart_health_information_log", {})
    figures = {
        ("temperature", "°C"): report.get("temperature", {}).get("current"),
        ("power on", "h"): report.get("power_on_time", {}).get("hours"),
        ("wear", "%"): log.get("percentage_used"),
        ("media errors", ""): log.get("media_errors"),
    }
    for row in report.get("ata_smart_attributes", {}).get("table", ()):
        if row["id"] in _ATTRIBUTES:
            figures[_ATTRIBUTES[row["id"]], ""] = row["raw"]["value"]
    for (what, unit), value in figures.items():
        if value is not None:
            yield Sample(f"{disk} {what}", float(value), unit)


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
