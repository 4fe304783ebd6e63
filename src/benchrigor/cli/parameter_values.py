"""Values of the parameters of commands, from -L and -P."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from benchrigor.model.checks import refuse
from benchrigor.secret_texts import hide_value

_COMMA = re.compile(r"(?<!\\),")
_MOST_VALUES, _MOST_PLACES, _LARGEST = 1000, 30, Decimal("1e30")


def parameter_values(
    lists: Sequence[tuple[str, str]], ranges: Sequence[tuple[str, str, str]], step: str | None
) -> dict[str, list[str]]:
    """Return the values by parameter, from -L and -P."""
    problems = []
    values = {
        name: [value.replace(r"\,", ",") for value in _COMMA.split(text)] for name, text in lists
    }
    problems += [
        f"-L {name} has a value that is empty, expected values between commas"
        for name, texts in values.items()
        if not all(texts)
    ]
    for name, first, last in ranges:
        place = _last_place(first, last)
        by = step or _default_step(first, last, place)
        values[name] = _numbers_between(first, last, by)
        low, high = (hide_value(name, end) for end in (first, last))
        span = f"-P {name} is {low} to {high} in steps of {by}"
        if not values[name]:
            problems.append(f"{span}, expected numbers that rise")
        elif len(values[name]) > _MOST_VALUES:
            problems.append(f"{span}, expected at most {_MOST_VALUES:,} values: give a --step")
        elif step is None and Decimal(values[name][-1]) != Decimal(last):
            problems.append(f"{span}, which miss {high}: give another --step, such as {place}")
    times = Counter([*(name for name, _ in lists), *(name for name, *_ in ranges)])
    problems += [f"parameter {name} is given {n} times" for name, n in times.items() if n > 1]
    if step is not None and not ranges:
        problems.append("--step is given without the -P that it is for")
    refuse(problems)
    return values


def _last_place(first: str, last: str) -> str:
    """Return 1 in the last decimal place of either number; 1 of whole ones, and of no numbers."""
    try:
        exponents = [int(Decimal(text).as_tuple().exponent) for text in (first, last)]
    except (ArithmeticError, ValueError):
        return "1"
    return f"{Decimal(1).scaleb(max(min(0, *exponents), -_MOST_PLACES)):f}"


def _default_step(first: str, last: str, place: str) -> str:
    """Return 1, or 1 in the last decimal place of numbers that are less than 1 apart."""
    try:
        is_close = 0 < Decimal(last) - Decimal(first) < 1
    except ArithmeticError:
        return "1"
    return place if is_close else "1"


def _numbers_between(first: str, last: str, step: str) -> list[str]:
    """Return numbers with as many decimals as they need; none unless they rise."""
    try:
        low, high, by = map(Decimal, (first, last, step))
        rises = low <= high < _LARGEST and by > 0
        steps = int((high - low) / by) if rises else -1
    except ArithmeticError:  # no numbers, or infinite ones
        return []
    return [f"{low + index * by:f}" for index in range(min(steps, _MOST_VALUES) + 1)]
