"""Maps and choices in text: the best configuration, effects of factors, samples and turns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

from benchrigor.layout import Page, Part, page, table, wrapped
from benchrigor.model import Code, Estimate, Notice, RunRecord, codec
from benchrigor.model.comparison import Ranked
from benchrigor.model.text import show_estimate, show_interval, show_short
from benchrigor.report.fact import (
    Depth,
    Fact,
    deeper,
    head,
    known,
    labelled,
    list_rows,
    noticed,
    sentence,
    told_by,
)
from benchrigor.safe_text import escaped
from benchrigor.units import counted, many, percent, show_duration, show_value
from benchrigor.workbench.designs import MapSample, Measured, Point, Space, show_point, snake
from benchrigor.workbench.maps.choice_run import TurnDone, turns_of
from benchrigor.workbench.maps.life_cycle import StepDone
from benchrigor.workbench.maps.map_file import MapFile
from benchrigor.workbench.maps.map_run import ATTEMPTS, STEPS, facts_of
from benchrigor.workbench.maps.responses import metric_of
from benchrigor.workbench.planning.best_choice import BEST, EQUIVALENT, Choice
from benchrigor.workbench.planning.surface_map import RESPONSE, SurfaceMap
from benchrigor.workbench.settings import ADAPTIVE
from benchrigor.workbench.surface import Crossover, MapSummary, Surface

_FEW = 3  # items in a row of a page without details
_MOST_PLANNED = 20  # samples that a plan lists
_OF_PLAN = ("sample", "begins after", "configuration")
_SURE = 0.95
_MODELS = {"quadratic": "a quadratic", "gaussian-process": "a Gaussian process"}
_IN_ROWS = Code.SAMPLES_WITHOUT_NUMBER  # rows of a page show its details


def facts_of_map(found: MapSummary, name: str, units: Mapping[str, str]) -> list[Fact]:
    """Return the facts of a map with these units of its responses.

    A page has the first response, and a row of each further one.
    """
    spent_s = sum(measured.cost_s for measured in found.samples)
    took = f" in {show_duration(spent_s)}" if spent_s else ""
    hosts = {measured.host for measured in found.samples if measured.host}
    took += f" of {len(hosts)} hosts" if len(hosts) > 1 else ""
    facts, tables = [head(f"{name}: {many(len(found.samples), 'sample')}{took}")], list[Part]()
    shown = [response for response in units if response in found.rankings]
    for response in shown:
        first, *own = _facts_of_response(found, response, units[response])
        facts += [sentence("response", f"{response}:")] * (len(units) > 1)
        facts += [first, *(own if response == shown[0] else deeper(own))]
        tables += _ranking(found.rankings[response], response, units[response])
    facts += _listed("limits", _show_outside(found), "no load keeps them at ")
    facts += _listed("no number", _show_lacking(found, *next(iter(units.items()))))
    tables += _samples(found, units)
    notices = {str(notice): notice for notice in found.notices}
    return [*facts, *deeper([list_rows("samples", tables)]), *_noticed(notices.values())]


def facts_of_surface(surface: Surface) -> list[Fact]:
    """Return the facts of a map by itself, which has neither a name nor units."""
    names = surface.responses or (RESPONSE,)  # none if every sample failed
    return facts_of_map(surface.summary, "the map", dict.fromkeys(names, ""))


def _noticed(notices: Iterable[Notice]) -> list[Fact]:
    """Return Notices; rows of a page show some of them in short."""
    rows = [notice for notice in notices if notice.code is _IN_ROWS]
    return [*told_by((), rows), *noticed(notice for notice in notices if notice not in rows)]


def _facts_of_response(found: MapSummary, response: str, unit: str) -> list[Fact]:
    """Return the facts of a response, the best configuration first."""
    ranked, facts = found.rankings[response], list[Fact]()
    if (predicted := found.responses.get(response)) is not None:
        best = predicted.best
        point = show_point(best.point)
        guessed = "" if point in {entry.name for entry in ranked} else "not measured itself"
        effects = sorted(predicted.sensitivities.items(), key=lambda it: -it[1].value)
        misses = f"it misses points left out by {percent(predicted.missed, digits=2)} on average"
        facts = [
            labelled("best", f"{point}: {show_estimate(best.estimate, unit)}", guessed),
            labelled("regret", *_show_regret(found.samples, best.regret)),
            *_listed(
                "matters",
                [_show_effect(*effect) for effect in effects],
                "from worst to best level: ",
            ),
            *_listed("swap", [*map(_show_swap, predicted.swaps)]),
            *known(labelled("hosts", show_hosts(predicted.hosts) if predicted.hosts else "")),
            labelled("model", _MODELS[best.estimate.method], misses),
        ]
    first = [
        f"{entry.name}: {show_short(entry.estimate, unit)}" for entry in ranked if entry.place == 1
    ]
    places = f"the best of {many(len(ranked), 'point')}"
    places += ", not shown to differ" if len(first) > 1 else ""
    return [*facts, labelled("measured", f"{places}: {_few(first)}")]


def _listed(label: str, shown: Sequence[str], before: str = "") -> list[Fact]:
    """Return the first few items for a page, and the others for a whole report."""
    first, rest = f"{before}{_few(shown)}" if shown else "", shown[_FEW:]
    return known(labelled(label, first), labelled(label, *rest, depth=Depth.DETAILS))


def _few(shown: Sequence[str]) -> str:
    """List the first few items, which may hold commas, and the number of further ones."""
    more = len(shown) - _FEW
    return "; ".join([*shown[:_FEW], *([f"and {more} more"] if more > 0 else [])])


def _show_regret(samples: Sequence[Measured], regret: Estimate) -> Iterator[str]:
    """Show how much better another configuration may be, also if its peak was not reached."""
    sure = percent(regret.confidence, digits=10)
    if regret.high <= 0.0:
        yield f"no other configuration is likely to be better, at {sure}"
    else:
        better = percent(regret.high, digits=2)
        yield f"another configuration may be up to {better} better, at {sure}"
    if n := sum(measured.at_least is not None for measured in samples):
        yield f"{many(n, 'sample')} did not reach the peak, which may be higher"


def _show_effect(factor: str, effect: Estimate) -> str:
    """Show the ratio of the response at the best level of a factor to the worst level."""
    times = f"{factor} {effect.value:.3g} times [{effect.low:.3g}, {effect.high:.3g}]"
    return f"{times}{' (perhaps not)' if effect.low <= 1.0 else ''}"


def _show_swap(swap: Crossover) -> str:
    """Show the level at which another level of a category becomes the best."""
    at = f"{swap.at.value:.3g} [{swap.at.low:.3g}, {swap.at.high:.3g}]"
    (name,) = (name for name, level in swap.below.items() if level != swap.above[name])
    chance = f" (probability {percent(swap.probability, digits=2)})"
    return (
        f"{name} {swap.below[name]} is better up to {swap.factor} {at}, "
        f"{swap.above[name]} above{chance if swap.probability < _SURE else ''}"
    )


def _show_outside(found: MapSummary) -> list[str]:
    """Show the levels, and further points, at which no load keeps the limits."""
    points = {measured.sample.id: measured.sample.point for measured in found.samples}
    if found.outside and len(found.outside) == len(found.samples):
        return ["any point that was measured"]
    levels: dict[str, set[int]] = {}
    for number, point in points.items():
        for name, level in point.items():
            levels.setdefault(show_point({name: level}), set()).add(number)
    lost = {level: ids for level, ids in levels.items() if len(ids) > 1 and ids <= {*found.outside}}
    listed = {number for ids in lost.values() for number in ids}
    shown = [f"{level} (all {len(ids)} samples)" for level, ids in lost.items()]
    return shown + [show_point(points[number]) for number in found.outside if number not in listed]


def _show_lacking(found: MapSummary, response: str, unit: str) -> list[str]:
    """Show the other samples without an estimate of the first response, and the reasons."""
    return [
        f"{show_point(measured.sample.point)}: {_show_lack(measured, unit)}"
        for measured in found.samples
        if response not in measured.estimates and measured.sample.id not in found.outside
    ]


def _show_lack(measured: Measured, unit: str) -> str:
    """Show the bounds or the failure of a sample without an estimate."""
    limits = (("at least", measured.at_least), ("at most", measured.at_most))
    known = [f"{words} {show_value(limit, unit)}" for words, limit in limits if limit is not None]
    if not known:
        return f"failed, {measured.reason}" if measured.reason else "failed"
    return f"{known[0]}{f' ({measured.reason})' if measured.reason else ''}"


def _ranking(ranked: Sequence[Ranked], response: str, unit: str) -> list[Part]:
    """Return a row per measured point, the best first."""
    rows = [(entry.name, str(entry.place), show_interval(entry.estimate, unit)) for entry in ranked]
    return ["", *table([("configuration", "place", response), *rows], "<><", indent=2)]


def _samples(summary: MapSummary, units: Mapping[str, str]) -> list[Part]:
    """Return a row per sample, in the order of measurement."""
    names = [*dict.fromkeys(name for found in summary.samples for name in found.sample.point)]
    rows = [("sample", *names, *units, "took", "why no number")]
    for measured in summary.samples:
        found = (
            show_short(measured.estimates[name], unit) if name in measured.estimates else "-"
            for name, unit in units.items()
        )
        first, of_first = next(iter(units.items()))
        lack = "" if first in measured.estimates else _show_lack(measured, of_first)
        why = lack or measured.reason or ""
        levels = (str(measured.sample.point[name]) for name in names)
        took = show_duration(measured.cost_s) if measured.cost_s else ""
        rows.append((str(measured.sample.id), *levels, *found, took, why))
    sides = "".join([">", *("<" if name in summary.categories else ">" for name in names)])
    sides += "<" * len(units) + "><"
    return ["", *table(rows, sides, indent=2)]


def progress_line(
    measured: Measured, done: int, planned: int | None, left_s: float | None, unit: str
) -> Page:
    """Return a line with the result of a sample, and the samples left to measure.

    ``done`` samples are finished. The ``planned`` number and the seconds left are None if they
    depend on further answers.
    """
    estimate = next(iter(measured.estimates.values()), None)
    found = _show_lack(measured, unit) if estimate is None else show_short(estimate, unit)
    parts = [
        *([escaped(measured.host)] if measured.host else []),
        f"sample {counted(done)}{f' of {counted(planned)}' if planned is not None else ''}",
        f"{show_point(measured.sample.point)}: {found}",
        *([f"about {show_duration(left_s)} left"] if left_s else []),
    ]
    return page(wrapped(" · ".join(parts), hanging=2))


def sample_line(search: SurfaceMap, file: MapFile) -> Page:
    """Return a line with the last result of a map."""
    metric, last = metric_of(file.response), search.own[-1]
    known = {name: estimate for name, estimate in last.estimates.items() if name == metric.name}
    done, left = search.done, search.left
    planned = None if left is None else done + left
    left_s = None if left is None else left * search.mean_cost_s / file.hosts.at_once
    return progress_line(replace(last, estimates=known), done, planned, left_s, metric.unit)


def begun_line(host: str, samples: Sequence[Mapping[str, Any]]) -> Page:
    """Return a line on samples that a host of a pool begins."""
    several = many(len(samples), "configuration")
    what = show_point(samples[0]["point"]) if len(samples) == 1 else several
    return page(wrapped(f"{escaped(host)} · {what}: begun", hanging=2))


def facts_of_stored_map(record: RunRecord, found: MapSummary) -> list[Fact]:
    """Return the facts of a stored map, and what went wrong meanwhile."""
    units = {metric.name: metric.unit for metric in record.metrics}
    steps = Fact("steps", Depth.DETAILS, "", "", table=tuple(_steps(record)))
    return [*facts_of_map(found, record.name, units), *known(steps)]


def _steps(record: RunRecord) -> Iterator[Part]:
    """Yield failures of hosts, and failures of servers with their last output."""
    for sample, attempt in facts_of(record, ATTEMPTS):
        yield from wrapped(f"sample {sample.id}: {attempt}", "  ", hanging=4)
    for sample, plain in facts_of(record, STEPS):
        step = codec.decode(StepDone, plain)
        if step.went_wrong:
            yield from wrapped(f"sample {sample.id}: {step}", "  ", hanging=4)
            yield from (f"    | {line}" for line in step.end)


def facts_of_plan(
    search: SurfaceMap, samples: Sequence[MapSample], expected_s: float | None, hosts: int
) -> list[Fact]:
    """Return the samples that are known beforehand in order, their duration and the total.

    A sample takes ``expected_s``, without changes of factors; None if unknown.
    """
    points, grid = [sample.point for sample in samples], search.space.grid()
    most = f", at most {counted(search.samples)} in all" if search.samples else ""
    then = f"where predictions are the least certain{most}" * (search.design == ADAPTIVE)
    ends_s = _ends(search.space, points, expected_s)
    takes, by_clock = "it is not known how long a sample takes" * bool(points), ""
    if ends_s and expected_s is not None:
        takes, more = f"about {show_duration(ends_s[-1])}", (search.samples or 0) - len(points)
        if more > 0:
            longer = show_duration(ends_s[-1] + more * expected_s)
            takes += f", {longer} with {many(more, 'further one')}"
        clock_s = ends_s[-1] / len(points) * math.ceil(len(points) / hosts)
        by_clock = f"about {show_duration(clock_s)} on {hosts} hosts" * (hosts > 1)
    all_s = plan_seconds(search, samples, expected_s)["all_configurations_s"]
    budget = "" if search.budget_s is None else show_duration(search.budget_s)
    begins = ["0 s", *map(show_duration, ends_s)] if ends_s else [""] * len(points)
    numbers = map(str, range(1, 1 + len(points)))
    rows = [*zip(numbers, begins, map(show_point, points), strict=False)]
    rest = len(points) - _MOST_PLANNED
    of_grid = f"of a grid of {many(len(grid), 'configuration')}"
    return known(
        sentence("samples", f"{many(len(points), 'sample')} {of_grid}"),
        labelled("then", then),
        labelled("takes", takes),
        labelled("by clock", by_clock),
        labelled(f"all {counted(len(grid))}", f"about {show_duration(all_s)}" if all_s else ""),
        labelled("budget", budget),
        list_rows("order", table([_OF_PLAN, *rows[:_MOST_PLANNED]], ">><", indent=2)),
        sentence("rest", f"and {many(rest, 'more sample')}" * (rest > 0)),
    )


def plan_seconds(
    search: SurfaceMap, samples: Sequence[MapSample], expected_s: float | None
) -> dict[str, float | None]:
    """Return the seconds of some samples and of all configurations, with changes of factors.

    They are None if the duration of a sample is unknown.
    """
    planned = _ends(search.space, [sample.point for sample in samples], expected_s)
    every = _ends(search.space, snake(search.space, search.space.grid()), expected_s)
    return {
        "expected_s": planned[-1] if planned else None,
        "all_configurations_s": every[-1] if every else None,
    }


def _ends(space: Space, points: Sequence[Point], sample_s: float | None) -> list[float]:
    """Return when the samples at points end, including changes of factors."""
    if sample_s is None:
        return []
    changes = [
        sum(factor.change_s for factor in space.factors if one[factor.name] != other[factor.name])
        for one, other in pairwise(points)
    ]
    ends = accumulate(sample_s + change_s for change_s in [0.0, *changes][: len(points)])
    return [*ends]


def show_hosts(hosts: Mapping[str, Estimate]) -> str:
    """Show the ratios of hosts to their mean, the greatest first.

    Examples
    --------
    >>> known = {"confidence": 0.95, "n": 9, "n_effective": 9.0, "method": "told"}
    >>> show_hosts({
    ...     "elm": Estimate(value=0.97, low=0.9, high=1.02, **known),
    ...     "oak": Estimate(value=1.03, low=0.98, high=1.1, **known),
    ... })
    'oak 1.03 [0.98, 1.1], elm 0.97 [0.9, 1.02] times their mean'
    """
    shown = (
        f"{name} {found.value:.3g} [{found.low:.3g}, {found.high:.3g}]"
        for name, found in sorted(hosts.items(), key=lambda effect: -effect[1].value)
    )
    return f"{', '.join(shown)} times their mean"


def turn_line(done: TurnDone) -> Page:
    """Return a line with the result of a turn."""
    found = [
        f"{show_point(point)}: {_show_answer(answer, bound)}"
        for point, answer, bound in zip(
            done.turn.points, done.estimates, done.better_than, strict=False
        )
    ]
    said = done.lost or "; ".join(found)
    return page(wrapped(f"turn {done.turn.id + 1} · {done.turn.host} · {said}", hanging=2))


def _show_answer(answer: Estimate | None, bound: float | None) -> str:
    if answer is not None:
        return show_short(answer, "")
    return "failed" if bound is None else f"better than {bound:.4g}"


def facts_of_choice(choice: Choice, record: RunRecord | None = None) -> list[Fact]:
    """Return the facts of a choice, and of its turns if it is stored."""
    turns = () if record is None else turns_of(record)
    name, spent_s = ("", None) if record is None else (f"{record.name}: ", record.elapsed_s)
    found, times, sure = choice.prediction, "", ""
    if found is not None:
        times = f"{found.value:.3g} times [{found.low:.3g}, {found.high:.3g}] the next one"
        sure = percent(found.confidence)
    hosts = ", ".join(sorted({done.turn.host for done in turns}))
    took = f" in {show_duration(spent_s)}" if spent_s else ""
    measured = f"{many(len(turns), 'turn')} of {hosts}{took}" * bool(turns)
    failures = (failure for done in turns for failure in (*done.attempts, done.lost))
    return [
        *known(
            head(f"{name}{say_choice(choice)}"),
            labelled("new host", times, sure),
            labelled("rivals", *map(show_point, choice.rivals)),
            labelled("measured", measured),
            *(labelled("failures", failure or "", depth=Depth.DETAILS) for failure in failures),
        ),
        *noticed(choice.notices),
    ]


def say_choice(choice: Choice) -> str:
    """Say which configuration is chosen, and for which hosts."""
    point = "" if choice.point is None else show_point(choice.point)
    return {
        BEST: f"{point} is the best on {choice.scope}",
        EQUIVALENT: f"{point}: no other one is better by more than the margin, on {choice.scope}",
    }.get(choice.verdict, f"undecided on {choice.scope}{f', {point} leads' if point else ''}")
