"""When a session stops: criteria of being satisfied, and limits; the first rule to stop wins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchrigor.model import Decision, Estimate, Options, Progress, StopReason, Width
from benchrigor.model.options import LATEST
from benchrigor.protocols import StopRule

# Readings of all metrics that a session keeps: about a gigabyte at the peak of its last analysis
# (0.11 kB per reading, measured at 4 million), and 200 s or more of the fastest functions.
MOST_READINGS = 10_000_000
MOST_REJECTED = 100  # rounds in a row without a result
LITTLE = 0.2  # share of a variance, without which an interval is a tenth narrower
SETTLED_S, FEWEST_BLOCKS = 3.0, 10  # a busy machine changes from one second to the next
_END_LOOKS, _END_S = 4.0, 2.0  # looks that an end is worth; seconds of it beyond a budget

Criterion = Callable[[Progress], bool]


def _of_each(holds: Callable[[Width], bool]) -> Criterion:
    """Require something of all intervals that must be narrow."""
    return lambda progress: all(map(holds, progress.widths))


def agrees(later: Estimate | None, earlier: Estimate | None) -> bool:
    """Return whether the value of a later look lies inside the interval of an earlier one."""
    return later is not None and earlier is not None and earlier.low <= later.value <= earlier.high


def when_satisfied(*criteria: Criterion, reason: StopReason = StopReason.SATISFIED) -> StopRule:
    """Stop when two looks in a row agree, and the last one, at enough readings, meets all criteria.

    A machine is in one of its paces for a moment: one look finds a narrow interval there by luck.
    So the rounds must also have taken the seconds that are asked for on the wall clock.
    """
    return _stop_for(
        reason,
        lambda progress: progress.fresh and bool(progress.widths) and not progress.missing,
        lambda progress: progress.agreed and progress.elapsed_s >= progress.min_seconds,
        *criteria,
    )


def limits(options: Options, *, calls: int = 1, latest: float = LATEST) -> tuple[StopRule, ...]:
    """Return the rules that hold the budgets of options, for readings of a number of calls.

    It may end at ``latest`` times the budget.
    """
    most = {
        StopReason.STOP_REQUESTED: ("stop_requested", 1),
        StopReason.TOO_MANY_REJECTED: ("rejected_rounds", MOST_REJECTED),
        StopReason.TIME_BUDGET: ("elapsed_s", options.budget_s),
        StopReason.READINGS_BUDGET: ("readings", options.budget_readings),
        StopReason.MEMORY_LIMIT: ("kept", MOST_READINGS),
        StopReason.ROUND_LIMIT: ("rounds", options.max_rounds),
    }
    spent = (
        _stop_for(reason, partial(_reaches, spent=name, most=limit))
        for reason, (name, limit) in most.items()
        if limit is not None
    )
    return (*spent, _in_time(options.budget_s, calls, latest))


def _reaches(progress: Progress, *, spent: str, most: float) -> bool:
    return bool(getattr(progress, spent) >= most)


def _in_time(budget_s: float, calls: int, latest: float) -> StopRule:
    """Stop when the next reading, of ``calls`` calls, would end too late at the pace of the last.

    Of the first two readings, only the last call must begin in time. The end of a session takes as
    long as several of its looks, and may last two seconds more.
    """

    def is_late(progress: Progress) -> bool:
        elapsed_s, next_s = progress.elapsed_s, progress.reading_s
        if progress.readings < 2:
            return elapsed_s + next_s * (calls - 1) / calls >= budget_s
        end_s = max(_END_LOOKS * progress.look_s - _END_S, 0.0)
        return elapsed_s + next_s + end_s > latest * budget_s

    return _stop_for(StopReason.TIME_BUDGET, is_late)


def _stop_for(reason: StopReason, *criteria: Criterion) -> StopRule:
    stop = Decision(stop=True, reason=reason)
    return lambda progress: stop if all(is_met(progress) for is_met in criteria) else None


def default_rules(
    options: Options, *, no_narrower: Criterion | None = None, calls: int = 1
) -> tuple[StopRule, ...]:
    """Return the stop rules for options; the first to stop wins.

    A session takes a list of rules instead: ``[*default_rules(options), my_rule]``.
    ``no_narrower`` says whether more readings cannot help; a reading takes so many ``calls``.
    """
    criteria = [
        lambda progress: progress.rounds >= options.min_rounds,
        _of_each(lambda width: width.is_settled),
    ]
    narrow = _of_each(lambda width: width.is_enough and width.is_narrow(options.target))
    rules = [when_satisfied(*criteria, narrow)]
    if no_narrower is not None:
        full = _of_each(lambda width: width.is_full)
        rules.append(when_satisfied(*criteria, full, no_narrower, reason=StopReason.OUT_OF_REACH))
    return (*rules, *limits(options, calls=calls))
