"""Maps that choose their own samples of simulated servers."""

from __future__ import annotations

import numpy as np
from surfaces_servers import KINDS, measure, peaks_of, space_of

from benchrigor.model import Floats
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.factors import Space
from benchrigor.workbench.surfaces.surface import Surface


def adaptive_map(seed: int, kind: str, n: int, run: int) -> tuple[Surface, Space, Floats]:
    rng = np.random.default_rng([seed, 31, KINDS.index(kind), n, run])
    space, peaks = space_of(kind), peaks_of(kind, rng)
    grid = space.grid()
    search = SurfaceMap(space.factors, samples=n, target=1e-3, seed=run + 1)
    while (sample := search.ask()) is not None:
        index = grid.index(sample.point)
        (found,) = measure({index: sample.point}, peaks, rng)
        search.tell(sample, found.estimates)
    return search.result(), space, peaks
