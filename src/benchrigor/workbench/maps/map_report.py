"""Maps and choices in text: the best configuration, effects of factors, samples and turns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

from benchrigor.layout import Page, Part, page, row, table, wrapped
from benchrigor.model import Code, Estimate, RunRecord, codec
from benchrigor.model.comparison import Ranked
from benchrigor.model.text import show_estimate, show_interval, show_short
from benchrigor.report.fact import marked_all
from benchrigor.safe_text import escaped
from benchrigor.units import counted, many, percent, show_duration, show_value
from benchrigor.workbench.maps.choice_run import TurnDone, turns_of
from benchrigor.workbench.maps.life_cycle import StepDone
from benchrigor.workbench.maps.map_file import MapFile
from benchrigor.workbench.maps.map_run import ATTEMPTS, STEPS, facts_of
from benchrigor.workbench.maps.responses import metric_of
from benchrigor.workbench.planning.best_choice import BEST, EQUIVALENT, Choice
from benchrigor.workbench.planning.surface_map import SurfaceMap
from benchrigor.workbench.settings import ADAPTIVE
from benchrigor.workbench.surfaces.designs import snake
from benchrigor.workbench.surfaces.samples import MapSample, Measured, Point, Space, show_point
from benchrigor.workbench.surfaces.surface import Crossover, MapSummary

_FEW = 3  # items in a row of a page without details
_MOST_PLANNED = 20  # samples that a plan lists
_SURE = 0.95
_MODELS = {"quadratic": "a quadratic", "gaussian-process": "a Gaussian process"}
_IN_ROWS = Code.SAMPLES_WITHOUT_NUMBER  # rows of a page show its details


def surface_page(
    found: MapSummary, name: str, units: Mapping[str, str], *, whole: bool = False
) -> Page:
    """Return the report of a map with these units of its responses.

    It has up to eight rows about the first response, and one row per further response. A ``whole``
    report has all rows of all responses, and all samples, notes and codes.
    """
    spent_s = sum(measured.cost_s for measured in found.samples)
    took = f" in {show_duration(spent_s)}" if spent_s else ""
    hosts = {measured.host for measured in found.samples if measured.host}
    took += f" of {len(hosts)} hosts" if len(hosts) > 1 else ""
    lines: list[Part] = [f"{name}: {many(len(found.samples), 'sample')}{took}"]
    most = len(found.samples) if whole else _FEW
    known = [response for response in units if response in found.rankings]
    for response in known:
        rows = [*_response_rows(found, response, units[response], most)]
        lines += [f"{response}:"] if len(units) > 1 else []
        lines += rows if whole or response == known[0] else rows[:1]
    lines += row("limits", [_show_outside(found, most)])
    lines += row("no number", [_show_lacking(found, *next(iter(units.items())), most)])
    if whole:
        for response in known:
            lines += _ranking(found.rankings[response], response, units[response])
        lines += _samples(found, units)
    notices = {str(it): it for it in found.notices if whole or it.code is not _IN_ROWS}
    return page([*lines, *marked_all(notices.values(), whole=whole)])


def _response_rows(found: MapSummary, response: str, unit: str, most: int) -> Iterator[Part]:
    """Yield the rows of a response, the best configuration first."""
    ranked = found.rankings[response]
    if (predicted := found.responses.get(response)) is not None:
        best = predicted.best
        point = show_point(best.point)
        guessed = "" if point in {entry.name for entry in ranked} else "not measured itself"
        yield from row("best", [f"{point}: {show_estimate(best.estimate, unit)}", guessed])
        yield from row("regret", _show_regret(found.samples, best.regret))
        effects = sorted(predicted.sensitivities.items(), key=lambda it: -it[1].value)
        shown = _few([_show_effect(*effect) for effect in effects], most)
        yield from row("matters", [f"from worst to best level: {shown}"])
        yield from row("swap", [_few([*map(_show_swap, predicted.swaps)], most)])
        if predicted.hosts:
            yield from row("hosts", [show_hosts(predicted.hosts)])
        misses = f"it misses points left out by {percent(predicted.missed, digits=2)} on average"
        yield from row("model", [_MODELS[best.estimate.method], misses])
    first = [
        f"{entry.name}: {show_short(entry.estimate, unit)}" for entry in ranked if entry.place == 1
    ]
    places = f"the best of {many(len(ranked), 'point')}"
    places += ", not shown to differ" if len(first) > 1 else ""
    yield from row("measured", [f"{places}: {_few(first, _FEW)}"])


def _few(shown: Sequence[str], most: int) -> str:
    """List the first few items, which may hold commas, and the number of further ones."""
    more = len(shown) - most
    return "; ".join([*shown[:most], *([f"and {more} more"] if more > 0 else [])])


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


def _show_outside(found: MapSummary, most: int) -> str:
    """Show the levels, and further points, at which no load keeps the limits."""
    points = {measured.sample.id: measured.sample.point for measured in found.samples}
    if not found.outside:
        return ""
    if len(found.outside) == len(found.samples):
        return "no load keeps them in any sample"
    levels: dict[str, set[int]] = {}
    for number, point in points.items():
        for name, level in point.items():
            levels.setdefault(show_point({name: level}), set()).add(number)
    lost = {level: ids for level, ids in levels.items() if len(ids) > 1 and ids <= {*found.outside}}
    listed = {number for ids in lost.values() for number in ids}
    shown = [f"{level} (all {len(ids)} samples)" for level, ids in lost.items()]
    shown += [show_point(points[number]) for number in found.outside if number not in listed]
    return f"no load keeps them at {_few(shown, most)}"


def _show_lacking(found: MapSummary, response: str, unit: str, most: int) -> str:
    """Show the other samples without an estimate of the first response, and the reasons."""
    shown = [
        f"{show_point(measured.sample.point)}: {_show_lack(measured, unit)}"
        for measured in found.samples
        if response not in measured.estimates and measured.sample.id not in found.outside
    ]
    return _few(shown, most)


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


def map_page(
    record: RunRecord, found: MapSummary, units: Mapping[str, str], *, whole: bool = False
) -> Page:
    """Return the report of a stored map; a ``whole`` one has what went wrong meanwhile."""
    steps = _steps(record) if whole else ()
    return page([surface_page(found, record.name, units, whole=whole), *steps])


def _steps(record: RunRecord) -> Iterator[Part]:
    """Yield failures of hosts, and failures of servers with their last output."""
    for sample, attempt in facts_of(record, ATTEMPTS):
        yield from wrapped(f"sample {sample.id}: {attempt}", "  ", hanging=4)
    for sample, plain in facts_of(record, STEPS):
        step = codec.decode(StepDone, plain)
        if step.went_wrong:
            yield from wrapped(f"sample {sample.id}: {step}", "  ", hanging=4)
            yield from (f"    | {line}" for line in step.end)


def plan_page(
    search: SurfaceMap, samples: Sequence[MapSample], expected_s: float | None, *, hosts: int = 1
) -> Page:
    """Return the samples that are known beforehand in order, their duration and the total.

    A sample takes ``expected_s``, without changes of factors; None if unknown.
    """
    points, grid = [sample.point for sample in samples], search.space.grid()
    lines: list[Part] = [
        f"{many(len(points), 'sample')} of a grid of {many(len(grid), 'configuration')}"
    ]
    if search.design == ADAPTIVE:
        most = f", at most {counted(search.samples)} in all" if search.samples else ""
        lines += row("then", [f"where predictions are the least certain{most}"])
    ends_s = _ends(search.space, points, expected_s)
    takes = "it is not known how long a sample takes" * bool(points)
    if ends_s and expected_s is not None:
        takes, more = f"about {show_duration(ends_s[-1])}", (search.samples or 0) - len(points)
        if more > 0:
            longer = show_duration(ends_s[-1] + more * expected_s)
            takes += f", {longer} with {many(more, 'further one')}"
    lines += row("takes", [takes])
    if ends_s and hosts > 1:
        clock_s = ends_s[-1] / len(points) * math.ceil(len(points) / hosts)
        lines += row("by clock", [f"about {show_duration(clock_s)} on {hosts} hosts"])
    if all_s := plan_seconds(search, samples, expected_s)["all_configurations_s"]:
        lines += row(f"all {counted(len(grid))}", [f"about {show_duration(all_s)}"])
    if search.budget_s is not None:
        lines += row("budget", [show_duration(search.budget_s)])
    begins = ["0 s", *map(show_duration, ends_s)] if ends_s else [""] * len(points)
    rows = [("sample", "begins after", "configuration")]
    for number, (point, begin) in enumerate(zip(points, begins, strict=False), 1):
        rows.append((str(number), begin, show_point(point)))
    lines += table(rows[: _MOST_PLANNED + 1], ">><", indent=2)
    rest = len(points) - _MOST_PLANNED
    return page([*lines, *([f"  and {many(rest, 'more sample')}"] if rest > 0 else [])])


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
