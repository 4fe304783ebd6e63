"""The statistic that is estimated (mean, quantile, share), and the policy of its estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import ChangePoints, Code, Estimate, Notice, quantile_named
from benchrigor.model.analysis import Kind, LevelFit
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.changepoints.ruptures_adapter import takes_longest
from benchrigor.stats.series.interval import LONG_RUN_VARIANCE, estimate_level, refuse_wide
from benchrigor.stats.series.level import (
    BLOCKS,
    COMPLETE,
    MIN_FOR_VARIANCE,
    TRANSIENTS,
    block_starts,
    fit_blocks,
    fit_level,
    too_few,
)
from benchrigor.stats.series.remembered import remembered
from benchrigor.stats.series.subsessions import SUBSESSIONS, fit_merged
from benchrigor.stats.statistics.order_statistics import quantile_of, quantile_value
from benchrigor.stats.statistics.proportion import (
    MIN_IN_TAIL,
    WILSON,
    are_outcomes,
    combine_shares,
    estimate_outcomes,
)
from benchrigor.stats.statistics.rate import (
    HARMONIC,
    are_equal,
    averaged_as,
    reciprocal,
    weighted_mean,
)
from benchrigor.stats.statistics.variance_components import INVOCATION_MEANS, combine_values

Fits = tuple[LevelFit, ...]
Found = tuple[Estimate, Fits]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Several:
    """Series of invocations or pieces that have a value, with their values and fits."""

    series: Sequence[Floats]
    values: Sequence[float]
    fits: Fits
    policy: Policy

    @property
    def unit(self) -> str:
        """The unit of inference."""
        return "piece" if self.policy.kind is Kind.PIECES else "invocation"


class Statistic(Protocol):
    """A statistic of readings: everything that depends on the statistic is here.

    Methods raise NotEstimable where the readings allow no number.
    """

    q: float | None = None  # share of readings below a quantile
    follows_pace: bool = True  # whether the pace of the machine moves it
    averages_rates: bool = False  # higher on a faster machine, whatever its metric says

    def of_series(self, series: Floats, policy: Policy, weights: Floats | None, /) -> Found:
        """Estimate the statistic of one series; weights may be None."""
        ...

    def of_each(self, series: Floats, policy: Policy, /) -> tuple[float, Fits]:
        """Return the value of one of several series, and the fit that gave it."""
        ...

    def of_several(self, several: Several, /) -> Estimate:
        """Estimate the statistic over invocations or pieces from their values."""
        ...


class Mean(Statistic):
    """The mean. Of successive readings it is their level, fitted with decaying transients."""

    def of_series(self, series: Floats, policy: Policy, weights: Floats | None) -> Found:
        """Estimate the level, or the mean by weights."""
        if weights is not None:
            return weighted_mean(series, weights, policy.confidence), ()
        fit = _fit(series, policy)
        return _level(fit, series, policy), (fit,)

    def of_each(self, series: Floats, policy: Policy) -> tuple[float, Fits]:
        """Return the level of an invocation, or the mean of a piece."""
        # A command that is run once gives an invocation of one reading.
        single = series.size < MIN_FOR_VARIANCE and policy.trim is not True
        if policy.kind is Kind.PIECES or single:
            return _mean(series), ()
        fit = _fit_round(series, policy)
        return fit.level, (fit,)

    def of_several(self, several: Several) -> Estimate:
        """Combine the levels by Student's t."""
        policy = several.policy
        if len(several.values) > 1:
            return combine_values(several.values, policy.confidence, several.unit)
        if not several.fits:
            raise NotEstimable(too_few(1, MIN_FOR_VARIANCE))
        return of_one(_level(several.fits[0], several.series[0], policy))


MEAN = Mean()  # each but a quantile is one object, so that results are remembered by it


