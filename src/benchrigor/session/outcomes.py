"""Notices about how a session went: what failed, what is missing, what does not agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

import numpy as np

from benchrigor.errors import BenchrigorError, InvalidInput
from benchrigor.model import Analysis, Code, Estimate, Kind, Metric, Notice, Round
from benchrigor.model.text import percent, show_value


def failed_workload(error: BenchrigorError) -> Notice:
    """Say what ended the measuring, in its first line."""
    return Notice.warning(
        Code.WORKLOAD_FAILED, str(error).splitlines()[0], error=type(error).__name__
    )


def failed_hook(name: str, error: Exception) -> Notice:
    """Say which hook raised what."""
    return Notice.warning(
        Code.HOOK_FAILED,
        f"The hook {name} raised {type(error).__name__}: {error}",
        hook=name,
        error=type(error).__name__,
    )


def too_short(error: BenchrigorError) -> Notice:
    """Say that no amount of work makes a round long enough."""
    return Notice.refusal(Code.WORK_TOO_SHORT, str(error))


def no_data(sentence: str, metric: str | None = None) -> Notice:
    """Say that there is nothing to estimate from."""
    return Notice.refusal(Code.NO_DATA, sentence, metric=metric)


def nothing_of(metric: Metric) -> Analysis:
    """Return the analysis of a metric that no round gave."""
    notice = no_data(f"No round gave a reading for {metric.name!r}.", metric.name)
    return Analysis(metric=metric, kind=Kind.READINGS, n=0, notices=(notice,))


_ALIKE = 0.1
"""Units per work that differ by more from round to round are not the same units."""


def draw_seed() -> int:
    """Return a seed that the system's own entropy gives."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def check_seed(seed: object) -> int:
    """Return the seed, or raise InvalidInput unless it is a whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InvalidInput(f"seed is {seed!r}, expected a whole number of 0 or more")
    return int(seed)


def short_of_target(estimate: Estimate, wanted: float) -> Notice:
    """Mark an estimate that was not brought to its target."""
    half_width, value = estimate.half_width, abs(estimate.value)
    sentence = "Ended before the evidence asked for was there."
    if value > 0.0 and half_width > wanted:
        sentence = (
            f"Ended with a half-width of {percent(half_width / value)} of the value, "
            f"wanted {percent(wanted / value)}."
        )
    return Notice.warning(
        Code.NOT_CONVERGED,
        sentence,
        half_width=half_width,
        wanted=wanted if math.isfinite(wanted) else None,
    )


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
