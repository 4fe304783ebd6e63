from benchrigor.workbench.designs import Factor as Factor
from benchrigor.workbench.peak_run import PeakRun as PeakRun
from benchrigor.workbench.planning.best_choice import BestChoice as BestChoice
from benchrigor.workbench.planning.search import PeakSearch as PeakSearch
from benchrigor.workbench.planning.surface_map import SurfaceMap as SurfaceMap
