"""Replay: apply stop rules to recorded readings, to see when they stop and with what estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate, Kind, Options, Replay, Ruling, RunRecord
from benchrigor.model.checks import refuse
from benchrigor.model.text import counted, percent
from benchrigor.session.replays.recorded_run import Recording, recording_of
from benchrigor.session.replays.rulings import BUILT_IN, Judge, Rule, judge_of
from benchrigor.session.stop_rules import min_evidence, wanted_half_width
from benchrigor.stats.estimators.estimation import estimate
from benchrigor.stats.estimators.proportion import whole_of
from benchrigor.stats.planning.agreement import holds
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION, MIN_FOR_VARIANCE


def replay(
    readings: npt.ArrayLike | RunRecord,
    *,
    judges: Sequence[str | tuple[str, Rule]] | None = None,
    target: float | None = None,
    confidence: float | None = None,
    detector: str | None = None,
    metric: str | None = None,
    unit: str = "",
) -> Replay:
    """Apply stop rules to recorded readings: show when they would stop, and with what estimate.

    Parameters
    ----------
    readings
        Values of one continuous series, shape (n,); or a `RunRecord`. Restarted rounds are
        replayed one by one.
    judges
        Names of built-in rules, or pairs of a name and a rule:

        - "benchrigor": a session, which gets the readings that it asks for;
        - "subsessions": the same with ``method="subsessions"``;
        - "plain t": Student's t for independent readings, applied from the fifth reading on;
        - `Options`: a session with these, but the replay's target and confidence;
        - a detector of change points (a `protocols.Detector` or a ruptures estimator): a session
          that cuts by it;
        - a function of the readings so far that returns their `Estimate`: applied at the
          looks of a session (at 500 readings, then always at half as many again), and satisfied
          if two looks in a row agree, as a session is.

        None: all built-in rules.
    target
        Relative half-width at which to stop; None for the target of the run, and 2% for values.
    confidence
        Nominal coverage, in (0, 1); None for the run's own, and 0.95 for values.
    detector
        Name of the detector that sessions cut by, as in `Options`; None for the run's own.
    metric
        Metric of a run, None for the first that must be satisfied; or the name of the values.
    unit
        Unit of the values.

    Returns
    -------
    Replay
        One `Ruling` per judge. Budgets are ignored: a rule stops when it is satisfied.

    Raises
    ------
    InvalidInput
        When the readings or an argument are unsuitable, or a judge returns something else.

    Notes
    -----
    The readings after the stop, 30 or more (or two rounds), show whether the interval holds: it
    does if the interval of the difference between both estimates contains 0. Agreement with a later
    interval more than twice as wide shows nothing. Take intervals a third as wide as they should
    be: an exact later value contradicts 51% of them, a later interval twice as wide 22% (and 5% of
    right ones), a still wider one hardly more than of right ones. Later readings are not trimmed,
    so a step after the stop counts against every rule that stopped before it.

    Examples
    --------
    >>> import numpy as np
    >>> from benchrigor.stats import estimate_mean
    >>> readings = np.random.default_rng(1).normal(0.01, 0.002, 2000)
    >>> shown = replay(readings, judges=["benchrigor", ("untrimmed", estimate_mean)], unit="s")
    >>> [(ruling.name, ruling.stopped, ruling.held) for ruling in shown.rulings]
    [('benchrigor', 750, True), ('untrimmed', 750, True)]
    """
    recording = recording_of(readings, metric=metric, unit=unit)
    if recording.kind is Kind.WORK:
        raise InvalidInput(
            f"{recording.name} was measured by rounds of various work, each chosen by the ones "
            "before: expected readings, or rounds that do the same work"
        )
    options = replace(
        recording.options,
        target=recording.options.target if target is None else target,
        confidence=recording.options.confidence if confidence is None else confidence,
        detector=recording.options.detector if detector is None else detector,
    )
    rules = _check(tuple(BUILT_IN) if judges is None else judges)
    return Replay(
        name=recording.name,
        n=recording.n,
        counted_in={Kind.UNIT_READINGS: "reading", Kind.PIECES: "piece"}.get(
            recording.kind, "round"
        ),
        target=options.target,
        confidence=options.confidence,
        unit=recording.metric.unit,
        rulings=tuple(_replay(*rule, recording, options) for rule in rules),
    )


def _check(judges: object) -> list[tuple[str, object, Judge]]:
    """Return name, rule and the function that applies it; a built-in rule is its name."""
    if isinstance(judges, str) or not isinstance(judges, Sequence) or not judges:
        raise InvalidInput(f"judges is {judges!r}, expected a sequence of at least one judge")
    rules: list[tuple[str, object, Judge]] = []
    problems = []
    for index, judge in enumerate(judges):
        name, rule = judge if isinstance(judge, tuple) and len(judge) == 2 else (judge, judge)
        applied = judge_of(rule)
        if isinstance(name, str) and name.strip() and applied is not None:
            rules.append((name, rule, applied))
        else:
            known = ", ".join(map(repr, BUILT_IN))
            problems.append(
                f"judges[{index}] is {judge!r}, expected {known}, or a pair of a name and Options, "
                "a detector, or a function of readings"
            )
    names = [name for name, _, _ in rules]
    repeated = sorted({name for name in names if names.count(name) > 1})
    problems += [f"judge {name!r} is given twice, expected each name once" for name in repeated]
    refuse(problems)
    return rules


def _replay(
    name: str, rule: object, judge: Judge, recording: Recording, options: Options
) -> Ruling:
    """Apply a rule, and compare its estimate with the readings after its stop."""
    if isinstance(rule, Options):
        options = replace(rule, target=options.target, confidence=options.confidence)
    ruling = judge(name, recording, options)
    if ruling.stopped is None or ruling.estimate is None:
        if ruling.final is None or ruling.sentence:
            return ruling
        return replace(ruling, sentence=_why_not_yet(ruling.final, recording, options))
    later = _later(recording.after(ruling.stopped), options)
    held = None if later is None else holds(ruling.estimate, later)
    return replace(ruling, later=later, held=held)


def _why_not_yet(final: Estimate, recording: Recording, options: Options) -> str:
    """Say why a rule that has a number of all readings would go on."""
    wanted = wanted_half_width(final, recording.metric, options)
    whole, name = whole_of(final)
    if math.isinf(wanted) or not whole:
        return "It would go on: no half-width is wanted that it could reach."
    if final.half_width > wanted:
        reached, asked = (percent(width / whole) for width in (final.half_width, wanted))
        return f"It would go on: the half-width is {reached} of the {name}, {asked} is wanted."
    least = min_evidence(options, recording.kind)
    if recording.n < least.first_check:
        return f"It would go on: it first looks at {counted(least.first_check)}."
    return (
        "It would go on: the interval of all is narrow enough, and its last look, before the "
        "end, did not find it so."
    )


def _later(rest: Recording | None, options: Options) -> Estimate | None:
    """Estimate the readings after a stop; None if there are too few."""
    options = replace(options, method=LONG_RUN_VARIANCE)
    if rest is None or rest.n < (MIN_FOR_VARIANCE if rest.in_series else MIN_FOR_AUTOCORRELATION):
        return None
    if rest.in_series:
        later = rest.analyse(options).estimate
        return later if later is not None and later.n >= MIN_FOR_VARIANCE else None
    # The readings after a stop do not start with a warm-up: no transient is fitted.
    policy = replace(rest, options=options).policy
    return estimate(rest.series, replace(policy, trim=False)).estimate
