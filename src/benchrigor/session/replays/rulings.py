"""Apply stop rules to a recording: sessions, plain t, and functions of the user."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from benchrigor.errors import DetectorFailed, InvalidInput, NotEstimable
from benchrigor.model import (
    ChangePoints,
    Estimate,
    Floats,
    Kind,
    Metric,
    Options,
    Ruling,
    quantile_named,
)
from benchrigor.model.text import no_number
from benchrigor.protocols import Detector
from benchrigor.session.analysis_chain import as_detector
from benchrigor.session.engine import Engine
from benchrigor.session.replays.recorded_run import PIECE_NS, Recording
from benchrigor.session.stop_rules import agrees, min_evidence, next_check, wanted_half_width
from benchrigor.stats import RupturesDetector, estimate_level
from benchrigor.stats.changepoints.ruptures_adapter import Estimator
from benchrigor.stats.estimators.estimation import notice_of
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE, student_t
from benchrigor.stats.series.subsessions import SUBSESSIONS, fit_merged

PLAIN_T = "plain t"
_FIRST_SIZE = 5  # plain t is applied after every reading from this one on, as scripts do

Rule = Options | Detector | Estimator | Callable[[Floats], Estimate]
Judge = Callable[[str, Recording, Options], Ruling]


def judge_of(rule: object) -> Judge | None:
    """Return the function that applies a rule to a recording; None if the rule is not valid."""
    if isinstance(rule, str):
        return BUILT_IN.get(rule)
    if isinstance(rule, Options):
        return _by_session
    if isinstance(rule, type):
        return None
    if isinstance(rule, Estimator | RupturesDetector):
        return partial(_by_session, detector=as_detector(rule))
    return partial(_by_function, rule) if callable(rule) and _takes_one(rule) else None


def _takes_one(function: Callable[..., object]) -> bool:
    """Whether a function can be called with the readings alone."""
    try:
        inspect.signature(function).bind(None)
    except (TypeError, ValueError) as error:
        return isinstance(error, ValueError)  # functions written in C may have no signature
    return True


def _by_session(
    name: str, recording: Recording, options: Options, detector: Detector | None = None
) -> Ruling:
    """Give a session the readings that it asks for until it is satisfied or none is left."""
    if detector is not None:
        options = replace(options, trim="auto")
    options = _without_budgets(options, recording)
    engine = Engine(options, (recording.metric,), detector=detector)
    n = 0
    try:
        while n < recording.n and (plan := engine.ask()) is not None:
            piece, n = recording.piece(plan, n)
            engine.tell(piece)
        final = recording.analyse(options, detector)
    except DetectorFailed as error:
        return Ruling(name=name, sentence=f"{error}.")
    progress, decision = engine.progress, engine.decision
    sentence = "" if final.estimate else no_number(final.notices)
    ruling = Ruling(name=name, final=final.estimate, sentence=sentence)
    if progress is None or decision is None or not decision.satisfied:
        return ruling
    return replace(ruling, stopped=n, estimate=progress.analyses[0].estimate)


def _without_budgets(options: Options, recording: Recording) -> Options:
    """Remove the budgets, since all recorded readings may be used."""
    continuous = recording.kind in (Kind.UNIT_READINGS, Kind.PIECES)
    pieces = recording.n if recording.kind is Kind.PIECES else 1
    return replace(
        options,
        work=None,
        analysis="readings",
        rounds="restarted" if recording.kind is Kind.INVOCATIONS else "continuous",
        budget_s=math.inf if pieces == 1 else pieces * PIECE_NS / 1e9,
        pieces=pieces,
        budget_readings=None,
        readings_per_round=None,
        # The pieces of a continuous series are not the rounds in which it was measured.
        min_rounds=1 if continuous else options.min_rounds,
        max_rounds=None,
        max_rejected=recording.n + 1,
    )


def _by_long_run_variance(name: str, recording: Recording, options: Options) -> Ruling:
    return _by_session(name, recording, replace(options, method=LONG_RUN_VARIANCE))


def _by_subsessions(name: str, recording: Recording, options: Options) -> Ruling:
    if quantile_named(options.statistic) is not None:
        sentence = f"Subsessions merge means, and {options.statistic} is wanted."
        return Ruling(name=name, sentence=sentence)
    if recording.kind is Kind.PIECES:
        return Ruling(name=name, sentence=_several_series(recording))
    return _by_session(name, recording, replace(options, method=SUBSESSIONS))


def _by_plain_t(name: str, recording: Recording, options: Options) -> Ruling:
    """Apply Student's t after every reading, as if all were independent."""
    if refusal := _several_series(recording):
        return Ruling(name=name, sentence=refusal)
    statistic, is_plain = options.statistic, not recording.policy.harmonic
    if statistic != "mean" or not is_plain or recording.weights is not None:
        mean = "weighted" if is_plain else "harmonic"
        wanted = statistic if statistic != "mean" else f"a {mean} mean"
        sentence = f"{PLAIN_T} estimates arithmetic means, and {wanted} is wanted."
        return Ruling(name=name, sentence=sentence)
    (series,) = recording.series
    stopped = _first_narrow(series, recording.metric, options)
    try:
        final = _plain_t(series, options.confidence)
    except NotEstimable as error:
        return Ruling(name=name, sentence=notice_of(error).sentence)
    estimate = None if stopped is None else _plain_t(series[:stopped], options.confidence)
    return Ruling(name=name, stopped=stopped, estimate=estimate, final=final)


