"""The health that disks report, by smartctl."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from benchrigor.machine.kernel_files import Unavailable
from benchrigor.machine.states.sampling import GuardedSampler
from benchrigor.model import Sample

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
        raise Unavailable("no disk tells whether it is failing")
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
        raise Unavailable(said or "the disk does not tell")
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
