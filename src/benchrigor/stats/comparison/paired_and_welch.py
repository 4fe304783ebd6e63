"""What a comparison rests on: independent samples, or pairs in which common drift cancels.

Paired levels are compared by the level of c - b for their difference, and of c - R b for their
ratio R, each with its own long-run variance (delta method: R is held at its estimate). Quantiles
of paired series are compared by the intervals of both and their long-run correlation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Floats, Notice
from benchrigor.stats.comparison.fieller_mover import Contrast, Side, exact_side, side_of
from benchrigor.stats.comparison.samples import Sample, estimate_sample, unit_of
from benchrigor.stats.estimators.estimation import Policy, combine_values
from benchrigor.stats.estimators.order_statistics import quantile_of
from benchrigor.stats.series.interval import estimate_level
from benchrigor.stats.series.level import FEWEST, fit_level, too_few


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Baseline and candidate, and the contrasts from which their ratio and difference follow."""

    baseline: Estimate
    candidate: Estimate
    ratio: Contrast | None
    """None where the baseline is not above 0."""
    difference: Contrast
    methods: tuple[str, str]
    """Of the difference, and of the ratio."""
    unit: str | None
    """What both count; None where they differ."""
    n: int
    n_effective: float
    notices: tuple[Notice, ...]


def independent(baseline: Sample, candidate: Sample, policy: Policy) -> Basis:
    """Contrast samples that have nothing in common."""
    one, two = (estimate_sample(each, policy).required() for each in (baseline, candidate))
    units = {unit_of(baseline), unit_of(candidate)}
    # The reciprocal of a fitted slope, a speed, has an asymmetric interval.
    symmetric = (policy.q is None or units == {"invocation"}) and "round" not in units
    contrast = _contrast(one, two, symmetric=symmetric)
    single = [_of_one_process(*each) for each in ((baseline, one), (candidate, two))]
    return Basis(
        baseline=one,
        candidate=two,
        ratio=contrast,
        difference=contrast,
        methods=("Welch", "Fieller") if symmetric else ("MOVER", "MOVER"),
        unit=units.pop() if len(units) == 1 else None,
        n=one.n + two.n,
        n_effective=one.n_effective + two.n_effective,
        notices=(*_processes(*single), *_merged(one.notices, two.notices)),
    )


def paired_invocations(
    baseline: tuple[Floats, ...], candidate: tuple[Floats, ...], policy: Policy
) -> Basis:
    """Contrast invocations that were run side by side; a pair counts where both do."""
    estimations = [estimate_sample(each, policy) for each in (baseline, candidate)]
    values = zip(*(each.values for each in estimations), strict=True)
    kept = np.array([pair for pair in values if None not in pair], dtype=np.float64)
    if len(kept) < FEWEST:
        raise NotEstimable(too_few(len(kept), FEWEST))
    one, two = (
        replace(combine_values(side, policy.confidence), notices=each.notices)
        for side, each in zip(kept.T, estimations, strict=True)
    )
    basis = _levels(kept[:, 0], kept[:, 1], one, two, ())
    # Constant values matter of the differences, not of either sample.
    weak = [each for each in _merged(one.notices, two.notices) if each.code is not Code.CONSTANT]
    constant = [each for each in basis.notices if each.code is Code.CONSTANT]
    return replace(basis, notices=(*weak, *constant))


def paired_readings(
    baseline: Floats, candidate: Floats, policy: Policy, transients: tuple[float, ...]
) -> Basis:
    """Contrast as many readings of each, taken in turn; ``transients`` are fitted beside levels."""
    series, confidence = (baseline, candidate), policy.confidence
    if policy.q is None:
        one, two = (
            estimate_level(fit_level(each, transients=transients), confidence) for each in series
        )
        basis = _levels(baseline, candidate, one, two, transients)
    else:
        one, two = (
            quantile_of(each, policy.q, confidence, transients=transients) for each in series
        )
        below = (np.asarray(baseline <= one.value), np.asarray(candidate <= two.value))
        contrast = replace(
            _contrast(one, two, symmetric=False), correlation=_correlation(*below, transients)
        )
        basis = Basis(
            baseline=one,
            candidate=two,
            ratio=contrast,
            difference=contrast,
            methods=("MOVER", "MOVER"),
            unit="pair",
            n=one.n,
            n_effective=min(one.n_effective, two.n_effective),
            notices=_merged(one.notices, two.notices),
        )
    only = _only("The pairs come of one run", "this run only")
    return replace(basis, notices=(only, *basis.notices))


