"""Pressure stall information: how long some, or all, tasks waited for a resource."""

from __future__ import annotations

import re
from pathlib import Path

from benchrigor.instrument.kernel_files import ROOT, Unavailable, cgroup_folders, read_text

_TOTAL = re.compile(r"^(some|full) .*total=(\d+)", re.M)


def read_pressure(*, root: Path = ROOT) -> tuple[str, dict[str, float]]:
    """Read the totals of the process's control group, else of the host, in seconds by name.

    They include the program's waiting for its own data: evidence, no measured delay.
    """
    groups = [each for each in cgroup_folders(root) if (each / "cpu.pressure").exists()]
    folder, ending = (groups[0], ".pressure") if groups else (root / "proc/pressure", "")
    totals = {}
    for resource in ("cpu", "io", "memory"):
        text = read_text(folder / f"{resource}{ending}")
        for who, micros in _TOTAL.findall(text):
            name = f"pressure_{resource}_s" if who == "some" else f"pressure_{resource}_full_s"
            totals[name] = int(micros) / 1e6
    if not totals:
        raise Unavailable(f"{folder}: no totals are there")
    return str(folder), totals
