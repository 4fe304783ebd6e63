"""Count, total, extremes and squares of durations, added to and merged without loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

# Count, total, least, greatest, sum of squared deviations from the mean; in nanoseconds.
Sums: TypeAlias = tuple[int, int, float, float, float]

NOTHING: Sums = (0, 0, math.inf, -math.inf, 0.0)


def add_events(sums: Sums, values: Sequence[int]) -> Sums:
    """Add durations, at least one; functions written in C do most of it."""
    count, total = len(values), sum(values)
    mean = total / count
    spread = math.dist(values, (mean,) * count)  # root of the sum of squared deviations
    _, _, least, greatest, _ = sums
    # No duration is further from the mean than that, so that mostly the extremes stand.
    if mean - spread < least:
        least = min(values)
    if mean + spread > greatest:
        greatest = max(values)
    return merge_sums(sums, (count, total, least, greatest, spread * spread))


def merge_sums(one: Sums, other: Sums) -> Sums:
    """Merge two sets' sums (Chan, Golub and LeVeque, 1979: no digits are lost)."""
    n, total, least, greatest, squares = one
    m, other_total, other_least, other_greatest, other_squares = other
    if n and m:
        squares += (total / n - other_total / m) ** 2 * n * m / (n + m)
    return (
        n + m,
        total + other_total,
        least if least < other_least else other_least,
        greatest if greatest > other_greatest else other_greatest,
        squares + other_squares,
    )
