"""Samples to compare, their estimates, and the contrasts of a baseline and a candidate.

Contrasts are of independent samples (Welch), or of pairs, in which common drift cancels. Paired
levels are compared by the level of c - R b at each ratio R: the variance and covariance of both
sides, raised by the autocorrelation of the differences of pairs, each side in units of its mean.
Drift that both sides have in common does not raise it. Paired quantiles are compared by both
intervals and their long-run correlation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Analysis, Code, Comparison, Estimate, Metric, Notice, Options
from benchrigor.model.analysis import LevelFit
from benchrigor.model.checks import as_share, attempt, refuse, wrong_choice, wrong_number
from benchrigor.model.series import Floats, as_invocations, as_series
from benchrigor.stats.comparison.fieller_mover import (
    Contrast,
    UncertainValue,
    exact_value,
    uncertain_value,
)
from benchrigor.stats.figures_at_full_speed import AT_FULL_SPEED
from benchrigor.stats.phases.stable_phase import FindChanges
from benchrigor.stats.readings.analysis import estimate, estimated, rejected_notices
from benchrigor.stats.readings.asked_readings import Readings
from benchrigor.stats.readings.inference_units import INVOCATIONS, SUCCESSIVE
from benchrigor.stats.series.interval import (
    MIN_FOR_VARIANCE,
    PIECE_MEANS,
    all_zero,
    check_confidence,
    estimate_level,
    fit_level,
    too_few,
)
from benchrigor.stats.shares_and_quantiles import WILSON, are_outcomes, quantile_of
from benchrigor.stats.statistic import (
    INVOCATION_MEANS,
    MEAN,
    Statistic,
    combine_values,
    statistic_for,
)
from benchrigor.stats.work_line import WPS
from benchrigor.units import Direction

# One series, one per invocation, or an Estimate
Values = npt.ArrayLike | Sequence[npt.ArrayLike] | Estimate

# Checked `Values`; a sequence of one series is that series
Sample = Floats | tuple[Floats, ...] | Estimate


def asked_of(
    statistic: str | None = None,
    confidence: float = 0.95,
    direction: str | None = None,
    *,
    trim: bool = False,
    detector: FindChanges | None = None,
    ended: bool = True,
) -> Readings:
    """Return what a comparison asks of the readings of either side, as yet none.

    ``ended`` is False if more readings could follow: the last ones are not a cool-down.
    """
    way = None if direction is None else Direction(direction)
    options = Options(statistic=statistic or "mean", confidence=confidence)
    return Readings(
        series=(),
        unit=SUCCESSIVE,
        metric=Metric(name="readings", direction=way),
        options=options,
        statistic=statistic_for(options.statistic),
        searched=trim,
        detector=detector,
        ended=ended,
    )


def of_shares(asked: Readings) -> Readings:
    """Return what is asked if all readings prove to be outcomes."""
    return replace(asked, statistic=statistic_for(asked.options.statistic, share=True))


def answer(asked: Readings, margin: float, **found: Any) -> Comparison:
    """Return the comparison that was asked for, with these findings."""
    nothing = dict.fromkeys(("baseline", "candidate", "ratio", "difference", "p_value"))
    known: dict[str, Any] = {
        "statistic": asked.options.statistic,
        "direction": asked.metric.direction,
        "margin": margin,
        "confidence": asked.options.confidence,
        "paired": found["unit"] == "pair",
        "p_beyond": 1.0,
        **nothing,
    }
    return Comparison(**known | found)


def checked_asked(
    problems: list[str],
    *,
    statistic: str | None = None,
    confidence: float = 0.95,
    direction: str | None = None,
    margin: Any = 0.01,
    **how: Any,
) -> tuple[Readings, float]:
    """Return what is `asked_of` both sides, and the margin; add what is wrong to the problems."""
    attempt(problems, comparable_statistic, statistic or "mean")
    attempt(problems, check_confidence, confidence)
    way = attempt(problems, direction_named, direction)
    least = attempt(problems, check_margin, margin)
    if problems or least is None:
        return asked_of(), 0.0
    return asked_of(statistic, float(confidence), way, **how), least


def read_sample(values: Values, name: str) -> Sample:
    """Check a baseline or a candidate; raise InvalidInput with a sentence for each bad series."""
    if isinstance(values, Estimate):
        if not (math.isfinite(values.value) and -math.inf < values.low <= values.high < math.inf):
            raise InvalidInput(
                f"{name} is an estimate of {values.value!r} [{values.low!r}, {values.high!r}], "
                "expected finite numbers, the lower end first"
            )
        return values
    several = _several(values)
    if several is None:
        return as_series(values, name=name)
    series = as_invocations(several, name=name)
    return series[0] if len(series) == 1 else series


def direction_named(direction: object) -> Direction | None:
    """Return which way is better; raise InvalidInput unless it is "lower", "higher" or None."""
    if direction is None:
        return None
    refuse(wrong_choice("direction", direction, tuple(map(str, Direction))))
    return Direction(str(direction))


def comparable_statistic(name: str) -> Statistic:
    """Return a statistic that has an interval; raise InvalidInput if it is unknown or has none."""
    try:
        statistic = statistic_for(name)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    if statistic.refusal is not None:
        raise InvalidInput(
            f"statistic is {name!r}, which has no interval to compare, expected another, such as "
            "'p10'"
        )
    return statistic


def check_margin(margin: Any) -> float:
    """Return a margin, or raise InvalidInput unless it is a number of 0 or more."""
    share = as_share(margin)
    refuse(wrong_number("margin", share, zero=True))
    return float(share)


def are_all_outcomes(*samples: Sample) -> bool:
    """Return whether all readings are outcomes, 0 or 1, and both occur; estimates hold none."""
    series = _series_of(samples)
    extremes = {float(end(values)) for values in series for end in (np.min, np.max)}
    return extremes == {0.0, 1.0} and all(map(are_outcomes, series))


def are_positive(*samples: Sample) -> bool:
    """Return whether no reading, and no value of an estimate, is below 0."""
    values = [sample.value for sample in samples if isinstance(sample, Estimate)]
    return min([*values, *(float(series.min()) for series in _series_of(samples))]) >= 0.0


def refuse_zeros(*samples: tuple[str, Sample]) -> None:
    """Raise NotEstimable, by the name of the sample, if all its readings are 0.

    Bare readings are taken for times; outcomes may all be failures.
    """
    if are_all_outcomes(*(sample for _, sample in samples)):
        return
    for name, sample in samples:
        series = _series_of((sample,))
        if series and not any(values.any() for values in series):
            refusal = all_zero(sum(values.size for values in series))
            raise NotEstimable(refusal.about(name))


def _series_of(samples: Iterable[Sample]) -> list[Floats]:
    """Return the series of all samples; estimates hold none."""
    return [
        series
        for sample in samples
        if not isinstance(sample, Estimate)
        for series in (sample if isinstance(sample, tuple) else (sample,))
        if series.size
    ]


def name_unit(sample: Sample) -> str:
    """Name the unit of inference.

    "invocation", "piece", "reading", "round" of various work, or "run" at full speed.
    """
    if isinstance(sample, Estimate):
        if sample.method == AT_FULL_SPEED:
            return "run"
        if sample.method.startswith(WPS):
            return "round"
        units = {INVOCATION_MEANS: "invocation", PIECE_MEANS: "piece"}
        return next((unit for name, unit in units.items() if name in sample.method), "reading")
    return "invocation" if isinstance(sample, tuple) else "reading"


def analyse_sample(sample: Sample, asked: Readings) -> Analysis:
    """Estimate the statistic of a sample; an Estimate counts as it is."""
    if isinstance(sample, Estimate):
        return replace(asked, series=()).analysis(estimate=sample, notices=sample.notices)
    if not isinstance(sample, tuple):
        analysis = estimate(replace(asked, series=(sample,)))
        estimated(analysis)
        return analysis
    analysis = estimate(replace(asked, series=sample, unit=INVOCATIONS))
    counted = sum(value is not None for value in analysis.levels)
    if counted == 0:
        estimated(analysis)
    if counted < MIN_FOR_VARIANCE:
        raise NotEstimable(rejected_notices(len(sample) - counted, len(sample))[0])
    return analysis


def _several(values: object) -> Sequence[object] | None:
    """Return the values if they are several series rather than one, by the first item."""
    if isinstance(values, np.ndarray):
        return list(values) if values.ndim == 2 and values.size else None
    if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
        return None
    first = values[0]
    return values if hasattr(first, "__len__") and not isinstance(first, str | bytes) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Baseline and candidate, and the contrasts from which their ratio and difference follow."""

    baseline: Estimate
    candidate: Estimate
    contrast: Contrast
    difference: Contrast  # of pairs with a long-run variance of its own
    methods: tuple[str, str]  # of the difference and of the ratio
    unit: str | None  # of inference; None if they differ
    n: int
    n_effective: float
    notices: tuple[Notice, ...]
    pairs: tuple[Floats, Floats] | None = None  # whose levels are compared, if they are