def _contrast(one: Estimate, two: Estimate, *, symmetric: bool) -> Contrast:
    return Contrast(
        baseline=side_of(one, symmetric=symmetric), candidate=side_of(two, symmetric=symmetric)
    )


def _levels(
    first: Floats, second: Floats, one: Estimate, two: Estimate, transients: tuple[float, ...]
) -> Basis:
    shift = fit_level(second - first, transients=transients)
    ratio = None
    effective = shift.n_effective
    # Shared drift may widen the baseline's own interval past 0, but readings above 0 have a mean
    # above 0.
    if one.low > 0.0 or float(first.min()) > 0.0:
        change = two.value / one.value
        rest = fit_level(second - change * first, transients=transients)
        ratio = _alone(1.0, change, rest.standard_error / one.value, rest.degrees_of_freedom)
        effective = rest.n_effective
    return Basis(
        baseline=one,
        candidate=two,
        ratio=ratio,
        difference=_alone(0.0, shift.level, shift.standard_error, shift.degrees_of_freedom),
        methods=("paired", "paired"),
        unit="pair",
        n=first.size,
        n_effective=effective,
        notices=_prefixed("Differences", estimate_level(shift, one.confidence).notices),
    )


def _alone(against: float, value: float, error: float, freedom: float) -> Contrast:
    """Contrast a value, whose error is all there is, with a number."""
    return Contrast(
        baseline=exact_side(against),
        candidate=Side(value=value, below=error, above=error, degrees_of_freedom=freedom),
    )


def _correlation(
    first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], transients: tuple[float, ...]
) -> float:
    """Return the long-run correlation of the shares of readings below two quantiles.

    The difference of two shares, each divided by its error, has variance 2 - 2 rho.
    """
    shares = [each.astype(np.float64) for each in (first, second)]
    errors = [fit_level(each, transients=transients).standard_error for each in shares]
    if min(errors) == 0.0:
        return 0.0
    apart = fit_level(shares[1] / errors[1] - shares[0] / errors[0], transients=transients)
    return min(1.0, max(-1.0, 1.0 - apart.standard_error**2 / 2.0))


def _of_one_process(sample: Sample, estimate: Estimate) -> bool:
    """Whether a sample speaks for one process only."""
    codes = {each.code for each in estimate.notices}
    return Code.THIS_PROCESS_ONLY in codes or unit_of(sample) == "reading"


def _processes(baseline: bool, candidate: bool) -> tuple[Notice, ...]:  # as they come
    """Say which of both is one process only."""
    samples = (("baseline", baseline), ("candidate", candidate))
    single = [name for name, alone in samples if alone]
    if not single:
        return ()
    who, what = f"The {single[0]} is one process", "this process"
    if len(single) == len(samples):
        who, what = "Baseline and candidate are one process each", "these processes"
    return (_only(who, f"{what} only, and drift passes for a difference: interleave them"),)


def _only(who: str, what: str) -> Notice:
    return Notice.warning(Code.THIS_PROCESS_ONLY, f"{who}: the verdict holds for {what}.")


def _merged(baseline: tuple[Notice, ...], candidate: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """Gather the notices of both; those that both have stand once."""
    one, two = (
        [each for each in notices if each.code is not Code.THIS_PROCESS_ONLY]
        for notices in (baseline, candidate)
    )
    both = [each for each in one if each in two]
    return (
        *both,
        *_prefixed("Baseline", (each for each in one if each not in both)),
        *_prefixed("Candidate", (each for each in two if each not in both)),
    )


def _prefixed(name: str, notices: Iterable[Notice]) -> tuple[Notice, ...]:
    return tuple(replace(each, sentence=f"{name}: {each.sentence}") for each in notices)
