"""Rounds of various work: amounts chosen from outside, and whether two methods tell the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    Analysis,
    Code,
    Estimate,
    Kind,
    Notice,
    Round,
    RoundPlan,
    check_work,
)
from benchrigor.model.text import show_value

__all__ = ["NextWork", "as_next_work", "disagreement", "with_work"]

NextWork = Callable[[RoundPlan], float | None]
_ALIKE = 0.1
"""Units per work that differ by more from round to round are not the same units."""


def as_next_work(hook: object) -> NextWork | None:
    """Return the hook that chooses amounts, or None where there is none.

    Raises
    ------
    InvalidInput
        When it cannot be called.
    """
    if hook is None or callable(hook):
        return hook
    raise InvalidInput(f"next_work is {hook!r}, expected a function of a plan, or None")


def with_work(plan: RoundPlan, work: object) -> RoundPlan:
    """Return the plan with another work amount; as it is where that is None.

    Raises
    ------
    InvalidInput
        When that is no amount.
    """
    if work is None:
        return plan
    checked = check_work(work)
    if checked.problems or isinstance(checked.work, tuple):
        raise InvalidInput(f"next_work returned {work!r}, expected a number above 0, or None")
    return replace(plan, work=checked.work)


def disagreement(rounds: Sequence[Round], analyses: Sequence[Analysis]) -> tuple[Notice, ...]:
    """Warn where the durations of units of work tell another speed than the line does.

    Both are comparable where each round gave as many unit readings per work as any other.
    """
    line = next((each.estimate for each in analyses if each.kind is Kind.WORK), None)
    if line is None:
        return ()
    notices = []
    for analysis in analyses:
        found, metric = analysis.estimate, analysis.metric
        units = _units_per_work(rounds, metric.name)
        if found is None or units is None or not metric.is_duration or found.low <= 0.0:
            continue
        low, high = 1.0 / (units * found.high), 1.0 / (units * found.low)
        if low > line.high or high < line.low:
            notices.append(_differ(metric.name, 1.0 / (units * found.value), line))
    return tuple(notices)


def _units_per_work(rounds: Sequence[Round], metric: str) -> float | None:
    """Return unit readings per work, if they are the same in all rounds."""
    pairs = [
        (len(each.unit_readings[metric]), each.plan.work)
        for each in rounds
        if each.plan.work and metric in each.unit_readings
    ]
    shares = [units / work for units, work in pairs]
    if not shares or max(shares) > (1.0 + _ALIKE) * min(shares):
        return None
    return sum(units for units, _ in pairs) / sum(work for _, work in pairs)


def _differ(metric: str, by_readings: float, line: Estimate) -> Notice:
    return Notice.warning(
        Code.METHODS_DISAGREE,
        f"The readings of {metric!r} put the speed at {show_value(by_readings, '/s')}, the "
        f"line through work and duration at {show_value(line.value, '/s')}: their intervals "
        "do not meet. Either work runs beside the units, or their readings hold what the "
        "line counts as overhead.",
        metric=metric,
        readings=by_readings,
        line=line.value,
    )
