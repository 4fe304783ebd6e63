"""Contrasts of a baseline and a candidate: independent samples (Welch), or pairs.

In pairs common drift cancels. Paired levels are compared by the level of c - R b at each ratio R:
its long-run variance follows from those of the difference and of the middle of each pair, in units
of either side, and from their correlation. Paired quantiles are compared by both intervals and
their long-run correlation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Estimate, Floats, Notice
from benchrigor.stats.comparison.fieller_mover import (
    Contrast,
    PairedContrast,
    exact_value,
    uncertain_value,
)
from benchrigor.stats.comparison.samples import Sample, estimate_sample, unit_of
from benchrigor.stats.estimators.estimation import Policy, combine_values
from benchrigor.stats.estimators.order_statistics import quantile_of
from benchrigor.stats.estimators.pace import AT_FULL_PACE
from benchrigor.stats.estimators.proportion import WILSON
from benchrigor.stats.series.interval import StandardError, estimate_level
from benchrigor.stats.series.level import MIN_FOR_VARIANCE, fit_level, too_few


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Baseline and candidate, and the contrasts from which their ratio and difference follow."""

    baseline: Estimate
    candidate: Estimate
    contrast: Contrast
    methods: tuple[str, str]  # of the difference and of the ratio
    unit: str | None  # of inference; None if they differ
    n: int
    n_effective: float
    notices: tuple[Notice, ...]
    pairs: tuple[Floats, Floats] | None = None  # whose levels are compared, if they are


def independent(baseline: Sample, candidate: Sample, policy: Policy) -> Basis:
    """Contrast samples that were taken independently."""
    one, two = (estimate_sample(each, policy).estimate_or_raise() for each in (baseline, candidate))
    units = {unit_of(baseline), unit_of(candidate)}
    # The reciprocal of a fitted slope, a speed, has an asymmetric interval, and so has a share.
    has_t = units <= {"invocation", "piece"}
    symmetric = (policy.q is None or has_t) and "round" not in units
    symmetric &= not any(each.method.startswith(WILSON) for each in (one, two))
    contrast = _contrast(one, two, symmetric=symmetric)
    single = [
        name
        for name, sample, estimate in (("baseline", baseline, one), ("candidate", candidate, two))
        if (unit_of(sample) in ("reading", "piece") and AT_FULL_PACE not in estimate.method)
        or Code.THIS_PROCESS_ONLY in {each.code for each in estimate.notices}
    ]
    return Basis(
        baseline=one,
        candidate=two,
        contrast=contrast,
        methods=("Welch", "Fieller") if symmetric else ("MOVER", "MOVER"),
        unit=units.pop() if len(units) == 1 and "run" not in units else None,
        n=one.n + two.n,
        n_effective=one.n_effective + two.n_effective,
        notices=(*_processes(single), *_merged(one.notices, two.notices)),
    )


def paired_invocations(
    baseline: tuple[Floats, ...], candidate: tuple[Floats, ...], policy: Policy
) -> Basis:
    """Contrast invocations that were run in pairs; a pair counts if both have a value."""
    estimations = [estimate_sample(each, policy) for each in (baseline, candidate)]
    values = zip(*(each.values for each in estimations), strict=True)
    kept = np.array([pair for pair in values if None not in pair], dtype=np.float64)
    if len(kept) < MIN_FOR_VARIANCE:
        raise NotEstimable(too_few(len(kept), MIN_FOR_VARIANCE))
    one, two = (
        replace(combine_values(side, policy.confidence), notices=each.notices)
        for side, each in zip(kept.T, estimations, strict=True)
    )
    basis = _levels(kept[:, 0], kept[:, 1], policy.confidence, ())
    # Only constant differences matter, not constant values of either sample.
    weak = [each for each in _merged(one.notices, two.notices) if each.code is not Code.CONSTANT]
    constant = [each for each in basis.notices if each.code is Code.CONSTANT]
    return replace(basis, baseline=one, candidate=two, notices=(*weak, *constant))


