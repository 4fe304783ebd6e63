"""Numbers, and estimates of numbers, at the door of the arithmetic of queues."""

from __future__ import annotations

from collections.abc import Iterable

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate, Notice
from benchrigor.model.pipeline import Quantity, no_number, no_quantity, no_whole
from benchrigor.stats.comparison.fieller_mover import Side, exact_side, side_of

__all__ = [
    "ends",
    "joined_notices",
    "mixed_confidences",
    "no_number",
    "no_quantity",
    "no_whole",
    "refuse",
    "shared_confidence",
    "side_at",
    "size_of",
]

_CONFIDENCE = 0.95
"""Of an interval between numbers that are all known exactly, and so has no width."""


def refuse(*findings: tuple[str, ...]) -> None:
    """Raise InvalidInput with all that was found; do nothing where nothing was."""
    problems = [problem for found in findings for problem in found]
    if problems:
        raise InvalidInput(problems)


def mixed_confidences(quantities: Iterable[Quantity], name: str) -> tuple[str, ...]:
    """Say that the confidences of estimates differ; else nothing."""
    found = sorted({each.confidence for each in quantities if isinstance(each, Estimate)})
    if len(found) <= 1:
        return ()
    said = " and ".join(f"{confidence:g}" for confidence in found)
    return (f"{name} have confidences {said}, expected one: estimate all with the same",)


def shared_confidence(quantities: Iterable[Quantity]) -> float:
    """Return the confidence of the estimates among quantities; 0.95 where all are exact."""
    found = (each.confidence for each in quantities if isinstance(each, Estimate))
    return next(found, _CONFIDENCE)


def ends(quantity: Quantity) -> tuple[float, float, float]:
    """Return the value and both ends of the interval, which are one for an exact number.

    Examples
    --------
    >>> ends(3)
    (3.0, 3.0, 3.0)
    """
    if isinstance(quantity, Estimate):
        return quantity.value, quantity.low, quantity.high
    return (float(quantity),) * 3


def side_at(quantity: Quantity) -> Side:
    """Return the value with its errors downwards and upwards, none for an exact number."""
    if isinstance(quantity, Estimate):
        return side_of(quantity, symmetric=False)
    return exact_side(float(quantity))


def size_of(quantities: Iterable[Quantity]) -> tuple[int, float]:
    """Return ``n`` and ``n_effective`` of all estimates together; 0 where all is exact."""
    estimates = [each for each in quantities if isinstance(each, Estimate)]
    return sum(each.n for each in estimates), sum(each.n_effective for each in estimates)


def joined_notices(quantities: Iterable[Quantity]) -> tuple[Notice, ...]:
    """Return the notices of all estimates, each once."""
    found: list[Notice] = []
    for each in quantities:
        if isinstance(each, Estimate):
            found.extend(notice for notice in each.notices if notice not in found)
    return tuple(found)
