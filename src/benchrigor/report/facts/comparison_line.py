"""The line of a comparison: "orjson is 12.2x faster than json [12.1, 12.3]"."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from benchrigor.control_characters import escaped
from benchrigor.model import Comparison, Decision, Estimate, Verdict
from benchrigor.model.change import change_of, show_change
from benchrigor.model.text import no_number, say_end, show_estimate, within_sentence
from benchrigor.units import percent, shortened, show_values

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
