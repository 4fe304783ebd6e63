"""Notices about the outcome of a session: what failed, is missing, or disagrees."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchrigor.errors import BenchrigorError
from benchrigor.model import Analysis, Code, Kind, Metric, Notice, Round
from benchrigor.model.text import percent, show_value

_SAME_UNITS = 0.1  # rounds whose units per work differ by at most this share have the same units


def failed_workload(error: BenchrigorError) -> Notice:
    """Return the first line of the error that ended the measurement."""
    return Notice.warning(
        Code.WORKLOAD_FAILED, str(error).splitlines()[0], error=type(error).__name__
    )


def failed_hook(name: str, error: Exception) -> Notice:
    """Say which hook raised which error."""
    return Notice.warning(
        Code.HOOK_FAILED,
        f"The hook {name} raised {type(error).__name__}: {error}",
        hook=name,
        error=type(error).__name__,
    )


def without_readings(metric: Metric) -> Analysis:
    """Return the analysis of a metric for which no round gave a reading."""
    sentence = f"No round gave a reading of {metric.name!r}."
    notice = Notice.refusal(Code.NO_DATA, sentence, metric=metric.name)
    return Analysis(metric=metric, kind=Kind.READINGS, n=0, notices=(notice,))


def not_converged(half_width: float, wanted: float, whole: float, noun: str) -> Notice:
    """Warn that a session ended before its target; widths are shown as shares of the whole."""
    sentence = "The session ended before there was enough evidence."
    if whole > 0.0 and half_width > wanted:
        sentence = (
            f"The session ended with a half-width of {percent(half_width / whole)} of the {noun}, "
            f"{percent(wanted / whole)} is wanted."
        )
    return Notice.warning(
        Code.NOT_CONVERGED,
        sentence,
        half_width=half_width,
        wanted=wanted if math.isfinite(wanted) else None,
    )


def disagreement(rounds: Sequence[Round], analyses: Sequence[Analysis]) -> tuple[Notice, ...]:
    """Warn if unit readings give another speed than the line through work and duration.

    The two are comparable if all rounds gave the same number of unit readings per work.
    """
    line = next((each.estimate for each in analyses if each.kind is Kind.WORK), None)
    if line is None:
        return ()
    notices = []
    for analysis in analyses:
        time, metric = analysis.estimate, analysis.metric
        units = _units_per_work(rounds, metric.name)
        if time is None or units is None or not metric.is_duration or time.low <= 0.0:
            continue
        if 1.0 / (units * time.high) > line.high or 1.0 / (units * time.low) < line.low:
            speed = 1.0 / (units * time.value)
            notice = Notice.warning(
                Code.METHODS_DISAGREE,
                f"The readings of {metric.name!r} give a speed of {show_value(speed, '/s')}, the "
                f"line through work and duration one of {show_value(line.value, '/s')}: their "
                "intervals do not overlap. Either some work is done outside the units, or their "
                "readings include what the line counts as overhead.",
                metric=metric.name,
                readings=speed,
                line=line.value,
            )
            notices.append(notice)
    return tuple(notices)


def _units_per_work(rounds: Sequence[Round], metric: str) -> float | None:
    """Return unit readings per work if it is the same in all rounds."""
    pairs = [
        (len(each.unit_readings[metric]), each.plan.work)
        for each in rounds
        if each.plan.work and not each.cut and metric in each.unit_readings
    ]
    ratios = [units / work for units, work in pairs]
    if not ratios or max(ratios) > (1.0 + _SAME_UNITS) * min(ratios):
        return None
    return sum(units for units, _ in pairs) / sum(work for _, work in pairs)
