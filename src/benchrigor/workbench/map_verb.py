"""``benchrigor map``: how a response depends on the configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from benchrigor import machine
from benchrigor.cli import options as shared
from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.options import wants_json
from benchrigor.cli.output import plot_option, print_result, remark, say, shown_depth, write_picture
from benchrigor.cli.targets import refuse_hidden
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.model import RunRecord, codec
from benchrigor.model.checks import refuse
from benchrigor.model.run import Provenance
from benchrigor.report.fact import Depth, page_of_facts
from benchrigor.storage import Journal
from benchrigor.units import show_duration
from benchrigor.workbench.campaign import telling_what_was_cut
from benchrigor.workbench.designs import MapSample, Measured, Space
from benchrigor.workbench.maps import choice_run, map_file, map_report, map_run
from benchrigor.workbench.maps.choice_run import ChoiceRun, measure_choice
from benchrigor.workbench.maps.map_file import MapFile
from benchrigor.workbench.maps.map_run import MapRun, measure_map
from benchrigor.workbench.maps.responses import metrics_of, name_of, options_at
from benchrigor.workbench.models import load_models
from benchrigor.workbench.picture import plot_map
from benchrigor.workbench.planning.best_choice import BEST, EQUIVALENT, Choice
from benchrigor.workbench.planning.search import expected_costs, wrong_budget
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.report import trial_line
from benchrigor.workbench.surface import MapSummary, Surface
from benchrigor.workloads.named_functions import imported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchrigor.report.html import Sheet

_MOST_PREDICTED = 1_000  # points with predictions in JSON


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
    read = map_file.read_map(file, by_shell=shell)
    opened = shared.open_store()
    provenance = machine.provenance(full=True)
    cwd = str(Path.cwd())
    earlier = reusable(opened, read, provenance, cwd) if reuse else []
    if not earlier:  # else there may be nothing left to measure
        check_budget(read)
    if dry_run:
        search = map_run.search_for(read)
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
    seconds: dict[str, Any] = map_report.plan_seconds(search, samples, expected_s)
    print_result(
        facts=lambda: map_report.facts_of_plan(search, samples, expected_s, file.hosts.at_once),
        samples=codec.encode(samples),
        sample_s=expected_s,
        configurations=len(search.space.grid()),
        **seconds,
    )


def _costs_of(file: MapFile, sample: MapSample) -> list[float]:
    """Return the expected seconds of a sample, in order; empty if unknown."""
    response = file.response
    if isinstance(response, map_file.PeakResponse):
        return sorted(cost.cost_s for cost in expected_costs(options_at(response, sample)))
    limit_s = None if response.function else response.options.get("budget_s", 10.0)
    return [] if limit_s is None else [limit_s]


def check_budget(file: MapFile) -> None:
    """Raise before anything is measured if no sample can end within its budget or the map's."""
    first, budget_s, most_s = map_run.search_for(file).planned()[0], file.budget_s, math.inf
    if isinstance(file.response, map_file.PeakResponse):
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
    if isinstance(file.response, map_file.MetricResponse) and file.response.function:
        imported(file.response.function, cwd)


def reusable(store: Journal, file: MapFile, provenance: Provenance, cwd: str) -> list[Measured]:
    """Return the samples of stored maps of equal factors, subject, folder and host."""
    found: list[Measured] = []
    for listed in store.runs(name_of(file.response)):
        record = store.load(listed["run_id"])
        if not map_run.is_map(record) or record.provenance is None:
            continue
        same = all(
            record.subject["file"].get(name) == file.document.get(name)
            for name in ("factors", "server", "response", "hosts")
        )
        if same and record.subject["cwd"] == cwd and record.provenance.host == provenance.host:
            steering = record.metrics[0].name
            found += [sample for sample in map_run.samples_of(record) if not sample.lacks(steering)]
    return found


# --- stored maps and choices


def noun_of(record: RunRecord) -> str:
    """Return what such a run is called."""
    return "a map" if map_run.is_map(record) else "a choice"


def show(record: RunRecord, depth: Depth | None = None) -> None:
    """Print the report of a stored run, down to a depth or as deep as was asked."""
    if map_run.is_map(record):
        _print_map(record, depth)
    else:
        _print_choice(record, choice_run.choice_in(record), depth)


def explain(record: RunRecord) -> None:
    """Print the whole report of a stored run."""
    show(record, Depth.DETAILS)


def sheet(record: RunRecord) -> Sheet:
    """Return what HTML shows of a stored run."""
    from benchrigor.workbench import sheets  # noqa: PLC0415  # slow to load

    is_map = map_run.is_map(record)
    return (sheets.sheet_of_stored_map if is_map else sheets.sheet_of_stored_choice)(record)


def draw(record: RunRecord) -> Axes:
    """Draw the surface of a stored map."""
    if not map_run.is_map(record):
        raise InvalidInput(
            f"{record.run_id} is {noun_of(record)}, which has no picture: draw its map"
        )
    return plot_map(map_run.surface_of(record), unit=record.metrics[0].unit, title=record.name)