class HarmonicMean(Statistic):
    """The reciprocal of the mean of reciprocals: of rates, over equal amounts of work."""

    averages_rates = True

    def of_series(self, series: Floats, policy: Policy, _weights: Floats | None) -> Found:
        """Estimate the mean of reciprocals; equal readings are not rounded by it."""
        inverse, fits = MEAN.of_series(1.0 / series, policy, None)
        if are_equal(series):
            return averaged_as(HARMONIC, MEAN.of_series(series, policy, None)[0]), fits
        return reciprocal(inverse), fits

    def of_each(self, series: Floats, policy: Policy) -> tuple[float, Fits]:
        """Return the reciprocal of the level of reciprocals."""
        level, fits = MEAN.of_each(1.0 / series, policy)
        return float(series[0]) if are_equal(series) else 1.0 / level, fits

    def of_several(self, several: Several) -> Estimate:
        """Combine the reciprocals of the values."""
        if are_equal(*several.series):
            return averaged_as(HARMONIC, MEAN.of_several(several))
        values, confidence = [1.0 / value for value in several.values], several.policy.confidence
        if len(values) > 1:
            return combine_values(values, confidence, several.unit, harmonic=True)
        inverse = [1.0 / series for series in several.series]
        return reciprocal(MEAN.of_several(replace(several, series=inverse, values=values)))


@dataclass(frozen=True)
class Quantile(Statistic):
    """The reading below which a share ``q`` of the readings lies."""

    q: float
    follows_pace: bool = True
    averages_rates: bool = False

    def of_series(self, series: Floats, policy: Policy, _weights: Floats | None) -> Found:
        """Estimate it by order statistics; weights do not matter."""
        starts = block_starts(series) if policy.method == BLOCKS else None
        transients = policy.transients
        estimate = quantile_of(
            series, self.q, policy.confidence, transients=transients, blocks=starts
        )
        return estimate, ()

    def of_each(self, series: Floats, policy: Policy) -> tuple[float, Fits]:
        """Return the quantile of a series."""
        return quantile_value(series, self.q, transients=policy.transients), ()

    def of_several(self, several: Several) -> Estimate:
        """Combine the quantiles; warn if the shortest series makes its own biased."""
        confidence, transients = several.policy.confidence, several.policy.transients
        if len(several.values) == 1:
            first = several.series[0]
            return of_one(quantile_of(first, self.q, confidence, transients=transients))
        estimate = combine_values(several.values, confidence, several.unit)
        shortest = min(series.size for series in several.series)
        in_tail, wanted = shortest * min(self.q, 1.0 - self.q), MIN_IN_TAIL
        if in_tail >= wanted:
            return estimate
        sentence = (
            f"The shortest {several.unit} has {shortest} readings, {in_tail:.2g} of them beyond "
            f"the {self.q * 100:g}% quantile: below {wanted} the quantile is biased."
        )
        thin = Notice.warning(
            Code.FEW_IN_TAIL, sentence, n=shortest, in_tail=in_tail, wanted=wanted
        )
        return replace(estimate, notices=(thin, *estimate.notices))


class Share(Statistic):
    """The share of outcomes that are 1; of shares of trials, that of all trials."""

    follows_pace = False

    def of_series(self, series: Floats, policy: Policy, weights: Floats | None) -> Found:
        """Estimate it by Wilson's interval."""
        if weights is None and are_outcomes(series):
            return estimate_outcomes(series, policy.confidence), ()
        return combine_shares(series, weights, policy.confidence), ()

    def of_each(self, series: Floats, _policy: Policy) -> tuple[float, Fits]:
        """Return the share of a series."""
        return _mean(series), ()

    def of_several(self, several: Several) -> Estimate:
        """Combine the shares of invocations by their sizes; pieces are like means."""
        confidence = several.policy.confidence
        if several.unit == "piece":
            return MEAN.of_several(several)
        if len(several.values) == 1:
            return of_one(estimate_outcomes(several.series[0], confidence))
        sizes = np.array([float(series.size) for series in several.series])
        shares = combine_shares(np.array(several.values), sizes, confidence)
        return replace(shares, method=f"{WILSON}, {INVOCATION_MEANS}")


HARMONIC_MEAN, SHARE = HarmonicMean(), Share()


