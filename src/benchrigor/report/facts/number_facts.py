"""The number of a metric: in the line of its run, with its interval, and how sure it is."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from benchrigor.model import Analysis, Code, Estimate, RunRecord
from benchrigor.model.analysis import Mode, Observed
from benchrigor.model.notice import is_of_modes
from benchrigor.model.text import (
    is_broken_off,
    no_number,
    refusal_of,
    say_end,
    show_added,
    show_interval,
    show_modes,
    show_observed,
    show_plus_minus,
    show_short,
    within_sentence,
)
from benchrigor.report.fact import Depth, Fact, known
from benchrigor.safe_text import escaped
from benchrigor.stats.readings.asked_readings import wanted_half_width
from benchrigor.stats.shares_and_quantiles import WILSON, whole_of
from benchrigor.stats.statistic import BY_DURATION, HARMONIC, TRIMMED
from benchrigor.units import (
    Quantity,
    counted,
    many,
    percent,
    shortened,
    show_duration,
    show_value,
    show_values,
)

LONGEST = 100  # Columns of the line
AT_FULL_SPEED = "at the full speed of this machine"
AS_MEASURED = "as measured"
_SHORTEST_NAME, _LONGEST_NAME = 20, 40
_FEWEST_TO_FORESEE = 10  # from fewer readings nobody can say how many more it takes
_FEW_FOR_TAIL = 10  # Fewer readings have no tenth percentile to speak of
_MEANS = {
    HARMONIC: "harmonic mean, for equal work per reading",
    BY_DURATION: "weighted by the time of each round",
    TRIMMED: "without the same share of readings at either end",
    WILSON: "share of outcomes, interval of Wilson",
}


def line_of(record: RunRecord) -> str:
    """Compose the line of a run, up to 100 columns wide; the rest is left out."""
    number, *asides = [fact.text for fact in facts_of_line(record)]
    if _is_missing(record):
        return _short_of_number(record.name, number, asides)
    return _fitting(record.name, number, asides)


def head_of(record: RunRecord) -> str:
    """Compose the head of a page: its line, but a row says why the number is missing."""
    number, *asides = [text for _, text in _of_line(record, with_reason=False)]
    return _fitting(record.name, number, asides[:1]) if _is_missing(record) else line_of(record)


def _is_missing(record: RunRecord) -> bool:
    analysis, is_least = record.analysis(), record.options.statistic == "min"
    if analysis is None or analysis.headline is not None:
        return False
    return not (is_least and analysis.observed is not None)


def facts_of_line(record: RunRecord) -> list[Fact]:
    """Return the number of a run in short, and its asides."""
    return known(*(Fact(key, Depth.LINE, "", text) for key, text in _of_line(record)))


def _of_line(record: RunRecord, *, with_reason: bool = True) -> Iterator[tuple[str, str]]:
    analysis, statistic = record.analysis(), record.options.statistic
    is_told = bool(record.rounds or "tool" in record.subject) and not record.elapsed_s
    ended = is_told and record.decision is None  # elsewhere, which took no time here
    broken = "" if ended or not is_broken_off(record.decision) else say_end(record.decision)
    if analysis is None:
        yield from (("short", "no number"), ("broken off", say_end(record.decision)))
        return
    observed, unit = analysis.observed, analysis.metric.unit
    if statistic == "min" and observed is not None:
        yield from (("short", f"min {show_value(observed.least, unit)}"), ("width", "no interval"))
    elif analysis.headline is None:
        why = within_sentence(no_number(analysis.notices)).removesuffix(".") * with_reason
        yield "short", ": ".join(filter(None, ("no number", broken, why)))
        if observed is not None:
            yield "observed", show_observed(observed, unit)
            yield "observed median", f"median {show_value(observed.median, unit)}"
        return
    else:
        yield "short", show_number(analysis, statistic)
        if any(map(is_of_modes, analysis.notices)):
            yield "modes", show_modes(analysis.modes, unit)
        as_run = as_measured(analysis)
        shown = "" if as_run is None else f"{show_value(as_run.value, unit)} {AS_MEASURED}"
        yield AS_MEASURED, shown
        yield "overhead", "" if analysis.wps is None else show_added(analysis.wps.overhead)
    done, red, first_s = record.throughput, len(record.red_rounds), record.first_call_s
    yield "first call", "" if first_s is None else f"first call {show_value(first_s, 's')}"
    yield "throughput", "" if done is None else show_short(*done)
    yield "red rounds", f"{red} of {many(len(record.rounds), 'round')} left out" if red else ""
    yield "broken off", broken


def as_measured(analysis: Analysis) -> Estimate | None:
    """Return the number with all that disturbed it, if the headline does not hold it."""
    headline, disturbed = analysis.headline, analysis.disturbed
    measured = analysis.estimate
    if disturbed is not None and disturbed.estimate is not None:
        measured = disturbed.estimate
    if headline is None or measured is None or headline.low <= measured.value <= headline.high:
        return None
    return measured


def show_number(analysis: Analysis, statistic: str) -> str:
    """Show the number of an analysis, and which statistic it is unless it is the mean."""
    headline, metric = analysis.headline, analysis.metric
    if headline is None:
        return "no number"
    shown = show_short(headline, metric.unit, is_share=metric.kind is Quantity.SHARE)
    estimated = analysis.statistic(statistic)
    return shown if estimated in ("mean", "") else f"{estimated} {shown}"


def notes_on(numbers: Iterable[str], *, corrected: str = "") -> list[str]:
    """Explain a table of numbers; ``corrected`` names its numbers at full speed, if any."""
    pace = f"{corrected}: {AT_FULL_SPEED}; {AS_MEASURED}: if that lies outside its interval"
    half = any("±" in number for number in numbers)
    return [*[pace] * bool(corrected), *["±: half of the 95% confidence interval"] * half]


def _fitting(name: str, number: str, asides: list[str]) -> str:
    """Join the parts of a line; a long name is shortened first, then asides are left out."""
    name = escaped(name)
    while True:
        tail = f"  ({'; '.join(asides)})" if asides else ""
        room = LONGEST - len(number) - len(tail) - 2
        if len(name) <= room or room >= _LONGEST_NAME or not asides:
            return f"{shortened(name, max(room, 1))}  {number}{tail}"
        if room >= _SHORTEST_NAME:
            return f"{shortened(name, room)}  {number}{tail}"
        asides.pop(-1 if len(asides) == 1 else -2)  # how it ended is last, and stays longest


def _short_of_number(name: str, why: str, observed: Sequence[str]) -> str:
    """Say why the number is missing, and show the observed readings if there is room."""
    name = shortened(name, _LONGEST_NAME)
    room, seen = LONGEST - len(name) - 2, [f" ({text})" for text in observed] or [""]
    least = _LONGEST_NAME + len("no number: ")
    shown = next((text for text in seen if room - len(text) >= least), seen[-1])
    return escaped(
        f"{name}  {textwrap.shorten(why, max(room - len(shown), 1), placeholder='…')}{shown}"
    )


def facts_of_number(analysis: Analysis, record: RunRecord) -> list[Fact]:
    """Return at most three named figures of a metric, and how sure they are.

    Of several metrics, a page has the numbers alone.
    """
    headline, unit = analysis.headline, analysis.metric.unit
    label, depth = label_of(analysis, record), Depth.PAGE
    if len(record.analyses) > 1:
        depth = Depth.DETAILS
    if headline is None or analysis.estimate is None:
        return _without_number(analysis, record, depth)
    as_run, typical = as_measured(analysis), _typical(analysis, record)
    slowed = "" if as_run is None else f"{interval(as_run, unit)}, with all that slowed it"
    target = target_of(analysis, record)
    is_wider = headline.relative_half_width > analysis.estimate.relative_half_width
    if target and is_wider and analysis.at_full_pace is not None:
        target += "; the interval at full speed is wider, as it holds for other runs too"
    unmet = tuple({notice.code for notice in analysis.notices} & {Code.NOT_CONVERGED})
    return known(
        Fact("number", Depth.PAGE, label, interval(headline, unit) + _where(analysis), headline),
        Fact(AS_MEASURED, depth, AS_MEASURED, slowed, as_run),
        Fact("median", Depth.DETAILS, "median", typical, analysis.typical),
        Fact("meaning", Depth.DETAILS, "meaning", meaning(analysis)),
        Fact("target", depth, "target", target, codes=unmet),
        Fact("forecast", Depth.DETAILS, "target", _forecast(analysis, record), analysis.required),
        Fact("modes", Depth.DETAILS, "modes", _modes(analysis.modes, unit)),
    )


def label_of(analysis: Analysis, record: RunRecord) -> str:
    """Name the number of an analysis: by its metric, or by its statistic if there is one metric."""
    statistic = analysis.statistic(record.options.statistic)
    if len(record.analyses) > 1 or not statistic:
        return analysis.metric.name
    return statistic.split()[0]


def _without_number(analysis: Analysis, record: RunRecord, depth: Depth) -> list[Fact]:
    """Say why the number is missing, and show the observed readings."""
    observed, unit = analysis.observed, analysis.metric.unit
    refusal = refusal_of(analysis.notices)
    why, codes = f"no number: {no_number(analysis.notices)}", (refusal.code,) if refusal else ()
    if record.options.statistic == "min" and observed is not None:
        why, codes = f"{show_value(observed.least, unit)}, no interval", ()
    modes = "" if observed is None else _modes(observed.levels, unit)
    return known(
        Fact("no number", Depth.PAGE, label_of(analysis, record), why, codes=codes),
        Fact("observed", depth, "observed", show_figures(observed, unit), observed),
        Fact("modes", Depth.DETAILS, "modes", modes),
    )


def interval(estimate: Estimate, unit: str) -> str:
    """Show a number with its interval, and what that is."""
    if estimate.is_bracket:
        return show_interval(estimate, unit)
    value, _, ends = show_interval(estimate, unit).rpartition(" [")
    return f"{value}, {percent(estimate.confidence, digits=10)} confidence interval [{ends}"


def _where(analysis: Analysis) -> str:
    """Say which readings the number is of, unless it is of all."""
    if analysis.at_full_pace is not None:
        return f" {AT_FULL_SPEED}"
    return "" if analysis.disturbed is None else " without disturbed readings"


def _typical(analysis: Analysis, record: RunRecord) -> str:
    """Show the median if it is another figure than the number, and has enough readings."""
    typical = analysis.typical
    codes = {} if typical is None else {note.code: note.evidence for note in typical.notices}
    few = codes.keys() & {Code.FEW_EFFECTIVE, Code.FEW_READINGS}
    if typical is None or few or record.options.statistic == "median":
        return ""
    batched = codes.get(Code.BATCHED)
    what = f"averages of {batched['calls']} calls" if batched else "readings"
    return f"{interval(typical, analysis.metric.unit)}; half of the {what} are below"


def meaning(analysis: Analysis) -> str:
    """Say which way is better, except for plain times, and name the kind of mean."""
    metric, method = analysis.metric, analysis.estimate.method if analysis.estimate else ""
    if not analysis.statistic("mean"):
        return ""
    is_told = metric.direction is not None and metric.kind is not Quantity.TIME
    parts = [f"{metric.direction} is better"] if is_told else []
    return "; ".join([*parts, *(words for name, words in _MEANS.items() if name in method)])


def target_of(analysis: Analysis, record: RunRecord) -> str:
    """Say how narrow the interval of the measured number was asked to be, and whether it is."""
    estimate, metric = analysis.estimate, analysis.metric
    wanted = math.inf if estimate is None else _wanted(estimate, analysis, record)
    if estimate is None or not metric.must_satisfy or wanted == math.inf:
        return ""
    whole, name = whole_of(estimate)
    reached = "missed" if estimate.half_width > wanted else "reached"
    of = f" of the {name}" * (name != "value")
    if analysis.at_full_pace is not None:
        which = "without disturbed readings" if analysis.disturbed is not None else AS_MEASURED
        of = f" around {show_value(estimate.value, metric.unit)} {which}"
    few = any(notice.code is Code.NOT_CONVERGED for notice in analysis.notices)
    unsure = ", but from too few readings to be sure" * (few and reached == "reached")
    got = show_plus_minus(estimate.half_width / whole)
    return f"{show_plus_minus(wanted / whole)}: {reached}, with {got}{of}{unsure}"


def _wanted(estimate: Estimate, analysis: Analysis, record: RunRecord) -> float:
    """Return the half-width that was asked for; infinite if none was, or if it has no whole."""
    if whole_of(estimate)[0] == 0.0:
        return math.inf
    return wanted_half_width(estimate, analysis.metric, record.options.asked)


def _forecast(analysis: Analysis, record: RunRecord) -> str:
    """Say how much more the target takes; a narrow interval of few lacks evidence, not width."""
    estimate, required = analysis.estimate, analysis.required or 0
    if estimate is None or not required > analysis.taken >= _FEWEST_TO_FORESEE:
        return ""
    if not analysis.metric.must_satisfy or not (
        estimate.half_width > _wanted(estimate, analysis, record)
    ):
        return ""
    text = f"about {many(required, analysis.kind.counted)} in all are needed"
    if record.elapsed_s:  # readings that were recorded elsewhere took no time here
        took_s = record.elapsed_s * required / analysis.taken
        text += f", about {show_duration(took_s)} of measuring"
    return text


def _modes(levels: Sequence[Mode], unit: str) -> str:
    """Show the levels around which readings gather; empty if there is one."""
    return show_modes(levels, unit) if len(levels) > 1 else ""


def show_figures(observed: Observed | None, unit: str) -> str:
    """Show the number of readings, and all their figures; empty for old records, without them."""
    if observed is None:
        return ""
    size = many(observed.n, "reading")
    if observed.calls > observed.n:
        size += f" of {counted(observed.calls / observed.n)} calls"
    if observed.n == 1:
        return f"{size}; {show_value(observed.median, unit)}"
    tail = [] if observed.n < _FEW_FOR_TAIL else ["p10"]
    names = ["least", *tail, "median", "mean", "greatest"]
    figures = show_values((getattr(observed, name) for name in names), unit)
    return f"{size}; {', '.join(map(' '.join, zip(figures, names, strict=True)))}"
