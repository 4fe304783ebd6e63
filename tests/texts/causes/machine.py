"""What made-up machines report, and which thresholds and alarms are refused."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import psutil
from tests.machine.made_up import (
    CPUS,
    LAPTOP,
    SCAN,
    SERVER,
    SETTINGS,
    VERSION,
    FakeMachine,
    disks,
    fails,
    gpus,
    kernel_clock,
    put_smartctl,
)
from tests.texts.rendering import tried

import benchrigor as br
from benchrigor.machine import Alarms, StatusReader, capabilities, health, read_thresholds, status
from benchrigor.model import Capability, Notice, Sample, Status
from benchrigor.testing import FakeClock

SECOND = 10**9


def made(files: Mapping[str, str]) -> Path:
    """Write files of a made-up system into the scratch folder, and return it."""
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content, encoding="utf-8")
    return Path()


def told(found: Iterable[Capability | Sample], *beginnings: str) -> str:
    """Return known values, and why the rest is not known: of names that begin so."""
    return "\n".join(
        f"{item.name}: {item.reason if item.value is None else item.value}"
        for item in found
        if item.name.startswith(beginnings or ("",))
    )


def settings() -> Iterator[str]:
    """Yield what each of some settings is."""
    with patch("os.geteuid", lambda: 1000):
        for name, files in SETTINGS:
            for path in Path().glob(f"{CPUS}/intel_pstate/no_turbo"):
                path.unlink()
            yield told(capabilities(root=made({k: v for k, v in files.items() if v})), name)


def by_psutil(tell: Callable[[], object], **functions: Callable[..., Any]) -> object:
    """Return the report where psutil reads a made-up machine."""
    given = {**FakeMachine().functions(), **functions}
    with (
        patch.multiple(psutil, create=True, **given),
        patch.dict(sys.modules, pynvml=None),
        patch("ctypes.CDLL", kernel_clock(errno=errno.EPERM)),
    ):
        return tell()


def second_status() -> str:
    """Return a short status with what has happened since another one."""
    reader, times = StatusReader(root=Path(), short=True), iter([{"user": 1.0}, {"user": 2.0}])
    with patch("psutil.cpu_times", lambda **_: [SimpleNamespace(_asdict=lambda: next(times))]):
        reader.read()
        return told(reader.read().samples, "cpu busy", "steal", "load")


def of_broken(tell: Callable[[], object]) -> object:
    """Return the report where psutil is broken."""
    os.environ["PATH"] = ""
    return by_psutil(tell, **FakeMachine().broken())


def states() -> Iterator[tuple[str, str]]:
    """Yield the rates of a machine from reading to reading, and why some are not known."""
    clock, machine = FakeClock(), FakeMachine()
    reader = StatusReader(root=Path(), clock=clock)
    names = "cpu busy", "disk", "network"
    with patch.multiple(psutil, create=True, **machine.functions()):
        yield "at first", told(reader.read().samples, *names)
        yield "at the same moment", told(reader.read().samples, *names)
        clock.advance(SECOND)
        yield "without a tick", told(reader.read().samples, *names)
        machine.disks, machine.nets = {"sda": (0, 3000)}, {"eth1": (1, 1)}
        clock.advance(SECOND)
        yield "back, and another", told(reader.read().samples, *names)


def of_disks(*scripts: str, timeout_s: float = 5.0) -> Iterator[str]:
    """Yield what there is to know of disks, by each of some smartctl."""
    os.environ["PATH"] = str(Path("bin").absolute())
    for script in scripts:
        put_smartctl(Path("bin"), script)
        yield told(health(root=Path(), timeout_s=timeout_s).samples, "smart")


def of_gpus(library: object) -> str:
    """Return what there is to know of GPUs."""
    with patch.dict(sys.modules, pynvml=library):
        return told(StatusReader(root=Path()).read().samples, "gpu")


def of_the_clock(cdll: Callable[..., object]) -> str:
    """Return what there is to know of the kernel's clock."""
    with patch("ctypes.CDLL", cdll):
        return told(health(root=Path()).samples, "clock")


