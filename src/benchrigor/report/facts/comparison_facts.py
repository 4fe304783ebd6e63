"""A comparison: its facts, its page, and a family as a table."""

from __future__ import annotations

from benchrigor.layout import WIDTH, Line, Page, Part, page, table, wrapped
from benchrigor.model import Code, Comparison, Decision, Estimate, Verdict
from benchrigor.model.change import show_change
from benchrigor.model.comparison import Family, is_alone, mean_change
from benchrigor.model.text import no_number, say_end, show_chance, show_estimate
from benchrigor.report.fact import Depth, Fact, advice_on, known, rows_of, told_by
from benchrigor.report.facts.comparison_line import line_of_comparison, show_difference
from benchrigor.report.notice_lines import chosen, marked
from benchrigor.stats.estimators.figures_at_full_speed import AT_FULL_SPEED
from benchrigor.units import counted, many, percent, show_duration

_HEAD = 2 * WIDTH - 8  # Columns of the head of a page, which may be broken
_VERDICTS = {
    Verdict.BETTER: "better: by more than the margin of {}",
    Verdict.WORSE: "worse: by more than the margin of {}",
    Verdict.DIFFERENT: "different by more than the margin of {}; which way is better is not known",
    Verdict.EQUIVALENT: "equivalent: the difference is within the margin of {}",
    Verdict.UNDECIDED: "undecided: the difference may be within the margin of {}, or beyond",
}


def facts_of_comparison(comparison: Comparison) -> list[Fact]:
    """Return all that was found in a comparison of two sides, in the order of its report."""
    old, new = comparison.names or ("", "")
    why = "" if comparison.ratio is not None else no_number(comparison.notices)
    median, chance, reason = comparison.median_ratio, comparison.p_value, comparison.reason
    typical = ""
    if median is not None:
        typical = show_change(median, comparison.readings_in, comparison.direction)
    ended = "" if reason is None else say_end(Decision(stop=True, reason=reason))
    luck = "" if chance is None else f"{show_chance(chance).lstrip('=')} (of no difference at all)"
    facts = known(
        Fact("verdict", Depth.PAGE, "verdict", _verdict(comparison), comparison.verdict),
        Fact("why", Depth.PAGE, "why", why),
        Fact("baseline", Depth.PAGE, "baseline", _side(comparison, comparison.baseline, old)),
        Fact("candidate", Depth.PAGE, "candidate", _side(comparison, comparison.candidate, new)),
        Fact("difference", Depth.PAGE, "difference", show_difference(comparison)),
        Fact("median", Depth.DETAILS, "median", typical and f"of the ratios of pairs: {typical}"),
        Fact("p-value", Depth.DETAILS, "p-value", luck, chance),
        Fact("ended", Depth.DETAILS, "ended", ended),
        Fact("data", Depth.PAGE, "data", _data(comparison)),
    )
    return [*facts, *told_by(facts, comparison.notices)]


def comparison_page(comparison: Comparison, *, whole: bool = False) -> Page:
    """Return the page of a comparison: its sentence, its facts, and what to do.

    Parameters
    ----------
    comparison
        Of two sides.
    whole
        With all that is known instead.
    """
    rows = rows_of(
        facts_of_comparison(comparison), Depth.DETAILS if whole else Depth.PAGE, width=11
    )
    told = [] if whole else chosen(comparison.notices)
    # More readings would not change a clear verdict.
    if comparison.verdict is not Verdict.UNDECIDED:
        told = [notice for notice in told if notice.code is not Code.NOT_CONVERGED]
    head = Line(line_of_comparison(comparison, _HEAD), hanging=2, style="bold")
    advice = advice_on(told, in_turn=comparison.paired, reason=comparison.reason)
    return page([head, *rows, *advice])


def family_page(family: Family) -> Page:
    """Return a table of comparisons, with the rules of their verdicts below it."""
    rows = [("name", "change [interval]", "visible", "p adj.", "verdict")]
    for name, comparison in family.comparisons.items():
        chance = show_chance(family.adjusted[name]).lstrip("=")
        visible = family.visible.get(name)
        least = "-" if visible is None else percent(visible)
        rows.append((name, comparison.show_change(), least, chance, family.verdicts[name]))
    return page([*table(rows, "<<>><"), *_footer(family)])


def _verdict(comparison: Comparison) -> str:
    """Explain the verdict, and how many more readings would decide."""
    text = _VERDICTS[comparison.verdict].format(percent(comparison.margin))
    more = _more(comparison)
    return f"{text}; about {more} would decide" if more else text


def _side(comparison: Comparison, side: Estimate | None, name: str) -> str:
    """Show the figure of a side, and its conditions."""
    if side is None:
        return ""
    where = AT_FULL_SPEED if side.method.startswith(AT_FULL_SPEED) else ""
    when = "as measured" if comparison.paired else where
    shown = f"{show_estimate(side, comparison.readings_in)} {when}".strip()
    return f"{name}: {shown}" if name else shown


def _data(comparison: Comparison) -> str:
    """Say how much was compared, and whether stored runs at one pace are of different times."""
    spent = "" if comparison.elapsed_s is None else f" in {show_duration(comparison.elapsed_s)}"
    is_paced = any(notice.code is Code.AT_FULL_PACE for notice in comparison.notices)
    apart = "; measured at different times: to be sure, measure both in turn (benchrigor ab)"
    return f"{_basis(comparison)}{spent}{apart * is_paced}"


def _basis(comparison: Comparison) -> str:
    """Say how many readings, rounds or pairs were compared."""
    first, second = (side.n if side else 0 for side in (comparison.baseline, comparison.candidate))
    if comparison.ratio is not None and comparison.baseline is None:
        first = comparison.ratio.n
    if comparison.unit is None:
        return f"n={counted(first)} vs {counted(second)}"
    if comparison.paired:
        return many(first, comparison.unit)
    return f"{counted(first)} vs {many(second, comparison.unit)}"


def _more(comparison: Comparison) -> str:
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
