"""A machine that is made up: what psutil, smartctl, NVIDIA's library and the kernel tell of it."""

from __future__ import annotations

import ctypes
import json
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace as Told
from typing import Any

Times = namedtuple("Times", "user nice system idle iowait steal guest")

CPUS = "sys/devices/system/cpu"
QUOTA = "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_"
LAPTOP = {
    "sys/class/power_supply/AC/online": "0\n",
    f"{CPUS}/cpufreq/policy0/scaling_governor": "powersave\n",
    f"{CPUS}/cpufreq/policy1/scaling_governor": "performance\n",
    f"{CPUS}/intel_pstate/no_turbo": "0\n",
    f"{CPUS}/smt/active": "1\n",
    f"{CPUS}/online": "0-7\n",
    "proc/self/status": "Name:\tpython\nCpus_allowed:\t0f\nCpus_allowed_list:\t0-2,5\n",
    "proc/self/cgroup": "0::/user.slice/bench\n",
    "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/user.slice/bench/cpu.max": "max 100000\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU 9000\nflags\t\t: fpu sse2\n",
    "sys/class/dmi/id/sys_vendor": "LENOVO\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "proc/thread-self/schedstat": "338853827 185991 4\n",
    "proc/sys/kernel/perf_event_paranoid": "1\n",
    "sys/bus/event_source/devices/cpu/type": "4\n",
}
SETTINGS: Iterable[tuple[str, Mapping[str, str]]] = (
    ("turbo", {f"{CPUS}/intel_pstate/no_turbo": "1"}),
    ("turbo", {f"{CPUS}/intel_pstate/no_turbo": "", f"{CPUS}/cpufreq/boost": "1"}),
    ("smt", {f"{CPUS}/smt/active": "0"}),
    ("cpu quota", {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 1"}),
    (
        "cpu quota",
        {
            "proc/self/cgroup": "5:memory:/m\n1:cpu,cpuacct:/gone/from/here\n",
            f"{QUOTA}quota_us": "50000",
            f"{QUOTA}period_us": "100000",
        },
    ),
    ("cpu quota", {f"{QUOTA}quota_us": "-1"}),
    ("virtualisation", {"proc/cpuinfo": "flags\t: fpu hypervisor sse2"}),
    (
        "virtualisation",
        {"proc/cpuinfo": "Features\t: fp", "sys/class/dmi/id/product_name": "KVM Guest"},
    ),
    ("perf events", {"proc/sys/kernel/perf_event_paranoid": "-1"}),
    ("perf events", {"proc/sys/kernel/perf_event_paranoid": "4"}),
    ("aslr", {"proc/sys/kernel/randomize_va_space": "0"}),
    ("scheduler statistics", {"proc/thread-self/schedstat": "0 0 0\n"}),
    ("scheduler statistics", {"proc/thread-self/schedstat": "what\n"}),
    ("power source", {"sys/class/power_supply/AC/online": "2"}),
)
CPU = f"{CPUS}/cpu{{}}"
SERVER = {
    f"{CPU.format(0)}/topology/physical_package_id": "0\n",
    f"{CPU.format(1)}/topology/physical_package_id": "1\n",
    f"{CPU.format(0)}/cache/index0/level": "1\n",
    f"{CPU.format(0)}/cache/index0/type": "Data\n",
    f"{CPU.format(0)}/cache/index0/size": "32K\n",
    f"{CPU.format(0)}/cache/index0/shared_cpu_list": "0-1\n",
    "proc/cpuinfo": (
        "processor : 0\nvendor_id : Maker\nmodel name : Fast\nflags : fpu sse2\nbogomips : 5\n\n"
        "processor : 1\nvendor_id : Maker\nmodel name : Slow\nflags : fpu sse2\nbogomips : 5\n"
    ),
    "proc/self/cgroup": "0::/a/b\n",
    "sys/fs/cgroup/a/memory.max": "2000000000\n",
    "sys/fs/cgroup/a/b/memory.max": "max\n",
    "sys/block/vda/device/vendor": "0x1af4\n",
    "sys/block/vda/size": "2000000\n",
    "sys/block/vda/queue/rotational": "0\n",
    "sys/block/sda/device/model": "OLD DISK   \n",
    "sys/block/sda/size": "4000000000\n",
    "sys/block/sda/queue/rotational": "1\n",
    "sys/block/loop0/size": "8\n",
    "sys/class/net/eth0/device/vendor": "0x1af4\n",
}
GB = 10**9
VERSION = {"smartctl": {"version": [7, 4]}}
SCAN = {**VERSION, "devices": [{"name": "/dev/sda", "type": "scsi"}]}


class FakeMachine:
    """What psutil tells of a machine that a test moves."""

    def __init__(self) -> None:
        self.cores = [Times(10, 0, 5, 100, 1, 0, 4), Times(20, 0, 5, 100, 1, 0, 0)]
        self.swapped = (0, 0)
        self.disks = {"sda": (1000, 2000), "sda1": (900, 1900), "loop0": (7, 0)}
        self.nets = {"lo": (55, 55), "eth0": (100, 10), "br0": (90, 9)}
        self.parts = [("/dev/sda1", "/", "rw")]
        self.used = {"/": 40.0}

    def work(self, *modes: dict[str, float]) -> None:
        """Let each core spend more time in some modes."""
        self.cores = [
            core._replace(**{mode: getattr(core, mode) + more for mode, more in spent.items()})
            for core, spent in zip(self.cores, modes, strict=True)
        ]

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return what stands in the place of psutil's functions."""
        return {
            "cpu_times": lambda **_: self.cores,
            "cpu_count": lambda logical: 4 if logical else 2,
            "cpu_freq": lambda: Told(current=2400.4, max=3600.0),
            "getloadavg": lambda: (0.5, 0.25, 0.125),
            "virtual_memory": lambda: Told(total=8 * GB, available=2 * GB, used=6 * GB),
            "swap_memory": lambda: Told(
                total=GB, used=GB // 4, free=3 * GB // 4, sin=self.swapped[0], sout=self.swapped[1]
            ),
            "disk_partitions": lambda: [
                Told(device=device, mountpoint=place, opts=opts)
                for device, place, opts in self.parts
            ],
            "disk_usage": lambda place: Told(percent=self.used[place], free=GB),
            "disk_io_counters": lambda **_: {
                name: Told(read_bytes=read, write_bytes=written)
                for name, (read, written) in self.disks.items()
            },
            "net_io_counters": lambda **_: {
                name: Told(bytes_recv=received, bytes_sent=sent)
                for name, (received, sent) in self.nets.items()
            },
            "net_if_stats": lambda: {
                "lo": Told(isup=True, speed=0, mtu=65536),
                "eth0": Told(isup=True, speed=1000, mtu=1500),
            },
            "sensors_temperatures": dict,
        }

    def broken(self) -> dict[str, Callable[..., Any]]:
        """Return functions that all raise something of their own."""

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("psutil is broken")

        return dict.fromkeys(self.functions(), fail)


def fails(message: str) -> Callable[..., None]:
    """Return a function of NVIDIA's library that raises."""

    def fail(*_: object) -> None:
        raise ValueError(message)

    return fail


def gpus(**others: Callable[..., object]) -> Told:
    """Return a library of NVIDIA that finds two GPUs."""
    made = {
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda gpu: f"Card {gpu}",
        "nvmlDeviceGetUtilizationRates": lambda gpu: Told(gpu=40 + gpu),
        "nvmlDeviceGetMemoryInfo": lambda _: Told(total=8e9, used=1e9, free=7e9),
        "nvmlDeviceGetTemperature": lambda *_: 50,
    }
    return Told(**{**made, **others})


def kernel_clock(status: int = 0, error_us: int = 0, *, errno: int = 0) -> Callable[..., object]:
    """Return what stands in the place of `ctypes.CDLL`: the kernel's state of its clock."""

    def adjtimex(state: Any) -> int:
        state._obj.status, state._obj.maxerror = status, error_us  # noqa: SLF001  # no other way
        ctypes.set_errno(errno)
        return -1 if errno else 0

    return lambda *_, **__: Told(adjtimex=adjtimex)


def put_smartctl(folder: Path, script: str) -> None:
    """Put a shell script in the place of smartctl."""
    folder.mkdir(exist_ok=True)
    (folder / "smartctl").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "smartctl").chmod(0o755)


def disks(scan: object, *, other: str = "", **told: object) -> str:
    """Return a smartctl that tells of these disks, by the end of their names."""
    cases = "\n".join(f"*{name}) echo '{json.dumps(each)}';;" for name, each in told.items())
    return (
        f"case \"$*\" in\n*--scan) echo '{json.dumps(scan)}';;\n{cases}\n*) {other or ':'};;\nesac"
    )
