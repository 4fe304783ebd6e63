"""The outcome of a session: Notices of what failed, is missing, or disagrees; lines for its log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from benchrigor.errors import BenchrigorError
from benchrigor.model import Analysis, Code, Metric, Notice, Options, Progress, Round, RunRecord
from benchrigor.model.analysis import Kind
from benchrigor.model.text import no_number, say_end, show_estimate, within_sentence
from benchrigor.stats.readings.asked_readings import wanted_half_width
from benchrigor.units import counted, many, percent, show_amount, show_value

_SAME_UNITS = 0.1  # rounds whose units per work differ by at most this share have the same units
_MORE_TIME = 6.0  # times of a budget that gave no reading, to try next


def failed_workload(error: BenchrigorError) -> Notice:
    """Return the first line of the error that ended the measurement."""
    why = str(error).splitlines()[0]
    return Notice.of(Code.WORKLOAD_FAILED, why_=why, error=type(error).__name__)


def failed_hook(name: str, error: BaseException) -> Notice:
    """Say which hook raised which error."""
    return Notice.of(Code.HOOK_FAILED, hook=name, error=type(error).__name__, why_=str(error))


def earlier_numbers(before: RunRecord) -> tuple[Notice, ...]:
    """Keep the estimates of a run that is resumed, in case all rounds together give none."""
    kept = [notice for notice in before.session_notices if notice.code is Code.EARLIER_NUMBER]
    statistic = before.options.statistic
    for analysis in before.analyses:
        metric, estimate = analysis.metric, analysis.estimate
        if estimate is None:
            continue
        kept = [notice for notice in kept if notice.evidence["metric"] != metric.name]
        name = " of ".join(filter(None, (analysis.statistic(statistic), metric.name)))
        figures = {
            "metric": metric.name,
            "rounds": len(before.rounds),
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
        }
        shown = show_estimate(estimate, metric.unit)
        kept.append(Notice.of(Code.EARLIER_NUMBER, name_=name, estimate_=shown, **figures))
    return tuple(kept)


def without_readings(metric: Metric, rounds: Sequence[Round]) -> Analysis:
    """Return the analysis of a metric for which no round gave a reading."""
    notice = no_readings(rounds, metric.name)
    return Analysis(metric=metric, kind=Kind.READINGS, n=0, notices=(notice,))


def no_readings(rounds: Sequence[Round], metric: str | None = None) -> Notice:
    """Say that no round gave a reading, and that none had the time for it if that is so."""
    what = f"a reading of {metric!r}" if metric else "any reading"
    seconds = rounds[-1].plan.seconds if rounds and all(round_.cut for round_ in rounds) else None
    if seconds is None:
        return Notice.of(Code.NO_DATA, what_=what, more_="", metric=metric)
    lasted_s = max(seconds, rounds[-1].elapsed_ns / 1e9)
    hooks = [notice.sentence for notice in rounds[-1].notices if "hook" in notice.evidence]
    why = (
        hooks[0]
        if hooks
        else f"Round {rounds[-1].plan.index} was still running when it was ended after "
        f"{show_value(lasted_s, 's')}, since the budget was spent; expected a reading by then."
    )
    budget = counted(math.ceil(_MORE_TIME * lasted_s))
    more = f" {why} Give it more time, such as --budget {budget} (budget_s={budget})."
    figures = {"metric": metric, "rounds": len(rounds), "seconds": seconds}
    return Notice.of(Code.NO_DATA, what_=what, more_=more, **figures)


def warn_not_converged(half_width: float, wanted: float, whole: float, noun: str) -> Notice:
    """Warn that a session ended before its target; widths are shown as shares of the whole.

    A narrow interval of too little evidence misses no width, and other warnings name the lack.
    """
    figures = {
        "half_width": half_width if math.isfinite(half_width) else None,
        "wanted": wanted if math.isfinite(wanted) else None,
    }
    if half_width <= wanted:
        return Notice.of(Code.NOT_CONVERGED, "narrow", **figures)
    if not (whole > 0.0 and half_width < math.inf):
        return Notice.of(Code.NOT_CONVERGED, **figures)
    shares = {"reached_": half_width / whole, "asked_": wanted / whole}
    return Notice.of(Code.NOT_CONVERGED, "wide", noun_=noun, **shares, **figures)


def disagreement(rounds: Sequence[Round], analyses: Sequence[Analysis]) -> tuple[Notice, ...]:
    """Warn if unit readings give another speed than the line through work and duration.

    The two are comparable if all rounds gave the same number of unit readings per work.
    """
    line = next((analysis.estimate for analysis in analyses if analysis.wps), None)
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
            figures = {"metric": metric.name, "readings": speed, "line": line.value}
            notices.append(Notice.of(Code.METHODS_DISAGREE, **figures))
    return tuple(notices)


def _units_per_work(rounds: Sequence[Round], metric: str) -> float | None:
    """Return unit readings per work if it is the same in all rounds."""
    pairs = [
        (len(round_.unit_readings[metric]), round_.plan.work)
        for round_ in rounds
        if round_.plan.work and not round_.cut and metric in round_.unit_readings
    ]
    ratios = [units / work for units, work in pairs]
    if not ratios or max(ratios) > (1.0 + _SAME_UNITS) * min(ratios):
        return None
    return sum(units for units, _ in pairs) / sum(work for _, work in pairs)


def say_begin(name: str, options: Options, rounds: int) -> str:
    """Say the target and the budget of a session, and the number of rounds that it has."""
    target = "none" if options.target is None else percent(options.target)
    budget = show_value(options.budget_s, "s") if math.isfinite(options.budget_s) else "none"
    resumed = f", resumed after {many(rounds, 'round')}" if rounds else ""
    return f"{name}: begins{resumed}; target {target} of the {options.statistic}, budget {budget}"


def say_decision(finished: Round, progress: Progress, options: Options) -> str:
    """Say in a line the readings of a round, the intervals after it, and the decision."""
    work = finished.plan.work
    given = [f"work {show_amount(work, '')}"] if work is not None else []
    given += [many(finished.n_readings, "reading"), show_value(finished.elapsed_ns / 1e9, "s")]
    total = f"{counted(progress.readings)} in {show_value(progress.elapsed_s, 's')} so far"
    return "; ".join(
        [
            f"round {finished.plan.index}: {', '.join(given)}",
            total,
            *_show_intervals(progress, options),
            _follows(progress),
        ]
    )


def _show_intervals(progress: Progress, options: Options) -> Iterator[str]:
    """Show the intervals of metrics that must be satisfied, and their wanted widths."""
    for analysis in progress.analyses:
        if not analysis.metric.must_satisfy:
            continue
        if analysis.estimate is None:
            reason = within_sentence(no_number(analysis.notices))
            yield f"{analysis.metric.name} no number: {reason}"
            continue
        found, value = analysis.estimate, abs(analysis.estimate.value)
        wanted = wanted_half_width(found, analysis.metric, options.target)
        interval = show_estimate(found, analysis.metric.unit)
        shown = f"{analysis.metric.name} {interval} of {counted(analysis.n)}"
        if value > 0.0:
            shown += f", half-width {percent(found.relative_half_width)}"
            shown += f", wanted {percent(wanted / value)}" if math.isfinite(wanted) else ""
        yield shown
    if progress.missing:
        yield f"too few readings of {', '.join(progress.missing)} to be satisfied"


def _follows(progress: Progress) -> str:
    """Say the decision, and the effort to reach the target."""
    if progress.decision is not None:
        return f"stop: {say_end(progress.decision)}"
    needed = progress.readings_needed
    return f"go on, about {counted(needed)} more" if needed else "go on"
