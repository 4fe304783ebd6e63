"""Comparisons as text: their sizes, the sizes that would decide, and a family as a table."""

from __future__ import annotations

from benchrigor.layout import Page, Part, page, table, wrapped
from benchrigor.model import Code, Comparison, Verdict
from benchrigor.model.comparison import Family, is_alone, mean_change
from benchrigor.model.text import counted, many, no_number, percent, show_chance, show_duration
from benchrigor.report.notice_lines import marked


def family_page(family: Family) -> Page:
    """Return a table of comparisons, with the rules of their verdicts below it."""
    rows = [("name", "change [interval]", "visible", "p adj.", "verdict")]
    for name, comparison in family.comparisons.items():
        chance = show_chance(family.adjusted[name]).lstrip("=")
        visible = family.visible.get(name)
        least = "-" if visible is None else percent(visible)
        rows.append((name, comparison.show_change(), least, chance, family.verdicts[name]))
    return page([*table(rows, "<<>><"), *_footer(family)])


def show_basis(comparison: Comparison) -> str:
    """Say how many readings, rounds or pairs were compared."""
    first, second = (side.n if side else 0 for side in (comparison.baseline, comparison.candidate))
    if comparison.ratio is not None and comparison.baseline is None:
        first = comparison.ratio.n
    if comparison.unit is None:
        return f"n={counted(first)} vs {counted(second)}"
    if comparison.paired:
        return many(first, comparison.unit)
    return f"{counted(first)} vs {many(second, comparison.unit)}"


def show_more(comparison: Comparison) -> str:
    """Say how many more of them would decide."""
    if comparison.verdict is not Verdict.UNDECIDED or not comparison.required:
        return ""
    if not comparison.paired:
        return f"{counted(comparison.required)} more each"
    more = f"{counted(comparison.required)} more {comparison.unit or 'pair'}s"
    if comparison.elapsed_s and comparison.ratio is not None:
        seconds = comparison.elapsed_s * comparison.required / comparison.ratio.n
        more += f" (about {show_duration(seconds)})"
    return more


def _footer(family: Family) -> list[Part]:
    lines: list[Part] = []
    if family.summary is not None:
        ratios = many(family.summary.n, "ratio")
        first = next(iter(family.comparisons.values()))
        change = mean_change(family.summary, first.readings_in, first.direction)
        if is_alone(family.summary):
            change += " (no interval: not independent)"
        else:
            change += f" {percent(family.summary.confidence, digits=10)}"
        lines += wrapped(f"geometric mean of {ratios}: {change}", hanging=2)
    compared = family.comparisons.values()
    confidences, margins = (
        " or ".join(percent(share, digits=10) for share in sorted(shares))
        for shares in ({one.confidence for one in compared}, {one.margin for one in compared})
    )
    lines += wrapped(
        f"{confidences} intervals, margin {margins}, "
        f"false discoveries at most {percent(family.rate)}",
        hanging=2,
    )
    if any(least is not None for least in family.visible.values()):
        lines.append("visible: the smallest change that would be called one in 4 of 5 cases")
    lines.append("p adj.: the chance of such a change by luck, adjusted for all rows")
    for notice in family.notices:
        lines += [] if notice.code is Code.NO_RATIO else marked(notice)
    for name, one in family.comparisons.items():
        if one.ratio is None:
            lines += wrapped(f"{name}: {no_number(one.notices)}", "  ! ", style="yellow")
    return lines
