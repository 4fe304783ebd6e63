"""How many readings the next round takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchrigor.model.analysis import VarianceSplit
from benchrigor.model.options import LATEST, Options
from benchrigor.stats.statistics.statistic import readings_per_invocation

# Longest duration of a round: progress is shown and a stop request is obeyed that often.
ROUND_S = 1.0
# The round before may have been fast by chance: a round has up to this many times its readings.
_GROWTH = 10
# Maximum readings of a round, on any clock: a round is kept as a whole.
_MOST_OF_A_ROUND = 1_000_000
# Unit readings of the first restarted rounds: enough to tell their warm-up from their stable phase.
INVOCATION = 500
_LEAST_OF_AN_INVOCATION, _MOST_OF_AN_INVOCATION = 100, 10_000
# If 500 readings take more than a twentieth of the time, an invocation takes a fortieth: 15 of them
# show an interval in half of the time.
_USUAL_SHARE, _SHORT_SHARE = 1 / 20, 1 / 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast readings have come so far."""

    readings: int  # most unit readings of any metric; 0 if rounds give single readings
    elapsed_s: float
    last_readings: int
    last_s: float
    to_next_check: int  # further unit readings until the next analysis is due
    piece: int = 0  # index of the next round's piece
    invocations: int = 0  # restarted rounds with unit readings
    invocation: int = INVOCATION  # readings per invocation, until their variance is known
    least_invocations: int = 10  # for which there must be time
    busy_s: float = 0.0  # how long all readings took
    as_long_as_start: bool = False  # whether readings of an invocation take no less than its start
    split: VarianceSplit | None = None  # of the invocations, at the last look
    may_be_short: bool = False  # whether short ones show a stable phase, as far as is known

    @property
    def reading_s(self) -> float:
        """Mean time of the last readings."""
        return self.last_s / max(self.last_readings, 1)


def next_readings(pace: Pace, options: Options) -> int:
    """Return how many unit readings the next round should take.

    The first round of a continuous session takes one reading, to learn its cost. Later ones last
    until the next analysis is due, but up to one second, and within the rest of the budgets. If
    possible, no reading ends more than a tenth of a piece, or of the whole time, too late.
    Restarted rounds are also short enough that the time holds enough of them.
    """
    most = _MOST_OF_A_ROUND
    if options.budget_readings is not None:
        most = max(1, min(most, options.budget_readings - pace.readings))
    if options.rounds == "restarted":
        return int(min(_of_an_invocation(pace, options), most))
    if pace.readings == 0:
        return 1
    wanted = int(min(max(1, pace.to_next_check), most, _GROWTH * pace.last_readings))
    if pace.reading_s > 0.0:
        left_s = (pace.piece + 1) * options.piece_s - pace.elapsed_s
        wanted = min(wanted, math.ceil(min(ROUND_S, left_s) / pace.reading_s))
        if left_s < ROUND_S:
            late_s = (LATEST - 1.0) * options.piece_s
            wanted = min(wanted, math.floor((left_s + late_s) / pace.reading_s))
    return max(1, wanted)


def _of_an_invocation(pace: Pace, options: Options) -> int:
    """Return the unit readings of a restarted round that give the narrowest interval in the time.

    The cost of a start is the time of a round without its readings, plus its cut readings.
    """
    if not (pace.invocations and pace.busy_s):
        return pace.invocation
    # Rounds may come from another program, with durations of another clock than its readings.
    reading_s = min(pace.busy_s, pace.elapsed_s) / pace.readings
    if reading_s == 0.0:
        return pace.invocation
    start_s = max(pace.elapsed_s - pace.busy_s, 0.0) / pace.invocations
    longest = _MOST_OF_AN_INVOCATION
    if math.isfinite(options.budget_s):
        in_time_s = options.budget_s / pace.least_invocations - start_s
        if pace.may_be_short and INVOCATION * reading_s > _USUAL_SHARE * options.budget_s:
            short_s = _SHORT_SHARE * options.budget_s
            if pace.readings == pace.invocations and 4.0 * reading_s > short_s:
                return 1  # those with one reading are compared with their like only
            in_time_s = min(in_time_s, short_s)
        # Readings take no less time than starts: fewer would be worthless.
        longest = max(2, min(longest, int(max(in_time_s, start_s) / reading_s)))
    if pace.split is None:
        least = math.ceil(start_s / reading_s) if pace.as_long_as_start else 0
        return min(max(pace.invocation, least), longest)
    cut = max(pace.readings / pace.invocations - pace.split.readings, 0.0)
    best = readings_per_invocation(
        pace.split, start_cost=start_s + cut * reading_s, reading_cost=reading_s, longest=longest
    )
    return min(max(math.ceil(cut + best), _LEAST_OF_AN_INVOCATION), longest)
