"""Why this number: every step from the raw readings to the interval, retraced."""

from __future__ import annotations

import textwrap

from benchrigor.model import Analysis, Estimate, Kind, LevelFit, RunRecord, StablePhase
from benchrigor.model.headline import (
    counted,
    false_alarms,
    many,
    percent,
    show_estimate,
    show_value,
)
from benchrigor.report.text import WIDTH, cold

__all__ = ["explain"]

_MOST_PHASES = 12


def explain(record: RunRecord, metric: str | None = None) -> str:
    """Tell step by step how the number of a metric came about.

    Parameters
    ----------
    record
        Of a finished or a running session.
    metric
        Name; None for the first metric that must be satisfied.

    Raises
    ------
    InvalidInput
        When no metric has that name.

    Examples
    --------
    >>> import benchrigor as br
    >>> from benchrigor.testing import FakeClock, SyntheticWorkload
    >>> clock = FakeClock()
    >>> session = br.Session(name="synthetic", seed=1, clock=clock)
    >>> record = session.run(SyntheticWorkload(mean=0.001, cv=0.1, seed=1, clock=clock))
    >>> print(explain(record).splitlines()[0])
    How the time of synthetic came about
    """
    analysis = record.analysis(metric)
    if analysis is None:
        return f"{record.name}: nothing was measured, so there is nothing to explain."
    steps = [
        _readings(analysis, record),
        *_phases(analysis),
        *_level(analysis, record),
        *_subsessions(analysis),
        *_interval(analysis),
        *_stop(analysis, record),
        *(f"Notice: {notice}" for notice in (*record.session_notices, *analysis.notices)),
    ]
    title = f"How the {analysis.metric.name} of {record.name} came about"
    body = [_numbered(number, step) for number, step in enumerate(steps, 1)]
    return "\n".join([title, "", *body])


def _numbered(number: int, step: str) -> str:
    """Wrap a step to the width of a terminal; a table below its first line stays as it is."""
    text, _, table = step.partition("\n")
    wrapped = textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{number:>2}. ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    return f"{wrapped}\n{table}" if table else wrapped


def _readings(analysis: Analysis, record: RunRecord) -> str:
    rounds = f"{len(record.rounds)} round{'' if len(record.rounds) == 1 else 's'}"
    return f"{counted(analysis.n)} readings were taken in {rounds}."


def _phases(analysis: Analysis) -> list[str]:
    if not analysis.phases:
        return ["Too few readings to look for change points: all of them are taken."]
    if len(analysis.phases) > 1:
        found = sum(phase.start is not None for phase in analysis.phases)
        return [
            f"A cut was sought that suits all rounds alike: it leaves a stable phase in {found} of "
            f"{len(analysis.phases)}."
        ]
    return [_change_points(analysis.phases[0]), _segments(analysis)]


def _change_points(stable: StablePhase) -> str:
    points = stable.change_points
    where = ", ".join(counted(index) for index in points.indices[:_MOST_PHASES])
    more = len(points.indices) - _MOST_PHASES
    tail = f" and {more} more" if more > 0 else ""
    found = f"Change points at {where}{tail}" if points.indices else "No change point"
    return (
        f"{found} ({false_alarms(points.level)}; "
        f"autocorrelation counted as {points.inflation:.3g}-fold)."
    )


def _segments(analysis: Analysis) -> str:
    stable, unit = analysis.phases[0], analysis.metric.unit
    rows = [
        f"\n      {each.label:<9} {counted(each.start):>9} to {counted(each.stop):>9}"
        f"   median {show_value(each.median, unit)}"
        for each in stable.phases[:_MOST_PHASES]
    ]
    if stable.start is None or stable.stop is None:
        return f"Phases; none of them may be measured ({stable.reason}):{''.join(rows)}"
    margin = stable.n - analysis.n_kept
    kept = f"{counted(analysis.n_kept)} of {counted(analysis.n)} readings are kept"
    if margin and len(stable.phases) == 1:
        kept += f"{cold(margin)}, are left out"
    elif margin:
        kept += f" ({counted(margin)} beside the cuts left out as a margin)"
    return f"Phases; {kept}:{''.join(rows)}"


