"""Many comparisons judged together, their summary in one number, and a ranking of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Comparison, Estimate, Family, Notice, Ranked, Verdict
from benchrigor.model.checks import attempt
from benchrigor.model.metric import quantile_named
from benchrigor.model.series import short
from benchrigor.stats.comparison.fieller_mover import (
    Contrast,
    UncertainValue,
    p_value_at,
    uncertain_value,
)
from benchrigor.stats.comparison.samples import (
    Values,
    direction_named,
    estimate_sample,
    read_sample,
    unit_of,
)
from benchrigor.stats.comparison.two_sample import compare
from benchrigor.stats.estimators.estimation import Policy
from benchrigor.stats.series.interval import check_confidence, student_t
from benchrigor.units import Direction

__all__ = ["compare_family", "rank"]

_SUMMARY = "geometric mean of ratios"
_OF_A_PAIR = ("baseline", "candidate", "paired")


def compare_family(
    pairs: Mapping[str, tuple[Values, Values]], *, rate: float = 0.05, **options: Any
) -> Family:
    """Compare many pairs of baseline and candidate, and keep false discoveries rare.

    Of twenty comparisons without a difference, one is found BETTER or WORSE by chance. Here these
    verdicts are given so sparingly that at most a share ``rate`` of them is expected to be false.

    Parameters
    ----------
    pairs
        Baseline and candidate by the name of what was measured, at least one; each as `compare`
        takes it.
    rate
        Expected share of false ones among the verdicts BETTER and WORSE, in (0, 1).
    **options
        The keyword arguments of `compare`.

    Returns
    -------
    Family
        Verdicts that do not stand in the family become UNDECIDED; EQUIVALENT stays. ``summary``
        is the geometric mean of the ratios: of these benchmarks, not of all that there might be.

    Raises
    ------
    InvalidInput
        When there is no pair, or a pair or an argument cannot be worked with; all at once.
    NotEstimable
        When no pair allows a number; where only some do not, they are left out with a Notice.

    Notes
    -----
    Benjamini & Hochberg (1995), applied to the chance that the ratio lies within the margin; it
    holds for comparisons that are independent, or dependent the same way round. The logarithm of
    the summary is the mean of the logarithms of the ratios; its standard error follows from each
    ratio's own (delta method), taken as independent, with the degrees of freedom of Satterthwaite
    (1946).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> def invocations(mean):
    ...     return [rng.normal(level, 0.05, 100) for level in rng.normal(mean, 0.01, 10)]
    >>> print(compare_family({"parse": (invocations(1.0), invocations(1.05)),
    ...                       "render": (invocations(2.0), invocations(2.0))}))
    name    change [interval]               p adj.  verdict
    parse   4.50% higher [+3.58%, +5.44%]  <0.0001  worse
    render  0.02% lower [-0.40%, +0.37%]         1  equivalent
    geometric mean of 2 ratios: 2.22% higher [+1.73%, +2.71%] 95%
    95% intervals, margin 1%, false discoveries at most 5%
    """
    problems: list[str] = []
    if not isinstance(pairs, Mapping) or not pairs:
        problems.append(
            f"pairs is {short(pairs)}, expected a mapping of names to at least one pair"
        )
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0.0 < float(rate) < 1.0:
        problems.append(f"rate is {rate!r}, expected between 0 and 1, both excluded")
    if problems:
        raise InvalidInput(problems)
    comparisons, refused = _compared(pairs, options)
    adjusted = _adjusted(comparisons)
    summary, left_out = _summary(comparisons)
    return Family(
        comparisons=comparisons,
        adjusted=adjusted,
        verdicts={
            name: _standing(each, adjusted[name], float(rate)) for name, each in comparisons.items()
        },
        rate=float(rate),
        summary=summary,
        notices=(*refused, *left_out),
    )


def rank(
    results: Mapping[str, Values],
    *,
    statistic: str = "mean",
    confidence: float = 0.95,
    direction: str = "lower",
    trim: bool = False,
) -> tuple[Ranked, ...]:
    """Rank results, telling apart only what differs beyond chance.

    Parameters
    ----------
    results
        By name, at least one: a series, a sequence of series (one per invocation), or an
        Estimate of the same statistic.
    statistic
        "mean", "median", or a percentile such as "p10".
    confidence
        Chance that no two results with equal truths are told apart, in (0, 1).
    direction
        Which way is better: "lower" or "higher".
    trim
        Remove the non-stable phases of each series first.

    Returns
    -------
    tuple of Ranked
        Best first. From the best on, a result shares the place of the best of its group as long
        as it is not shown to differ from that one; the first that is shown to differ opens the
        next group. So two results may share a place and yet differ from each other, and two
        neighbours of different places need not be shown to differ.

    Raises
    ------
    InvalidInput
        When there is no result, or a result or an argument cannot be worked with; all at once.
    NotEstimable
        When a result allows no number.

    Notes
    -----
    Two results differ when the test of Welch (1947) says so at (1 - confidence) / (m (m - 1) / 2)
    for m results (Bonferroni). Intervals at that level that do not overlap always differ; those
    that do may differ yet.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> results = {name: rng.normal(mean, 0.1, 200)
    ...            for name, mean in {"heap": 1.0, "list": 1.5, "tree": 1.01}.items()}
    >>> [(each.name, each.place) for each in rank(results)]
    [('heap', 1), ('tree', 1), ('list', 3)]
    """
    problems: list[str] = []
    if not isinstance(results, Mapping) or not results:
        problems.append(f"results is {short(results)}, expected a mapping of names to at least one")
    q = attempt(problems, quantile_named, statistic)
    attempt(problems, check_confidence, confidence)
    way = attempt(problems, direction_named, direction)
    given = {
        name: attempt(problems, read_sample, each, f"results[{name!r}]")
        for name, each in (results.items() if isinstance(results, Mapping) else ())
    }
    if problems:
        raise InvalidInput(problems)
    sides = {name: each for name, each in given.items() if each is not None}
    policy = Policy(q=q, confidence=float(confidence), trim=trim)
    estimates = {name: estimate_sample(each, policy).required() for name, each in sides.items()}
    errors = {
        name: uncertain_value(each, symmetric=q is None and unit_of(each) != "round")
        for name, each in estimates.items()
    }
    return _placed(estimates, errors, 1.0 - float(confidence), descending=way is Direction.HIGHER)


def _compared(
    pairs: Mapping[str, tuple[Values, Values]], options: Mapping[str, Any]
) -> tuple[dict[str, Comparison], list[Notice]]:
    """Compare each pair; collect what is wrong with any, and which allow no number."""
    problems: dict[str, None] = {}
    comparisons: dict[str, Comparison] = {}
    refused: list[Notice] = []
    for name, pair in pairs.items():
        if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
            found = f"pairs[{name!r}] is {short(pair)}"
            problems[f"{found}, expected a pair of baseline and candidate"] = None
            continue
        try:
            comparisons[name] = compare(*pair, **options)
        except InvalidInput as error:
            # What is wrong with an option is said once, not for each pair.
            for each in error.problems:
                own = each.startswith(_OF_A_PAIR)
                problems[f"pairs[{name!r}]: {each}" if own else each] = None
        except NotEstimable as error:
            notice = error.notice
            if isinstance(notice, Notice):
                refused.append(replace(notice, sentence=f"{name}: {notice.sentence}"))
    if problems:
        raise InvalidInput(problems)
    if not comparisons:
        raise NotEstimable(refused[0])
    return comparisons, refused


def _adjusted(comparisons: Mapping[str, Comparison]) -> dict[str, float]:
    # Its import takes over a second, which only those who come here shall pay.
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped] # noqa: PLC0415

    chances = [each.p_beyond for each in comparisons.values()]
    adjusted = multipletests(chances, method="fdr_bh")[1]
    return dict(zip(comparisons, map(float, adjusted), strict=True))


def _standing(comparison: Comparison, adjusted: float, rate: float) -> Verdict:
    if comparison.verdict in (Verdict.BETTER, Verdict.WORSE) and adjusted > rate:
        return Verdict.UNDECIDED
    return comparison.verdict


def _summary(comparisons: Mapping[str, Comparison]) -> tuple[Estimate | None, tuple[Notice, ...]]:
    """Return the geometric mean of the ratios, and who is left out of it."""
    ratios = {
        name: each.ratio
        for name, each in comparisons.items()
        if each.ratio is not None and each.ratio.value > 0.0
    }
    left_out = [name for name in comparisons if name not in ratios]
    notices = (_without(left_out),) if left_out else ()
    if not ratios:
        return None, notices
    kept = list(ratios.values())
    errors = np.array([(each.standard_error or 0.0) / each.value for each in kept])
    freedoms = np.array([each.degrees_of_freedom or math.inf for each in kept])
    error = math.hypot(*errors) / len(kept)
    freedom = math.inf
    if error > 0.0:
        shares = (errors / (error * len(kept))) ** 2
        inverse = float(np.sum(shares**2 / freedoms))
        freedom = 1.0 / inverse if inverse > 0.0 else math.inf
    middle = float(np.mean(np.log([each.value for each in kept])))
    reach = student_t(freedom, kept[0].confidence) * error
    estimate = Estimate(
        value=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        confidence=kept[0].confidence,
        n=len(kept),
        n_effective=float(len(kept)),
        method=_SUMMARY,
        standard_error=error * math.exp(middle),
        degrees_of_freedom=freedom,
        notices=notices,
    )
    return estimate, notices


def _without(names: list[str]) -> Notice:
    return Notice.warning(
        Code.NO_RATIO,
        f"Without a ratio, and so without part in the summary: {', '.join(names)}.",
        members=len(names),
    )


def _placed(
    estimates: Mapping[str, Estimate],
    sides: Mapping[str, UncertainValue],
    error: float,
    *,
    descending: bool,
) -> tuple[Ranked, ...]:
    """Give places to estimates, the best first."""
    names = sorted(estimates, key=lambda name: estimates[name].value, reverse=descending)
    looks = max(1, math.comb(len(names), 2))
    leader, ranked = 0, []
    for index, name in enumerate(names):
        contrast = Contrast(baseline=sides[names[leader]], candidate=sides[name])
        if p_value_at(contrast, 1.0) * looks <= error:
            leader = index
        ranked.append(Ranked(name=name, estimate=estimates[name], place=leader + 1))
    return tuple(ranked)
