"""What rules say of a whole recording: sessions, plain t, and functions of one's own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import numpy.typing as npt
from scipy import special

from benchrigor.errors import DetectorFailed, InvalidInput, NotEstimable
from benchrigor.model import (
    Analysis,
    ChangePoints,
    Estimate,
    Floats,
    Kind,
    Metric,
    Notice,
    Options,
    StopReason,
    quantile_named,
)
from benchrigor.protocols import Detector
from benchrigor.session.engine import Engine
from benchrigor.session.replays.recorded_run import Recorded
from benchrigor.session.stop_rules import GROWTH, floor_for, wanted_half_width
from benchrigor.session.traces import as_detector
from benchrigor.stats import RupturesDetector, estimate_level
from benchrigor.stats.changepoints.ruptures_adapter import Estimator
from benchrigor.stats.series.interval import METHOD, student_t
from benchrigor.stats.series.subsessions import MERGING, fit_merged

PLAIN_T = "plain t"
_FIRST_LOOK = 5
"""Readings from which on plain t looks at each, as scripts that wait for it do."""

Judge = Callable[[Floats, float | None, float], tuple[int | None, Estimate | None, str]]
"""Judges a whole series, given target and confidence: where it would stop, what it would say
there, and a sentence where it has no number."""
Rule = Options | Detector | Estimator | Callable[[Floats], Estimate] | Judge
"""Whatever may be replayed under a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a rule said, and by which options."""

    options: Options
    stopped: int | None = None
    estimate: Estimate | None = None
    final: Estimate | None = None
    sentence: str = ""


def required_arguments(rule: Callable[..., object]) -> int:
    """Count the arguments that a function cannot do without."""
    try:
        parameters = inspect.signature(rule).parameters.values()
    except ValueError:  # functions written in C may keep it to themselves
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.default is each.empty and each.kind in positional for each in parameters)


def outcome_of(name: str, rule: object, given: Recorded, options: Options) -> Outcome:
    """Have a rule judge what was recorded."""
    if isinstance(rule, str):
        return BUILT_IN[rule](given, options)
    if isinstance(rule, Options):
        own = replace(rule, target=options.target, confidence=options.confidence)
        return _by_session(given, own)
    if isinstance(rule, Estimator | RupturesDetector) or not callable(rule):
        return _by_session(given, options, as_detector(rule))
    if required_arguments(rule) == 3:
        return _by_judge(name, rule, given, options)
    return _by_function(name, rule, given, options)


def _by_session(given: Recorded, options: Options, detector: Detector | None = None) -> Outcome:
    """Feed a session with what it asks for until it is satisfied, or nothing is left."""
    options = _unlimited(options, given)
    engine = Engine(options, (given.metric,), detector=detector)
    told = 0
    try:
        while told < given.n and (plan := engine.ask()) is not None:
            piece, told = given.piece(plan, told)
            engine.tell(piece)
        final = given.judged(options, detector)
    except DetectorFailed as error:
        return Outcome(options=options, sentence=f"{error}.")
    standing = engine.progress
    satisfied = engine.decision is not None and engine.decision.reason is StopReason.SATISFIED
    return Outcome(
        options=options,
        stopped=told if satisfied else None,
        estimate=standing.analyses[0].estimate if satisfied and standing is not None else None,
        final=final.estimate,
        sentence=_why(final),
    )


def _unlimited(options: Options, given: Recorded) -> Options:
    """Take the budgets off: they say what may be spent, and all that was recorded is spent."""
    continuous = given.kind is Kind.UNIT_READINGS
    return replace(
        options,
        rounds="restarted" if given.kind is Kind.INVOCATIONS else "continuous",
        budget_s=math.inf,
        budget_readings=None,
        readings_per_round=None,
        # The portions of a continuous series are not the rounds in which it was measured.
        min_rounds=1 if continuous else options.min_rounds,
        max_rounds=None,
        max_rejected=given.n + 1,
    )


def _why(analysis: Analysis) -> str:
    """Say why an analysis has no estimate; nothing where it has one."""
    if analysis.estimate is not None:
        return ""
    return next((each.sentence for each in analysis.notices), "These readings allow no number.")


def _merged(given: Recorded, options: Options) -> Outcome:
    """Judge by merged readings; they have a mean only."""
    if quantile_named(options.statistic) is not None:
        sentence = f"Subsessions merge means, and {options.statistic} is wanted."
        return Outcome(options=options, sentence=sentence)
    return _by_session(given, replace(options, method=MERGING))


def _own(given: Recorded, options: Options) -> Outcome:
    return _by_session(given, replace(options, method=METHOD))


def _by_plain_t(given: Recorded, options: Options) -> Outcome:
    """Look after each reading, as if all were independent."""
    if refusal := _one_series(given):
        return Outcome(options=options, sentence=refusal)
    averaging, statistic = given.metric.averaging, options.statistic
    if statistic != "mean" or averaging != "arithmetic":
        wanted = statistic if statistic != "mean" else f"a {averaging} mean"
        sentence = f"{PLAIN_T} is about arithmetic means, and {wanted} is wanted."
        return Outcome(options=options, sentence=sentence)
    (series,) = given.series
    stopped = _first_narrow(series, given.metric, options)
    try:
        final = _plain_t(series, options.confidence)
    except NotEstimable as error:
        return Outcome(options=options, sentence=_sentence(error))
    return Outcome(
        options=options,
        stopped=stopped,
        estimate=None if stopped is None else _plain_t(series[:stopped], options.confidence),
        final=final,
    )


def _plain_t(series: Floats, confidence: float) -> Estimate:
    # Whatever the autocorrelation, it is within 1: nothing is merged.
    return replace(estimate_level(fit_merged(series, limit=1.0), confidence), method=PLAIN_T)


def _first_narrow(series: Floats, metric: Metric, options: Options) -> int | None:
    """Return the first size whose t interval is as narrow as wanted; None if none is.

    Sums run along the series, of deviations from its first reading, so that a million looks cost
    no more than a few passes.
    """
    deviations = series - series[0]
    scale = float(np.abs(deviations).max()) or 1.0
    deviations /= scale
    sizes = np.arange(1, series.size + 1, dtype=np.float64)[_FIRST_LOOK - 1 :]
    sums = np.cumsum(deviations)[_FIRST_LOOK - 1 :]
    squares = np.cumsum(np.square(deviations))[_FIRST_LOOK - 1 :]
    means = sums / sizes
    errors = np.sqrt(np.maximum(squares - sums * means, 0.0) / (sizes - 1.0) / sizes) * scale
    wanted = np.full(sizes.size, math.inf)
    if options.target is not None:
        wanted = options.target * np.abs(series[0] + means * scale)
    if metric.absolute_half_width is not None:
        wanted = np.minimum(wanted, metric.absolute_half_width)
    # Quantiles of t are dear, and always above the normal one.
    least = student_t(math.inf, options.confidence)
    near = np.flatnonzero((errors * least <= wanted) & (wanted > 0.0))
    for some in _growing(near):
        t = -special.stdtrit(sizes[some] - 1.0, (1.0 - options.confidence) / 2.0)
        narrow = some[errors[some] * t <= wanted[some]]
        if narrow.size:
            return int(narrow[0]) + _FIRST_LOOK
    return None


def _growing(indices: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
    """Cut an array into portions, each twice as long as the one before."""
    start, size = 0, 64
    while start < indices.size:
        yield indices[start : start + size]
        start, size = start + size, 2 * size


def _by_function(
    name: str, function: Callable[[Floats], object], given: Recorded, options: Options
) -> Outcome:
    """Take looks by a function of the readings, or cut by it if it tells change points."""
    final: Estimate | None = None
    sentence = ""
    try:
        found = function(given.series[0])
    except NotEstimable as error:
        sentence = _sentence(error)
    else:
        if isinstance(found, ChangePoints):
            return _by_session(given, options, as_detector(function))
        final = _estimate(name, found)
    if refusal := _one_series(given):
        return Outcome(options=options, sentence=refusal)
    for size in _looks(given, options):
        try:
            estimate = _estimate(name, function(given.series[0][:size]))
        except NotEstimable:
            continue
        if 0.0 < wanted_half_width(estimate, given.metric, options) >= estimate.half_width:
            return Outcome(
                options=options, stopped=size, estimate=estimate, final=final, sentence=sentence
            )
    return Outcome(options=options, final=final, sentence=sentence)


def _looks(given: Recorded, options: Options) -> Iterator[int]:
    """Give the sizes at which a session looks."""
    by_round = given.kind is not Kind.UNIT_READINGS
    size = floor_for(options, by_round=by_round).first_check
    while size <= given.n:
        yield size
        size = math.ceil(size * GROWTH)


def _estimate(name: str, found: object) -> Estimate:
    if not isinstance(found, Estimate):
        raise InvalidInput(
            f"judge {name!r} returned {found!r}, expected an Estimate, or the ChangePoints of a "
            "detector"
        )
    return found


def _by_judge(
    name: str, judge: Callable[..., object], given: Recorded, options: Options
) -> Outcome:
    """Let a judge of one's own have its say on the whole series."""
    if refusal := _one_series(given):
        return Outcome(options=options, sentence=refusal)
    found = judge(given.series[0], options.target, options.confidence)
    match found:
        case (None | Integral() as stop, Estimate() | None as estimate, str() as sentence):
            stopped = None if stop is None or isinstance(stop, bool) else int(stop)
            if stop is None or (stopped is not None and 1 <= stopped <= given.n):
                return Outcome(
                    options=options, stopped=stopped, estimate=estimate, sentence=sentence
                )
    raise InvalidInput(
        f"judge {name!r} returned {found!r}, expected where it would stop (1 to {given.n}, or "
        "None), an Estimate or None, and a sentence"
    )


def _one_series(given: Recorded) -> str:
    """Refuse rounds that were restarted to rules that know one series only."""
    if given.kind is not Kind.INVOCATIONS:
        return ""
    return (
        f"It knows one series only, and each of these {given.n} rounds was started anew: "
        "joined, their warm-ups and what differs between them would pass for noise."
    )


def _sentence(error: NotEstimable) -> str:
    return error.notice.sentence if isinstance(error.notice, Notice) else str(error)


BUILT_IN: dict[str, Callable[[Recorded, Options], Outcome]] = {
    "benchrigor": _own,
    MERGING: _merged,
    PLAIN_T: _by_plain_t,
}
