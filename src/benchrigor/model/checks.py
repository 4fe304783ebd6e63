"""What is wrong with an argument, in a sentence."""

from __future__ import annotations

from numbers import Real

__all__ = ["wrong_level"]


def wrong_level(level: object) -> list[str]:
    """Return what is wrong with a level, nothing if it lies strictly between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        return [f"level is {level!r}, expected more than 0 and less than 1"]
    return []
