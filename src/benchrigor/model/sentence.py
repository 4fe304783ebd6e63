"""The sentence of a comparison: "orjson is 12.2x faster than json [12.1, 12.3]"."""

from __future__ import annotations

import math
import textwrap

from benchrigor.control_characters import escaped
from benchrigor.model.estimate import Estimate
from benchrigor.model.text import within_sentence
from benchrigor.units import Direction, digits_for, percent, shortened

TIMES_FROM = 1.5  # Ratios from here on, and below its reciprocal, are shown in times
LONGEST = 100  # Columns of the sentence
_NAMES = 40  # Columns of both names that are not given up for a median
_DIGITS = 4
_LONG = 1e12
_LEAST_WHY = 40  # Columns for the reason of a missing number
_ROLES, _SHORT_ROLES = ("the baseline", "the candidate"), ("baseline", "candidate")


def show_change(ratio: Estimate, unit: str = "", direction: Direction | None = None) -> str:
    """Show a ratio as a change, with its interval: "12.2x faster [12.1, 12.3]".

    Examples
    --------
    >>> ratio = Estimate(value=1.25, low=1.2, high=1.3, confidence=0.95, n=9, n_effective=9.0,
    ...                  method="ratio")
    >>> show_change(ratio), show_change(ratio, "s")
    ('25.0% higher [20.0%, 30.0%]', '25.0% more time [20.0%, 30.0%]')
    """
    change, interval = _change(ratio, unit, direction, in_words=False)
    return f"{change or '0%'} {interval}"


def sentence(
    names: tuple[str, ...],
    ratio: Estimate,
    verdict: str,
    margin: float,
    *,
    unit: str = "",
    direction: Direction | None = None,
    ending: str = "",
    median: Estimate | None = None,
    scope: str = "",
) -> str:
    """Say how the candidate, which is named second, compares with the baseline.

    ``ending`` is what broke the comparison off, ``median`` the ratio that a few slow pairs do not
    carry, said if there is room, and ``scope`` what the verdict is about, if not about the code.
    """
    where = f" in {escaped(scope)}".replace("{", "{{").replace("}", "}}") if scope else ""
    change, interval = _change(ratio, unit, direction, in_words=True)
    change = change or "no change"
    confidence = percent(ratio.confidence, digits=10)
    interval += "" if confidence == "95%" else f" at {confidence}"
    if verdict == "equivalent":
        form = f"{{1}} and {{0}} are equal within {percent(margin)}{where}: {change} {interval}"
    elif ratio.low <= 1.0 <= ratio.high:
        form = f"{{1}} does not clearly differ from {{0}}{where}: {change} {interval}"
    else:
        verb = "takes" if change.endswith(" time") else "is"
        form = f"{{1}} {verb} {change} than {{0}}{where} {interval}"
        if verdict == "undecided":
            doubt = f"within the margin of {percent(margin)}" if margin else "by chance"
            form += f", perhaps {doubt}"
    if median is not None:
        typical = show_change(median, unit, direction).partition(" [")[0]
        longer = f"{form}; median {typical}"
        form = longer if _has_room(longer, names) else form
    if ending:
        form = f"{{1}} against {{0}}: {change} {interval} ({{2}})"
        endings = (ending, ending.partition(": ")[2] or ending)  # if the whole has no room
        forms = [form.replace("{2}", text) for text in endings]
        form = next((form for form in forms if len(fit_names(form, names)) <= LONGEST), forms[-1])
    return fit_names(form, names)


def say_no_comparison(why: str, names: tuple[str, ...], observed: str = "") -> str:
    """Say that there is no comparison, and why; the observed values only if there is room."""
    form = f"no comparison of {{1}} and {{0}}{observed}: "
    if observed and LONGEST - len(fit_names(form, names)) < _LEAST_WHY:
        return say_no_comparison(why, names)
    room = max(LONGEST - len(fit_names(form, names)), _LEAST_WHY)
    shown = textwrap.shorten(within_sentence(why), room, placeholder="…")
    return fit_names(form + shown.replace("{", "{{").replace("}", "}}"), names)


