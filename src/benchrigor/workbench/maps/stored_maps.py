"""Stored maps from the command line: show, draw, explain and resume them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.options import wants_details, wants_json
from benchrigor.cli.output import print_result, remark, say
from benchrigor.cli.tables import write_picture
from benchrigor.cli.targets import refuse_hidden
from benchrigor.errors import BenchrigorError
from benchrigor.layout import Part, page, wrapped
from benchrigor.model import RunRecord, codec
from benchrigor.storage import Journal
from benchrigor.workbench.maps.life_cycle import StepDone
from benchrigor.workbench.maps.map_file import MapFile, map_of
from benchrigor.workbench.maps.map_hosts import carry_out_on_hosts
from benchrigor.workbench.maps.map_picture import plot_map
from benchrigor.workbench.maps.map_report import progress_line, surface_page
from benchrigor.workbench.maps.map_run import (
    ATTEMPTS,
    STEPS,
    MapRun,
    facts_of,
)
from benchrigor.workbench.maps.responses import Samples, metric_of, unfinished_samples
from benchrigor.workbench.maps.stored_choices import choose, is_begun
from benchrigor.workbench.maps.surfaces_of_maps import search_for, surface_of
from benchrigor.workbench.searches import say_trial
from benchrigor.workbench.surfaces.factors import Point, Space
from benchrigor.workbench.surfaces.samples import Measured
from benchrigor.workbench.surfaces.surface import Surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOUN = "a map"
_MOST_PREDICTED = 1_000  # points with predictions in JSON


def show(record: RunRecord) -> None:
    """Print the report of a stored map."""
    print_map(record, whole=wants_details())


def draw(record: RunRecord) -> Axes:
    """Draw the surface of a stored map."""
    return plot_map(surface_of(record), unit=record.metrics[0].unit, title=record.name)


def explain(record: RunRecord) -> None:
    """Print the whole report of a stored map."""
    print_map(record, whole=True)


def resume(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> NoReturn:
    """Resume a stored map, with a new budget for all of it if one is given."""
    file = replace(map_of(record.subject["file"]), **budget)  # type: ignore[arg-type]
    is_best = record.subject.get("best", False)
    if not budget and record.decision is not None:  # only a choice is left to measure
        is_best = is_best and not is_begun(record, store)
        if not (is_best and wants_json()):
            print_map(record)
        leave(_end(record, file, store, best=is_best))
    refuse_hidden(record)
    begun = unfinished_samples(store, record)
    samples = [sample for sample, _ in begun.values()]
    run = MapRun.resume(search_for(file), record, store, begun=samples)
    earlier = {number: run_of_it for number, (_, run_of_it) in begun.items()}
    cwd = record.subject["cwd"]
    leave(carry_out(run, file, cwd, store, earlier=earlier, best=is_best))


def carry_out(
    run: MapRun,
    file: MapFile,
    cwd: str,
    store: Journal,
    *,
    earlier: Mapping[int, RunRecord] = MappingProxyType({}),
    best: bool,
) -> ExitCode:
    """Carry out a map, and then a choice of the ``best``; return the exit code.

    Samples have a line on stderr. With a choice, JSON is printed for the choice alone.
    """
    metric = metric_of(file.response)

    def say_sample(last: Measured) -> None:
        known = {name: estimate for name, estimate in last.estimates.items() if name == metric.name}
        search = run.search
        done, left = search.done, search.left
        planned = None if left is None else done + left
        left_s = None if left is None else left * search.mean_cost_s / file.hosts.at_once
        shown = replace(last, estimates=known)
        say(progress_line(shown, done, planned, left_s, metric.unit), err=True)

    shared: dict[str, Any] = {"cwd": cwd, "store": store, "earlier": earlier}
    try:
        if file.has_pool:
            carry_out_on_hosts(run, file, **shared, after=say_sample)
        else:
            after = partial(say_trial, indent=2)
            with Samples(file, **shared, after=after, map_id=run.kept.begin()) as samples:
                run.carry_out(samples.measure, after=say_sample)
            for step in samples.pop_steps():
                if step.went_wrong:
                    remark(f"after the last sample: {step}")
    except (BenchrigorError, KeyboardInterrupt):
        if run.record().rounds:  # print the results so far
            print_map(run.record())
        raise
    record = run.record()
    if not (best and wants_json()):
        print_map(record, whole=wants_details())
    if _code(record, file) is not ExitCode.NOTHING_MEASURED:
        write_picture(lambda: draw(record))
    return _end(record, file, store, best=best)


def print_map(record: RunRecord, *, whole: bool = False) -> None:
    """Print the report of a map, or its parts as JSON."""
    surface = surface_of(record)
    units = {metric.name: metric.unit for metric in record.metrics}

    def text() -> str:
        steps = _steps(record) if whole else ()
        return page([surface_page(surface, record.name, units, whole=whole), *steps])

    fields: dict[str, Any] = {"run_id": record.run_id, "name": record.name}
    if wants_json():
        grid = Space(map_of(record.subject["file"]).factors).grid()
        fields |= _fields(surface, [*units], grid[:_MOST_PREDICTED])
    verb = "resume" if record.decision is None else "explain"
    print_result(text, next_verb=verb, **fields)


def _steps(record: RunRecord) -> Iterator[Part]:
    """Yield failures of hosts, and failures of servers with their last output."""
    for sample, attempt in facts_of(record, ATTEMPTS):
        yield from wrapped(f"sample {sample.id}: {attempt}", "  ", hanging=4)
    for sample, plain in facts_of(record, STEPS):
        step = codec.decode(StepDone, plain)
        if step.went_wrong:
            yield from wrapped(f"sample {sample.id}: {step}", "  ", hanging=4)
            yield from (f"    | {line}" for line in step.end)


def _fields(surface: Surface, responses: Sequence[str], grid: Sequence[Point]) -> dict[str, Any]:
    """Return the parts of a surface, as plain data."""
    fields = {name: getattr(surface, name) for name in ("samples", "model", "loo_error", "notices")}
    if surface.model is None:
        return fields
    answers = {
        name: {
            "best": surface.best(name),
            "sensitivities": surface.sensitivities(name),
            "predictions": [
                {"point": point, "estimate": surface.predict(point, name)} for point in grid
            ],
        }
        for name in responses
        if surface.missed(name) is not None
    }
    return {**fields, "responses": answers}


def _end(record: RunRecord, file: MapFile, store: Journal, *, best: bool) -> ExitCode:
    """Return the exit code of a finished map, or of a choice of the ``best`` after it."""
    return choose(record, file, store) if best else _code(record, file)


def _code(record: RunRecord, file: MapFile) -> ExitCode:
    """Return the exit code of a finished map."""
    if record.estimate(record.metrics[0].name) is None:  # without a model
        return ExitCode.NOTHING_MEASURED
    is_reached = record.decision is not None and record.decision.satisfied
    return ExitCode.RESULT if is_reached or "target" not in file.design else ExitCode.TARGET_MISSED
