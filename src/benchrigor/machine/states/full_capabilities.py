"""The equipment of a machine: processors, caches, memory, disks, network, container limits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchrigor.machine.kernel_files import Unavailable, cgroup_folders, read_text
from benchrigor.machine.states.gpus import Gpus
from benchrigor.machine.states.sampling import GuardedSampler
from benchrigor.machine.states.status_readers import devices, swap_space
from benchrigor.model import Capability, Sample

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
