"""What every evidence script prints first, and how shares are judged."""

from __future__ import annotations

import datetime
import math
import os
import platform
from importlib.metadata import version

from benchrigor.machine import provenance

__all__ = ["describe", "wilson"]


def describe() -> str:
    """Return processor, versions, load and date in one line."""
    where = provenance()
    packages = ", ".join(f"{name} {version(name)}" for name in ("benchrigor", "numpy", "scipy"))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return (
        f"{where.cores} x {where.cpu}, {platform.system()}, {where.python}, {packages}, "
        f"load {load:.2f}, {today}"
    )


def wilson(hits: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share = hits / trials
    centre = share + z * z / (2 * trials)
    reach = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return (centre - reach) / scale, (centre + reach) / scale
