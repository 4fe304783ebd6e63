"""A choice in text: the best configuration on several hosts, and its turns."""

from __future__ import annotations

from benchrigor.layout import Page, Part, page, row, wrapped
from benchrigor.model import Estimate, RunRecord
from benchrigor.model.text import many, percent, show_duration, show_short
from benchrigor.report.notice_lines import marked_all
from benchrigor.workbench.maps.choice_run import TurnDone, turns_of
from benchrigor.workbench.planning.best_choice import BEST, EQUIVALENT, Choice
from benchrigor.workbench.surfaces.factors import show_point


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
