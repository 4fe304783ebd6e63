"""Replay: recorded readings judged under any rule, as if each had been measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Estimate, Kind, Options, Replay, Ruling, RunRecord
from benchrigor.session.replays.recorded_run import Recorded, recorded
from benchrigor.session.replays.rivals import (
    BUILT_IN,
    Outcome,
    Rule,
    outcome_of,
    required_arguments,
)
from benchrigor.stats.changepoints.ruptures_adapter import Estimator
from benchrigor.stats.estimators.estimation import estimate
from benchrigor.stats.planning.agreement import track_record
from benchrigor.stats.series.interval import METHOD
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION, MIN_FOR_VARIANCE


def replay(
    readings: npt.ArrayLike | RunRecord,
    *,
    judges: Sequence[str | tuple[str, Rule]] | None = None,
    target: float | None = None,
    confidence: float | None = None,
    metric: str | None = None,
    unit: str = "",
) -> Replay:
    """Judge recorded readings under several rules: when each stops, and with what number.

    Parameters
    ----------
    readings
        Values of one continuous series, shape (n,); or a `RunRecord`, whose rounds are replayed
        one by one where they were restarted.
    judges
        Each the name of a rule that is built in, or a pair of a name and a rule of one's own:

        - "benchrigor": a session, fed the readings in the portions that it asks for;
        - "subsessions": the same with ``method="subsessions"``;
        - "plain t": Student's t on readings taken for independent, looked at after each from the
          fifth on;
        - `Options`: a session with these, but the replay's target and confidence;
        - a detector of change points (a `protocols.Detector` or a ruptures estimator): a session
          that cuts by it;
        - a function of the readings so far that returns their `Estimate`: looked at when a
          session would look (first at 500 readings, then each time at half as many again);
        - a function of all readings, the target and the confidence, that returns what it would
          do: where it would stop (or None), its `Estimate` there (or None), and a sentence that
          says why there is none (or an empty one).

        None: all that are built in.
    target
        Relative half-width at which to stop; None for that of the run, and 5% for values.
    confidence
        Nominal coverage, in (0, 1); None for that of the run, and 0.95 for values.
    metric
        Of a run: which metric; None for the first that must be satisfied. Of values: their name.
    unit
        Of values.

    Returns
    -------
    Replay
        One `Ruling` per judge. Budgets do not count: a rule stops when it is satisfied.

    Raises
    ------
    InvalidInput
        When the readings or arguments cannot be worked with, or a judge returns something else.

    Notes
    -----
    Where at least 30 readings (or two rounds) follow the stop, they tell whether the interval
    held: it did if 0 lies in the interval of the difference between both, at its own confidence
    and given both errors. Later readings are not trimmed: a step after the stop counts against
    every rule that stopped before it.

    Examples
    --------
    >>> import numpy as np
    >>> from benchrigor.stats import estimate_mean
    >>> readings = np.random.default_rng(1).normal(0.01, 0.002, 2000)
    >>> shown = replay(readings, judges=["benchrigor", ("untrimmed", estimate_mean)], unit="s")
    >>> [(each.name, each.stopped, each.held) for each in shown.rulings]
    [('benchrigor', 500, True), ('untrimmed', 500, True)]
    """
    given = recorded(readings, metric=metric, unit=unit)
    if given.kind is Kind.WORK:
        raise InvalidInput(
            f"{given.name} was measured by rounds of various work, and each was chosen by what the "
            "ones before had shown: only readings can be replayed"
        )
    options = replace(
        given.options,
        target=given.options.target if target is None else target,
        confidence=given.options.confidence if confidence is None else confidence,
    )
    rules = _checked(tuple(BUILT_IN) if judges is None else judges)
    rulings = tuple(
        _ruled(name, outcome_of(name, rule, given, options), given) for name, rule in rules
    )
    return Replay(
        name=given.name,
        n=given.n,
        counted_in="reading" if given.kind is Kind.UNIT_READINGS else "round",
        target=options.target,
        confidence=options.confidence,
        unit=given.metric.unit,
        rulings=rulings,
    )


def _checked(judges: object) -> list[tuple[str, object]]:
    """Return name and rule of each judge; what is built in has its name for a rule."""
    if isinstance(judges, str) or not isinstance(judges, Sequence) or not judges:
        raise InvalidInput(f"judges is {judges!r}, expected a sequence of at least one judge")
    rules: list[tuple[str, object]] = []
    problems = []
    for index, judge in enumerate(judges):
        if isinstance(judge, str) and judge in BUILT_IN:
            rules.append((judge, judge))
        elif isinstance(judge, tuple) and len(judge) == 2 and _names(judge[0]) and _fits(judge[1]):
            rules.append(judge)
        else:
            known = ", ".join(map(repr, BUILT_IN))
            problems.append(
                f"judges[{index}] is {judge!r}, expected {known}, or a pair of a name and Options, "
                "a detector, or a function of readings, or of readings, target and confidence"
            )
    names = [name for name, _ in rules]
    double = sorted({name for name in names if names.count(name) > 1})
    problems += [f"judge {name!r} is given twice, expected each name once" for name in double]
    if problems:
        raise InvalidInput(problems)
    return rules


def _names(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip())


def _fits(rule: object) -> bool:
    if isinstance(rule, type):
        return False
    return isinstance(rule, Options | Estimator) or (
        callable(rule) and required_arguments(rule) in (1, 3)
    )


def _ruled(name: str, outcome: Outcome, given: Recorded) -> Ruling:
    """Compare the number of a rule with the readings that follow its stop."""
    later = None
    if outcome.stopped is not None and outcome.estimate is not None:
        later = _later(given.after(outcome.stopped), outcome.options)
    held = None
    if later is not None and outcome.estimate is not None:
        held = track_record([(outcome.estimate, later)]).held == 1
    return Ruling(
        name=name,
        stopped=outcome.stopped,
        estimate=outcome.estimate,
        final=outcome.final,
        sentence=outcome.sentence,
        later=later,
        held=held,
    )


def _later(rest: Recorded | None, options: Options) -> Estimate | None:
    """Estimate what follows a stop; None where too little does."""
    options = replace(options, method=METHOD)
    if rest is None or rest.n < (
        MIN_FOR_VARIANCE if rest.kind is Kind.INVOCATIONS else MIN_FOR_AUTOCORRELATION
    ):
        return None
    if rest.kind is Kind.INVOCATIONS:
        found = rest.judged(options).estimate
        return found if found is not None and found.n >= MIN_FOR_VARIANCE else None
    # What follows a stop is no start: no transient is looked for.
    policy = replace(rest.material(options).policy, trim=False)
    return estimate(rest.series, policy).estimate