def _plain_t(series: Floats, confidence: float) -> Estimate:
    # Every autocorrelation is within 1, so no readings are merged.
    return replace(estimate_level(fit_merged(series, limit=1.0), confidence), method=PLAIN_T)


def _first_narrow(series: Floats, metric: Metric, options: Options) -> int | None:
    """Return the first size whose t interval is as narrow as wanted; None if there is none.

    Running sums of deviations from the first reading make a million looks as cheap as a few.
    """
    deviations = series - series[0]
    scale = float(np.abs(deviations).max()) or 1.0
    deviations /= scale
    sizes = np.arange(1, series.size + 1, dtype=np.float64)[_FIRST_SIZE - 1 :]
    sums = np.cumsum(deviations)[_FIRST_SIZE - 1 :]
    squares = np.cumsum(np.square(deviations))[_FIRST_SIZE - 1 :]
    means = sums / sizes
    errors = np.sqrt(np.maximum(squares - sums * means, 0.0) / (sizes - 1.0) / sizes) * scale
    wanted = np.full(sizes.size, math.inf)
    if options.target is not None:
        wanted = options.target * np.abs(series[0] + means * scale)
    if metric.absolute_half_width is not None:
        wanted = np.minimum(wanted, metric.absolute_half_width)
    # Quantiles of t are slow to compute, and always above the normal one.
    normal = student_t(math.inf, options.confidence)
    candidates = np.flatnonzero((errors * normal <= wanted) & (wanted > 0.0))
    for index in candidates.tolist():
        if errors[index] * student_t(sizes[index] - 1.0, options.confidence) <= wanted[index]:
            return int(index) + _FIRST_SIZE
    return None


def _by_function(
    function: Callable[[Floats], object], name: str, recording: Recording, options: Options
) -> Ruling:
    """Apply a function whenever a session would look; or cut by it if it finds change points."""
    final: Estimate | None = None
    sentence = ""
    try:
        returned = function(recording.series[0])
    except NotEstimable as error:
        sentence = notice_of(error).sentence
    else:
        if isinstance(returned, ChangePoints):
            return _by_session(name, recording, options, as_detector(function))
        final = _check_estimate(name, returned)
    if refusal := _several_series(recording):
        return Ruling(name=name, sentence=refusal)
    ruling = Ruling(name=name, final=final, sentence=sentence)
    earlier: Estimate | None = None
    for size in _look_sizes(recording, options):
        try:
            estimate = _check_estimate(name, function(recording.series[0][:size]))
        except NotEstimable:
            earlier = None
            continue
        agreed, earlier = agrees(estimate, earlier), estimate
        wanted = wanted_half_width(estimate, recording.metric, options)
        if agreed and 0.0 < wanted >= estimate.half_width:
            return replace(ruling, stopped=size, estimate=estimate)
    return ruling


def _look_sizes(recording: Recording, options: Options) -> Iterator[int]:
    """Yield the numbers of readings at which a session looks."""
    size = min_evidence(options, recording.kind).first_check
    while size <= recording.n:
        yield size
        size = next_check(size)


def _check_estimate(name: str, returned: object) -> Estimate:
    if not isinstance(returned, Estimate):
        raise InvalidInput(
            f"judge {name!r} returned {returned!r}, expected an Estimate, or the ChangePoints of a "
            "detector"
        )
    return returned


def _several_series(recording: Recording) -> str:
    """Say why a rule for one series refuses restarted rounds, if these are."""
    if not recording.in_series:
        return ""
    if recording.kind is Kind.PIECES:
        return (
            f"This rule takes one series only, and the run came in {recording.n} pieces: joined, "
            "the pauses between them would go unseen."
        )
    return (
        f"This rule takes one series only, and the {recording.n} rounds were restarted: joined, "
        "their warm-ups and the differences between them would look like noise."
    )


BUILT_IN: dict[str, Judge] = {
    "benchrigor": _by_long_run_variance,
    SUBSESSIONS: _by_subsessions,
    PLAIN_T: _by_plain_t,
}
