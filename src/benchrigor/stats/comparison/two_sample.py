"""Candidate against baseline: ratio and difference, each with its interval, and a verdict.

A run may stop on the width of these intervals, never on a verdict or a p-value: a run that goes
on until it finds a difference will find one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Comparison, Estimate, Notice, Verdict
from benchrigor.model.checks import attempt
from benchrigor.model.notice import one_each
from benchrigor.model.series import Floats, check_items
from benchrigor.stats.changepoints.edm import name_averaging
from benchrigor.stats.changepoints.ruptures_adapter import detector_to_trim
from benchrigor.stats.comparison.fieller_mover import (
    difference_of,
    further_units,
    is_bounded,
    p_value_at,
    ratio_of,
)
from benchrigor.stats.comparison.paired_and_welch import (
    Basis,
    independent,
    paired_invocations,
    paired_readings,
)
from benchrigor.stats.comparison.samples import (
    Question,
    Sample,
    Values,
    are_positive,
    are_shares,
    check_margin,
    comparable_statistic,
    direction_named,
    read_sample,
    refuse_zeros,
)
from benchrigor.stats.comparison.stable_pairs import (
    PairBlocks,
    StablePairs,
    blocks_of_pairs,
    by_blocks,
    carried_by_few,
    median_ratio,
    stable_pairs,
)
from benchrigor.stats.phases.phase_search import short_run
from benchrigor.stats.series.interval import check_confidence
from benchrigor.units import Direction


def compare(
    baseline: Values,
    candidate: Values,
    *,
    statistic: str = "mean",
    confidence: float = 0.95,
    margin: float = 0.01,
    direction: str | None = "lower",
    paired: bool = False,
    trim: bool = False,
    detector: str = "ranks",
) -> Comparison:
    """Compare a candidate with a baseline.

    Parameters
    ----------
    baseline, candidate
        Each one series of readings, shape (n,), and then the verdict holds for those processes
        only; or a sequence of series, one per invocation; or, if not paired, an Estimate of the
        same statistic.
    statistic
        "mean", "median", a percentile such as "p10", or "trimmed 10%".
    confidence
        Nominal coverage, in (0, 1).
    margin
        Relative change that does not matter, at least 0; 0 for the classical test.
    direction
        Which way is better: "lower" or "higher"; None if that is not known.
    paired
        The i-th reading (or invocation) of the baseline was taken next to the i-th of the
        candidate: drift that both have in common cancels.
    trim
        Compare the stable phases; of paired series, the pairs that are stable in both.
    detector
        What finds the stable phase, by its name; see `benchrigor.model.Options`.

    Returns
    -------
    Comparison
        Its verdict is BETTER or WORSE if the whole interval of the ratio lies beyond the margin
        (DIFFERENT without a direction), EQUIVALENT if it lies within [1/(1 + margin), 1 + margin],
        else UNDECIDED.

    Raises
    ------
    InvalidInput
        When baseline or candidate holds no readings, paired ones differ in length, or an argument
        is out of range; all problems at once.
    NotEstimable
        When baseline or candidate allows no number: too few readings, or no stable phase.

    Notes
    -----
    The means or quantiles of invocations have Student's t, single series their long-run variance.
    Difference: Welch (1947); ratio: Fieller (1954); quantiles of single series: MOVER (Donner &
    Zou 2012). Paired: see `benchrigor.stats.comparison.paired_and_welch`. Readings that are all 0
    or 1 are outcomes: their shares have the interval of Wilson (1927), and MOVER compares them.
    Pairs of outcomes are compared as independent ones: if they agree more often than by chance,
    their interval is wider than it had to be.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> old, new = ([rng.normal(level, 0.05, 100) for level in rng.normal(mean, 0.01, 10)]
    ...             for mean in (1.0, 1.05))
    >>> print(compare(old, new))
    the candidate is 4.50% higher than the baseline [3.58%, 5.44%]
    """
    question = Question(
        statistic=statistic,
        confidence=confidence,
        trim=bool(trim),
        detector=detector_to_trim(detector, trim),
        margin=margin,
        direction=direction,
        paired=paired,
    )
    return compare_samples(baseline, candidate, question)


def checked_question(
    question: Question, problems: list[str]
) -> tuple[Direction | None, float | None]:
    """Return direction and margin, and add what is wrong with a question to the problems so far."""
    attempt(problems, comparable_statistic, question.statistic or "mean")
    attempt(problems, check_confidence, question.confidence)
    better = attempt(problems, direction_named, question.direction)
    return better, attempt(problems, check_margin, question.margin)


def compare_samples(
    baseline: Values, candidate: Values, question: Question, *, positive: bool | None = None
) -> Comparison:
    """Compare as `compare` does; ``positive`` is None if only the numbers say whether they are."""
    problems: list[str] = []
    first = attempt(problems, read_sample, baseline, "baseline")
    second = attempt(problems, read_sample, candidate, "candidate")
    better, least = checked_question(question, problems)
    if question.paired and first is not None and second is not None:
        problems += _unpairable(first, second)
    if problems or first is None or second is None or least is None:
        raise InvalidInput(problems)
    if positive is None:
        refuse_zeros(("baseline", first), ("candidate", second))
        positive = are_positive(first, second)
    share = question.asked.q is None and are_shares(first, second)
    question = replace(
        question,
        confidence=float(question.confidence),
        are_shares=share,
        margin=least,
        direction=better,
        paired=bool(question.paired) and not share,
    )
    if not question.paired:
        basis = independent(first, second, question)
    elif isinstance(first, tuple) and isinstance(second, tuple):
        basis = paired_invocations(first, second, question)
    else:
        pairs = np.asarray(first), np.asarray(second)
        _check_ratios(*pairs)
        return compare_pairs(*pairs, question, positive=positive)[0]
    return _conclude(basis, question, positive=positive)


def _check_ratios(baseline: Floats, candidate: Floats) -> None:
    """Refuse pairs whose ratio no float holds."""
    with np.errstate(all="ignore"):
        sizes = np.abs(candidate / baseline)
    fits = ((sizes > 0.0) & (sizes < np.inf)) | (candidate == 0.0) | (baseline == 0.0)
    check_items(candidate, fits, "a ratio to its baseline that a float can hold", name="candidate")


def compare_pairs(
    baseline: Floats, candidate: Floats, question: Question, *, positive: bool = True
) -> tuple[Comparison, StablePairs]:
    """Compare readings taken in turn, by default times; return the pairs that count."""
    whole = StablePairs(start=0, stop=baseline.size, measured=slice(None))
    try:
        pairs = stable_pairs(baseline, candidate, question) if question.trim else whole
        one, two = (side[pairs.measured] for side in (baseline, candidate))
        basis = paired_readings(one, two, question, pairs.transients)
    except NotEstimable as refusal:
        blocks = blocks_of_pairs(baseline, candidate, question, refusal)
        notices = by_blocks(refusal, candidate / baseline, blocks)
        whole = replace(whole, notices=notices)
        return _concluded_by_blocks(blocks, notices, question), whole
    short = short_run(baseline.size, "pairs") if question.trim else ()
    basis = replace(basis, notices=one_each((*basis.notices, *pairs.notices, *short)))
    if question.search.takes_longest:
        of_difference, of_ratio = (name_averaging(name, baseline.size) for name in basis.methods)
        basis = replace(basis, methods=(of_difference, of_ratio))
    positive = positive and min(float(one.min()), float(two.min())) >= 0.0
    return _conclude(basis, question, positive=positive), pairs


def _conclude(basis: Basis, question: Question, *, positive: bool) -> Comparison:
    size, confidence = (basis.n, basis.n_effective), question.confidence
    contrast, (of_difference, of_ratio) = basis.contrast, basis.methods
    difference = difference_of(basis.difference, confidence, size, of_difference)
    ratio = ratio_of(contrast, confidence, size, of_ratio, positive=positive)
    # A time of 0 is not a measurement, on either side; a share may be 0.
    levels = {"candidate": basis.candidate, "baseline": basis.baseline}
    is_time = positive and question.asked.follows_pace
    missing = [name for name, level in levels.items() if is_time and level.value <= 0.0]
    if missing:
        ratio = None
    notices, chance = basis.notices, 1.0 if missing else p_value_at(contrast, 1.0)
    verdict, required, beyond, median = Verdict.UNDECIDED, None, 1.0, None
    if ratio is not None and basis.pairs is not None:
        median = median_ratio(*basis.pairs, confidence)
        carried = carried_by_few(ratio, median)
        notices, median = (*carried, *notices), median if carried else None
    if ratio is None:
        name = missing[0] if missing else "baseline"
        notices = (_no_ratio(name, levels[name]), *notices)
    elif not is_bounded(ratio):
        # The least chance of error at which the set has both ends.
        beyond = max(p_value_at(contrast, 0.0), p_value_at(contrast, math.inf))
        chance = max(chance, beyond)
    else:
        verdict = _verdict(ratio, question)
        required = _needed_readings(basis, ratio, question.margin)
        beyond = _beyond(partial(p_value_at, contrast), ratio, question.margin)
    return question.answer(
        unit=basis.unit,
        baseline=basis.baseline,
        candidate=basis.candidate,
        ratio=ratio and replace(ratio, notices=notices),
        difference=replace(difference, notices=notices),
        p_value=chance,
        p_beyond=beyond,
        verdict=verdict,
        required=required,
        median_ratio=median,
        notices=notices,
    )


def _concluded_by_blocks(
    blocks: PairBlocks, notices: tuple[Notice, ...], question: Question
) -> Comparison:
    ratio, difference = blocks.ratio(), blocks.difference()
    verdict = _verdict(ratio, question)
    if verdict is Verdict.EQUIVALENT and not _all_within(blocks.ratios, question.margin):
        verdict = Verdict.UNDECIDED  # the median does not see a stall of one side in few blocks
    return question.answer(
        confidence=blocks.confidence,
        unit="pair",
        ratio=replace(ratio, notices=notices),
        difference=replace(difference, notices=notices),
        p_value=blocks.p_value(1.0),
        p_beyond=_beyond(blocks.p_value, ratio, question.margin),
        verdict=verdict,
        notices=notices,
    )


def _verdict(ratio: Estimate, question: Question) -> Verdict:
    least, most = 1.0 / (1.0 + question.margin), 1.0 + question.margin
    if ratio.low > most or ratio.high < least:
        if question.direction is None:
            return Verdict.DIFFERENT
        way = Direction.LOWER if ratio.high < least else Direction.HIGHER
        return Verdict.BETTER if way is question.direction else Verdict.WORSE
    if ratio.low >= least and ratio.high <= most:
        return Verdict.EQUIVALENT
    return Verdict.UNDECIDED


def _all_within(ratios: Floats, margin: float) -> bool:
    return bool((np.maximum(ratios, 1.0 / ratios) <= 1.0 + margin).all())


def _beyond(p_value: Callable[[float], float], ratio: Estimate, margin: float) -> float:
    """Return the p-value of the edge of the margin that the ratio lies beyond; 1 inside."""
    least, most = 1.0 / (1.0 + margin), 1.0 + margin
    return 1.0 if least <= ratio.value <= most else p_value(most if ratio.value > most else least)


def _needed_readings(basis: Basis, ratio: Estimate, margin: float) -> int | None:
    if margin == 0.0 or basis.unit is None:
        return None
    if ratio.half_width <= margin / 2.0:
        return 0
    sizes = (basis.baseline.n, basis.candidate.n)
    return further_units(basis.contrast, sizes, margin / 2.0 / ratio.half_width)


def _no_ratio(name: str, level: Estimate) -> Notice:
    value, low, high = level.value, level.low, level.high
    why = "too far from the other for a float." if low > 0.0 else "expected an interval above 0."
    if value == 0.0:
        why += " Times of 0 are below what the clock tells apart, or nothing was run."
    return Notice.of(Code.NO_RATIO, name_=name, value=value, low=low, high=high, why_=why)


def _unpairable(first: Sample, second: Sample) -> list[str]:
    """Say why two samples cannot be paired, if so."""
    if isinstance(first, Estimate) or isinstance(second, Estimate):
        return ["paired compares readings one by one, expected series rather than an estimate"]
    sizes = [len(first), len(second)]
    if isinstance(first, tuple) != isinstance(second, tuple):
        return ["paired is given one series and several, expected the same of both"]
    if sizes[0] != sizes[1]:
        what = "invocations" if isinstance(first, tuple) else "readings"
        return [f"paired is given {sizes[0]} and {sizes[1]} {what}, expected as many of each"]
    return []
