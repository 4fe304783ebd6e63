"""The planner of a map's file, and the surface of a stored map."""

from __future__ import annotations

from benchrigor.model import RunRecord
from benchrigor.workbench.maps.map_file import MapFile, map_of
from benchrigor.workbench.maps.map_run import reused_in, samples_of
from benchrigor.workbench.maps.responses import metrics_of
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.factors import Space
from benchrigor.workbench.surfaces.surface import Surface, fit_surface


def surface_of(record: RunRecord) -> Surface:
    """Return the surface of a stored map; of one that was cut off, by then."""
    file = map_of(record.subject["file"])
    samples = [*reused_in(record), *samples_of(record)]
    known = {name for each in samples for name in each.estimates}
    ways = {each.name: str(each.direction) for each in record.metrics if each.name in known}
    return fit_surface(
        Space(file.factors),
        samples,
        responses=[*ways],
        direction=ways,
        interchangeable=file.hosts.are_alike,
        **{name: file.design[name] for name in ("confidence", "seed") if name in file.design},
    )


def search_for(file: MapFile) -> SurfaceMap:
    """Return what asks for the samples of a map."""
    options = {("design" if name == "kind" else name): each for name, each in file.design.items()}
    metrics = metrics_of(file.response)
    return SurfaceMap(
        file.factors,
        **options,
        budget_s=file.budget_s,
        direction={each.name: str(each.direction) for each in metrics},
        interchangeable=file.hosts.are_alike,
        responses=[each.name for each in metrics],
    )
