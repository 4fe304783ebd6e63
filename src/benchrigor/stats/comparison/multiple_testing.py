"""Multiple testing: families of comparisons (Benjamini-Hochberg), and rankings (Bonferroni)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy

from benchrigor.model import Code, Comparison, Estimate, Notice, Verdict
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.comparison import Family, Ranked
from benchrigor.model.series import short
from benchrigor.stats.changepoints.ruptures_adapter import detector_to_trim
from benchrigor.stats.comparison.fieller_mover import (
    Contrast,
    UncertainValue,
    p_value_at,
    uncertain_value,
)
from benchrigor.stats.comparison.samples import (
    Question,
    Values,
    are_shares,
    comparable_statistic,
    direction_named,
    estimate_sample,
    read_sample,
    refuse_zeros,
    unit_of,
)
from benchrigor.stats.series.interval import (
    StandardError,
    check_confidence,
    satterthwaite,
    student_t,
    t_interval,
)
from benchrigor.stats.statistics.proportion import WILSON
from benchrigor.units import Direction

_POWER = 0.8  # with which the smallest visible change is seen
_OF_A_PAIR = ("baseline", "candidate", "paired")


def family_of(
    comparisons: Mapping[str, Comparison],
    *,
    rate: float = 0.05,
    notices: Sequence[Notice] = (),
    independent: bool = True,
    beside: Sequence[Comparison] = (),
) -> Family:
    """Judge comparisons, at least one, together, so that false discoveries are rare.

    Verdicts that are not significant in the family become UNDECIDED; EQUIVALENT stays. Benjamini &
    Hochberg (1995) adjust the p-value that the ratio lies within the margin, for independent or
    positively dependent comparisons; ``rate`` is the expected share of false verdicts. Those
    ``beside`` them are judged with them, and have families of their own.

    The summary is the geometric mean of the ratios, with the standard error of independent ones
    (delta method) and the degrees of freedom of Satterthwaite (1946). Of ratios that are not
    ``independent`` it is a value alone: what they share, such as the pace of the machine in one
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
        visible={name: _visible(each, rate / len(judged)) for name, each in comparisons.items()},
        summary=summary,
        notices=(*notices, *left_out),
    )


def _visible(comparison: Comparison, rate: float) -> float | None:
    """Return the smallest change whose interval lies beyond the margin in 80 % of cases.

    By the noncentral t distribution, as a plan of sizes finds it. ``rate`` is the chance of error
    of a single change among comparisons that show none.
    """
    ratio = comparison.ratio
    if ratio is None or not math.isfinite(ratio.relative_half_width):
        return None
    freedom = ratio.degrees_of_freedom or max(ratio.n_effective - 1.0, 1.0)
    error = ratio.relative_half_width / student_t(freedom, comparison.confidence)
    critical = student_t(freedom, max(comparison.confidence, 1.0 - rate))
    beyond = float(scipy.special.nctdtrinc(freedom, 1.0 - _POWER, critical))
    return comparison.margin + error * beyond


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
        Chance that no two results with equal truths are told apart, in (0, 1).
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
        When there is no result, or a result or an argument is invalid; all at once.
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
    attempt(problems, comparable_statistic, statistic)
    attempt(problems, check_confidence, confidence)
    way = attempt(problems, direction_named, direction)
    search = attempt(problems, detector_to_trim, detector, trim)
    samples = {
        name: attempt(problems, read_sample, each, f"results[{name!r}]")
        for name, each in (results.items() if isinstance(results, Mapping) else ())
    }
    refuse(problems)
    refuse_zeros(*((name, each) for name, each in samples.items() if each is not None))
    question = Question(
        statistic=statistic, confidence=float(confidence), trim=trim, detector=search
    )
    if question.asked.q is None:
        share = are_shares(*(sample for sample in samples.values() if sample is not None))
        question = replace(question, are_shares=share)
    estimates: dict[str, Estimate] = {}
    values: dict[str, UncertainValue] = {}
    for name, sample in samples.items():
        if sample is not None:
            estimates[name] = estimate_sample(sample, question).estimate_or_raise()
            symmetric = question.asked.q is None and unit_of(estimates[name]) != "round"
            symmetric &= not estimates[name].method.startswith(WILSON)
            values[name] = uncertain_value(estimates[name], symmetric=symmetric)
    ordered = sorted(
        estimates, key=lambda name: estimates[name].value, reverse=way is Direction.HIGHER
    )
    tests = max(1, math.comb(len(ordered), 2))
    first, ranked = 0, []
    for index, name in enumerate(ordered):
        contrast = Contrast(baseline=values[ordered[first]], candidate=values[name])
        if p_value_at(contrast, 1.0) * tests <= 1.0 - confidence:
            first = index
        ranked.append(Ranked(name=name, estimate=estimates[name], place=first + 1))
    return tuple(ranked)


def _benjamini_hochberg(comparisons: Sequence[Comparison]) -> list[float]:
    """Adjust p-values: of rank i, the least m p(j) / j over the ranks j >= i, at most 1.

    Benjamini & Hochberg (1995), section 3.1. Not by `scipy.stats`, which takes a second to load.
    """
    ps = np.array([comparison.p_beyond for comparison in comparisons])
    order = np.argsort(ps)
    scaled = ps[order] * (ps.size / np.arange(1, ps.size + 1))
    adjusted = np.empty(ps.size)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return [*map(float, np.minimum(adjusted, 1.0))]


def _summarise(comparisons: Mapping[str, Comparison]) -> tuple[Estimate | None, tuple[Notice, ...]]:
    """Return the geometric mean of the ratios, and what is left out of it."""
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
    value, low, high = (math.exp(bound) for bound in (log.value, log.low, log.high))
    summary = replace(
        log, value=value, low=low, high=high, standard_error=error * value, notices=notices
    )
    return summary, notices