def independent(baseline: Sample, candidate: Sample, asked: Readings) -> Basis:
    """Contrast samples that were taken independently."""
    one, two = (estimated(analyse_sample(side, asked)) for side in (baseline, candidate))
    units = {name_unit(baseline), name_unit(candidate)}
    # The reciprocal of a fitted slope, a speed, has an asymmetric interval, and so has a share.
    has_t = units <= {"invocation", "piece"}
    symmetric = (asked.statistic.q is None or has_t) and "round" not in units
    symmetric &= not any(side.method.startswith(WILSON) for side in (one, two))
    contrast = _contrast(one, two, symmetric=symmetric)
    single = [
        name
        for name, sample, estimate in (("baseline", baseline, one), ("candidate", candidate, two))
        if (name_unit(sample) in ("reading", "piece") and AT_FULL_SPEED not in estimate.method)
        or Code.THIS_PROCESS_ONLY in {notice.code for notice in estimate.notices}
    ]
    return Basis(
        baseline=one,
        candidate=two,
        contrast=contrast,
        difference=contrast,
        methods=("Welch", "Fieller") if symmetric else ("MOVER", "MOVER"),
        unit=units.pop() if len(units) == 1 and "run" not in units else None,
        n=one.n + two.n,
        n_effective=one.n_effective + two.n_effective,
        notices=(*_processes(single), *_merge(one.notices, two.notices)),
    )


