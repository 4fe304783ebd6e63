"""Work amounts: the one door for an amount, or a range of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from benchrigor.model.series import short

__all__ = ["CheckedWork", "check_work"]

_EXPECTED = "expected an amount above 0, a range (low, high), or None"
_LARGEST = 1e300
"""Sums and differences of amounts up to here are finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedWork:
    """What came of a check: the amount or range as plain numbers, or what is wrong with it."""

    work: float | tuple[float, float | None] | None = None
    problems: tuple[str, ...] = ()


def check_work(work: object) -> CheckedWork:
    """Check an amount of work, a range of amounts ``(low, high)``, or None.

    Whole numbers stay whole. A range begins at 0 or more; without an end (None, or infinity) it
    has no largest amount.

    Examples
    --------
    >>> check_work((0, 10**12)).work
    (0, 1000000000000)
    >>> print(*check_work((5.0, 1.0)).problems)
    work is (5.0, 1.0), expected a range that ends above its beginning, at 1e300 at most
    """
    if work is None:
        return CheckedWork()
    if isinstance(work, Sequence) and not isinstance(work, str | bytes):
        return _checked_range(tuple(work))
    amount = _plain(work)
    if amount is None or not 0.0 < amount <= _LARGEST:
        return CheckedWork(problems=(f"work is {short(work)}, {_EXPECTED}",))
    return CheckedWork(work=amount)


def _checked_range(ends: tuple[object, ...]) -> CheckedWork:
    found = f"work is {short(ends)}"
    if len(ends) != 2:
        return CheckedWork(problems=(f"{found}, {_EXPECTED}",))
    open_ended = ends[1] is None or ends[1] == math.inf
    low, high = _plain(ends[0]), None if open_ended else _plain(ends[1])
    if low is None or not 0 <= low <= _LARGEST or not (open_ended or high is not None):
        return CheckedWork(problems=(f"{found}, {_EXPECTED}",))
    if high is not None and not low < high <= _LARGEST:
        expected = "expected a range that ends above its beginning, at 1e300 at most"
        return CheckedWork(problems=(f"{found}, {expected}",))
    return CheckedWork(work=(low, high))


def _plain(amount: object) -> float | None:
    """Return an int or a float of Python's own; None for what is no number."""
    if isinstance(amount, bool) or not isinstance(amount, Real):
        return None
    if isinstance(amount, Integral):
        return int(amount)
    return None if math.isnan(amount) else float(amount)