def resume(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> NoReturn:
    """Resume a stored run, with a new budget for all of it if one is given."""
    if record.decision is None or budget:
        refuse_hidden(record)
    leave((_resume_map if map_run.is_map(record) else _resume_choice)(record, store, budget))


def carry_out_map(run: MapRun, store: Journal) -> ExitCode:
    """Carry out a map, and then a choice if one is wanted; return the exit code.

    Samples have a line on stderr. With a choice, JSON is printed for the choice alone.
    """
    campaign = run.campaign
    with telling_what_was_cut(campaign, lambda: _print_map(campaign.record())):
        steps = measure_map(
            run,
            store=store,
            began=_say_begun,
            after=lambda: say(map_report.sample_line(run.search, run.file), err=True),
            after_trial=lambda *told: say(trial_line(*told, indent=2), err=True),
        )
        for step in steps:
            if step.went_wrong:
                remark(f"after the last sample: {step}")
    is_best = run.subject.get("best", False)
    return _finish_map(campaign.record(), run.file, store, is_best=is_best)


def _resume_map(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> ExitCode:
    if budget or record.decision is None:
        return carry_out_map(MapRun.resume(record, store, **budget), store)
    file = map_file.map_of(record.subject["file"])
    is_best = record.subject.get("best", False) and not _is_chosen(record, store)
    return _finish_map(record, file, store, is_best=is_best)


def _finish_map(record: RunRecord, file: MapFile, store: Journal, *, is_best: bool) -> ExitCode:
    """Print a finished map, and then carry out a choice if one is wanted."""
    code = _code_of_map(record, file)
    if not (is_best and wants_json()):
        _print_map(record)
    if code is not ExitCode.NOTHING_MEASURED:
        write_picture(lambda: draw(record))
    if is_best:
        return _carry_out_choice(ChoiceRun.after(record, file, store), store)
    return code


def _say_begun(host: str, samples: Sequence[Mapping[str, Any]]) -> None:
    say(map_report.begun_line(host, samples), err=True)


def _print_map(record: RunRecord, depth: Depth | None = None) -> None:
    """Print the report of a map, or its parts as JSON."""
    summary = map_run.summary_of(record)
    fields: dict[str, Any] = {"run_id": record.run_id, "name": record.name}
    if wants_json():
        fields |= _parts(summary, map_run.surface_of(record))
    verb = "resume" if record.decision is None else "explain"
    facts = map_report.facts_of_stored_map(record, summary)
    print_result(lambda: page_of_facts(facts, depth or shown_depth()), next_verb=verb, **fields)


def _parts(summary: MapSummary, surface: Surface) -> dict[str, Any]:
    """Return the parts of a surface, as plain data."""
    parts = {name: getattr(summary, name) for name in ("samples", "model", "loo_error", "notices")}
    if not summary.responses:
        return parts
    grid = Space(surface.factors).grid()[:_MOST_PREDICTED]
    answers = {
        name: {
            "best": found.best,
            "sensitivities": found.sensitivities,
            "predictions": [
                {"point": point, "estimate": surface.predict(point, name)} for point in grid
            ],
        }
        for name, found in summary.responses.items()
    }
    return {**parts, "responses": answers}


def _code_of_map(record: RunRecord, file: MapFile) -> ExitCode:
    """Return the exit code of a finished map."""
    if record.estimate(record.metrics[0].name) is None:  # without a model
        return ExitCode.NOTHING_MEASURED
    is_reached = record.decision is not None and record.decision.satisfied
    return ExitCode.RESULT if is_reached or "target" not in file.design else ExitCode.TARGET_MISSED


def _carry_out_choice(run: ChoiceRun, store: Journal) -> ExitCode:
    campaign = run.campaign

    def print_() -> None:
        _print_choice(campaign.record(), run.result())

    def say_turn() -> None:
        say(map_report.turn_line(choice_run.turns_of(campaign.record())[-1]), err=True)

    with telling_what_was_cut(campaign, print_):
        measure_choice(run, store=store, began=_say_begun, after=say_turn)
    print_()
    return _code_of_choice(run.result())


def _resume_choice(
    record: RunRecord, store: Journal, budget: Mapping[str, float | None]
) -> ExitCode:
    if not budget and record.decision is not None:
        show(record)
        return _code_of_choice(choice_run.choice_in(record))
    return _carry_out_choice(ChoiceRun.resume(record, store, **budget), store)


def _is_chosen(record: RunRecord, store: Journal) -> bool:
    """Return whether a choice of a map has begun."""
    listed = store.runs(f"best of {record.name}")
    subjects = (store.load(run["run_id"]).subject for run in listed)
    return any(subject.get(choice_run.OF_MAP) == record.run_id for subject in subjects)


def _print_choice(record: RunRecord, choice: Choice, depth: Depth | None = None) -> None:
    facts = map_report.facts_of_choice(choice, record)
    print_result(
        lambda: page_of_facts(facts, depth or shown_depth()),
        next_verb="resume" if record.decision is None else "explain",
        run_id=record.run_id,
        name=record.name,
        map=record.subject.get(choice_run.OF_MAP),
        **{name: getattr(choice, name) for name in choice.__dataclass_fields__},
        turns=[codec.encode(done) for done in choice_run.turns_of(record)],
    )


def _code_of_choice(choice: Choice) -> ExitCode:
    if choice.point is None:
        return ExitCode.NOTHING_MEASURED
    return ExitCode.RESULT if choice.verdict in {BEST, EQUIVALENT} else ExitCode.TARGET_MISSED
