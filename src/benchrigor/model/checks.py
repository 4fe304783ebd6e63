"""What is wrong with an argument, in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TypeVar

from benchrigor.errors import InvalidInput

__all__ = ["attempt", "wrong_level"]

T = TypeVar("T")


def attempt(problems: list[str], check: Callable[..., T], *values: object) -> T | None:
    """Call a check, and add what it complains about to the problems so far."""
    try:
        return check(*values)
    except InvalidInput as error:
        problems += error.problems
        return None


def wrong_level(level: object) -> list[str]:
    """Return what is wrong with a level, nothing if it lies strictly between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        return [f"level is {level!r}, expected more than 0 and less than 1"]
    return []
