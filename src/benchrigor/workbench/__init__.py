"""MANY RUNS: the greatest load at which a server keeps its limits, and what it depends on."""

from __future__ import annotations

from benchrigor.workbench.peak_run import PeakRun as PeakRun
from benchrigor.workbench.planning.best_choice import BestChoice as BestChoice
from benchrigor.workbench.planning.search import PeakSearch as PeakSearch
from benchrigor.workbench.planning.surface_map import SurfaceMap as SurfaceMap
from benchrigor.workbench.surfaces.factors import Factor as Factor