def _has_room(form: str, names: tuple[str, ...]) -> bool:
    """Whether names in a sentence are whole, or shortened ones still readable."""
    if len(set(names)) < 2:
        return len(fit_names(form, names)) <= LONGEST
    return len(form.format("", "")) + min(sum(map(len, names)), _NAMES) <= LONGEST


def fit_names(form: str, names: tuple[str, ...]) -> str:
    """Put the names of baseline and candidate into a sentence, as long as there is room.

    Names that are the same, or would be when shortened, are not put there: the sides are.
    """
    old, new = map(escaped, names) if len(set(names)) == 2 else ("", "")
    room = max(LONGEST - len(form.format("", "")), 8)
    half = room // 2
    short = min(len(old), len(new), half)
    shown = (
        shortened(old, max(half, room - len(new)) if len(new) == short else half),
        shortened(new, max(half, room - len(old)) if len(old) == short else half),
    )
    if shown[0] != shown[1]:
        return form.format(*shown)
    whole = form.format(*_ROLES)
    return whole if len(whole) <= LONGEST else form.format(*_SHORT_ROLES)


def _words(unit: str, direction: Direction | None, *, in_times: bool) -> tuple[str, str]:
    """Return the words for a larger and for a smaller candidate."""
    if unit == "s":
        return ("slower", "faster") if in_times else ("more time", "less time")
    if unit.endswith("/s") and direction is Direction.HIGHER:
        return "faster", "slower"
    return "higher", "lower"


def _change(
    ratio: Estimate, unit: str, direction: Direction | None, *, in_words: bool
) -> tuple[str, str]:
    """Return the change and its interval: as a factor of the larger side, or else in per cent.

    Without a change the first is empty. The ends of an interval around no change have words, or
    signs if a table has no room.
    """
    ends = (ratio.value, ratio.low, ratio.high)
    if 1.0 / TIMES_FROM < ratio.value < TIMES_FROM or not ratio.value > 0.0:
        more, less = _words(unit, direction, in_times=False)
        return _in_percent(*ends, (more, less), in_words=in_words)
    more, less = _words(unit, direction, in_times=True)
    if ratio.value < 1.0:
        value, high, low = (1.0 / end if end > 0.0 else math.inf for end in ends)
        ends = value, low, high
    size, least, most = ends
    width = (most - least) / 2.0 if math.isfinite(most) else size - least
    # One digit less than an estimate has, as users of other comparison tools expect.
    digits = min(max(digits_for(width, size) - 1, 1 if size < 100.0 else 0), _DIGITS)
    form = f",.{digits}f" if size < _LONG else ".4g"
    way, other = (more, less) if ratio.value > 1.0 else (less, more)
    shown, first, last = (_end(f"{end:{form}}", end) for end in ends)
    if in_words and least < 1.0:  # the other side is the larger one there
        least = 1.0 / least if least > 0.0 else math.inf
        ends_shown = _end(f"{least:{form}}x {other}", least), _end(f"{last}x", most)
        first, last = ends_shown if ratio.value > 1.0 else ends_shown[::-1]
    return f"{shown}x {way}", f"[{first}, {last}]"


def _in_percent(
    value: float, low: float, high: float, words: tuple[str, str], *, in_words: bool
) -> tuple[str, str]:
    more, less = words
    width = (high - low) / 2.0 if math.isfinite(high) else value - low
    changes = [100.0 * (ratio - 1.0) for ratio in (value, low, high)]
    digits = min(digits_for(100.0 * width, changes[0]), _DIGITS)
    change, *ends = (round(size, digits) for size in changes)
    is_one_way = low > 1.0 or high < 1.0

    def show_end(end: float) -> str:
        if is_one_way or not end:
            return _end(f"{abs(end):,.{digits}f}%", end)
        side = (more if end > 0.0 else less).split(maxsplit=1)[0]
        words = f"{abs(end):,.{digits}f}% {side}"
        return _end(words if in_words else f"{end:+,.{digits}f}%", end)

    shown = f"{abs(change):,.{digits}f}% {more if change > 0.0 else less}" if change else ""
    return shown, f"[{', '.join(map(show_end, sorted(ends, key=abs) if is_one_way else ends))}]"


def _end(shown: str, end: float) -> str:
    return shown if math.isfinite(end) else "no limit"