def paired_invocations(
    baseline: tuple[Floats, ...],
    candidate: tuple[Floats, ...],
    asked: Readings,
    *,
    independent: bool = False,
) -> Basis:
    """Contrast invocations that were run in pairs; a pair counts if both have a value."""
    analyses = [analyse_sample(side, asked) for side in (baseline, candidate)]
    values = zip(*(analysis.levels for analysis in analyses), strict=True)
    kept = np.array([pair for pair in values if None not in pair], dtype=np.float64).reshape(-1, 2)
    sides = kept[:, 0], kept[:, 1]
    basis = _levels(sides, MEAN, asked.options.confidence, (), independent=independent)
    one, two = (
        replace(combine_values(side.tolist(), asked.options.confidence), notices=analysis.notices)
        for side, analysis in zip(kept.T, analyses, strict=True)
    )
    # Only constant differences matter, not constant values of either sample.
    weak = [
        notice for notice in _merge(one.notices, two.notices) if notice.code is not Code.CONSTANT
    ]
    constant = [notice for notice in basis.notices if notice.code is Code.CONSTANT]
    return replace(basis, baseline=one, candidate=two, notices=(*weak, *constant))


def paired_readings(
    baseline: Floats, candidate: Floats, asked: Readings, transients: tuple[float, ...]
) -> Basis:
    """Contrast as many readings of each, taken in turn; ``transients`` are fitted beside levels."""
    series, confidence, q = (baseline, candidate), asked.options.confidence, asked.statistic.q
    if q is None:
        basis = _levels(series, asked.statistic, confidence, transients)
    else:
        one, two = (quantile_of(values, q, confidence, transients=transients) for values in series)
        below = [
            (values <= estimate.value).astype(np.float64)
            for values, estimate in zip(series, (one, two), strict=True)
        ]
        contrast = replace(
            _contrast(one, two, symmetric=False), correlation=_correlation(below, transients)
        )
        basis = Basis(
            baseline=one,
            candidate=two,
            contrast=contrast,
            difference=contrast,
            methods=("MOVER", "MOVER"),
            unit="pair",
            n=one.n,
            n_effective=min(one.n_effective, two.n_effective),
            notices=_merge(one.notices, two.notices),
        )
    only = Notice.of(Code.THIS_PROCESS_ONLY, "pairs")
    return replace(basis, notices=(only, *basis.notices))


def _contrast(one: Estimate, two: Estimate, *, symmetric: bool) -> Contrast:
    return Contrast(
        baseline=uncertain_value(one, symmetric=symmetric),
        candidate=uncertain_value(two, symmetric=symmetric),
    )