def statistic_for(name: str, *, share: bool = False, harmonic: bool = False) -> Statistic:
    """Return the statistic of a name, of readings that are shares, or averaged harmonically."""
    if (q := quantile_named(name)) is not None:
        return Quantile(q, follows_pace=not share, averages_rates=harmonic)
    return SHARE if share else HARMONIC_MEAN if harmonic else MEAN


def of_one(inner: Estimate) -> Estimate:
    """Turn the estimate of a series into the estimate over one invocation."""
    sentence = "One invocation: the interval holds for this process only."
    only = Notice.warning(Code.THIS_PROCESS_ONLY, sentence, invocations=1)
    return replace(inner, n=1, n_effective=1.0, notices=(only, *inner.notices))


def _mean(series: Floats) -> float:
    return float(series[0] if are_equal(series) else series.mean())


def _level(fit: LevelFit, series: Floats, policy: Policy) -> Estimate:
    """Return the estimate of a level; of blocks that of this time, which lies among them."""
    least, most = float(series.min()), float(series.max())
    estimate = estimate_level(fit, policy.confidence, positive=least >= 0.0)
    if policy.method == BLOCKS:
        return replace(estimate, low=max(estimate.low, least), high=min(estimate.high, most))
    return estimate


def _fit(series: Floats, policy: Policy) -> LevelFit:
    if policy.method == BLOCKS:
        return fit_blocks(series, block_starts(series))
    if policy.method != SUBSESSIONS:
        return fit_level(series, transients=policy.transients)
    if policy.kind is Kind.INVOCATIONS:
        return fit_level(series)
    return fit_merged(series, limit=policy.autocorrelation_limit)


_fit_round = remembered(_fit)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferencesAlong:
    """Times of fixed work between the readings of a series; arrays of shape (k,).

    Parameters
    ----------
    stops
        Index after the last reading before each, ascending.
    log_s
        Logarithms of their seconds.
    busy
        Share of the readings during which a processor worked: only that part follows the pace.
    """

    stops: Ints
    log_s: Floats
    busy: float = 1.0

    def of(self, indices: Ints) -> ReferencesAlong:
        """Return the references along some of the readings, whose indices ascend."""
        stops, first = np.unique(np.searchsorted(indices, self.stops), return_index=True)
        return replace(self, stops=stops, log_s=self.log_s[first])


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which statistic is estimated, of what kind of readings, and by which method."""

    kind: Kind = Kind.UNIT_READINGS
    statistic: Statistic = MEAN
    confidence: float = 0.95
    # Estimate the stable phase instead of all readings; or what shares at both ends leave.
    trim: bool | tuple[float, float] = False
    method: str = LONG_RUN_VARIANCE
    autocorrelation_limit: float = 0.1  # of neighbouring subsessions
    higher: bool = False  # readings are higher if the machine is faster
    narrow: bool = False  # an interval wider than its value is no number
    batch: int = 1  # calls that each reading averages
    goes_on: bool = False  # more readings could follow: the last ones are no cool-down
    references: ReferencesAlong | None = None  # of one series: the machine may have made steps
    several: bool = False  # series
    detector: Callable[[Floats], ChangePoints] | None = None  # None for the built-in one

    @property
    def takes_longest(self) -> bool:
        """Whether the longest segment of each series counts whole, as published."""
        return takes_longest(self.detector)

    @property
    def rates(self) -> bool:
        """Whether what is averaged is higher if the machine is faster."""
        return self.higher or self.statistic.averages_rates

    def number(self, estimate: Estimate) -> Estimate:
        """Return an estimate that is a number; raise NotEstimable if it is too wide for one."""
        return refuse_wide(estimate) if self.narrow else estimate

    @property
    def transients(self) -> tuple[float, ...]:
        """Return the time constants of the transients fitted along with the level of each series.

        Several invocations show their cool-down together; a single one may end in an unseen one.
        Single readings have no warm-up, and what was not looked for is taken as it is.
        """
        if self.trim is not True or self.kind in (Kind.READINGS, Kind.PIECES):
            return ()
        if self.method == BLOCKS:
            return ()
        return TRANSIENTS if self.several else COMPLETE
