"""The report for a terminal: the number, its basis, and every Notice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchrigor.layout import Line, Page, Part, Title, page, row, table
from benchrigor.model import (
    Analysis,
    Code,
    Estimate,
    Notice,
    Options,
    Phase,
    RunRecord,
    StablePhase,
    WpsFit,
)
from benchrigor.model.analysis import Kind, PhaseReason
from benchrigor.model.interference import Light
from benchrigor.model.machine import OF_MACHINE
from benchrigor.model.text import (
    MEMORY_FLOOR,
    PEAK_MEMORY,
    counted,
    many,
    no_number,
    percent,
    refusal_of,
    say_end,
    show_duration,
    show_estimate,
    show_overhead,
    show_peak_memory,
    show_value,
)
from benchrigor.report.figure_text import (
    durations_of,
    fitted_work,
    grown,
    name_fit,
    name_rounds,
    outlying,
    say_prediction,
    show_figures,
    show_levels,
    subsessions_of_rounds,
)
from benchrigor.report.notice_lines import marked
from benchrigor.report.pace_text import (
    pressure_of_run,
    show_pace,
    show_pressure,
    show_total,
    with_waiting,
)
from benchrigor.session.conditions.red_rounds import advice
from benchrigor.stats.readings.evidence import asked_half_width
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION
from benchrigor.stats.statistics.proportion import WILSON, whole_of
from benchrigor.stats.statistics.rate import BY_DURATION, HARMONIC
from benchrigor.stats.statistics.statistic import TRIMMED
from benchrigor.stats.statistics.variance_components import readings_per_invocation
from benchrigor.units import Direction, Quantity

_FEWEST_TO_FORESEE = 10  # from fewer readings nobody can say how many more it takes
_KNOWN = 99.5  # per cent of the time that are shown as all of it
NOTABLE = 1.05  # Autocorrelation that inflates the variance by less is not reported
_SAME = 5e-4


def render(record: RunRecord) -> Page:
    """Return the whole report of a run as plain text, up to 79 columns wide.

    Parameters
    ----------
    record
        Of a finished or a running session.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> render(record).splitlines()[0]
    'dict()'
    """
    light = _light(record)
    lines, marks = list[Part](), _untold(record.session_notices, light)
    for analysis in record.analyses:
        rows = _metric(analysis, record)
        name = f"{analysis.metric.name}: " if len(record.analyses) > 1 else ""
        lines += rows
        marks += _untold(analysis.notices, rows, name)
    if done := record.throughput:
        lines += row("done", [show_estimate(*done)])
    lines += light
    lines += row("pressure", [show_pressure(pressure_of_run(record))])
    # Readings that were recorded elsewhere took no time here.
    lines += row("rounds", [_ending(record)] if record.elapsed_s else [])
    lines += row("measured", [_facts(record)])
    lines += row("machine", _machine(record))
    return page([Title(record.name), *lines, *marks])


def _untold(notices: Iterable[Notice], rows: Sequence[Part], name: str = "") -> list[Part]:
    """Show the Notices that no row has; a row with a Notice ends with its code."""
    told = "".join(line.text for line in rows if isinstance(line, Line))
    untold = (notice for notice in notices if f"[{notice.code}]" not in told)
    return [line for notice in untold for line in marked(notice, name)]


def _light(record: RunRecord) -> list[Part]:
    lost = record.interference
    if lost is None:
        return []
    parts = [show_total(lost)]
    if lost.known_percent < _KNOWN and lost.is_measured:
        parts.append(f"delay is known for {lost.known_percent:.0f}% of the time")
    elif lost.light is Light.UNKNOWN and lost.is_measured:
        parts.append("no light without a number of five readings")
    if any(notice.code is Code.DISTURBED for notice in record.session_notices):
        parts.append(f"{advice(lost, record.analyses)} [{Code.DISTURBED}]")
    return row("light", parts)


def _metric(analysis: Analysis, record: RunRecord) -> list[Part]:
    """Describe the number of a metric, and its basis."""
    metric, estimate, statistic = analysis.metric, analysis.estimate, record.options.statistic
    is_speed = analysis.kind is Kind.WORK
    if estimate is None:
        observed = analysis.observed
        shown = f"no number: {refusal_of(analysis.notices) or no_number(())}"
        if statistic == "min" and observed is not None:
            shown = f"min {show_value(observed.least, metric.unit)}, no interval"
        lines = row(metric.name, [shown])
        if observed is not None:
            lines += row("observed", [show_figures(observed, metric.unit)])
            lines += row("levels", [show_levels(observed, metric.unit)])
        lines += row("", [durations_of(record, metric.unit)] if is_speed else [])
    else:
        prefix = "" if is_speed or statistic == "mean" else f"{statistic} "
        lines = row(metric.name, [f"{prefix}{show_estimate(estimate, metric.unit)}"])
        lines += row("", [with_waiting(analysis)])
        lines += row("", [_width(estimate, analysis, record)])
        lines += row("", [] if is_speed else [meaning(analysis)])
    return lines + (_line if is_speed else _readings)(analysis, record)


def _full_speed(analysis: Analysis) -> list[Part]:
    """Show a time or speed at full speed, and how far from that the machine was."""
    full, pace = analysis.at_full_pace, analysis.pace
    if full is None or pace is None:
        return []
    return row("headline", [show_estimate(full, analysis.metric.unit), show_pace(pace)])


def _readings(analysis: Analysis, record: RunRecord) -> list[Part]:
    """Describe the readings of a mean or quantile."""
    if analysis.estimate is None:
        return []
    return [
        *row("", [_evidence(analysis.estimate, analysis)]),
        *row("", [_correlation(analysis)]),
        *_full_speed(analysis),
        *_quantiles(analysis),
        *row("", [_modes(analysis)]),
        *row("spread", _split(analysis, record)),
        *row("cut", _cuts(analysis, record.options)),
        *row("pieces", piece_levels(analysis, record)),
        *row("pace", _pace(analysis)),
    ]


def _width(estimate: Estimate, analysis: Analysis, record: RunRecord) -> str:
    """Say how well the number is known, how well it should be, and how much more that takes."""
    whole, name = whole_of(estimate)
    if whole == 0.0:
        return f"half-width {estimate.half_width:.2g}"
    width = f"half-width {percent(estimate.half_width / whole)} of the {name}"
    wanted = asked_half_width(estimate, analysis.metric, record.options)
    if not analysis.metric.must_satisfy or wanted == math.inf:
        return width
    width += f", wanted {percent(wanted / whole)}"
    required = analysis.required or 0
    # A narrow interval of few readings lacks evidence, not width.
    if required > analysis.taken >= _FEWEST_TO_FORESEE and estimate.half_width > wanted:
        noun = "round" if analysis.kind is Kind.WORK else "reading"
        width += f": about {many(required, noun)} in all are needed"
        if record.elapsed_s:  # readings that were recorded elsewhere took no time here
            took_s = record.elapsed_s * required / analysis.taken
            width += f", about {show_duration(took_s)} of measuring"
    if any(notice.code is Code.NOT_CONVERGED for notice in analysis.notices):
        unsure = estimate.half_width <= wanted
        width += f"{', but too little to be sure' if unsure else ''} [{Code.NOT_CONVERGED}]"
    return width


def meaning(analysis: Analysis) -> str:
    """Say which way is better, except for plain times, and name the kind of mean."""
    metric, method = analysis.metric, analysis.estimate.method if analysis.estimate else ""
    parts = []
    if metric.direction is not None and metric.kind is not Quantity.TIME:
        parts.append(f"{metric.direction} is better")
    means = {
        HARMONIC: "harmonic mean, for equal work per reading",
        BY_DURATION: "weighted by the time of each round",
        TRIMMED: "without the same share of readings at either end",
        WILSON: "share of outcomes, interval of Wilson",
    }
    return "; ".join([*parts, *(words for name, words in means.items() if name in method)])


def _line(analysis: Analysis, record: RunRecord) -> list[Part]:
    """Describe the line through work amounts and durations: overhead and checks."""
    fit = analysis.wps
    lines = row("", [_pairs(analysis, record)])
    if fit is None:
        return lines
    inflation = f"autocorrelation inflates the variance {fit.inflation:.3g}-fold"
    outliers = outlying(analysis)
    return [
        *lines,
        *row("", [inflation if fit.inflation >= NOTABLE else ""]),
        *_full_speed(analysis),
        *row("overhead", [f"{show_overhead(fit.overhead)} in each round"]),
        *row("", [_naive(fit, analysis.metric.unit)]),
        *row("line", [fitted_work(analysis, [done.plan.work for done in record.whole_rounds])]),
        *row("", [f"each {name_fit(fit)} predicted from the others to {say_prediction(fit)}"]),
        *row("", [grown(fit)]),
        *row("", [subsessions_of_rounds(analysis)]),
        *row("", [f"outlying: {name_rounds(outliers)}"] if outliers else []),
    ]


def _pairs(analysis: Analysis, record: RunRecord) -> str:
    counts = f"{many(analysis.n, 'round')}, {counted(analysis.n_kept)} counted"
    why = ", ".join(why_left_out(analysis, record))
    return f"{counts} ({why})" if why else counts


def _naive(fit: WpsFit, unit: str) -> str:
    """Show the speed that counts the overhead as work, and how far it is from the true one."""
    text = f"all work over all time: {show_value(fit.naive_speed, unit)}"
    if fit.speed is None:
        return text
    change = fit.naive_speed / fit.speed.value - 1.0
    if abs(change) < _SAME:
        return f"{text}, the same"
    return f"{text}, {percent(abs(change), digits=2)} {'lower' if change < 0.0 else 'higher'}"


def why_left_out(analysis: Analysis, record: RunRecord) -> list[str]:
    """Say how many rounds do not count, by the reasons in Notices."""
    reasons = {
        Code.SHORT_ROUNDS: f"under {show_value(record.options.short_round_s, 's')}",
        Code.PILOT_ROUNDS: "as pilots",
        Code.FURTHER_ROUNDS: "of larger amounts",
        Code.SMALL_WORK: "with too little work",
    }
    numbers = {notice.code: notice.evidence.get("rounds") for notice in analysis.notices}
    waited = analysis.disturbed
    hit = [] if waited is None else [f"{waited.left_out} with delay"]
    return [f"{numbers[code]} {why}" for code, why in reasons.items() if numbers.get(code)] + hit


def _quantiles(analysis: Analysis) -> list[Part]:
    """Show the median, and the fastest tenth, which hardly moves on a contended machine."""
    unit = analysis.metric.unit
    fastest = "p90" if analysis.metric.direction is Direction.HIGHER else "p10"
    return [
        *row("median", [_quantile(analysis.typical, unit)]),
        *row(fastest, [_quantile(analysis.floor, unit)]),
    ]


def _quantile(estimate: Estimate | None, unit: str) -> str:
    """Show a quantile that has enough readings; say if it is of averages."""
    codes = {} if estimate is None else {note.code: note.evidence for note in estimate.notices}
    if estimate is None or codes.keys() & {Code.FEW_EFFECTIVE, Code.FEW_READINGS}:
        return ""
    batched = codes.get(Code.BATCHED)
    of = f" (of averages of {batched['calls']} calls)" if batched else ""
    return f"{show_estimate(estimate, unit)}{of}"


def _modes(analysis: Analysis) -> str:
    if len(analysis.modes) < 2:
        return ""
    shown = (
        f"{show_value(mode.value, analysis.metric.unit)} {percent(mode.share, digits=2)}"
        for mode in analysis.modes
    )
    return f"{len(analysis.modes)} modes: {', '.join(shown)}"


def _split(analysis: Analysis, record: RunRecord) -> list[str]:
    """Show the variance components, and how many readings of an invocation are best."""
    split = analysis.split
    if split is None or split.level == 0.0:
        return []
    between, within = (
        percent(variance**0.5 / abs(split.level), digits=2)
        for variance in (split.between, split.within)
    )
    parts = [f"{between} of the value between invocations, {within} between readings"]
    if analysis.metric.is_duration and split.level > 0.0 and record.elapsed_s > 0.0:
        whole = record.elapsed_s / len(record.rounds)
        best = readings_per_invocation(
            split,
            start_cost=max(whole - split.readings * split.level, 0.0),
            reading_cost=split.level,
            longest=10 * max(2, int(split.readings)),
        )
        parts.append(f"best with about {many(best, 'reading')} of each after the cut")
    return parts


def left_out_for_delay(analysis: Analysis) -> str:
    """Say how many of the readings taken do not count for their delay; empty if all do."""
    if analysis.disturbed is None:
        return ""
    left_out = counted(analysis.disturbed.left_out)
    return f"{left_out} of {counted(analysis.taken)} readings left out for delay"


def _evidence(estimate: Estimate, analysis: Analysis) -> str:
    kept = f"{counted(analysis.n)} readings, {counted(analysis.n_kept)} kept"
    if delayed := left_out_for_delay(analysis):
        kept = f"{delayed}, {counted(analysis.n_kept)} kept"
    if analysis.kind is Kind.PIECES:
        return f"{kept}, from {many(estimate.n, 'piece')}"
    if analysis.kind is Kind.INVOCATIONS:
        return f"{kept}, from {many(estimate.n, 'invocation')}"
    return f"{kept}, effective sample size {counted(estimate.n_effective)}"


def _correlation(analysis: Analysis) -> str:
    """Say what merging adjacent readings shows of their autocorrelation."""
    merged = analysis.subsessions
    if merged is None or merged.size == 1 or analysis.n_kept < MIN_FOR_AUTOCORRELATION:
        return ""
    if merged.size is None:
        return f"autocorrelated ({merged.autocorrelation:.2f}), however many are merged"
    count = counted(merged.means.size)
    return f"autocorrelated; merged by {counted(merged.size)}: {count} nearly independent means"


def _cuts(analysis: Analysis, options: Options) -> list[str]:
    if not analysis.phases:
        return []
    if options.cut_shares is not None:
        return [say_cut(options)]
    if len(analysis.phases) > 1:
        whole = sum(phase.phases[-1].stop for phase in analysis.phases)
        share = 1.0 - analysis.n_kept / whole
        if analysis.kind is Kind.PIECES:
            return [f"{percent(share)} of the readings, at the start of pieces"] if share else []
        return [f"{percent(share)} of the readings, {_by_rounds(analysis)}"] if share else []
    stable = analysis.phases[0]
    parts = [
        f"{phase.label} {counted(phase.start)}–{counted(phase.stop - 1)} "
        f"(median {show_value(phase.median, analysis.metric.unit)})"
        for phase in stable.phases
        if not measured(phase, stable)
    ]
    margin = stable.n - analysis.n_kept
    if not parts:
        return [f"no warm-up or cool-down found{cold(margin)}"]
    if margin:
        parts.append(f"{counted(margin)} next to {'it' if len(parts) == 1 else 'them'} as a margin")
    return parts


def measured(phase: Phase, stable: StablePhase) -> bool:
    """Return whether a phase belongs to the measured readings."""
    if stable.start is None or stable.stop is None:
        return False
    return stable.start <= phase.start < stable.stop


def _pace(analysis: Analysis) -> list[str]:
    """Show the levels that the machine went through while it was watched."""
    stable = analysis.phases[0] if len(analysis.phases) == 1 else None
    if stable is None or stable.reason is not PhaseReason.CHANGING_PACE:
        return []
    medians = [phase.median for phase in stable.phases if measured(phase, stable)]
    low, high = (show_value(end, analysis.metric.unit) for end in (min(medians), max(medians)))
    changes = f"{many(len(medians) - 1, 'change')} between {low} and {high}"
    if len(medians) == 1:
        changes = "changes without clear steps"
    return [changes, f"the interval is about this time, from blocks of it [{Code.CHANGING_PACE}]"]


def piece_levels(analysis: Analysis, record: RunRecord) -> list[str]:
    """Show the levels of the pieces of a run, and their starts if known."""
    unit, began = analysis.metric.unit, dict[int, float]()
    for round_ in record.counted_rounds:
        if analysis.metric.name in round_.unit_readings:
            starts = round_.starts_ns
            at_s = math.nan if starts is None else float(starts[0]) / 1e9
            began.setdefault(round_.plan.piece, at_s)
    first = next(iter(began.values()), math.nan)
    shown = []
    for level, at_s in zip(analysis.levels, began.values(), strict=False):
        text = "none" if level is None else show_value(level, unit)
        shown.append(f"{text} at {show_duration(at_s - first)}" if at_s > first else text)
    return shown


def say_cut(options: Options) -> str:
    """Say which shares the options cut."""
    at_start, at_end = options.cut_shares or (0.0, 0.0)
    if at_start == at_end:
        return f"{percent(at_start)} at each end, as asked" if at_start else "nothing, as asked"
    ends = [f"{percent(at_start)} at the start"] if at_start else []
    ends += [f"{percent(at_end)} at the end"] if at_end else []
    return f"{' and '.join(ends)}, as asked"


def cold(margin: int) -> str:
    """Say why the first readings do not count although there was no cut."""
    return f"; the first {counted(margin)}, which may be cold" if margin else ""


def _by_rounds(analysis: Analysis) -> str:
    """Say how rounds were cut: all in the same way, or one by one."""
    stable = [phase for phase in analysis.phases if phase.start is not None]
    starts = {phase.start for phase in stable}
    ends = {phase.phases[-1].stop - (phase.stop or 0) for phase in stable}
    if len(starts) > 1 or len(ends) > 1:
        return "each round by itself"
    parts = [f"the first {counted(start)}" for start in starts if start]
    parts += [f"the last {counted(end)}" for end in ends if end]
    return f"{' and '.join(parts)} of each round and a margin" if parts else "a margin of each"


def phase_table(
    stable: StablePhase, unit: str, most: int | None = None, *, indent: int = 2
) -> list[Part]:
    """Return a line per phase, up to ``most`` of them."""
    return table(
        [
            (
                f"{phase.label:<9}",
                f"{counted(phase.start):>9} to {counted(phase.stop):>9}",
                percent(phase.n / stable.change_points.n),
                f"median {show_value(phase.median, unit)}",
            )
            for phase in stable.phases[:most]
        ],
        "<>><",
        has_names=False,
        indent=indent,
    )


def _ending(record: RunRecord) -> str:
    red = len(record.rounds) - len(record.counted_rounds)
    took = f"{len(record.rounds)} in {show_value(record.elapsed_s, 's')}"
    return ", ".join([took, *([f"{red} red left out"] if red else []), say_end(record.decision)])


def _facts(record: RunRecord) -> str:
    shown = []
    for key, value in record.facts.items():
        if key.startswith(OF_MACHINE) or key == MEMORY_FLOOR:
            continue
        words = key.replace("_", " ")
        if isinstance(value, float) and key.endswith("_s"):
            shown.append(f"{words.removesuffix(' s')} {show_value(value, 's')}")
        elif key == PEAK_MEMORY and value is not None:
            shown.append(f"{words} {show_peak_memory(record.facts)}")
        elif isinstance(value, int) and key.endswith("_memory"):
            shown.append(f"{words} {show_value(value, 'B')}")
        else:
            shown.append(f"{words} {value}")
    return ", ".join(shown)


def _machine(record: RunRecord) -> list[str]:
    where = record.provenance
    if where is None:
        return []
    parts = [", ".join(part for part in (where.host, where.machine) if part)]
    if where.load_before is not None and where.load_after is not None:
        parts.append(f"load {where.load_before:.2f} before, {where.load_after:.2f} after")
    return parts
