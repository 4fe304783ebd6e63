"""How many readings the next round takes."""

from __future__ import annotations

import math

from benchrigor.model import Standing
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


def next_readings(standing: Standing, options: Options, *, least_invocations: int = 10) -> int:
    """Return how many unit readings the next round should take.

    The first round of a continuous session takes one reading, to learn its cost. Later ones last
    until the next analysis is due, but up to one second, and within the rest of the budgets. If
    possible, no reading ends more than a tenth of a piece, or of the whole time, too late.
    Restarted rounds are also short enough that the time holds the least number of them.
    """
    most = _MOST_OF_A_ROUND
    if options.budget_readings is not None:
        most = max(1, min(most, options.budget_readings - standing.readings))
    if options.rounds == "restarted":
        return int(min(_of_an_invocation(standing, options, least_invocations), most))
    if standing.readings == 0:
        return 1
    wanted = int(min(max(1, standing.to_next_check), most, _GROWTH * standing.last_readings))
    if standing.reading_s > 0.0:
        left_s = (standing.piece + 1) * options.piece_s - standing.elapsed_s
        wanted = min(wanted, math.ceil(min(ROUND_S, left_s) / standing.reading_s))
        if left_s < ROUND_S:
            late_s = (LATEST - 1.0) * options.piece_s
            wanted = min(wanted, math.floor((left_s + late_s) / standing.reading_s))
    return max(1, wanted)


def _of_an_invocation(standing: Standing, options: Options, least_invocations: int) -> int:
    """Return the unit readings of a restarted round that give the narrowest interval in the time.

    The cost of a start is the time of a round without its readings, plus its cut readings.
    """
    first = standing.first_invocation or INVOCATION
    if not (standing.invocations and standing.busy_s):
        return first
    # Rounds may come from another program, with durations of another clock than its readings.
    reading_s = min(standing.busy_s, standing.elapsed_s) / standing.readings
    if reading_s == 0.0:
        return first
    start_s = max(standing.elapsed_s - standing.busy_s, 0.0) / standing.invocations
    longest = _MOST_OF_AN_INVOCATION
    if math.isfinite(options.budget_s):
        in_time_s = options.budget_s / least_invocations - start_s
        if standing.may_be_short and INVOCATION * reading_s > _USUAL_SHARE * options.budget_s:
            short_s = _SHORT_SHARE * options.budget_s
            if standing.readings == standing.invocations and 4.0 * reading_s > short_s:
                return 1  # those with one reading are compared with their like only
            in_time_s = min(in_time_s, short_s)
        # Readings take no less time than starts: fewer would be worthless.
        longest = max(2, min(longest, int(max(in_time_s, start_s) / reading_s)))
    if standing.split is None:
        least = math.ceil(start_s / reading_s) if standing.as_long_as_start else 0
        return min(max(first, least), longest)
    split = standing.split
    cut = max(standing.readings / standing.invocations - split.readings, 0.0)
    best = readings_per_invocation(
        split,
        start_cost=start_s + cut * reading_s,
        reading_cost=reading_s,
        longest=longest,
    )
    return min(max(math.ceil(cut + best), _LEAST_OF_AN_INVOCATION), longest)
