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
    """Return the surface of a stored map, finished or not."""
    file = map_of(record.subject["file"])
    samples = [*reused_in(record), *samples_of(record)]
    known = {name for measured in samples for name in measured.estimates}
    ways = {metric.name: str(metric.direction) for metric in record.metrics if metric.name in known}
    return fit_surface(
        Space(file.factors),
        samples,
        responses=[*ways],
        direction=ways,
        interchangeable=file.hosts.are_alike,
        **{name: file.design[name] for name in ("confidence", "seed") if name in file.design},
    )


def search_for(file: MapFile) -> SurfaceMap:
    """Return the planner of the samples of a map."""
    metrics = metrics_of(file.response)
    return SurfaceMap(
        file.factors,
        **file.design,
        budget_s=file.budget_s,
        direction={metric.name: str(metric.direction) for metric in metrics},
        interchangeable=file.hosts.are_alike,
        responses=[metric.name for metric in metrics],
    )
