"""Problems with arguments, in sentences; all problems are raised at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, TypeGuard, TypeVar

from benchrigor.errors import InvalidInput
from benchrigor.model.estimate import Estimate
from benchrigor.model.series import LARGEST, short
from benchrigor.settings import LIMIT, SHARE, Setting
from benchrigor.units import share_of

T = TypeVar("T")
Clashes = Iterable[tuple[Callable[[Any], object], str]]

# Between them products and quotients of two numbers stay in the range of a double.
_SMALLEST = 1e-150
ABOVE_0 = f"a number above 0 ({_SMALLEST:g} to {LARGEST:g})"
FROM_0 = f"a number from 0 to {LARGEST:g}"


def refuse(*problems: Iterable[str]) -> None:
    """Raise InvalidInput with all problems; do nothing if the list is empty."""
    found = [problem for several in problems for problem in several]
    if found:
        raise InvalidInput(found)


def attempt(problems: list[str], check: Callable[..., T], *values: object) -> T | None:
    """Call a check, and add its complaints to the problems so far."""
    try:
        return check(*values)
    except InvalidInput as error:
        problems += error.problems
        return None


def listed(items: Any, name: str, kind: str) -> list[Any]:
    """Return a sequence as a list; raise if it is empty or not a sequence."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InvalidInput(f"{name} is {short(items)}, expected a sequence of {kind}")
    found = list(items)
    if not found:
        raise InvalidInput(f"{name} is empty, expected at least one {kind}")
    return found


def wrong_kinds(items: Iterable[object], name: str, kind: type) -> list[str]:
    """Name the items that are not of a class."""
    return [
        f"{name}[{index}] is {short(item)}, expected a {kind.__name__}"
        for index, item in enumerate(items)
        if not isinstance(item, kind)
    ]


def wrong_values(checks: Iterable[tuple[str, object, bool, str]]) -> list[str]:
    """Name what does not fit; a check is a name, its value, whether it fits, and what would."""
    return [
        f"{name} is {short(value)}, expected {expected}"
        for name, value, fits, expected in checks
        if not fits
    ]


def is_number(value: object, kind: type = Real) -> TypeGuard[Any]:
    """Return whether a value is such a number, and fits a float; True and False are none."""
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    try:
        float(value)  # type: ignore[arg-type]  # a kind of number
    except OverflowError:
        return False
    return True


def as_share(value: object) -> Any:
    """Return the number that a text such as "2%" stands for; all else as it is, to be checked.

    >>> as_share("2%"), as_share("0.02"), as_share("much"), as_share(0.02)
    (0.02, 0.02, 'much', 0.02)
    """
    try:
        return share_of(value) if isinstance(value, str) else value
    except ValueError:
        return value


def checked(name: str, row: Setting, value: Any) -> Any:
    """Return the plain value of a setting; refuse what does not fit."""
    value = as_share(value) if row.kind.metavar == "SHARE" else value
    refuse(wrong_setting(name, row, value))
    if value is None or not row.kind.fits:
        return value
    # Numbers of numpy become Python's own.
    return float(value) if row.kind.least is None else int(value)


def wrong_setting(name: str, row: Setting, value: Any) -> list[str]:
    """Return the problem with the value of a setting."""
    kind, expected = row.kind, row.kind.expected or "a text"
    if value is None and row.may_be_none:
        return []
    if not kind.fits:
        is_word = isinstance(value, str | bool | None) and value in kind.choices
        fits = is_word if kind.choices else isinstance(value, str)
    elif not is_number(value):
        fits, expected = False, "a number"
    else:
        fits = kind.fits(float(value))
        if fits and math.isinf(value) and kind is not LIMIT:
            fits, expected = False, "a finite number"
    return wrong_values([(name, value, fits, expected)])


def wrong_settings(
    rows: Mapping[str, Setting], given: Mapping[str, Any], clashes: Clashes = ()
) -> list[str]:
    """Return the problems with all settings of a table, and settings that clash."""
    wrong = {name: wrong_setting(name, rows[name], given[name]) for name in rows}
    right = {name: given[name] for name, problems in wrong.items() if not problems}
    problems = [problem for several in wrong.values() for problem in several]
    return [*problems, *wrong_together(SimpleNamespace(**right), clashes)]


def wrong_together(its: Any, clashes: Clashes) -> list[str]:
    """Return what does not go together in an object, in texts that show its fields.

    A missing setting never clashes.
    """
    found = []
    for clash, text in clashes:
        with suppress(AttributeError):
            found += [text.format(its)] if clash(its) else []
    return found


def wrong_share(name: str, value: object) -> list[str]:
    """Return the problems with an argument that must lie strictly between 0 and 1."""
    fits = is_number(value) and 0 < value < 1
    return wrong_values([(name, value, fits, SHARE.expected)])


def wrong_whole(name: str, value: object, *, least: int = 1, most: int | None = None) -> list[str]:
    """Return the problems with an argument that must be a whole number within these limits."""
    fits = is_number(value, Integral) and least <= value and (most is None or value <= most)
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    return wrong_values([(name, value, fits, f"a whole number {limits}")])


def wrong_number(name: str, value: object, *, zero: bool = False) -> list[str]:
    """Return the problems with an argument that must be above 0, or may be 0 as well.

    >>> wrong_number("rate", "fast"), wrong_number("rate", 0.0, zero=True)
    (["rate is 'fast', expected a number above 0 (1e-150 to 1e+150)"], [])
    """
    # A narrow float of numpy would make 0 and infinity of the limits.
    plain = getattr(value, "item", lambda: value)()
    fits = is_number(plain) and (0 if zero else _SMALLEST) <= plain <= LARGEST
    return wrong_values([(name, value, fits, FROM_0 if zero else ABOVE_0)])


def wrong_quantity(name: str, value: Any, *, zero: bool = False) -> list[str]:
    """Return the problems with an argument that must be such a number, or an estimate of one."""
    if not isinstance(value, Estimate):
        return [f"{problem}, or an Estimate" for problem in wrong_number(name, value, zero=zero)]
    numbers = (value.low, value.value, value.high, value.confidence)
    known = all(isinstance(number, Real) for number in numbers)
    if not (known and -LARGEST <= value.low <= value.value <= value.high <= LARGEST):
        interval = f"[{value.low!r}, {value.high!r}]"
        return [f"{name} is {value.value!r} in {interval}, expected a finite interval around it"]
    return wrong_share(f"{name}.confidence", value.confidence) or wrong_number(
        f"{name}.value", value.value, zero=zero
    )


def wrong_confidences(name: str, quantities: Iterable[Any]) -> list[str]:
    """Return the problems with numbers and estimates; all estimates need the same confidence."""
    found = sorted({item.confidence for item in quantities if isinstance(item, Estimate)})
    if len(found) <= 1:
        return []
    listed = " and ".join(f"{confidence:g}" for confidence in found)
    return [f"{name} have confidences {listed}, expected one: estimate all with the same"]


def wrong_choice(name: str, value: object, choices: tuple[str, ...]) -> list[str]:
    """Return the problems with an argument that must be one of some words."""
    fits = isinstance(value, str) and value in choices
    return wrong_values([(name, value, fits, " or ".join(map(repr, choices)))])
