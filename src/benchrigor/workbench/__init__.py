"""MANY RUNS: finds the greatest load at which a server keeps its limits."""

from __future__ import annotations

from benchrigor.workbench.peak_run import PeakRun as PeakRun
from benchrigor.workbench.planning.search import PeakSearch as PeakSearch
