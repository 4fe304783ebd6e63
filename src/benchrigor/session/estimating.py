"""From the readings that were kept to the estimate that a session was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from benchrigor.errors import NotEstimable
from benchrigor.model import (
    Code,
    Estimate,
    Floats,
    Kind,
    LevelFit,
    Metric,
    Notice,
    Options,
    quantile_named,
)
from benchrigor.stats import combine_levels, estimate_level, fit_level
from benchrigor.stats.comparison.samples import thin_tails
from benchrigor.stats.estimators.invocations import combine_values, of_one
from benchrigor.stats.estimators.quantile import quantile_of, quantile_value
from benchrigor.stats.estimators.rate import reciprocal
from benchrigor.stats.series.subsessions import MERGING, fit_merged
from benchrigor.stats.series.transients import COMPLETE, TRANSIENTS

__all__ = [
    "Found",
    "How",
    "batched",
    "estimate_mean_of",
    "estimate_quantile_of",
    "estimated",
    "notice_of",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How the readings of one metric are to be estimated.

    Parameters
    ----------
    metric, options, kind
        As in `chain.Material`.
    batch
        Calls of which each reading is the average.
    complete
        Whether the series has come to its end, where a cool-down may be under way.
    """

    metric: Metric
    options: Options
    kind: Kind
    batch: int = 1
    complete: bool = False

    @property
    def transients(self) -> tuple[float, ...]:
        """Time constants of what is fitted beside the level: nothing where no run warms up."""
        if self.kind is Kind.READINGS:
            return ()
        # Rounds are cut at both ends by what they share, which sees more than one series does.
        return COMPLETE if self.complete and self.kind is Kind.UNIT_READINGS else TRANSIENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of it: an estimate, or the Notices that say why there is none."""

    estimate: Estimate | None = None
    fits: tuple[LevelFit, ...] = ()
    refusals: tuple[Notice, ...] = ()


def estimated(how: How, kept: Sequence[Floats]) -> Found:
    """Estimate the statistic that was asked for, of one series or of one per invocation."""
    share = quantile_named(how.options.statistic)
    return estimate_mean_of(how, kept) if share is None else estimate_quantile_of(how, kept, share)


def estimate_mean_of(how: How, kept: Sequence[Floats]) -> Found:
    """Estimate the mean; of rates over equal work the mean of their reciprocals is inverted."""
    harmonic = how.metric.averaging == "harmonic"
    merging = how.options.method == MERGING

    def fit(series: Floats) -> LevelFit:
        values = 1.0 / series if harmonic else series
        if merging and how.kind is not Kind.INVOCATIONS:
            return fit_merged(values)
        return fit_level(values, transients=() if merging else how.transients)

    fits, refusals = _each(fit, kept)
    if not fits:
        return Found(refusals=refusals)
    confidence = how.options.confidence
    if how.kind is Kind.INVOCATIONS:
        found = combine_levels(fits, confidence)
    else:
        found = estimate_level(fits[0], confidence)
    try:
        return Found(estimate=reciprocal(found) if harmonic else found, fits=fits)
    except NotEstimable as error:
        return Found(fits=fits, refusals=(notice_of(error),))


def estimate_quantile_of(how: How, kept: Sequence[Floats], share: float) -> Found:
    """Estimate a quantile; over invocations the mean of each one's own quantile."""
    confidence = how.options.confidence
    if how.kind is Kind.INVOCATIONS and len(kept) > 1:
        values = [quantile_value(series, share, transients=how.transients) for series in kept]
        over = combine_values(values, confidence)
        thin = thin_tails(tuple(kept), share)
        return Found(estimate=_warned(how, replace(over, notices=(*thin, *over.notices))))
    found, refusals = _each(
        lambda series: quantile_of(series, share, confidence, transients=how.transients), kept
    )
    if not found:
        return Found(refusals=refusals)
    single = of_one(found[0]) if how.kind is Kind.INVOCATIONS else found[0]
    return Found(estimate=_warned(how, single), refusals=refusals)


def batched(calls: int) -> Notice:
    """Warn of quantiles of averages."""
    return Notice.warning(
        Code.BATCHED,
        f"Each reading averages {calls} calls: quantiles of averages lie nearer to the mean "
        "than those of single calls.",
        calls=calls,
    )


def _warned(how: How, found: Estimate) -> Estimate:
    if how.batch == 1:
        return found
    return replace(found, notices=(*found.notices, batched(how.batch)))


def _each(
    fit: Callable[[Floats], T], kept: Sequence[Floats]
) -> tuple[tuple[T, ...], tuple[Notice, ...]]:
    """Apply ``fit`` to each series; return what was found, and why the others gave nothing."""
    found, refusals = [], []
    for series in kept:
        try:
            found.append(fit(series))
        except NotEstimable as error:
            refusals.append(notice_of(error))
    return tuple(found), tuple(refusals)


def notice_of(error: NotEstimable) -> Notice:
    """Return why nothing can be estimated."""
    assert isinstance(error.notice, Notice)  # noqa: S101  # for the type checker: errors lie below
    return error.notice
