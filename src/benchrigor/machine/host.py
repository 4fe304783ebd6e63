"""The machine and its settings, read before and after a run, never during it."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from benchrigor.machine.delays import open_schedstat
from benchrigor.machine.kernel_files import ROOT, Unavailable, cgroup_folders, read_text
from benchrigor.model import Capability
from benchrigor.model.run import Provenance

_CPUS = "sys/devices/system/cpu"
_CLOCK_SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"
_ASLR = "proc/sys/kernel/randomize_va_space"
_OFF_ON = {"0": "off", "1": "on"}
_PACKAGES = ("benchrigor", "numpy", "scipy")
GIT_TIMEOUT_S = 0.5
# Metadata of pyperf that provenance holds anyway, or that are of a moment or of our own process.
_LEFT_OUT = {"hostname", "date", "load_avg_1min", "runnable_threads", "uptime", "cpu_temp"}
_LEFT_OUT |= {"mem_max_rss", "mem_peak_pagefile_usage"}
_VIRTUAL = re.compile(
    r"kvm|qemu|vmware|virtualbox|xen|bochs|amazon ec2|google compute|hyper-v|virtual machine", re.I
)


def capabilities(*, full: bool = False, root: Path = ROOT) -> tuple[Capability, ...]:
    """Read those settings of the machine that matter to measurements, from ``/proc`` and ``/sys``.

    What cannot be read (another system, a container that hides it) is unavailable, with the
    reason; no exception escapes.

    Parameters
    ----------
    full
        Add the equipment of the machine, by psutil and others, which takes longer.
    root
        Folder that holds ``proc`` and ``sys``.

    Returns
    -------
    tuple of Capability
        "cpu governor", "turbo", "smt", "cores available", "cpu quota", "virtualisation",
        "clock source", "aslr", "scheduler statistics", "perf events", "power source"; always all
        of them. In full
        also "cpu packages", "cpu cores", "cpu threads", "cpu model", "cpu flags", "ram", "swap",
        "memory limit", "gpu 0", "disk sda", "network eth0" and others, as they are.

    Examples
    --------
    >>> nowhere = capabilities(root=Path("/nowhere"))[0]
    >>> nowhere.available, nowhere.reason
    (False, '/nowhere/sys/devices/system/cpu/cpufreq/policy*/scaling_governor: none is there')
    """
    found = tuple(_capability(name, reader, root) for name, reader in _READERS.items())
    if not full:
        return found
    from benchrigor.machine.equipment import further_capabilities  # noqa: PLC0415  # psutil is slow

    return (*found, *further_capabilities(root))


def provenance(
    *,
    sources: Iterable[Path | str] = (),
    folder: str | None = None,
    full: bool = False,
    root: Path = ROOT,
) -> Provenance:
    """Gather place, time and versions of a run, in some 20 ms.

    Git is asked for the commit around a folder, with "+dirty" after it when tracked files differ
    from the commit. The commit is None if git does not answer within a second.

    Parameters
    ----------
    sources
        Files that hold the measured code, and words that locate it in them.
    folder
        Folder in which it runs; None for the working directory.
    full
        Add `environment`, which takes longer.
    root
        Folder that holds ``proc`` and ``sys``.

    Examples
    --------
    >>> sorted(provenance().packages)
    ['benchrigor', 'numpy', 'scipy']
    """
    return Provenance(
        host=platform.node(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_model(root),
        cores=os.cpu_count() or 1,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={name: import_module(name).__version__ for name in _PACKAGES},
        commit=_commit(folder),
        capabilities=capabilities(root=root),
        source=_hash_of(sources),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        load_before=load_average(),
        environment=environment() if full else {},
    )


def environment() -> dict[str, str | int | float]:
    """Return facts about host and interpreter from pyperf, and others from psutil.

    It is read once per process. That takes some 50 ms, mostly to load both packages, so runs ask
    for it after their last reading. Unreadable facts are left out; no exception escapes.

    Examples
    --------
    >>> found = environment()
    >>> found["python_implementation"], "hostname" in found
    ('cpython', False)
    """
    return dict(_environment())


@cache
def _environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for ask in (_ask_psutil, _ask_pyperf):
        # Both read files that a kernel may write as it likes; a run must not fail for it.
        with contextlib.suppress(Exception):
            found |= ask()
    return {name: value for name, value in found.items() if name not in _LEFT_OUT and value}


def _ask_psutil() -> dict[str, Any]:
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415  # it takes 40 ms

    affinity: list[int] = getattr(psutil.Process(), "cpu_affinity", list)()
    return {
        "cpu_affinity": ",".join(map(str, affinity)),
        "cpu_cores": psutil.cpu_count(logical=False),
        "memory": psutil.virtual_memory().total,
    }


def _ask_pyperf() -> dict[str, Any]:
    import pyperf  # type: ignore[import-untyped]  # noqa: PLC0415  # it loads psutil

    metadata: dict[str, Any] = pyperf.Run([1.0]).get_metadata()
    return metadata


def _hash_of(sources: Iterable[Path | str]) -> str | None:
    """Return a hash of the contents of files, and of words; None if no file can be read."""
    found, hashed = False, hashlib.sha256()
    for source in sources:
        if isinstance(source, str):
            hashed.update(source.encode())
            continue
        with contextlib.suppress(OSError), source.open("rb") as file:
            hashed.update(hashlib.file_digest(file, "sha256").digest())
            found = True
    return hashed.hexdigest()[:16] if found else None


def load_average() -> float | None:
    """Return how many processes ran or waited, averaged over a minute; None on Windows.

    Examples
    --------
    >>> load = load_average()
    >>> load is None or load >= 0.0
    True
    """
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def slowed_by() -> str:
    """Say what makes the interpreter slower than it is: a tracer or a profiler; empty if nothing.

    Examples
    --------
    >>> slowed_by() in ("", "a tracer or profiler slows the interpreter down")
    True
    """
    tool_of = getattr(getattr(sys, "monitoring", None), "get_tool", None)  # Python 3.12
    is_watched = (
        sys.gettrace() is not None
        or sys.getprofile() is not None
        or (tool_of is not None and any(map(tool_of, range(6))))
        or "COVERAGE_PROCESS_START" in os.environ  # in processes that are started
    )
    return "a tracer or profiler slows the interpreter down" if is_watched else ""


def _capability(name: str, reader: Callable[[Path], str], root: Path) -> Capability:
    try:
        return Capability(name=name, available=True, value=reader(root))
    except Unavailable as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - a kernel may write anything; a run must not fail for it
        reason = f"cannot be understood: {error!r}"
    return Capability(name=name, available=False, reason=reason)


def _governor(root: Path) -> str:
    pattern = f"{_CPUS}/cpufreq/policy*/scaling_governor"
    governors = {read_text(path) for path in root.glob(pattern)}
    if not governors:
        raise Unavailable(f"{root / pattern}: none is there")
    return ", ".join(sorted(governors))


def _turbo(root: Path) -> str:
    no_turbo = root / _CPUS / "intel_pstate/no_turbo"
    if no_turbo.exists():
        return {"0": "on", "1": "off"}[read_text(no_turbo)]
    return _OFF_ON[read_text(root / _CPUS / "cpufreq/boost")]


def _cores(root: Path) -> str:
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)$", read_text(root / "proc/self/status"), re.M)
    if allowed is None:
        raise Unavailable(f"{root / 'proc/self/status'}: no line Cpus_allowed_list")
    online = _count_cores(read_text(root / _CPUS / "online"))
    return f"{_count_cores(allowed[1])} of {online}"


def _count_cores(cores: str) -> int:
    """Count the cores of a list such as "0-3,8"."""
    ends = [part.partition("-") for part in cores.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _quota(root: Path) -> str:
    """Return the tightest quota of the control groups that the process is in, in cores."""
    limits = [limit for folder in cgroup_folders(root) for limit in _limits(folder)]
    if not limits:
        raise Unavailable(f"{root / 'sys/fs/cgroup'}: no cpu.max or cpu.cfs_quota_us is there")
    tightest = min(limits)
    return "none" if math.isinf(tightest) else f"{tightest:g} cores"


def _limits(folder: Path) -> Iterator[float]:
    if (folder / "cpu.max").exists():
        quota, period = read_text(folder / "cpu.max").split()
        yield math.inf if quota == "max" else int(quota) / int(period)
    if (folder / "cpu.cfs_quota_us").exists():
        micros = int(read_text(folder / "cpu.cfs_quota_us"))
        yield math.inf if micros < 0 else micros / int(read_text(folder / "cpu.cfs_period_us"))


def _virtualisation(root: Path) -> str:
    maker = " ".join(
        read_text(path)
        for name in ("sys_vendor", "product_name")
        if (path := root / "sys/class/dmi/id" / name).exists()
    )
    flags = re.search(r"^flags\s*:(.*)$", read_text(root / "proc/cpuinfo"), re.M)
    # x86 processors have a flag for it; elsewhere the maker's name decides.
    if "hypervisor" in flags[1].split() if flags else _VIRTUAL.search(maker):
        return f"virtual machine ({maker})" if maker else "virtual machine"
    return "none seen"


def _scheduler_statistics(root: Path) -> str:
    open_schedstat(root)
    return "time running and waiting of each process"


def _perf_events(root: Path) -> str:
    path = root / "proc/sys/kernel/perf_event_paranoid"
    level = int(read_text(path))
    privileged = hasattr(os, "geteuid") and os.geteuid() == 0
    if level > 2 and not privileged:
        raise Unavailable(f"{path} is {level}, up to 2 lets a process observe itself")
    # "cpu" on most processors, "cpu_core" on hybrid ones, "armv8_..." on ARM.
    counters = [*root.glob("sys/bus/event_source/devices/cpu*")]
    counters += root.glob("sys/bus/event_source/devices/armv*")
    return f"{'hardware and software' if counters else 'software only'} (paranoid level {level})"


def _power_source(root: Path) -> str:
    supplies = root / "sys/class/power_supply"
    online = [read_text(path) for path in supplies.glob("*/online")]
    if not online:
        raise Unavailable(f"{supplies}: no supply that is online or not is there")
    return "mains" if any(each != "0" for each in online) else "battery"


def _setting(path: str, names: dict[str, str]) -> Callable[[Path], str]:
    """Return the reader of a file that holds one of a few values."""
    return lambda root: names[read_text(root / path)]


_READERS: dict[str, Callable[[Path], str]] = {
    "cpu governor": _governor,
    "turbo": _turbo,
    "smt": _setting(f"{_CPUS}/smt/active", _OFF_ON),
    "cores available": _cores,
    "cpu quota": _quota,
    "virtualisation": _virtualisation,
    "clock source": lambda root: read_text(root / _CLOCK_SOURCE),
    "aslr": _setting(_ASLR, {"0": "off", "1": "partial", "2": "full"}),
    "scheduler statistics": _scheduler_statistics,
    "perf events": _perf_events,
    "power source": _power_source,
}


def _cpu_model(root: Path) -> str:
    with contextlib.suppress(Unavailable):
        text = read_text(root / "proc/cpuinfo")
        if found := re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.M):
            return found[1]
    return platform.processor() or platform.machine()


def _commit(folder: str | None) -> str | None:
    """Return the commit around a folder, with "+dirty" if git is quick enough."""
    marked = ("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+dirty")
    for command in (marked, ("rev-parse", "HEAD")):
        try:
            answer = subprocess.run(  # noqa: S603 - fixed arguments, no shell
                ["git", *command],  # noqa: S607 - the user's own git, wherever it is installed
                cwd=folder,
                capture_output=True,
                check=True,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=GIT_TIMEOUT_S,
                env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return answer.stdout.strip() or None
    return None