def paired_readings(
    baseline: Floats, candidate: Floats, policy: Policy, transients: tuple[float, ...]
) -> Basis:
    """Contrast as many readings of each, taken in turn; ``transients`` are fitted beside levels."""
    series, confidence = (baseline, candidate), policy.confidence
    if policy.q is None:
        basis = _levels(baseline, candidate, confidence, transients)
    else:
        one, two = (
            quantile_of(each, policy.q, confidence, transients=transients) for each in series
        )
        below = [
            (each <= estimate.value).astype(np.float64)
            for each, estimate in zip(series, (one, two), strict=True)
        ]
        contrast = replace(
            _contrast(one, two, symmetric=False), correlation=_correlation(*below, transients)
        )
        basis = Basis(
            baseline=one,
            candidate=two,
            contrast=contrast,
            methods=("MOVER", "MOVER"),
            unit="pair",
            n=one.n,
            n_effective=min(one.n_effective, two.n_effective),
            notices=_merged(one.notices, two.notices),
        )
    only = _holds_for("The pairs are from one run", "this run only")
    return replace(basis, notices=(only, *basis.notices))


def _contrast(one: Estimate, two: Estimate, *, symmetric: bool) -> Contrast:
    return Contrast(
        baseline=uncertain_value(one, symmetric=symmetric),
        candidate=uncertain_value(two, symmetric=symmetric),
    )


def _levels(
    baseline: Floats, candidate: Floats, confidence: float, transients: tuple[float, ...]
) -> Basis:
    units = float(baseline.mean()), float(candidate.mean())
    if min(units) <= 0.0:
        units = 1.0, 1.0
    one, two = baseline / units[0], candidate / units[1]
    pairs = (two - one, (one + two) / 2.0)
    series = (baseline, candidate, *pairs)
    fits = [fit_level(each, transients=transients) for each in series]
    # All levels are made alike, so that the ratio is that of the levels.
    if any(not each.transients and each.standard_error > 0.0 for each in fits):
        transients = ()
        fits = [fit_level(each) for each in series]
    first, second = (estimate_level(each, confidence) for each in fits[:2])
    apart, middle = fits[2:]
    contrast = PairedContrast(
        baseline=exact_value(first.value),
        candidate=exact_value(second.value),
        units=units,
        apart=StandardError(apart.standard_error, apart.degrees_of_freedom),
        middle=middle.standard_error,
        correlation=-_correlation(*pairs, transients),
    )
    shift = replace(apart, level=second.value - first.value)
    return Basis(
        baseline=first,
        candidate=second,
        contrast=contrast,
        methods=("paired", "paired"),
        unit="pair",
        n=baseline.size,
        n_effective=apart.n_effective,
        pairs=(baseline, candidate),
        notices=_prefixed("Differences", estimate_level(shift, confidence).notices),
    )


def _correlation(one: Floats, two: Floats, transients: tuple[float, ...]) -> float:
    """Return the long-run correlation of two series.

    Their sum and their difference, each divided by its error, have variances 2 + 2 rho and
    2 - 2 rho.
    """
    errors = [fit_level(each, transients=transients).standard_error for each in (one, two)]
    if min(errors) == 0.0:
        return 0.0
    plus, minus = (
        fit_level(one / errors[0] + sign * two / errors[1], transients=transients).standard_error**2
        for sign in (1.0, -1.0)
    )
    return (plus - minus) / (plus + minus)


def _processes(single: list[str]) -> tuple[Notice, ...]:
    """Warn of samples that are one process each."""
    if not single:
        return ()
    who, which = f"The {single[0]} is one process", "this process"
    if len(single) == 2:
        who, which = "Baseline and candidate are one process each", "these processes"
    return (_holds_for(who, f"{which} only, and drift between them looks like a difference"),)


def _holds_for(who: str, which: str) -> Notice:
    return Notice.warning(Code.THIS_PROCESS_ONLY, f"{who}: the verdict holds for {which}.")


def _merged(baseline: tuple[Notice, ...], candidate: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """Join the notices of both; name the sample where only one of them has a notice."""
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