def instructions(machine: str) -> list[Notice]:
    """Return the texts where the kernel has no counter, or nobody knows how to ask for it."""
    clock, measure = FakeClock(), br.measure  # loaded before anything is patched
    refusing = SimpleNamespace(syscall=lambda *_: (ctypes.set_errno(2), -1)[1])
    kernel = patch("ctypes.CDLL", lambda *_, **__: refusing)
    with patch.object(platform, "machine", lambda: machine), kernel:
        record = measure(
            lambda: clock.advance(10**6), instructions=True, clock=clock, budget_s=0.01, seed=1
        )
    return [notice for notice in record.notices if notice.code == "no-instructions"]


LOAD = {"sample": "load 1 min", "above": 4.0, "clear": 2.0}
FITS = {"when": [LOAD], "sentence": "Busy."}
INF, NAN = float("inf"), float("nan")
WRONG: Iterable[Mapping[str, object]] = (
    *({"when": [{**LOAD, **wrong}]} for wrong in (
        {"clear": 5.0}, {"above": NAN}, {"clear": INF}, {"above": "4"}, {"above": True},
        {"below": 1.0}, {"above": None}, {"sample": ""}, {"sample": "load\n"}, {"over": 1},
        {"above": None, "below": 5.0, "clear": 4.0},
    )),
    *({"when": wrong} for wrong in ([5], [LOAD] * 9, [], None, "load")),
    *({"sentence": wrong} for wrong in ("x" * 301, None, "\x00\x1b[31m")),
    *({"hold_s": wrong} for wrong in (0.5, NAN, "5", 10**5000)),
    *({"evidence": wrong} for wrong in ("swap", [5], ["\x1b[31m"])),
    {"enabled": "no"},
    {"colour": "red"},
)  # fmt: skip
FULL = read_thresholds(
    {
        "full": {
            "when": [{"sample": "storage used", "above": 95.0, "clear": 90.0}],
            "sentence": "Full: remove files.",
            "evidence": ["storage fullest"],
        }
    }
)[-1]


def flood(alarms: Alarms) -> None:
    """Raise alarms of a hundred and one codes, each for a short time."""
    for index in range(101):
        alarms.raise_(f"job-{index % 100}")
        alarms.clear(f"job-{index % 100}")
    alarms.raise_("job-100")


def unjudged() -> Iterator[str]:
    """Yield why an alarm is not judged."""
    alarms = Alarms([FULL])
    yield str(alarms.unjudged)
    alarms.tell(Status(samples=(Sample("storage used", None, reason="hidden"),), at="now"), 0.0)
    yield str(alarms.unjudged)