def _levels(
    sides: Sequence[Floats],
    statistic: Statistic,
    confidence: float,
    transients: tuple[float, ...],
    *,
    independent: bool = False,
) -> Basis:
    baseline, candidate = map(statistic.as_mean, sides)
    if baseline.size < MIN_FOR_VARIANCE:
        raise NotEstimable(too_few(baseline.size, MIN_FOR_VARIANCE))
    units = float(baseline.mean()), float(candidate.mean())
    if min(units) <= 0.0:
        units = 1.0, 1.0
    apart = candidate / units[1] - baseline / units[0]
    series = (baseline, candidate, apart, candidate - baseline)
    fit = partial(fit_level, independent=independent)
    fits = [fit(values, transients=transients) for values in series]
    # All levels are made in the same way, so that the ratio compares the levels.
    if any(not fit.transients and fit.standard_error > 0.0 for fit in fits):
        fits = [fit(values) for values in series]
    fits = [*map(statistic.freed, fits)]
    are_positive = (float(baseline.min()) >= 0.0, float(candidate.min()) >= 0.0, False, False)
    first, second, _, shift = (
        estimate_level(fit, confidence, positive=positive)
        for fit, positive in zip(fits, are_positive, strict=True)
    )
    return Basis(
        baseline=first,
        candidate=second,
        contrast=_of_pairs(baseline, candidate, apart, fits),
        difference=Contrast(baseline=exact_value(0.0), candidate=_with_error(fits[3])),
        methods=("paired", "paired"),
        unit="pair",
        n=baseline.size,
        n_effective=fits[2].n_effective,
        notices=_prefix("Differences", shift.notices),
        pairs=(baseline, candidate),
    )


def _of_pairs(
    baseline: Floats, candidate: Floats, apart: Floats, fits: Sequence[LevelFit]
) -> Contrast:
    """Contrast the levels of pairs, by the fits of both and of how far each pair is ``apart``.

    What autocorrelation does to the error of the latter it does to all.
    """
    covariance = np.cov(baseline, candidate)
    errors = np.sqrt(np.diag(covariance) / baseline.size)
    correlation = float(covariance[0, 1] / baseline.size / errors.prod()) if errors.all() else 0.0
    noise = math.sqrt(float(apart.var(ddof=1)) / apart.size)
    if fits[2].standard_error > 0.0 and noise > 0.0:
        errors *= fits[2].standard_error / noise
    one, two = (
        replace(_with_error(fit), below=error, above=error)
        for fit, error in zip(fits, errors.tolist(), strict=False)
    )
    return Contrast(
        baseline=one,
        candidate=two,
        correlation=min(1.0, max(-1.0, correlation)),
        freedom=fits[2].degrees_of_freedom,
    )


def _with_error(fit: LevelFit) -> UncertainValue:
    return UncertainValue(
        value=fit.level,
        below=fit.standard_error,
        above=fit.standard_error,
        degrees_of_freedom=fit.degrees_of_freedom,
    )


def _correlation(shares: list[Floats], transients: tuple[float, ...]) -> float:
    """Return the long-run correlation of the shares of readings below two quantiles.

    The difference of two shares, each divided by its error, has variance 2 - 2 rho.
    """
    errors = [fit_level(share, transients=transients).standard_error for share in shares]
    if min(errors) == 0.0:
        return 0.0
    difference = fit_level(shares[1] / errors[1] - shares[0] / errors[0], transients=transients)
    return min(1.0, max(-1.0, 1.0 - difference.standard_error**2 / 2.0))


def _processes(single: list[str]) -> tuple[Notice, ...]:
    """Warn of samples that are one process each."""
    if not single:
        return ()
    case = "both sides" if len(single) == 2 else "one side"
    return (Notice.of(Code.THIS_PROCESS_ONLY, case, side_=single[0]),)


def _merge(baseline: tuple[Notice, ...], candidate: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """Join the notices of both; name the sample if only one of them has a notice."""
    one, two = (
        [notice for notice in notices if notice.code is not Code.THIS_PROCESS_ONLY]
        for notices in (baseline, candidate)
    )
    both = [notice for notice in one if notice in two]
    return (
        *both,
        *_prefix("Baseline", (notice for notice in one if notice not in both)),
        *_prefix("Candidate", (notice for notice in two if notice not in both)),
    )


def _prefix(name: str, notices: Iterable[Notice]) -> tuple[Notice, ...]:
    return tuple(notice.about(name) for notice in notices)
