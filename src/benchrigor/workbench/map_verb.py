"""``benchrigor map``: how a response depends on the configuration."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from benchrigor import machine
from benchrigor.cli import options as shared
from benchrigor.cli.exits import leave
from benchrigor.cli.output import print_result
from benchrigor.cli.tables import plot_option
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.model import codec
from benchrigor.model.checks import refuse
from benchrigor.model.run import Provenance
from benchrigor.model.text import show_duration
from benchrigor.storage import Journal
from benchrigor.workbench.campaign_output import carry_out_map
from benchrigor.workbench.maps.map_file import MapFile, MetricResponse, PeakResponse, read_map
from benchrigor.workbench.maps.map_report import plan_page, plan_seconds
from benchrigor.workbench.maps.map_run import MapRun, is_map, samples_of, search_for
from benchrigor.workbench.maps.responses import metrics_of, name_of, options_at
from benchrigor.workbench.planning.expected_cost import expected_costs, wrong_budget
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.surfaces.models import load_models
from benchrigor.workbench.surfaces.samples import Measured, Sample
from benchrigor.workloads.named_functions import imported


@click.command("map", cls=Verb)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show which samples it would take, and measure none.")
@click.option(
    "--reuse",
    is_flag=True,
    help="Take in samples of stored maps of the same factors, subject and host.",
)
@click.option(
    "--best",
    is_flag=True,
    help="Then measure those that may be the best in turn on all hosts, until one is chosen.",
)
@shared.shell_option
@plot_option
@shared.store_option
@shared.details_option
@shared.json_option
def map_(
    file: Path,
    *,
    dry_run: bool,
    reuse: bool,
    best: bool,
    shell: bool,
) -> None:
    """Measure how a peak, a metric of a command or a function depends on factors.

    FILE defines the factors and their levels, the measurement, and the commands that start and stop
    a server. The map measures only some of the configurations; a model predicts the others with
    intervals. The next sample is always the one that reduces the uncertainty most per second.

    Samples and trials of a search for a peak are stored: after an interruption, `benchrigor resume`
    continues, `show` and `explain` report them. The exit code is 3 if the map misses the target of
    FILE, and 4 if the samples allow no model.

    \b
    Examples:
      benchrigor map server.toml --dry-run
      benchrigor map server.toml --plot map.png
      benchrigor map server.toml --reuse --json
      benchrigor map pool.toml --best

    \b
    A FILE:
      [factors.threads]
      levels = [1, 2, 4, 8]
      scale = "log2"
      [server]
      start = "my-server --port 8000 --threads {threads}"
      port = 8000
      [response.peak]
      url = "http://127.0.0.1:8000/"
      p95 = "200ms"
    """  # noqa: D301  # click wants the backspace itself
    read = read_map(file, by_shell=shell)
    opened = shared.open_store()
    provenance = machine.provenance(full=True)
    cwd = str(Path.cwd())
    earlier = reusable(opened, read, provenance, cwd) if reuse else []
    if not earlier:  # else there may be nothing left to measure
        check_budget(read)
    if dry_run:
        search = search_for(read)
        search.recall(earlier, own=False)
        announce(search, read)
        return
    check_ready(read, cwd)
    run = MapRun(
        {"file": read.document, "cwd": cwd, **({"best": True} if best else {})},
        opened,
        reused=earlier,
        name=name_of(read.response),
        metrics=metrics_of(read.response),
        provenance=provenance,
    )
    leave(carry_out_map(run, opened))


def announce(search: SurfaceMap, file: MapFile) -> None:
    """Print the samples of a map in order, and their expected durations."""
    samples = search.planned()
    costs = _costs_of(file, samples[0]) if samples else []
    expected_s = costs[len(costs) // 2] if costs else None
    seconds: dict[str, Any] = plan_seconds(search, samples, expected_s)
    print_result(
        lambda: plan_page(search, samples, expected_s, hosts=file.hosts.at_once),
        samples=codec.encode(samples),
        sample_s=expected_s,
        configurations=len(search.space.grid()),
        **seconds,
    )


def _costs_of(file: MapFile, sample: Sample) -> list[float]:
    """Return the expected seconds of a sample, in order; empty if unknown."""
    response = file.response
    if isinstance(response, PeakResponse):
        return sorted(cost.cost_s for cost in expected_costs(options_at(response, sample)))
    limit_s = None if response.function else response.options.get("budget_s", 10.0)
    return [] if limit_s is None else [limit_s]


def check_budget(file: MapFile) -> None:
    """Raise before anything is measured if no sample can end within its budget or the map's."""
    first, budget_s, most_s = search_for(file).planned()[0], file.budget_s, math.inf
    if isinstance(file.response, PeakResponse):
        options = options_at(file.response, first)
        refuse(f"response.peak.{problem}" for problem in wrong_budget(options))
        most_s = options["budget_s"] or math.inf
    costs = [] if budget_s is None or budget_s >= most_s else _costs_of(file, first)
    if budget_s is not None and costs and budget_s < costs[0]:
        raise InvalidInput(
            f"budget is {show_duration(budget_s)}, and a sample takes {show_duration(costs[0])}: "
            "allow more, or give samples a smaller budget of their own in the table response"
        )


def check_ready(file: MapFile, cwd: str) -> None:
    """Raise before anything is measured if a package or the function is missing."""
    load_models()
    if isinstance(file.response, MetricResponse) and file.response.function:
        imported(file.response.function, cwd)


def reusable(store: Journal, file: MapFile, provenance: Provenance, cwd: str) -> list[Measured]:
    """Return the samples of stored maps of equal factors, subject, folder and host."""
    found: list[Measured] = []
    for listed in store.runs(name_of(file.response)):
        record = store.load(listed["run_id"])
        if not is_map(record) or record.provenance is None:
            continue
        same = all(
            record.subject["file"].get(name) == file.document.get(name)
            for name in ("factors", "server", "response", "hosts")
        )
        if same and record.subject["cwd"] == cwd and record.provenance.host == provenance.host:
            steering = record.metrics[0].name
            found += [sample for sample in samples_of(record) if not sample.lacks(steering)]
    return found
