"""The readings of a number: how many there are, which count, and how they give its interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.layout import Part, table
from benchrigor.model import Analysis, Code, Phase, Round, RunRecord, StablePhase
from benchrigor.model.analysis import Kind, PhaseReason
from benchrigor.model.readings import Reason
from benchrigor.model.text import false_alarms, no_number, show_estimate
from benchrigor.report.fact import Depth, Fact, known, step
from benchrigor.report.facts.machine_facts import with_waiting
from benchrigor.report.facts.number_facts import meaning, show_figures
from benchrigor.report.facts.work_facts import facts_of_work, show_amounts, works_of
from benchrigor.stats.series.interval import MIN_FOR_AUTOCORRELATION
from benchrigor.stats.series.undisturbed import total_delay
from benchrigor.units import (
    counted,
    first_few,
    many,
    percent,
    show_value,
    show_values,
    statistic_of,
)

_MOST_PHASES = 12
_BY_MODEL = "long-run-variance"
_IN_FULL = 0.95  # of the effective sample size of independent readings
_Rows = tuple[tuple[str, ...], ...]


def facts_of_basis(analysis: Analysis, record: RunRecord) -> list[Fact]:
    """Return the basis of a number: readings, or of amounts of work and durations."""
    basis = _facts_of_readings if analysis.statistic("mean") else facts_of_work
    return basis(analysis, record)


def _facts_of_readings(analysis: Analysis, record: RunRecord) -> list[Fact]:
    """Return which readings of a mean or quantile count, and the steps from them to its interval.

    A page has none of them: it has the data of the whole run.
    """
    pace = _pace(analysis)
    changing = (Code.CHANGING_PACE,) if pace else ()
    rows = known(
        Fact("used", Depth.DETAILS, "used", _used(analysis, record), analysis.n_kept),
        Fact("left out", Depth.DETAILS, "left out", _left_out(analysis, record)),
        Fact("spread", Depth.DETAILS, "spread", _spread(analysis)),
        Fact("pieces", Depth.DETAILS, "pieces", _levels(analysis)),
        Fact("changes", Depth.DETAILS, "pace", pace, codes=changing),
    )
    return (rows if analysis.estimate else []) + known(
        step("taken", _taken(analysis, record), *_delayed(analysis)),
        step("phases", _phases(analysis, record), *_found(analysis)),
        _level(analysis, record),
        step("resemblance", _resemblance(analysis), *_inflation(analysis)),
        step("interval", _interval(analysis), *_errors(analysis)),
    )


def _used(analysis: Analysis, record: RunRecord) -> str:
    """Say how many readings the number is of, and how many independent ones they equal."""
    estimate, shown = analysis.estimate, _counting(analysis, record)
    if estimate is None:
        return shown
    if analysis.is_combined:
        return f"{shown}, from {many(estimate.n, analysis.kind.noun)}"
    return f"{shown}, effective sample size {counted(estimate.n_effective)}"


def _counting(analysis: Analysis, record: RunRecord) -> str:
    """Say how many of the readings taken count, and whether some count more than once."""
    selection, whole = record.selection(analysis.metric.name), many(analysis.taken, "reading")
    if selection is None or not (selection.counts > 1).any():
        return f"{counted(analysis.n_kept)} of {whole}"
    once, in_all = int((selection.counts > 0).sum()), counted(int(selection.counts.sum()))
    repeated = f"some count more than once, in place of disturbed ones: {in_all} in all"
    return f"{counted(once)} of {whole} ({repeated})"


def _left_out(analysis: Analysis, record: RunRecord) -> str:
    """Say which readings do not count."""
    delay, cut = left_out_for_delay(analysis, record), _cut(analysis, record)
    return f"{delay}; {cut.removeprefix('none; ')}".removesuffix("; none") if delay else cut


def left_out_for_delay(analysis: Analysis, record: RunRecord) -> str:
    """Say how many of the readings taken do not count for their delay; empty if all do."""
    if analysis.disturbed is None:
        return ""
    selection, left_out = record.selection(analysis.metric.name), analysis.disturbed.left_out
    if selection is not None:
        left_out = int((selection.reasons == Reason.DISTURBED).sum())
    return f"{counted(left_out)} of {counted(analysis.taken)} for delay"


def _cut(analysis: Analysis, record: RunRecord) -> str:
    """Say which readings were cut off, and whether a warm-up was looked for."""
    if record.options.cut_shares is not None:
        return _as_asked(*record.options.cut_shares)
    if len(analysis.phases) > 1:
        share = 1.0 - analysis.n_kept / sum(phase.phases[-1].stop for phase in analysis.phases)
        where = _by_series(analysis)
        return f"{percent(share)} of the readings, {where}" if share else "none"
    if not analysis.phases or analysis.phases[0].reason is PhaseReason.WHOLE:
        cold = _first(analysis.n - analysis.n_kept)
        return f"{cold}too few readings to look for a warm-up"
    return _transients(analysis.phases[0], analysis)


def _as_asked(at_start: float, at_end: float) -> str:
    """Say which shares the options cut."""
    return f"{percent(at_start)} at the start and {percent(at_end)} at the end, as asked"


def _transients(stable: StablePhase, analysis: Analysis) -> str:
    """Say which phases of a series do not count."""
    unit, margin = analysis.metric.unit, stable.n - analysis.n_kept
    parts = [
        f"{phase.label} {counted(phase.start)}–{counted(phase.stop - 1)} "
        f"(median {show_value(phase.median, unit)})"
        for phase in stable.phases
        if not _is_measured(phase, stable)
    ]
    if parts and margin:
        beside = "it" if len(parts) == 1 else "them"
        parts.append(f"{counted(margin)} next to {beside} as a margin")
    return "; ".join(parts) or f"{_first(margin)}no warm-up or cool-down found"


def _first(cold: int) -> str:
    """Say why the first readings do not count although no phase was cut."""
    first = "the first" if cold == 1 else f"the first {counted(cold)}"
    return f"{first}, which may be cold; " if cold else "none; "


def _is_measured(phase: Phase, stable: StablePhase) -> bool:
    """Whether a phase belongs to the measured readings."""
    if stable.start is None or stable.stop is None:
        return False
    return stable.start <= phase.start < stable.stop


def _by_series(analysis: Analysis) -> str:
    """Say how pieces or rounds were cut: rounds all in the same way, or one by one."""
    if analysis.phases[-1].reason is PhaseReason.WHOLE:
        return "at the start of pieces, where caches are cold"
    stable = [phase for phase in analysis.phases if phase.start is not None]
    starts = {phase.start for phase in stable}
    ends = {phase.phases[-1].stop - (phase.stop or 0) for phase in stable}
    if len(starts) > 1 or len(ends) > 1:
        return "each round by itself"
    parts = [f"the first {counted(start)}" for start in starts if start]
    parts += [f"the last {counted(end)}" for end in ends if end]
    return f"{' and '.join(parts)} of each round and a margin" if parts else "a margin of each"


def _spread(analysis: Analysis) -> str:
    """Show the variance components, as shares of the value."""
    split = analysis.split
    if split is None or split.level == 0.0:
        return ""
    between, within = (
        percent(variance**0.5 / abs(split.level), digits=2)
        for variance in (split.between, split.within)
    )
    return f"{between} of the value between invocations, {within} between readings"


def _levels(analysis: Analysis) -> str:
    """Show the levels of the pieces of a run."""
    known_levels = [level for level in analysis.levels if level is not None]
    return ", ".join(show_values(known_levels, analysis.metric.unit))


def _pace(analysis: Analysis) -> str:
    """Show the levels that the machine went through while it was watched."""
    stable = analysis.phases[0] if len(analysis.phases) == 1 else None
    if stable is None or stable.reason is not PhaseReason.CHANGING_PACE:
        return ""
    medians = [phase.median for phase in stable.phases if _is_measured(phase, stable)]
    low, high = (show_value(end, analysis.metric.unit) for end in (min(medians), max(medians)))
    changes = f"{many(len(medians) - 1, 'step')} between {low} and {high}"
    return f"{changes}; the interval is about this time, from blocks of it"


def taken_of(analysis: Analysis, record: RunRecord) -> str:
    """Say how much was measured."""
    if not analysis.statistic("mean"):
        shown, work = many(len(record.rounds), "round"), works_of(record)
        return shown + f" of work {show_amounts(work, analysis.metric.unit)}" * bool(work)
    shown = many(analysis.taken, "reading")
    loop = record.facts.get("inner_loop")
    shown += f" of {loop} calls each" if isinstance(loop, int) and loop > 1 else ""
    if analysis.kind is Kind.INVOCATIONS:
        return f"{shown} in {counted(len(record.rounds))} fresh processes"
    if "startup_s" not in record.facts:
        return shown
    is_first = all(map(_is_first_call, record.rounds))
    return f"{shown}, each {'the first call' if is_first else 'a call'} in a fresh process"


def _is_first_call(finished: Round) -> bool:
    """Whether a fresh process gave no reading but its first call, which is often slower."""
    first = finished.facts.get("first_call_s")
    return all(readings.tolist() == [first] for readings in finished.unit_readings.values())


# The steps of an explanation


def _taken(analysis: Analysis, record: RunRecord) -> str:
    red = len(record.rounds) - len(record.counted_rounds)
    more = f"; {red} more, with too much interference, are left out" if red else ""
    rounds = many(len(record.counted_rounds), "round")
    delayed = left_out_for_delay(analysis, record)
    text = f"{many(analysis.taken, 'reading')} in {rounds}{more}."
    return f"{text} Left out: {delayed}, as other programs made them longer." if delayed else text


def _delayed(analysis: Analysis) -> _Rows:
    """Say which readings count as disturbed, and show the number with all of them."""
    if analysis.disturbed is None:
        return ()
    return (
        ("delay", "a reading waited for a processor for more than 0.1% of its time"),
        ("weights", "long readings are hit more often: quiet ones of that length count again"),
        ("waiting", with_waiting(analysis) or "little"),
    )


def _phases(analysis: Analysis, record: RunRecord) -> str:
    """Say which of the readings that are left count."""
    if record.options.statistic == "min":
        return "A minimum needs no stable phase: it is the least reading that counts."
    if not analysis.n:
        return ""
    if not analysis.n_kept and analysis.phases:
        return f"None of them can be used ({analysis.phases[0].reason})."
    return f"Used: {_counting(analysis, record)}. Cut off: {_cut(analysis, record)}."


def _found(analysis: Analysis) -> _Rows:
    """Return the phases of a series, and the points between them."""
    if len(analysis.phases) != 1 or analysis.phases[0].reason is PhaseReason.WHOLE:
        return ()
    points = analysis.phases[0].change_points
    where = first_few([*map(counted, points.indices)], _MOST_PHASES)
    where = f"at {where}" if where else "none"
    rows = _phase_rows(analysis.phases[0], analysis.metric.unit)
    return (
        *((label, ", ".join((span, *others))) for label, span, *others in rows),
        ("changes", f"{where} ({false_alarms(points.level)})"),
        ("pace", _pace(analysis)),
    )


def phase_table(stable: StablePhase, unit: str) -> list[Part]:
    """Return a line per phase."""
    return table(_phase_rows(stable, unit, None), "<>><", has_names=False, indent=2)


def _phase_rows(
    stable: StablePhase, unit: str, most: int | None = _MOST_PHASES
) -> list[tuple[str, ...]]:
    return [
        (
            str(phase.label),
            f"{counted(phase.start)} to {counted(phase.stop)}",
            percent(phase.n / stable.change_points.n),
            f"median {show_value(phase.median, unit)}",
        )
        for phase in stable.phases[:most]
    ]


def _level(analysis: Analysis, record: RunRecord) -> Fact:
    """Say which figure of the readings is estimated, and how."""
    estimate, statistic = analysis.estimate, record.options.statistic
    if estimate is None:
        return step("level", "")
    if analysis.is_combined and estimate.n > 1:
        noun = analysis.kind.noun
        text = f"Each of {many(estimate.n, noun)} gives its {statistic}. The interval comes from "
        text += f"the spread of these: readings of one {noun} do not show how others differ."
        rows = ("spread", _spread(analysis)), ("levels", _levels(analysis))
        return step("level", text, *rows)
    if statistic_of(statistic)[0] == "quantile":
        share = percent(statistic_of(statistic)[1])
        value = show_value(estimate.value, analysis.metric.unit)
        rank = "the ends are the readings at the shares that chance may reach around this one"
        text = f"{share} of the readings that count are below {value}: the {statistic}."
        return step("level", text, ("rank", rank))
    value, spans = show_value(estimate.value, analysis.metric.unit), ""
    if len(analysis.fits) == 1 and analysis.fits[0].transients:
        spans = " and ".join(
            f"{transient:.3g}" for transient in analysis.fits[0].transients if transient > 0.0
        )
        spans = f"a slow start that fades over {spans or 'few'} readings, too small to cut"
    rest = ", apart from the rest of a warm-up" * bool(spans)
    return step(
        "level",
        f"The {statistic} of the readings that count is {value}{rest}.",
        ("kind", meaning(analysis)),
        ("transients", spans),
    )


def _resemblance(analysis: Analysis) -> str:
    """Say what readings are worth that resemble the one before."""
    estimate = analysis.estimate
    if estimate is None or analysis.is_combined:
        return ""
    n, effective = counted(analysis.n_kept), counted(estimate.n_effective)
    if analysis.n_kept < MIN_FOR_AUTOCORRELATION:
        return "Too few readings to see whether successive ones are similar: each counts in full."
    if estimate.n_effective > _IN_FULL * analysis.n_kept:
        return "Successive readings hardly resemble each other: each counts in full."
    return (
        f"Successive readings resemble each other: {n} of them count as {effective} "
        "independent ones (effective sample size)."
    )


def _inflation(analysis: Analysis) -> _Rows:
    """Say how the resemblance of readings was found."""
    rows, merged = list[tuple[str, str]](), analysis.subsessions
    for fit in analysis.fits[:1]:
        how = f"an autoregressive model of order {fit.order}"
        if fit.method != _BY_MODEL:
            how = fit.method.replace("-", " ")
        rows += [("variance", f"{fit.inflation:.3g} times that of independent readings, by {how}")]
    if merged is not None and analysis.n_kept >= MIN_FOR_AUTOCORRELATION:
        size = "any number" if merged.size is None else counted(merged.size)
        means = f"means of {size} " * (merged.size != 1)
        limit = f"{merged.autocorrelation:.2f} (limit {merged.limit:g})"
        rows += [("neighbours", f"{means}correlate by {limit}")]
    return tuple(rows)


def _interval(analysis: Analysis) -> str:
    """Show the interval, or say why it is missing."""
    estimate, unit = analysis.estimate, analysis.metric.unit
    if estimate is None:
        return f"No interval can be given: {no_number(analysis.notices)}"
    return f"Their spread gives the interval: {show_estimate(estimate, unit)}."


def _errors(analysis: Analysis) -> _Rows:
    """Return the figures that make an interval, or the observed ones in place of it."""
    estimate, unit = analysis.estimate, analysis.metric.unit
    if estimate is None:
        return (("observed", show_figures(analysis.observed, unit)),)
    error, freedom = estimate.standard_error, estimate.degrees_of_freedom
    if error is None or freedom is None:
        return ()
    skewness = analysis.fits[0].skewness if len(analysis.fits) == 1 else 0.0
    skewed = f", corrected for a skewness of {skewness:.2g}" if skewness else ""
    return (
        ("standard error", show_value(error, unit)),
        ("Student t", f"{freedom:.3g} degrees of freedom{skewed}"),
        ("method", estimate.method),
    )


_WHY = {
    Reason.KEPT: "It counts.",
    Reason.WARM_UP: "It is left out with the warm-up.",
    Reason.COOL_DOWN: "It is left out with the cool-down.",
    Reason.MARGIN: "It is left out as a margin: next to a cut, or at a start that may be cold.",
    Reason.RED_ROUND: "It is left out with its round, which lost too much time to interference.",
    Reason.COLD: "It is left out as cold: it loads data that the next ones find in memory.",
    Reason.PILOT: "Its round is left out: it found the amounts to run.",
    Reason.SHORT: "Its round is left out: it was too short, or of too little work.",
    Reason.CUT: "It is cut off, as was asked.",
    Reason.SMALL_WORK: "Its round is left out: it had more overhead than work.",
    Reason.FURTHER: "Its round is left out: its larger amount only tests the line.",
    Reason.OTHER_LEVEL: "It is left out: it is not at the level of the stable phase.",
    Reason.UNSTEADY: "It does not count: its series has no stable phase.",
}


def explain_reading(record: RunRecord, index: int, metric: str | None = None) -> dict[str, Any]:
    """Explain why one reading counts, or does not.

    Parameters
    ----------
    record
        Of a finished or a running session.
    index
        Its place in ``record.readings(metric)``, from 0.
    metric
        Name; None for the first metric that must be satisfied.

    Returns
    -------
    dict
        metric, index, round, value, reason (the word of a `Reason`, None if an old record does not
        know it), counts (how often it counts), and the sentence that says so.

    Raises
    ------
    InvalidInput
        When no metric has that name, or such a reading is missing.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> explain_reading(record, 0)["metric"]
    'time'
    """
    values, selection = record.readings(metric), record.selection(metric)
    analysis = record.analysis(metric)
    if analysis is None or not 0 <= index < values.size:
        raise InvalidInput(
            f"reading {index} is not there: {record.name} has {many(values.size, 'reading')}, "
            "counted from 0"
        )
    taken = record.readings_by_round(metric)
    begins = np.cumsum([0, *(part.size for _, part in taken)])
    at = int(np.searchsorted(begins, index, side="right")) - 1
    done, place = taken[at][0], index - int(begins[at])
    reason = None if selection is None else Reason(selection.reasons[index])
    counts = 0 if selection is None else int(selection.counts[index])
    if reason is None:
        why = "An earlier version stored this run, which did not keep why single rounds count."
    elif reason is Reason.DISTURBED:
        why = _say_disturbed(done, place)
    else:
        why = _WHY[reason]
    if counts > 1:
        why = f"It counts {counts} times: it also stands for disturbed readings of its length."
    name, value = analysis.metric.name, float(values[index])
    shown = show_value(value, analysis.metric.unit)
    return {
        "metric": name,
        "index": index,
        "round": done.plan.index,
        "value": value,
        "reason": None if reason is None else reason.word,
        "counts": counts,
        "sentence": f"Reading {index} of {name}, {shown} in round {done.plan.index}. {why}",
    }


def _say_disturbed(done: Round, place: int) -> str:
    """Say how much delay was measured during a reading that is left out."""
    if (delays := done.delays) is not None:
        sizes = np.diff(delays.stops, prepend=0)
        group = min(int(np.searchsorted(delays.stops, place, side="right")), sizes.size - 1)
        delay_s, size = float(total_delay(delays)[group]), int(sizes[group])
        if delay_s > 0.0:
            during = "it" if size == 1 else f"its group of {size} readings"
            return f"It does not count: {show_value(delay_s, 's')} of delay during {during}."
    return "It does not count, so that readings of each length keep their share."
