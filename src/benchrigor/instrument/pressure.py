"""Pressure stall information: how long anybody, or everybody, waited for a resource."""

from __future__ import annotations

import re
from pathlib import Path

from benchrigor.instrument.kernel_files import Unavailable, cgroup_folders, read_text

__all__ = ["read_pressure"]

_TOTAL = re.compile(r"^(some|full) .*total=(\d+)", re.M)


def read_pressure(*, root: Path = Path("/")) -> tuple[str, dict[str, float]]:
    """Read the totals of the process's control group, or of the whole host where it has none.

    They count the program's own waiting for its data as well: evidence, no measured delay.

    Parameters
    ----------
    root
        Folder that holds ``proc`` and ``sys``.

    Returns
    -------
    tuple
        The folder they are from, and by name ("pressure_cpu_s", "pressure_io_full_s", ...) how
        long some, or all, waited so far, in seconds.

    Raises
    ------
    Unavailable
        When there is no such information.
    """
    host = root / "proc/pressure"
    groups = [each for each in cgroup_folders(root) if (each / "cpu.pressure").exists()]
    folder, ending = (groups[0], ".pressure") if groups else (host, "")
    totals = {}
    for resource in ("cpu", "io", "memory"):
        text = read_text(folder / f"{resource}{ending}")
        for who, micros in _TOTAL.findall(text):
            name = f"pressure_{resource}_s" if who == "some" else f"pressure_{resource}_full_s"
            totals[name] = int(micros) / 1e6
    if not totals:
        raise Unavailable(f"{folder}: no totals are there")
    return str(folder), totals
