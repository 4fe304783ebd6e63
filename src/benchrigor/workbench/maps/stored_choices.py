"""Choices from the command line: carry them out after a map, show, explain and resume them."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.options import wants_details
from benchrigor.cli.output import print_result, say
from benchrigor.cli.targets import refuse_hidden
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed
from benchrigor.layout import Page, Part, page, row, wrapped
from benchrigor.model import Estimate, RunRecord, codec
from benchrigor.model.text import many, percent, show_duration, show_short
from benchrigor.report.notice_lines import marked_all
from benchrigor.storage import Journal
from benchrigor.workbench.maps.choice_run import ChoiceRun, Take, TurnDone, recall_turns, turns_of
from benchrigor.workbench.maps.map_file import MapFile, PeakResponse, map_of
from benchrigor.workbench.maps.map_hosts import (
    change_result,
    job_arguments,
    measure_points,
    pool_for,
)
from benchrigor.workbench.maps.map_run import at_once
from benchrigor.workbench.maps.responses import metric_of
from benchrigor.workbench.maps.surfaces_of_maps import surface_of
from benchrigor.workbench.planning.best_choice import BEST, EQUIVALENT, BestChoice, Choice, Turn
from benchrigor.workbench.pool.host_table import executor_for
from benchrigor.workbench.pool.pool import JobDone
from benchrigor.workbench.surfaces.factors import show_point
from benchrigor.workbench.surfaces.samples import Sample

NOUN = "a choice"
MAP = "map"  # the run of its map, in the subject of a choice
_MOST = 5  # configurations at the beginning
_ACCURACY = 0.05  # of answers
_CALL = "benchrigor.workbench.maps.map_hosts:measure_points"


def choose(record: RunRecord, file: MapFile, store: Journal) -> ExitCode:
    """Choose among the leading points of a map, within the rest of its budget; return the code."""
    metric, surface = record.metrics[0], surface_of(record)
    left_s = None if file.budget_s is None else file.budget_s - (record.elapsed_s or 0.0)
    points = surface.leading(_MOST, metric.name)  # NotEstimable without a model
    if left_s is not None and left_s <= 0.0:
        raise InvalidInput("the map took all of its budget, expected some of it left for --best")
    is_peak = isinstance(file.response, PeakResponse)
    seeds = [surface.predict(point, metric.name).value if is_peak else None for point in points]
    subject = {
        **{name: record.subject[name] for name in ("file", "cwd")},
        "points": points,
        "seeds": seeds,
        "hosts": _hosts_of(file),
        "budget_s": left_s,
        MAP: record.run_id,
    }
    run = ChoiceRun(
        _choice_of(subject, file),
        name=f"best of {record.name}",
        metric=metric,
        subject=subject,
        provenance=record.provenance,
        store=store,
    )
    return _carry_out(run, file, subject, store)


def is_begun(record: RunRecord, store: Journal) -> bool:
    """Return whether a choice of a map has begun."""
    listed = store.runs(f"best of {record.name}")
    return any(store.load(run["run_id"]).subject.get(MAP) == record.run_id for run in listed)


def _hosts_of(file: MapFile) -> list[str]:
    if not file.has_pool:
        return [platform.node() or "this machine"]
    if file.hosts.names:
        return list(file.hosts.names)
    executor = executor_for(file.hosts)
    executor.close()
    return list(executor.hosts)


def _choice_of(subject: Mapping[str, Any], file: MapFile) -> BestChoice:
    options = {name: file.design[name] for name in ("confidence", "seed") if name in file.design}
    return BestChoice(
        subject["points"],
        subject["hosts"],
        budget_s=subject["budget_s"],
        direction=str(metric_of(file.response).direction),
        **options,
        **file.best,
    )


def _carry_out(
    run: ChoiceRun, file: MapFile, subject: Mapping[str, Any], store: Journal
) -> ExitCode:
    try:
        with _taking(run, file, subject, store) as take:
            hosts = len(subject["hosts"]) // (1 + file.hosts.generators)
            run.carry_out(take, hosts=hosts, deadline_s=file.deadline_s, after=_say_turn)
    except (BenchrigorError, KeyboardInterrupt):
        if run.record().rounds:
            _print(run.record(), run.choice.result())
        raise
    _print(run.record(), run.choice.result())
    return _code(run.choice.result())


@contextmanager
def _taking(
    run: ChoiceRun, file: MapFile, subject: Mapping[str, Any], store: Journal
) -> Iterator[Take]:
    """Give a function that measures turns, on the hosts of a file or on this machine."""
    shared = job_arguments(file, cwd=subject["cwd"], map_id=run.kept.begin(), store=store)
    shared["response"] = metric_of(file.response).name
    accuracy = file.design.get("target", _ACCURACY)

    def arguments(turn: Turn) -> dict[str, Any]:
        places = [subject["points"].index(dict(point)) for point in turn.points]
        samples = [
            Sample(id=at, point=point, seed_load=subject["seeds"][at], accuracy=accuracy)
            for at, point in zip(places, turn.points, strict=True)
        ]
        return {**shared, "samples": codec.encode(samples)}

    def measure_here(turn: Turn) -> TurnDone:
        begun_s = time.monotonic()
        found = _turn_done(turn, measure_points(**{**arguments(turn), "hosts": [turn.host]}))
        return replace(found, cost_s=time.monotonic() - begun_s)

    if not file.has_pool:
        yield at_once(measure_here)
        return
    n_hosts = 1 + file.hosts.generators
    with pool_for(file, run.kept.begin()) as pool:

        def take(turn: Turn) -> Future[TurnDone]:
            done = pool.submit(_CALL, arguments(turn), n_hosts=n_hosts, first=turn.host)
            return change_result(done, partial(_done, turn))

        yield take


def _done(turn: Turn, job: JobDone) -> TurnDone:
    if job.failure and job.attempts and job.attempts[-1].outcome.kind == "failed":
        raise WorkloadFailed(f"{turn.host}: {job.failure}")
    lost = TurnDone(turn=turn, lost=job.failure)
    found = lost if job.failure else _turn_done(turn, job.value)
    spent_s = sum(attempt.elapsed_s for attempt in job.attempts)
    return replace(found, cost_s=spent_s, attempts=job.remarks())


def _turn_done(turn: Turn, answers: Mapping[str, Sequence[Any]]) -> TurnDone:
    """Return the result of a turn; a turn without any number does not count, so it is lost."""
    found = codec.decode(TurnDone, {"turn": codec.encode(turn), **answers})
    lost = "" if any(found.estimates) else "no configuration has a number on this host"
    return replace(found, lost=lost)


def _say_turn(done: TurnDone) -> None:
    found = [
        f"{show_point(point)}: {_show_answer(answer, bound)}"
        for point, answer, bound in zip(
            done.turn.points, done.estimates, done.better_than, strict=False
        )
    ]
    said = done.lost or "; ".join(found)
    say(page(wrapped(f"turn {done.turn.id + 1} · {done.turn.host} · {said}", hanging=2)), err=True)


def _show_answer(answer: Estimate | None, bound: float | None) -> str:
    if answer is not None:
        return show_short(answer, "")
    return "failed" if bound is None else f"better than {bound:.4g}"


def choice_page(choice: Choice, record: RunRecord, *, whole: bool = False) -> Page:
    """Return the report of a choice."""
    turns, spent_s = turns_of(record), record.elapsed_s or 0.0
    point = "" if choice.point is None else show_point(choice.point)
    said = {
        BEST: f"{point} is the best on {choice.scope}",
        EQUIVALENT: f"{point}: no other one is better by more than the margin, on {choice.scope}",
    }.get(choice.verdict, f"undecided on {choice.scope}{f', {point} leads' if point else ''}")
    lines: list[Part] = [*wrapped(f"{record.name}: {said}", hanging=2)]
    if choice.prediction is not None:
        found = choice.prediction
        times = f"{found.value:.3g} times [{found.low:.3g}, {found.high:.3g}] the next one"
        lines += row("new host", [times, percent(found.confidence)])
    lines += row("rivals", ["; ".join(map(show_point, choice.rivals))])
    hosts = sorted({done.turn.host for done in turns})
    took = f" in {show_duration(spent_s)}" if spent_s else ""
    lines += row("measured", [f"{many(len(turns), 'turn')} of {', '.join(hosts)}{took}"])
    for done in turns if whole else ():
        for attempt in (*done.attempts, *filter(None, [done.lost])):
            lines += row("", [attempt])
    return page([*lines, *marked_all(choice.notices, whole=whole)])


def _print(record: RunRecord, choice: Choice, *, whole: bool = False) -> None:
    print_result(
        lambda: choice_page(choice, record, whole=whole or wants_details()),
        next_verb="resume" if record.decision is None else "explain",
        run_id=record.run_id,
        name=record.name,
        map=record.subject.get(MAP),
        **{name: getattr(choice, name) for name in choice.__dataclass_fields__},
        turns=[codec.encode(done) for done in turns_of(record)],
    )


def _choice_in(record: RunRecord) -> Choice:
    choice = _choice_of(record.subject, map_of(record.subject["file"]))
    recall_turns(choice, record)
    choice.ask()  # to evaluate the last turn
    return choice.result()


def show(record: RunRecord) -> None:
    """Print the report of a stored choice."""
    _print(record, _choice_in(record))


def draw(record: RunRecord) -> NoReturn:
    """Refuse: a choice has no picture."""
    raise InvalidInput(f"{record.run_id} is {NOUN}, which has no picture: draw its map")


def explain(record: RunRecord) -> None:
    """Print the whole report of a stored choice."""
    _print(record, _choice_in(record), whole=True)


def resume(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> NoReturn:
    """Resume a stored choice, with a new budget for all of its turns if one is given."""
    if not budget and record.decision is not None:
        _print(record, _choice_in(record))
        leave(_code(_choice_in(record)))
    refuse_hidden(record)
    subject = {**record.subject, **budget}
    file = map_of(subject["file"])
    run = ChoiceRun.resume(_choice_of(subject, file), record, store)
    leave(_carry_out(run, file, subject, store))


def _code(choice: Choice) -> ExitCode:
    if choice.point is None:
        return ExitCode.NOTHING_MEASURED
    return ExitCode.RESULT if choice.verdict in {BEST, EQUIVALENT} else ExitCode.TARGET_MISSED
