"""Runs of campaigns on the command line: carry them out, show, draw, explain and resume them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.options import wants_details, wants_json
from benchrigor.cli.output import print_result, remark, say
from benchrigor.cli.tables import write_picture
from benchrigor.cli.targets import refuse_hidden
from benchrigor.errors import BenchrigorError, InvalidInput
from benchrigor.layout import page
from benchrigor.model import RunRecord, codec
from benchrigor.storage import Journal
from benchrigor.workbench.campaign import Campaign
from benchrigor.workbench.data import PeakRate, PeakStatus
from benchrigor.workbench.loadgen.prepared import Prepared, generator_of
from benchrigor.workbench.maps.map_file import MapFile, map_of
from benchrigor.workbench.maps.map_hosts import measure_choice, measure_map
from benchrigor.workbench.maps.map_picture import plot_map
from benchrigor.workbench.maps.map_report import (
    begun_line,
    choice_page,
    map_page,
    sample_line,
    turn_line,
)
from benchrigor.workbench.maps.map_run import (
    KIND_OF_CHOICES,
    KIND_OF_MAPS,
    OF_MAP,
    ChoiceRun,
    MapRun,
    choice_in,
    surface_of,
    turns_of,
)
from benchrigor.workbench.peak_run import PeakRun, find_peak, peak_of, search_of
from benchrigor.workbench.picture import plot_peak
from benchrigor.workbench.planning.best_choice import BEST, EQUIVALENT, Choice
from benchrigor.workbench.report import explain_peak, peak_lines, trial_line
from benchrigor.workbench.surfaces.factors import Space
from benchrigor.workbench.surfaces.surface import Surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PREDICTED = 1_000  # points with predictions in JSON
_NOUNS = {
    "peak": "a search for a peak",
    KIND_OF_MAPS: "a map",
    KIND_OF_CHOICES: "a choice",
}


def noun_of(record: RunRecord) -> str:
    """Return what such a run is called."""
    return _NOUNS[record.subject["kind"]]


def show(record: RunRecord, *, whole: bool | None = None) -> None:
    """Print the report of a stored run; None for a ``whole`` one if details are wanted."""
    whole = wants_details() if whole is None else whole
    kind = record.subject["kind"]
    if kind == KIND_OF_CHOICES:
        _print_choice(record, choice_in(record), whole=whole)
    elif kind == KIND_OF_MAPS:
        _print_map(record, whole=whole)
    else:
        _print_peak(peak_of(record), run_id=record.run_id)


def explain(record: RunRecord) -> None:
    """Print how a stored search reached its result, or the whole report of another run."""
    if record.subject["kind"] in {KIND_OF_MAPS, KIND_OF_CHOICES}:
        show(record, whole=True)
        return
    found = peak_of(record)
    print_result(
        lambda: explain_peak(found, record.name),
        run_id=record.run_id,
        name=record.name,
        peak=codec.encode(found),
    )


def draw(record: RunRecord) -> Axes:
    """Draw the trials of a stored search, or the surface of a stored map."""
    kind = record.subject["kind"]
    if kind == KIND_OF_CHOICES:
        raise InvalidInput(
            f"{record.run_id} is {noun_of(record)}, which has no picture: draw its map"
        )
    if kind == KIND_OF_MAPS:
        return plot_map(surface_of(record), unit=record.metrics[0].unit, title=record.name)
    return plot_peak(peak_of(record), title=record.name)


def resume(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> NoReturn:
    """Resume a stored run, with a new budget for all of it if one is given."""
    if record.decision is None or budget:
        refuse_hidden(record)
    leave(_RESUME[record.subject["kind"]](record, store, budget))


@contextmanager
def _printing_what_was_cut(campaign: Campaign, print_: Callable[[], object]) -> Iterator[None]:
    """Print the result so far if an error or Ctrl-C ends a campaign."""
    try:
        yield
    except (BenchrigorError, KeyboardInterrupt):
        if campaign.rounds:
            print_()
        raise


# --- searches for a peak


def carry_out_search(run: PeakRun, generator: Prepared, *, accuracy_given: bool) -> ExitCode:
    """Carry out a search, with a line per trial on stderr; return the exit code."""

    def print_() -> None:
        _print_peak(run.result(), run_id=run.campaign.run_id)

    def say_trial(*told: Any) -> None:
        say(trial_line(*told, budget_s=run.search.goal.budget_s), err=True)

    with _printing_what_was_cut(run.campaign, print_):
        found = find_peak(run, generator, after=say_trial)
    _print_peak(found, run_id=run.campaign.run_id)
    write_picture(lambda: plot_peak(found, title=run.record().name))
    return _code_of_peak(found, accuracy_given=accuracy_given)


def _resume_search(
    record: RunRecord, store: Journal, budget: Mapping[str, float | None]
) -> ExitCode:
    described = record.subject["generator"]
    accuracy_given = described.get("accuracy_given", False)
    if record.decision is not None and not budget:  # it is over: no server is needed
        found = peak_of(record)
        _print_peak(found, run_id=record.run_id)
        return _code_of_peak(found, accuracy_given=accuracy_given)
    search = search_of(record, **budget)
    generator = generator_of(described, search.limits)
    run = PeakRun.resumed(search, record, store)
    return carry_out_search(run, generator, accuracy_given=accuracy_given)


def _print_peak(found: PeakRate, *, run_id: str | None) -> None:
    """Print the report of a search, or its fields as JSON."""
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    if found.load is not None and found.load.is_bracket:
        fields["load"] = {**codec.encode(found.load), "confidence": None}
    print_result(
        lambda: page(peak_lines(found, whole=wants_details())),
        next_verb="explain",
        run_id=run_id,
        **fields,
    )


def _code_of_peak(found: PeakRate, *, accuracy_given: bool) -> ExitCode:
    cut_short = (PeakStatus.BUDGET_SPENT, PeakStatus.FAILED)
    if found.status in cut_short and found.load is not None:
        return ExitCode.TARGET_MISSED if accuracy_given else ExitCode.RESULT
    bounded = (PeakStatus.NOT_SATURATED, PeakStatus.SATURATED_AT_LOWEST)
    known = found.load is not None or (found.status in bounded and found.at_least != found.at_most)
    return ExitCode.RESULT if known else ExitCode.NOTHING_MEASURED


# --- maps


def carry_out_map(run: MapRun, store: Journal) -> ExitCode:
    """Carry out a map, and then a choice if one is wanted; return the exit code.

    Samples have a line on stderr. With a choice, JSON is printed for the choice alone.
    """
    campaign = run.campaign
    with _printing_what_was_cut(campaign, lambda: _print_map(campaign.record())):
        steps = measure_map(
            run,
            store=store,
            began=_say_begun,
            after=lambda: say(sample_line(run.search, run.file), err=True),
            after_trial=lambda *told: say(trial_line(*told, indent=2), err=True),
        )
        for step in steps:
            if step.went_wrong:
                remark(f"after the last sample: {step}")
    record, is_best = campaign.record(), run.subject.get("best", False)
    if not (is_best and wants_json()):
        _print_map(record, whole=wants_details())
    if _code_of_map(record, run.file) is not ExitCode.NOTHING_MEASURED:
        write_picture(lambda: draw(record))
    return _choose(record, run.file, store) if is_best else _code_of_map(record, run.file)


def _resume_map(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> ExitCode:
    if budget or record.decision is None:
        return carry_out_map(MapRun.resume(record, store, **budget), store)
    file = map_of(record.subject["file"])
    is_best = record.subject.get("best", False) and not _is_chosen(record, store)
    if not (is_best and wants_json()):  # only a choice is left to measure
        _print_map(record)
    return _choose(record, file, store) if is_best else _code_of_map(record, file)


def _say_begun(host: str, samples: Sequence[Mapping[str, Any]]) -> None:
    say(begun_line(host, samples), err=True)


def _print_map(record: RunRecord, *, whole: bool = False) -> None:
    """Print the report of a map, or its parts as JSON."""
    surface = surface_of(record)
    units = {metric.name: metric.unit for metric in record.metrics}
    fields: dict[str, Any] = {"run_id": record.run_id, "name": record.name}
    if wants_json():
        fields |= _parts(surface, [*units])
    verb = "resume" if record.decision is None else "explain"
    print_result(lambda: map_page(record, surface, units, whole=whole), next_verb=verb, **fields)


def _parts(surface: Surface, responses: Sequence[str]) -> dict[str, Any]:
    """Return the parts of a surface, as plain data."""
    parts = {name: getattr(surface, name) for name in ("samples", "model", "loo_error", "notices")}
    if surface.model is None:
        return parts
    grid = Space(surface.factors).grid()[:_MOST_PREDICTED]
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
    return {**parts, "responses": answers}


def _code_of_map(record: RunRecord, file: MapFile) -> ExitCode:
    """Return the exit code of a finished map."""
    if record.estimate(record.metrics[0].name) is None:  # without a model
        return ExitCode.NOTHING_MEASURED
    is_reached = record.decision is not None and record.decision.satisfied
    return ExitCode.RESULT if is_reached or "target" not in file.design else ExitCode.TARGET_MISSED


# --- choices


def _choose(record: RunRecord, file: MapFile, store: Journal) -> ExitCode:
    """Choose among the leading points of a map; return the exit code."""
    return _carry_out_choice(ChoiceRun.after(record, file, store), store)


def _carry_out_choice(run: ChoiceRun, store: Journal) -> ExitCode:
    campaign = run.campaign

    def print_() -> None:
        _print_choice(campaign.record(), run.result())

    def say_turn() -> None:
        say(turn_line(turns_of(campaign.record())[-1]), err=True)

    with _printing_what_was_cut(campaign, print_):
        measure_choice(run, store=store, began=_say_begun, after=say_turn)
    print_()
    return _code_of_choice(run.result())


def _resume_choice(
    record: RunRecord, store: Journal, budget: Mapping[str, float | None]
) -> ExitCode:
    if not budget and record.decision is not None:
        show(record)
        return _code_of_choice(choice_in(record))
    return _carry_out_choice(ChoiceRun.resume(record, store, **budget), store)


def _is_chosen(record: RunRecord, store: Journal) -> bool:
    """Return whether a choice of a map has begun."""
    listed = store.runs(f"best of {record.name}")
    subjects = (store.load(run["run_id"]).subject for run in listed)
    return any(subject.get(OF_MAP) == record.run_id for subject in subjects)


def _print_choice(record: RunRecord, choice: Choice, *, whole: bool = False) -> None:
    print_result(
        lambda: choice_page(choice, record, whole=whole or wants_details()),
        next_verb="resume" if record.decision is None else "explain",
        run_id=record.run_id,
        name=record.name,
        map=record.subject.get(OF_MAP),
        **{name: getattr(choice, name) for name in choice.__dataclass_fields__},
        turns=[codec.encode(done) for done in turns_of(record)],
    )


def _code_of_choice(choice: Choice) -> ExitCode:
    if choice.point is None:
        return ExitCode.NOTHING_MEASURED
    return ExitCode.RESULT if choice.verdict in {BEST, EQUIVALENT} else ExitCode.TARGET_MISSED


_RESUME = {"peak": _resume_search, KIND_OF_MAPS: _resume_map, KIND_OF_CHOICES: _resume_choice}