CAUSES: dict[str, Callable[[], object]] = {
    "a laptop": lambda: told(capabilities(root=made(LAPTOP))),
    "a server": lambda: by_psutil(lambda: told(capabilities(full=True, root=made(SERVER)))),
    "a machine that shows nothing": lambda: told(capabilities(root=Path())),
    "settings of machines": settings,
    "unknown equipment": lambda: of_broken(lambda: told(capabilities(full=True, root=Path())[11:])),
    "an unknown status": lambda: of_broken(lambda: told(StatusReader(root=Path()).read().samples)),
    "a first status": lambda: by_psutil(lambda: told(StatusReader(root=Path()).read().samples)),
    "a short status of another system": lambda: by_psutil(second_status),
    "rates from reading to reading": states,
    "unknown health": lambda: of_broken(lambda: told(health(root=Path()).samples)),
    "a system without sensors": lambda: by_psutil(
        lambda: told(health(root=Path()).samples, "temperature")
    ),
    "clocks": lambda: [
        of_the_clock(kernel_clock(error_us=2000)),
        of_the_clock(kernel_clock(0x40, 16_000_000)),
        of_the_clock(kernel_clock(errno=errno.EPERM)),
    ],
    "an old smartctl, or one that talks rubbish": lambda: of_disks(
        "echo '=======> UNRECOGNIZED OPTION: json'; exit 1",
        'echo \'{"smartctl": {"version": [6, 6]}}\'',
        "echo '[1, 2]'",
        "printf '\\377\\000{'",
        "exit 4",
        f"echo '{json.dumps({**VERSION, 'devices': 5})}'",
        f"echo '{json.dumps(VERSION)}'",
    ),
    "a smartctl that hangs": lambda: of_disks("exec /bin/sleep 60", timeout_s=0.1),
    "disks that report nothing": lambda: of_disks(
        disks(SCAN, sda={"smartctl": {"version": [7, 4], "messages": [{"string": "Denied"}]}}),
        disks(SCAN, sda=VERSION),
        disks(SCAN, sda={**VERSION, "smart_status": 5}),
    ),
    "GPUs": lambda: of_gpus(gpus(nvmlDeviceGetUtilizationRates=fails("Not Supported"))),
    "GPUs without a driver": lambda: of_gpus(gpus(nvmlInit=fails("Driver Not Loaded"))),
    "GPUs without a library": lambda: of_gpus(None),
    "thresholds that do not fit": lambda: tried(
        lambda wrong: read_thresholds({"busy": {**FITS, **wrong}}), *((wrong,) for wrong in WRONG)
    ),
    "codes that are not valid": lambda: tried(
        lambda code: read_thresholds({code: FITS}),
        *("", "With Space", "x" * 65, 'a{b="c"}', "../etc", "é", 5),
    ),
    "several problems": lambda: read_thresholds(
        {"hot": {"hold_s": 0, "when": [{**LOAD, "clear": 9.0}]}, "b c": {}, "d": 1}
    ),
    "no file of thresholds": lambda: tried(
        read_thresholds,
        *("[hot", "hot = \x00", "thresholds.toml", "hot = 5", Path("none.toml")),
        *(3, 0, [1], [], b"[hot]", False),
    ),
    "too many thresholds": lambda: read_thresholds({f"code-{n}": None for n in range(92)}),
    "alarms of no thresholds": lambda: tried(
        Alarms, "[hot]\nenabled = false", "", ({"hot": {}},), ({},), [1], [FULL, None], 3
    ),
    "alarms of wrong thresholds": lambda: tried(
        lambda **changes: Alarms([replace(FULL, **changes)]),
        *({"when": when} for when in (FULL.when[0], ["storage used"], 3)),
        {"code": ["full"]},
    ),
    "a threshold that is given twice": lambda: Alarms([FULL, FULL]),
    "alarms by hand": lambda: tried(
        lambda code="a", sentence="", **evidence: Alarms().raise_(code, sentence, **evidence),
        {"code": "Not A Code"},
        *({"sentence": wrong} for wrong in ("x" * 301, "line 1\nline 2\x1b[31m")),
        *({"x": wrong} for wrong in ("y" * 301, "\x1b[31m", [1], NAN, -INF, 10**5000)),
        {"\x1b[31m": 1},
        {f"x{index}": 1 for index in range(17)},
    ),
    "a flood of alarms": lambda: flood(Alarms()),
    "alarms of nothing": lambda: [
        *tried(
            Alarms().tell, (None, 3), *((Status(samples=(), at=""), n) for n in (NAN, "1", True))
        ),
        *tried(Alarms().on_change, 3),
        *unjudged(),
    ],
    "intervals and timeouts": lambda: [
        *tried(lambda wrong: status(interval_s=wrong), -1.0, NAN, "1"),
        *tried(lambda wrong: health(timeout_s=wrong), 0),
    ],
    "instructions": lambda: [instructions("x86_64"), instructions("abacus")],
}
