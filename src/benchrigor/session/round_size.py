"""How many unit readings the next round should take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchrigor.model import Options

__all__ = ["Pace", "next_readings"]

ROUND_S = 1.0
"""A round lasts about so long at most: progress is seen, a stop is heeded, little can be lost."""
GROWTH = 10
"""A round takes at most so many times the readings of the one before: the first ones may lie."""
INVOCATION = 500
"""Unit readings of a restarted round: enough to tell its warm-up from its stable phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What the schedule must know of the rounds so far.

    Parameters
    ----------
    readings
        Unit readings so far, of the metric that has most of them; 0 where rounds give single
        readings.
    elapsed_s
        Wall time so far, in seconds.
    last_readings, last_s
        Unit readings and wall time of the last round.
    to_next_check
        Further unit readings until the next analysis is due.
    """

    readings: int
    elapsed_s: float
    last_readings: int
    last_s: float
    to_next_check: int


def next_readings(pace: Pace, options: Options) -> int:
    """Return how many unit readings the next round should take.

    The first round of a continuous session takes a single reading, to learn what one costs. Later
    ones go up to the next analysis, but not beyond what fits into one second, or into what is
    left of the budgets. Rounds of a given size, and restarted ones, are cut short only by a
    budget of readings: a round is the least that can be measured.
    """
    most = math.inf
    if options.budget_readings is not None:
        most = max(1, options.budget_readings - pace.readings)
    if options.readings_per_round is not None:
        return int(min(options.readings_per_round, most))
    if options.rounds == "restarted":
        return int(min(INVOCATION, most))
    if pace.readings == 0:
        return 1
    wanted = int(min(max(1, pace.to_next_check), most))
    per_reading = pace.last_s / max(pace.last_readings, 1)
    wanted = min(wanted, GROWTH * pace.last_readings)
    seconds = min(ROUND_S, options.budget_s - pace.elapsed_s)
    if per_reading > 0.0:
        wanted = min(wanted, math.ceil(seconds / per_reading))
    return max(1, wanted)