def _level(analysis: Analysis, record: RunRecord) -> list[str]:
    found, statistic = analysis.estimate, record.options.statistic
    if found is not None and analysis.kind is Kind.INVOCATIONS and found.n > 1:
        return [_invocations(analysis, found, statistic)]
    if found is not None and statistic != "mean":
        return [_order(found, statistic, analysis)]
    if len(analysis.fits) != 1:
        return []
    fit = analysis.fits[0]
    if analysis.metric.averaging == "harmonic":
        level = f"{fit.level:.4g}, the mean of the reciprocals, turned over in the end"
    else:
        level = show_value(fit.level, analysis.metric.unit)
    if fit.transients:
        spans = " and ".join(f"{each:.3g}" for each in fit.transients)
        first = (
            f"Level {level}: fitted beside decaying transients with time constants of {spans} "
            "readings, which take up what is left of a warm-up too small to be seen."
        )
    else:
        first = f"Mean {level}."
    return [first, _correlation(fit)]


def _invocations(analysis: Analysis, found: Estimate, statistic: str) -> str:
    split = analysis.split
    parts = (
        ""
        if split is None or split.level == 0.0
        else f" They differ by {percent(split.between**0.5 / abs(split.level))} of the value, "
        f"single readings inside them by {percent(split.within**0.5 / abs(split.level))}."
    )
    what = "level" if statistic == "mean" else statistic
    return (
        f"Each of {counted(found.n)} invocations gives its {what}; the interval comes from the "
        f"spread of these.{parts}"
    )


def _order(found: Estimate, statistic: str, analysis: Analysis) -> str:
    beside = "; the weights of a fit beside decaying transients count" if analysis.phases else ""
    return (
        f"The {statistic} is where so many readings lie below{beside}. Its rank is uncertain by "
        f"the long-run variance of lying below: {counted(found.n)} readings are worth "
        f"{counted(found.n_effective)} independent ones. The ends are readings, too."
    )


def _correlation(fit: LevelFit) -> str:
    if fit.method == "subsessions":
        return (
            f"Neighbours in subsessions of {many(fit.batch, 'reading')} count as uncorrelated: "
            f"the long-run variance is {fit.inflation:.3g} times that of single readings."
        )
    if fit.order == 0:
        return "The readings are not autocorrelated: each counts in full."
    batched = f", fitted to batches of {counted(fit.batch)}," if fit.batch > 1 else ""
    return (
        f"An autoregressive model of order {fit.order}{batched} puts the long-run variance at "
        f"{fit.inflation:.3g} times the variance of single readings."
    )


def _subsessions(analysis: Analysis) -> list[str]:
    merged = analysis.subsessions
    if merged is None:
        return []
    if merged.size is None:
        return [
            "No subsession size brings the autocorrelation of neighbours within "
            f"{merged.limit:g} (single readings: {merged.autocorrelation:.2f})."
        ]
    return [
        f"Merged by {counted(merged.size)}, neighbours correlate by {merged.autocorrelation:.2f} "
        f"(limit {merged.limit:g}): {counted(merged.means.size)} subsessions."
    ]


def _interval(analysis: Analysis) -> list[str]:
    found, unit = analysis.estimate, analysis.metric.unit
    if found is None:
        return ["No interval can be given."]
    error, freedom = found.standard_error, found.degrees_of_freedom
    if error is None or freedom is None:
        return [f"{show_estimate(found, unit)}."]
    skewed = ""
    if analysis.fits and len(analysis.fits) == 1 and analysis.fits[0].skewness:
        skewed = f", corrected for a skewness of {analysis.fits[0].skewness:.2g}"
    return [
        f"Standard error {show_value(error, unit)}; Student t with {freedom:.3g} degrees of "
        f"freedom{skewed}: {show_estimate(found, unit)}."
    ]


def _stop(analysis: Analysis, record: RunRecord) -> list[str]:
    if record.decision is None or record.decision.reason is None:
        return ["The session is still running."] if record.elapsed_s else []
    found, target = analysis.estimate, record.options.target
    reason = str(record.decision.reason).replace("-", " ")
    if found is None or target is None:
        return [f"The session ended: {reason}."]
    return [
        f"The session ended: {reason}; half-width {percent(found.relative_half_width)} "
        f"of the value, wanted {percent(target)}."
    ]
