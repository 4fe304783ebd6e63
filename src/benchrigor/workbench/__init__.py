"""MANY RUNS: the greatest load at which a server keeps its limits, and its causes.

Names are resolved on first use: a process that runs one job on a host pays only for that.
"""

from __future__ import annotations

from benchrigor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "peak_run": "PeakRun",
        "planning.best_choice": "BestChoice",
        "planning.search": "PeakSearch",
        "planning.surface_map": "SurfaceMap",
        "designs": "Factor",
    },
)
__all__ = list(__dir__())
