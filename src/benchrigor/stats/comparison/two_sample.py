"""Candidate against baseline: ratio and difference, each with its interval, and a verdict.

A run may stop on the width of these intervals, never on a verdict or a p-value: a run that goes
on until it finds a difference will find one.

Several comparisons are tested together: families by Benjamini-Hochberg, rankings by Bonferroni.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import scipy

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Comparison, Estimate, Notice, Verdict
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.comparison import Family, Ranked
from benchrigor.model.notice import one_each
from benchrigor.model.series import Floats, check_items, short
from benchrigor.stats.changepoints.detector import name_averaging
from benchrigor.stats.changepoints.ruptures_adapter import detector_to_trim
from benchrigor.stats.comparison.fieller_mover import (
    Contrast,
    UncertainValue,
    difference_of,
    further_units,
    is_bounded,
    p_value_at,
    ratio_of,
    uncertain_value,
)
from benchrigor.stats.comparison.samples import (
    Basis,
    Sample,
    Values,
    analyse_sample,
    answer,
    are_all_outcomes,
    are_positive,
    checked_asked,
    comparable_statistic,
    independent,
    name_unit,
    of_shares,
    paired_invocations,
    paired_readings,
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
from benchrigor.stats.phases.stable_phase import short_run
from benchrigor.stats.readings.analysis import estimated
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.series.interval import (
    StandardError,
    exponential,
    satterthwaite,
    student_t,
    t_interval,
)
from benchrigor.stats.shares_and_quantiles import WILSON
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
        Relative change that does not matter, 0 or more; 0 for the classical test.
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
    Zou 2012). Paired: see `benchrigor.stats.comparison.samples`. Readings that are all 0
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
    search, wrong = detector_to_trim(detector, trim), list[str]()
    asked, least = checked_asked(
        wrong,
        statistic=statistic,
        confidence=confidence,
        direction=direction,
        margin=margin,
        trim=bool(trim),
        detector=search,
    )
    return compare_samples(baseline, candidate, asked, least, paired=paired, wrong=wrong)


def compare_samples(
    baseline: Values,
    candidate: Values,
    asked: Readings,
    margin: float,
    *,
    paired: bool = False,
    drawn: bool = False,
    positive: bool | None = None,
    wrong: Sequence[str] = (),
) -> Comparison:
    """Compare as `compare` does; ``positive`` is None if only the numbers say whether they are.

    If the order of each pair of invocations was ``drawn``, they are independent of each other, and
    Student's t holds for any number of them.

    ``wrong`` is already known to be wrong with what is asked.
    """
    problems: list[str] = []
    first = attempt(problems, read_sample, baseline, "baseline")
    second = attempt(problems, read_sample, candidate, "candidate")
    problems += wrong
    if paired and first is not None and second is not None:
        problems += _unpairable(first, second)
    if problems or first is None or second is None:
        raise InvalidInput(problems)
    if positive is None:
        refuse_zeros(("baseline", first), ("candidate", second))
        positive = are_positive(first, second)
    if share := asked.statistic.q is None and are_all_outcomes(first, second):
        asked = of_shares(asked)
    if not paired or share:
        basis = independent(first, second, asked)
    elif isinstance(first, tuple) and isinstance(second, tuple):
        basis = paired_invocations(first, second, asked, independent=drawn)
    else:
        pairs = np.asarray(first), np.asarray(second)
        _check_ratios(*pairs)
        return compare_pairs(*pairs, asked, margin, positive=positive)[0]
    return _conclude(basis, asked, margin, positive=positive)


def _check_ratios(baseline: Floats, candidate: Floats) -> None:
    """Refuse pairs with a ratio that no float holds."""
    with np.errstate(all="ignore"):
        sizes = np.abs(candidate / baseline)
    fits = ((sizes > 0.0) & (sizes < np.inf)) | (candidate == 0.0) | (baseline == 0.0)
    check_items(candidate, fits, "a ratio to its baseline that a float can hold", name="candidate")


def compare_pairs(
    baseline: Floats, candidate: Floats, asked: Readings, margin: float, *, positive: bool = True
) -> tuple[Comparison, StablePairs]:
    """Compare readings taken in turn, by default times; return also the pairs that count."""
    whole = StablePairs(start=0, stop=baseline.size, measured=slice(None))
    try:
        pairs = stable_pairs(baseline, candidate, asked) if asked.searched else whole
        one, two = (side[pairs.measured] for side in (baseline, candidate))
        basis = paired_readings(one, two, asked, pairs.transients)
    except NotEstimable as refusal:
        blocks = blocks_of_pairs(baseline, candidate, asked, refusal)
        notices = by_blocks(refusal, candidate / baseline, blocks)
        whole = replace(whole, notices=notices)
        return _concluded_by_blocks(blocks, notices, asked, margin), whole
    short = short_run(baseline.size, "pairs") if asked.searched else ()
    basis = replace(basis, notices=one_each((*basis.notices, *pairs.notices, *short)))
    if asked.takes_longest:
        of_difference, of_ratio = (name_averaging(name, baseline.size) for name in basis.methods)
        basis = replace(basis, methods=(of_difference, of_ratio))
    positive = positive and min(float(one.min()), float(two.min())) >= 0.0
    return _conclude(basis, asked, margin, positive=positive), pairs


def _conclude(basis: Basis, asked: Readings, margin: float, *, positive: bool) -> Comparison:
    size, confidence = (basis.n, basis.n_effective), asked.options.confidence
    contrast, (of_difference, of_ratio) = basis.contrast, basis.methods
    difference = difference_of(basis.difference, confidence, size, of_difference)
    ratio = ratio_of(contrast, confidence, size, of_ratio, positive=positive)
    # A time of 0 is not a measurement, on either side; a share may be 0.
    levels = {"candidate": basis.candidate, "baseline": basis.baseline}
    is_time = positive and asked.statistic.follows_pace
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
        verdict = _verdict(ratio, asked, margin)
        required = _needed_readings(basis, ratio, margin)
        beyond = _beyond(partial(p_value_at, contrast), ratio, margin)
    return answer(
        asked,
        margin,
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
    blocks: PairBlocks, notices: tuple[Notice, ...], asked: Readings, margin: float
) -> Comparison:
    ratio, difference = blocks.ratio(), blocks.difference()
    verdict = _verdict(ratio, asked, margin)
    if verdict is Verdict.EQUIVALENT and not _all_within(blocks.ratios, margin):
        verdict = Verdict.UNDECIDED  # the median does not see a stall of one side in few blocks
    return answer(
        asked,
        margin,
        confidence=blocks.confidence,
        unit="pair",
        ratio=replace(ratio, notices=notices),
        difference=replace(difference, notices=notices),
        p_value=blocks.p_value(1.0),
        p_beyond=_beyond(blocks.p_value, ratio, margin),
        verdict=verdict,
        notices=notices,
    )


def _verdict(ratio: Estimate, asked: Readings, margin: float) -> Verdict:
    least, most, better = 1.0 / (1.0 + margin), 1.0 + margin, asked.metric.direction
    if ratio.low > most or ratio.high < least:
        if better is None:
            return Verdict.DIFFERENT
        way = Direction.LOWER if ratio.high < least else Direction.HIGHER
        return Verdict.BETTER if way is better else Verdict.WORSE
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
        why += " Times of 0 are below the steps of the clock, or no code was run."
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


_POWER = 0.8  # with which the smallest visible change is seen


def family_of(
    comparisons: Mapping[str, Comparison],
    *,
    rate: float = 0.05,
    notices: Sequence[Notice] = (),
    independent: bool = True,
    beside: Sequence[Comparison] = (),
) -> Family:
    """Judge comparisons, one or more, together, so that false discoveries are rare.

    Verdicts that are not significant in the family become UNDECIDED; EQUIVALENT stays. Benjamini &
    Hochberg (1995) adjust the p-value that the ratio lies within the margin, for independent or
    positively dependent comparisons; ``rate`` is the expected share of false verdicts. Those
    ``beside`` them are judged with them, and have families of their own.

    The summary is the geometric mean of the ratios, with the standard error of independent ones
    (delta method) and the degrees of freedom of Satterthwaite (1946). Of ratios that are not
    ``independent`` it is a value alone: a shared influence, such as the pace of the machine in one
    session, does not average out.
    """
    judged = [*comparisons.values(), *beside]
    adjusted = dict(zip(comparisons, _benjamini_hochberg(judged), strict=False))
    verdicts = {name: comparison.verdict for name, comparison in comparisons.items()}
    for name, verdict in verdicts.items():
        if verdict not in (Verdict.EQUIVALENT, Verdict.UNDECIDED) and adjusted[name] > rate:
            verdicts[name] = Verdict.UNDECIDED
    summary, left_out = _summarise(comparisons)
    if summary is not None and summary.n > 1 and not independent:
        summary = replace(
            summary, low=0.0, high=math.inf, standard_error=None, degrees_of_freedom=None
        )
    return Family(
        comparisons=comparisons,
        adjusted=adjusted,
        verdicts=verdicts,
        rate=float(rate),
        visible={
            name: _visible(comparison, rate / len(judged))
            for name, comparison in comparisons.items()
        },
        summary=summary,
        notices=(*notices, *left_out),
    )


def _visible(comparison: Comparison, rate: float) -> float | None:
    """Return the smallest change with an interval beyond the margin in 80 % of cases.

    By the noncentral t distribution, as a plan of sizes finds it.
    """
    told = error_beside(comparison, rate)
    if told is None:
        return None
    error, freedom, critical = told
    return comparison.margin + error * float(
        scipy.special.nctdtrinc(freedom, 1.0 - _POWER, critical)
    )


def error_beside(comparison: Comparison, rate: float) -> tuple[float, float, float] | None:
    """Return the relative error of a ratio, its degrees of freedom, and the t that it must exceed.

    ``rate`` is the chance of error of a single change among comparisons that show none. None
    without an interval.
    """
    ratio = comparison.ratio
    if ratio is None or not math.isfinite(ratio.relative_half_width):
        return None
    freedom = ratio.degrees_of_freedom or max(ratio.n_effective - 1.0, 1.0)
    error = ratio.relative_half_width / student_t(freedom, comparison.confidence)
    return error, freedom, student_t(freedom, max(comparison.confidence, 1.0 - rate))


def rank(
    results: Mapping[str, Values],
    *,
    statistic: str = "mean",
    confidence: float = 0.95,
    direction: str | None = "lower",
    trim: bool = False,
    detector: str = "ranks",
) -> tuple[Ranked, ...]:
    """Rank results; those that do not differ beyond chance share a place.

    Parameters
    ----------
    results
        By name, at least one: a series, a sequence of series (one per invocation), or an
        Estimate of the same statistic.
    statistic
        "mean", "median", a percentile such as "p10", or "trimmed 10%".
    confidence
        Chance that no two results with equal truths are ranked apart, in (0, 1).
    direction
        Which way is better: "lower" or "higher"; None ranks from the lowest on.
    trim
        Remove the non-stable phases of each series first.
    detector
        What finds the stable phase, by its name; see `benchrigor.model.Options`.

    Returns
    -------
    tuple of Ranked
        Best first. A result shares the place of the best of its group unless the two differ; the
        first that differs opens the next group. Two that share a place may differ from each other.

    Raises
    ------
    InvalidInput
        Without results, or if a result or an argument is invalid; all at once.
    NotEstimable
        When a result allows no number.

    Notes
    -----
    Two of m results differ when the test of Welch (1947) is significant at (1 - confidence) / (m (m
    - 1) / 2) (Bonferroni).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> results = {name: rng.normal(mean, 0.1, 200)
    ...            for name, mean in {"heap": 1.0, "list": 1.5, "tree": 1.01}.items()}
    >>> [(ranked.name, ranked.place) for ranked in rank(results)]
    [('heap', 1), ('tree', 1), ('list', 3)]
    """
    problems: list[str] = []
    if not isinstance(results, Mapping) or not results:
        problems.append(f"results is {short(results)}, expected a mapping of names to at least one")
    search = attempt(problems, detector_to_trim, detector, trim)
    if not statistic:  # a comparison takes None for the mean
        attempt(problems, comparable_statistic, statistic)
    asked, _ = checked_asked(
        problems,
        statistic=statistic,
        confidence=confidence,
        direction=direction,
        trim=bool(trim),
        detector=search,
    )
    samples = {
        name: attempt(problems, read_sample, each, f"results[{name!r}]")
        for name, each in (results.items() if isinstance(results, Mapping) else ())
    }
    refuse(problems)
    refuse_zeros(*((name, each) for name, each in samples.items() if each is not None))
    known = (sample for sample in samples.values() if sample is not None)
    if asked.statistic.q is None and are_all_outcomes(*known):
        asked = of_shares(asked)
    estimates: dict[str, Estimate] = {}
    values: dict[str, UncertainValue] = {}
    for name, sample in samples.items():
        if sample is not None:
            estimates[name] = estimated(analyse_sample(sample, asked))
            symmetric = asked.statistic.q is None and name_unit(estimates[name]) != "round"
            symmetric &= not estimates[name].method.startswith(WILSON)
            values[name] = uncertain_value(estimates[name], symmetric=symmetric)
    best_last = asked.metric.direction is Direction.HIGHER
    ordered = sorted(estimates.items(), key=lambda one: one[1].value, reverse=best_last)

    def p_value(first: str, name: str) -> float:
        return p_value_at(Contrast(baseline=values[first], candidate=values[name]), 1.0)

    return in_places(dict(ordered), p_value, confidence)


def in_places(
    ordered: Mapping[str, Estimate], p_value: Callable[[str, str], float], confidence: float
) -> tuple[Ranked, ...]:
    """Give places to estimates, best first: one that differs from the first of its group opens one.

    ``p_value`` is for no difference between the first of a group and another, by their names.
    """
    tests = max(1, math.comb(len(ordered), 2))
    first, ranked = next(iter(ordered)), list[Ranked]()
    for index, (name, estimate) in enumerate(ordered.items()):
        is_first = not ranked or p_value(first, name) * tests <= 1.0 - confidence
        first = name if is_first else first
        place = index + 1 if is_first else ranked[-1].place
        ranked.append(Ranked(name=name, estimate=estimate, place=place))
    return tuple(ranked)


def _benjamini_hochberg(comparisons: Sequence[Comparison]) -> list[float]:
    """Adjust p-values: of rank i, the least m p(j) / j over the ranks j >= i, up to 1.

    Benjamini & Hochberg (1995), section 3.1. Not by `scipy.stats`, which takes a second to load.
    """
    ps = np.array([comparison.p_beyond for comparison in comparisons])
    order = np.argsort(ps)
    scaled = ps[order] * (ps.size / np.arange(1, ps.size + 1))
    adjusted = np.empty(ps.size)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return [*map(float, np.minimum(adjusted, 1.0))]


def _summarise(comparisons: Mapping[str, Comparison]) -> tuple[Estimate | None, tuple[Notice, ...]]:
    """Return the geometric mean of the ratios, and the names left out of it."""
    ratios = {
        name: comparison.ratio
        for name, comparison in comparisons.items()
        if comparison.ratio is not None and comparison.ratio.value > 0.0
    }
    kept = list(ratios.values())
    left_out = [name for name in comparisons if name not in ratios]
    notices: tuple[Notice, ...] = ()
    if left_out:
        names = ", ".join(left_out)
        notices = (Notice.of(Code.NO_RATIO, "summary", members=len(left_out), names_=names),)
    if not kept:
        return None, notices
    errors = [(ratio.standard_error or 0.0) / ratio.value for ratio in kept]
    freedom = satterthwaite(errors, [ratio.degrees_of_freedom or math.inf for ratio in kept])
    error = math.hypot(*errors) / len(kept)
    log = t_interval(
        float(np.mean(np.log([ratio.value for ratio in kept]))),
        StandardError(error, freedom),
        kept[0].confidence,
        n=len(kept),
        n_effective=float(len(kept)),
        method="geometric mean of ratios",
    )
    return replace(exponential(log), notices=notices), notices
