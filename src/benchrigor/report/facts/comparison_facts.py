"""The line of a comparison: "orjson is 12.2x faster than json [12.1, 12.3]"."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator
from dataclasses import replace

from benchrigor.layout import WIDTH, table
from benchrigor.model import Code, Comparison, Decision, Estimate, Verdict
from benchrigor.model.comparison import Family, NullArm, is_alone, mean_change
from benchrigor.model.estimate import change_of, show_change
from benchrigor.model.text import no_number, say_end, show_chance, show_estimate, within_sentence
from benchrigor.report.fact import (
    Depth,
    Fact,
    Figure,
    advised,
    head,
    known,
    list_rows,
    sentence,
    told_by,
    warn,
)
from benchrigor.safe_text import escaped
from benchrigor.stats.figures_at_full_speed import AT_FULL_SPEED
from benchrigor.units import (
    counted,
    first_few,
    many,
    percent,
    shortened,
    show_duration,
    show_values,
)

LONGEST = 100  # Columns of the line
_NAMES = 40  # Columns of both names that are not given up for a median
_LEAST_WHY = 40  # Columns for the reason of a missing number
_OLD, _NEW = "\ue001", "\ue002"  # stand for the names of baseline and candidate
_ROLES, _SHORT_ROLES = ("the baseline", "the candidate"), ("baseline", "candidate")


def line_of_comparison(comparison: Comparison, longest: int = LONGEST) -> str:
    """Say how the candidate compares with the baseline, or why that is not known.

    The median, which a few slow pairs do not carry, is shown if there is room.
    """
    names, broken = comparison.names, _broken_off(comparison)
    if comparison.ratio is not None and comparison.p_value is not None:
        forms = [*_forms(comparison, comparison.ratio, broken)]
        room = (form for form in forms[:-1] if _fits(form, names, longest))
        return _named(next(room, forms[-1]), names, longest)
    ending = f" ({broken})" if broken else ""
    if comparison.difference is not None and comparison.p_value is not None:
        change = f"{show_difference(comparison)}, {comparison.verdict}{ending}; no ratio"
        shown = f"{_NEW} minus {_OLD}: {change}{_show_pairs(comparison)}"
        return _named(shown, names, longest)
    return say_no_comparison(
        no_number(comparison.notices), names, f"{_show_pairs(comparison)}{ending}", longest
    )


def say_no_comparison(
    why: str, names: tuple[str, ...], observed: str = "", longest: int = LONGEST
) -> str:
    """Say why the comparison is missing; the observed values only if there is room."""
    form = f"no comparison of {_NEW} and {_OLD}{observed}: "
    room = longest - len(_named(form, names, longest))
    if observed and room < _LEAST_WHY:
        return say_no_comparison(why, names, longest=longest)
    shown = textwrap.shorten(within_sentence(why), max(room, _LEAST_WHY), placeholder="…")
    return _named(f"{form}{shown}", names, longest)


def show_difference(comparison: Comparison) -> str:
    """Show candidate minus baseline with its sign, unit and interval; empty without one."""
    difference = comparison.difference
    if difference is None:
        return ""
    sign = "+" if difference.value > 0.0 else ""
    return f"{sign}{show_estimate(difference, comparison.readings_in)}"


def _forms(comparison: Comparison, ratio: Estimate, broken: str) -> Iterator[str]:
    """Yield what to say of a ratio, the longest form first."""
    unit, direction = comparison.readings_in, comparison.direction
    change, interval = change_of(ratio, unit, direction, in_words=True)
    change = change or "no change"
    confidence = percent(ratio.confidence, digits=10)
    interval += "" if confidence == "95%" else f" at {confidence}"
    if broken:
        for ending in (broken, broken.partition(": ")[2] or broken):
            yield f"{_NEW} against {_OLD}: {change} {interval} ({ending})"
        return
    where = f" in {escaped(comparison.scope)}" if comparison.scope else ""
    margin = percent(comparison.margin)
    if comparison.verdict is Verdict.EQUIVALENT:
        form = f"{_NEW} and {_OLD} are equal within {margin}{where}: {change} {interval}"
    elif ratio.low <= 1.0 <= ratio.high:
        form = f"{_NEW} does not clearly differ from {_OLD}{where}: {change} {interval}"
    else:
        verb = "takes" if change.endswith(" time") else "is"
        form = f"{_NEW} {verb} {change} than {_OLD}{where} {interval}"
        if comparison.verdict is Verdict.UNDECIDED:
            doubt = f"within the margin of {margin}" if comparison.margin else "by chance"
            form += f", perhaps {doubt}"
    if comparison.median_ratio is not None:
        typical = show_change(comparison.median_ratio, unit, direction).partition(" [")[0]
        yield f"{form}; median {typical}"
    yield form


def _broken_off(comparison: Comparison) -> str:
    """Say why a comparison ended without the result that was asked for; empty if it did not."""
    reason = comparison.reason
    ending = "" if reason is None else say_end(Decision(stop=True, reason=reason))
    return ending if ending.startswith("not converged") else ""


def _show_pairs(comparison: Comparison) -> str:
    """Show the observed pairs: both medians, and the range of their ratios."""
    if not comparison.observed:
        return ""
    both = (comparison.observed[name].median for name in ("baseline", "candidate"))
    shown = f"observed: {' and '.join(show_values(both, comparison.readings_in))}"
    if (ratio := comparison.observed.get("ratio")) is not None:
        shown += f", ratio {' to '.join(show_values((ratio.least, ratio.greatest), ''))}"
    return f" ({shown})"


def _fits(form: str, names: tuple[str, ...], longest: int) -> bool:
    """Whether a line has room for a form, with names whole or still readable."""
    if len(set(names)) < 2 or "(" in form:
        return len(_named(form, names, longest)) <= longest
    return len(form) - 2 + min(sum(map(len, names)), _NAMES) <= longest


def _named(form: str, names: tuple[str, ...], longest: int) -> str:
    """Put the names of baseline and candidate into a line, as long as there is room.

    Names that are the same, or would be when shortened, are not put there: the sides are.
    """
    old, new = map(escaped, names) if len(set(names)) == 2 else ("", "")
    room = max(longest - (len(form) - 2), 8)
    half = room // 2
    short = min(len(old), len(new), half)
    shown = (
        shortened(old, max(half, room - len(new)) if len(new) == short else half),
        shortened(new, max(half, room - len(old)) if len(old) == short else half),
    )
    if shown[0] == shown[1]:
        is_short = len(form) - 2 + sum(map(len, _ROLES)) <= longest
        shown = _ROLES if is_short else _SHORT_ROLES
    return form.replace(_OLD, shown[0]).replace(_NEW, shown[1])


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
    luck = "" if chance is None else show_chance(chance).lstrip("=")
    luck += ", the chance of such a difference if there were none" * bool(luck)
    figure = Figure(name=old, statistic=comparison.statistic, unit=comparison.readings_in)
    figures = (
        replace(figure, estimate=comparison.baseline),
        judged(replace(figure, name=new), comparison, comparison.verdict),
    )
    facts = known(
        head(line_of_comparison(comparison, _HEAD)),
        Fact("verdict", Depth.PAGE, "verdict", _verdict(comparison), comparison.verdict),
        Fact("why", Depth.PAGE, "why", why),
        Fact("baseline", Depth.PAGE, "baseline", _side(comparison, comparison.baseline, old)),
        Fact("candidate", Depth.PAGE, "candidate", _side(comparison, comparison.candidate, new)),
        Fact("difference", Depth.PAGE, "difference", show_difference(comparison)),
        Fact("median", Depth.DETAILS, "median", typical and f"of the ratios of pairs: {typical}"),
        Fact("p-value", Depth.DETAILS, "p-value", luck, chance),
        Fact("ended", Depth.DETAILS, "ended", ended),
        Fact("data", Depth.PAGE, "data", _data(comparison)),
        list_rows("sides", (), figures),
    )
    return [*facts, *told_by(facts, comparison.notices), *_advice(comparison)]


def judged(figure: Figure, comparison: Comparison, verdict: Verdict) -> Figure:
    """Return the row of a candidate, with its change and the verdict on it."""
    return replace(
        figure,
        estimate=comparison.candidate,
        ratio=comparison.ratio,
        change=comparison.show_change(),
        verdict=str(verdict),
        scope=comparison.scope,
    )


def _advice(comparison: Comparison) -> list[Fact]:
    """Return what to do; more readings would not change a clear verdict."""
    is_open = comparison.verdict is Verdict.UNDECIDED
    notices = [
        notice for notice in comparison.notices if is_open or notice.code is not Code.NOT_CONVERGED
    ]
    return advised(notices, most=1, in_turn=comparison.paired, reason=comparison.reason)


def facts_of_family(family: Family) -> list[Fact]:
    """Return a table of comparisons, the rules of their verdicts, and why some have none."""
    rows, figures = [("name", "change [interval]", "visible", "p adj.", "verdict")], list[Figure]()
    files = {name.partition("::")[0] for name in family.comparisons}
    for name, comparison in family.comparisons.items():
        chance = show_chance(family.adjusted[name]).lstrip("=")
        visible = family.visible.get(name)
        least = "-" if visible is None else percent(visible)
        short = name.partition("::")[2] if len(files) == 1 else ""  # of pytest, in one file
        change, verdict = comparison.show_change(), str(family.verdicts[name])
        rows.append((short or name, change, least, chance, verdict))
        figures.append(Figure(name=name, ratio=comparison.ratio, verdict=verdict, instead=""))
    is_visible = any(least is not None for least in family.visible.values())
    columns = [
        *("visible: the smallest change that would be found in 4 of 5 cases",) * is_visible,
        "p adj.: the chance of such a change by luck, adjusted for all rows",
    ]
    notices = [notice for notice in family.notices if notice.code is not Code.NO_RATIO]
    return known(
        list_rows("comparisons", [*table(rows, "<<>><"), *columns], figures),
        sentence("geometric mean", geometric_mean(family)),
        sentence("rule", rule_of_verdicts([family])),
        *told_by((), notices, depth=Depth.PAGE),
        *(
            warn(f"{name}: {no_number(one.notices)}")
            for name, one in family.comparisons.items()
            if one.ratio is None
        ),
    )


def geometric_mean(family: Family) -> str:
    """Say the geometric mean of the ratios of a family."""
    if family.summary is None:
        return ""
    compared = family.comparisons.values()
    first = next(iter(compared))
    change = mean_change(family.summary, first.readings_in, first.direction)
    if is_alone(family.summary):
        change += " (no interval: not independent)"
    else:
        change += f" {percent(family.summary.confidence, digits=10)}"
    ratios = many(sum(one.ratio is not None for one in compared), "ratio")
    return f"geometric mean of {ratios}: {change}"


def rule_of_verdicts(families: Collection[Family]) -> str:
    """Say how the comparisons of families are judged, of all families together."""
    compared = [one for family in families for one in family.comparisons.values()]
    if not compared:
        return ""
    confidences, margins = (
        " or ".join(percent(share, digits=10) for share in sorted(shares))
        for shares in ({one.confidence for one in compared}, {one.margin for one in compared})
    )
    rate = percent(next(iter(families)).rate)
    return (
        f"{confidences} intervals, margin {margins}, at most {rate} false discoveries among "
        f"{many(len(compared), 'comparison')}"
    )


def said_of_copies(null: NullArm) -> Iterator[str]:
    """Say what two copies of the old code showed, and what follows if they seem to differ."""
    if null.ratio_spread is None:
        return
    yield f"two copies of the old code differed by up to {percent(null.ratio_spread)}"
    if null.verdict == "failed":
        why = f"copies differ as much as this by luck in {percent(null.p_value or 0.0)} of cases"
        if null.called:
            why = f"the same rule calls a change in {first_few(null.called, 3)}"
        yield f"the verdict is advisory: between copies of the same code {why}"


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
        return f"{counted(comparison.required)} more of each side"
    more = f"{counted(comparison.required)} more {comparison.unit or 'pair'}s"
    if comparison.elapsed_s and comparison.ratio is not None:
        seconds = comparison.elapsed_s * comparison.required / comparison.ratio.n
        more += f" (about {show_duration(seconds)})"
    return more
