"""The statistic that is estimated: mean, harmonic or trimmed mean, quantile, least, or share.

Means are of readings, of rates (total work over total time), or over several series, with the share
of the variance that lies between and within them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.analysis import LevelFit, VarianceSplit
from benchrigor.model.checks import refuse, wrong_number, wrong_whole
from benchrigor.model.series import Floats, as_series, check_items
from benchrigor.stats.series.interval import (
    BLOCKS,
    LONG_RUN_VARIANCE,
    MIN_FOR_VARIANCE,
    PIECE_MEANS,
    StandardError,
    block_starts,
    check_confidence,
    estimate_level,
    fit_blocks,
    fit_level,
    reciprocal_of,
    remembered,
    t_interval,
    too_few,
)
from benchrigor.stats.series.subsessions import SUBSESSIONS, fit_merged
from benchrigor.stats.shares_and_quantiles import (
    MIN_IN_TAIL,
    WILSON,
    are_outcomes,
    combine_shares,
    estimate_outcomes,
    quantile_of,
    quantile_value,
)
from benchrigor.units import many, statistic_of

_ROUNDING = 1e-9  # 0.29 * 100 is 28.99...

Fits = tuple[LevelFit, ...]
Found = tuple[Estimate, Fits]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """How a statistic of series is estimated, once what does not count is cut off."""

    confidence: float = 0.95
    method: str = LONG_RUN_VARIANCE
    autocorrelation_limit: float = 0.1  # of neighbouring subsessions
    transients: tuple[float, ...] = ()  # time constants fitted along with the level of each series
    shortest: float = MIN_FOR_VARIANCE  # of several series: shorter ones have a mean, not a level


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Several:
    """Series of invocations or pieces that have a value, with their values and fits."""

    series: Sequence[Floats]
    values: Sequence[float]
    fits: Fits
    fitting: Fitting
    unit: str  # of inference


class Statistic(Protocol):
    """A statistic of readings, with what depends on it.

    Whoever asks for ``q`` takes a statistic without it for a mean, that of its `as_mean`.
    Methods raise NotEstimable where the readings allow no number.
    """

    is_mean: bool = True  # whether it is the mean of all readings that count
    q: float | None = None  # share of readings below a quantile
    follows_pace: bool = True  # whether the pace of the machine moves it
    refusal: Notice | None = None  # why it has no interval, whatever the readings
    averages_rates: bool = False  # higher on a faster machine, whatever its metric says

    def as_mean(self, series: Floats) -> Floats:
        """Return the values that it is the mean of; pairs are compared by them."""
        return series

    def freed(self, fit: LevelFit) -> LevelFit:
        """Return the fit of that mean with the degrees of freedom that it has."""
        return fit

    def value_of(self, values: Floats) -> float:
        """Return the plain value of readings that are not a series, without an interval."""
        return float(values.mean())

    def near(self, values: Floats, _width: float) -> npt.NDArray[np.bool_]:
        """Return which values make it: all, or a share ``width`` of them around a quantile."""
        return np.ones(values.size, dtype=bool)

    def of_series(self, series: Floats, fitting: Fitting, weights: Floats | None, /) -> Found:
        """Estimate the statistic of one series; weights may be None."""
        ...

    def of_each(self, series: Floats, fitting: Fitting, /) -> tuple[float, Fits]:
        """Return the value of one of several series, and the fit that gave it."""
        ...

    def of_several(self, several: Several, /) -> Estimate:
        """Estimate the statistic over invocations or pieces from their values."""
        ...


class Mean(Statistic):
    """The mean. Of successive readings it is their level, fitted with decaying transients."""

    def of_series(self, series: Floats, fitting: Fitting, weights: Floats | None) -> Found:
        """Estimate the level, or the mean by weights."""
        if weights is not None:
            return weighted_mean(series, weights, fitting.confidence), ()
        fit = _fit(series, fitting)
        return _level(fit, series, fitting), (fit,)

    def of_each(self, series: Floats, fitting: Fitting) -> tuple[float, Fits]:
        """Return the level of an invocation, or the mean of a piece."""
        if series.size < fitting.shortest:
            return _mean(series), ()
        fit = _fit_round(series, fitting)
        return fit.level, (fit,)

    def of_several(self, several: Several) -> Estimate:
        """Combine the levels by Student's t."""
        fitting = several.fitting
        if len(several.values) > 1:
            return combine_values(several.values, fitting.confidence, several.unit)
        if not several.fits:
            raise NotEstimable(too_few(1, MIN_FOR_VARIANCE))
        return of_one(_level(several.fits[0], several.series[0], fitting))


MEAN = Mean()  # each but a quantile is one object, so that results are remembered by it


class HarmonicMean(Statistic):
    """The reciprocal of the mean of reciprocals: of rates, over equal amounts of work."""

    averages_rates = True

    def of_series(self, series: Floats, fitting: Fitting, _weights: Floats | None) -> Found:
        """Estimate the mean of reciprocals; equal readings are not rounded by it."""
        inverse, fits = MEAN.of_series(1.0 / series, fitting, None)
        if are_equal(series):
            return averaged_as(HARMONIC, MEAN.of_series(series, fitting, None)[0]), fits
        return reciprocal(inverse), fits

    def of_each(self, series: Floats, fitting: Fitting) -> tuple[float, Fits]:
        """Return the reciprocal of the level of reciprocals."""
        level, fits = MEAN.of_each(1.0 / series, fitting)
        return float(series[0]) if are_equal(series) else 1.0 / level, fits

    def of_several(self, several: Several) -> Estimate:
        """Combine the reciprocals of the values."""
        if are_equal(*several.series):
            return averaged_as(HARMONIC, MEAN.of_several(several))
        values, confidence = [1.0 / value for value in several.values], several.fitting.confidence
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
    is_mean = False

    def value_of(self, values: Floats) -> float:
        """Return the quantile."""
        return quantile_value(values, self.q)

    def near(self, values: Floats, width: float) -> npt.NDArray[np.bool_]:
        """Return which values are near the quantile; all of a few, among which none may be."""
        around = max(self.q - width / 2.0, 0.0), min(self.q + width / 2.0, 1.0)
        low, high = np.quantile(values, around)
        near: npt.NDArray[np.bool_] = (values >= low) & (values <= high)
        return near if near.any() else np.ones(values.size, dtype=bool)

    def of_series(self, series: Floats, fitting: Fitting, _weights: Floats | None) -> Found:
        """Estimate it by order statistics; weights do not matter."""
        starts = block_starts(series) if fitting.method == BLOCKS else None
        transients = fitting.transients
        estimate = quantile_of(
            series, self.q, fitting.confidence, transients=transients, blocks=starts
        )
        return estimate, ()

    def of_each(self, series: Floats, fitting: Fitting) -> tuple[float, Fits]:
        """Return the quantile of a series."""
        return quantile_value(series, self.q, transients=fitting.transients), ()

    def of_several(self, several: Several) -> Estimate:
        """Combine the quantiles; warn if the shortest series makes its own biased."""
        confidence, transients = several.fitting.confidence, several.fitting.transients
        if len(several.values) == 1:
            first = several.series[0]
            return of_one(quantile_of(first, self.q, confidence, transients=transients))
        estimate = combine_values(several.values, confidence, several.unit)
        shortest = min(series.size for series in several.series)
        in_tail, wanted = shortest * min(self.q, 1.0 - self.q), MIN_IN_TAIL
        if in_tail >= wanted:
            return estimate
        figures = {"n": shortest, "in_tail": in_tail, "wanted": wanted}
        thin = Notice.of(Code.FEW_IN_TAIL, "series", unit_=several.unit, q_=self.q * 100, **figures)
        return replace(estimate, notices=(thin, *estimate.notices))


@dataclass(frozen=True)
class TrimmedMean(Statistic):
    """The mean of the readings without a ``share`` of them at either end.

    It is the mean of pseudo-values: readings drawn in to the ends of the rest, and apart from
    their mean by the share that is left (Tukey & McLaughlin 1963; the influence function in Huber
    1981, section 3.3). So its interval is the one of the mean of these, autocorrelated as they are.
    """

    share: float
    refusal: Notice | None = None
    is_mean = False

    def as_mean(self, series: Floats) -> Floats:
        """Return the pseudo-values; the readings left out are rounded down, and one is left."""
        n = series.size
        cut = min(math.floor(self.share * n + _ROUNDING), (n - 1) // 2)
        ordered = np.sort(series)
        drawn_in = np.clip(series, ordered[cut], ordered[n - cut - 1])
        left = ordered[cut : n - cut]
        pseudo_values: Floats = left.mean() + (drawn_in - drawn_in.mean()) * (n / left.size)
        return pseudo_values

    def freed(self, fit: LevelFit) -> LevelFit:
        """Return the fit of pseudo-values with the degrees of freedom of the rest."""
        freedom = fit.degrees_of_freedom * (1.0 - 2.0 * self.share)
        return replace(fit, degrees_of_freedom=max(freedom, 1.0))

    def value_of(self, values: Floats) -> float:
        """Return the trimmed mean."""
        return float(self.as_mean(values).mean())

    def near(self, values: Floats, _width: float) -> npt.NDArray[np.bool_]:
        """Return which values are left."""
        low, high = np.quantile(values, (self.share, 1.0 - self.share))
        left: npt.NDArray[np.bool_] = (values >= low) & (values <= high)
        return left

    def of_series(self, series: Floats, fitting: Fitting, _weights: Floats | None) -> Found:
        """Estimate the mean of the pseudo-values; weights do not matter."""
        values = self.as_mean(series)
        fit = self.freed(_fit(values, fitting))
        return averaged_as(TRIMMED, _level(fit, values, fitting)), (fit,)

    def of_each(self, series: Floats, fitting: Fitting) -> tuple[float, Fits]:
        """Return the level of the pseudo-values."""
        return MEAN.of_each(self.as_mean(series), fitting)

    def of_several(self, several: Several) -> Estimate:
        """Combine the trimmed means by Student's t."""
        if len(several.values) == 1:
            return of_one(self.of_series(several.series[0], several.fitting, None)[0])
        return averaged_as(TRIMMED, MEAN.of_several(several))


class Minimum(Statistic):
    """The least reading, which has no interval: each further reading may be less."""

    follows_pace, is_mean = False, False
    refusal = Notice.of(Code.NO_INTERVAL, "minimum")

    def value_of(self, values: Floats) -> float:
        """Return the least value."""
        return float(values.min())

    def of_series(self, _series: Floats, _fitting: Fitting, _weights: Floats | None) -> Found:
        """Refuse any interval."""
        raise NotEstimable(self.refusal)

    def of_each(self, series: Floats, _fitting: Fitting) -> tuple[float, Fits]:
        """Return the least reading of a series."""
        return self.value_of(series), ()

    def of_several(self, _several: Several) -> Estimate:
        """Refuse any interval."""
        raise NotEstimable(self.refusal)


class Share(Statistic):
    """The share of outcomes that are 1; of shares of trials, the share of all trials."""

    follows_pace = False

    def of_series(self, series: Floats, fitting: Fitting, weights: Floats | None) -> Found:
        """Estimate it by Wilson's interval."""
        if weights is None and are_outcomes(series):
            return estimate_outcomes(series, fitting.confidence), ()
        return combine_shares(series, weights, fitting.confidence), ()

    def of_each(self, series: Floats, _fitting: Fitting) -> tuple[float, Fits]:
        """Return the share of a series."""
        return _mean(series), ()

    def of_several(self, several: Several) -> Estimate:
        """Combine the shares of invocations by their sizes; pieces are like means."""
        confidence = several.fitting.confidence
        if several.unit == "piece":
            return MEAN.of_several(several)
        if len(several.values) == 1:
            return of_one(estimate_outcomes(several.series[0], confidence))
        sizes = np.array([float(series.size) for series in several.series])
        shares = combine_shares(np.array(several.values), sizes, confidence)
        return replace(shares, method=f"{WILSON}, {INVOCATION_MEANS}")


HARMONIC_MEAN, SHARE, MINIMUM = HarmonicMean(), Share(), Minimum()
TRIMMED = "trimmed"  # in the name of a method


def statistic_for(name: str, *, share: bool = False, harmonic: bool = False) -> Statistic:
    """Return the statistic of a name, of readings that are shares, or averaged harmonically."""
    family, part = statistic_of(name)
    if family == "quantile":
        return Quantile(part, follows_pace=not share, averages_rates=harmonic)
    if family == "trimmed":
        return TrimmedMean(part, Notice.of(Code.NO_INTERVAL, "outcomes") if share else None)
    if family == "min":
        return MINIMUM
    return SHARE if share else HARMONIC_MEAN if harmonic else MEAN


def of_one(inner: Estimate) -> Estimate:
    """Turn the estimate of a series into the estimate over one invocation."""
    only = Notice.of(Code.THIS_PROCESS_ONLY, invocations=1)
    return replace(inner, n=1, n_effective=1.0, notices=(only, *inner.notices))


def _mean(series: Floats) -> float:
    return float(series[0] if are_equal(series) else series.mean())


def _level(fit: LevelFit, series: Floats, fitting: Fitting) -> Estimate:
    """Return the estimate of a level; of blocks, of this time, which lies among them."""
    least, most = float(series.min()), float(series.max())
    estimate = estimate_level(fit, fitting.confidence, positive=least >= 0.0)
    if fitting.method == BLOCKS:
        return replace(estimate, low=max(estimate.low, least), high=min(estimate.high, most))
    return estimate


def _fit(series: Floats, fitting: Fitting) -> LevelFit:
    if fitting.method == BLOCKS:
        return fit_blocks(series, block_starts(series))
    if fitting.method != SUBSESSIONS:
        return fit_level(series, transients=fitting.transients)
    return fit_merged(series, limit=fitting.autocorrelation_limit)


_fit_round = remembered(_fit)


HARMONIC = "harmonic"
BY_DURATION = "by duration"

_SMALLEST = 1e-150  # below this the square of a reciprocal leaves the range of a double


def estimate_rate(
    values: npt.ArrayLike, *, confidence: float = 0.95, weights: str | npt.ArrayLike = "work"
) -> Estimate:
    """Estimate a rate, total work over total time, from a series of (auto)correlated rates.

    Parameters
    ----------
    values
        Rates (work per second, say) in the order in which they were taken, shape (n,), n >= 2.
    confidence
        Nominal coverage, in (0, 1).
    weights
        "work" if each reading took the same amount of work (the harmonic mean), "time" if each
        took the same time (the arithmetic mean), else how long each took, in seconds, shape (n,),
        more than 0.

    Returns
    -------
    Estimate
        In the unit of the readings. ``method`` is "long-run-variance", followed by ", harmonic"
        or ", by duration" where the mean is not arithmetic.

    Raises
    ------
    InvalidInput
        When the values are not readings, or not above 0 while ``weights`` is "work"; when the
        durations are not as many, or not above 0.
    NotEstimable
        With fewer than two readings.

    Notes
    -----
    Equal work: the reciprocal of the interval of the mean reciprocal. Durations d_i: R = sum d_i
    r_i / sum d_i, and the interval of the mean of R + d_i (r_i - R) / mean(d), the delta method
    for a ratio of two means (Cochran 1977, section 6.3). Which mean is right: Smith 1988.

    Examples
    --------
    >>> rates = [10.0, 40.0] * 6
    >>> round(estimate_rate(rates).value, 9), estimate_rate(rates, weights="time").value
    (16.0, 25.0)
    >>> round(estimate_rate(rates, weights=[4.0, 1.0] * 6).value, 9)
    16.0
    """
    series = as_series(values)
    check_confidence(confidence)
    if isinstance(weights, str):
        if weights not in ("work", "time"):
            raise InvalidInput(f"weights is {weights!r}, expected 'work', 'time' or durations")
        if weights == "time":
            return _level_of(series, confidence)
        check_items(series, series >= _SMALLEST, "a rate above 0 (at least 1e-150)")
        if are_equal(series):
            return averaged_as(HARMONIC, _level_of(series, confidence))
        return reciprocal(_level_of(1.0 / series, confidence))
    durations = as_series(weights, name="weights")
    if durations.size != series.size:
        raise InvalidInput(
            f"weights holds {durations.size} durations for {series.size} values, expected as many"
        )
    positive = "a duration above 0 (at least 1e-150)"
    check_items(durations, durations >= _SMALLEST, positive, name="weights")
    return weighted_mean(series, durations, confidence)


def reciprocal(estimate: Estimate) -> Estimate:
    """Turn an estimated time per work into the rate, or a rate into the time per work."""
    inverse = reciprocal_of(estimate)
    assert inverse is not None  # noqa: S101  # for the type checker: its interval lies above 0
    return averaged_as(HARMONIC, inverse)


def are_equal(*series: Floats) -> bool:
    """Return whether all readings are equal: regardless of their mean, it is their value."""
    return all(float(rates.min()) == float(rates.max()) == float(series[0][0]) for rates in series)


def averaged_as(mean: str, estimate: Estimate) -> Estimate:
    """Name the mean in the method of an estimate."""
    return replace(estimate, method=f"{estimate.method}, {mean}")


def weighted_mean(series: Floats, durations: Floats, confidence: float) -> Estimate:
    """Estimate a mean by durations, with the delta method for a ratio of two means."""
    shares = durations / float(durations.mean())
    rate = float(np.mean(shares * series))
    values = series if are_equal(series) else rate + shares * (series - rate)
    return averaged_as(BY_DURATION, _level_of(values, confidence, least=float(series.min())))


def _level_of(values: Floats, confidence: float, least: float | None = None) -> Estimate:
    """Return the estimate of a level; ``least`` reading, if the values are not readings."""
    positive = (float(values.min()) if least is None else least) >= 0.0
    return estimate_level(fit_level(values), confidence, positive=positive)


INVOCATION_MEANS = "invocation means"
MIN_INVOCATIONS = 10  # fewer easily miss a rare memory layout or code path
MIN_PIECES = 4  # below that many pieces the interval is very wide


def split_variance(fits: Sequence[LevelFit]) -> VarianceSplit:
    """Split the variance of two or more invocations into its two components.

    between = var(levels) - mean(se_i^2), 0 or more, and within = mean(n_i se_i^2), with se_i the
    standard error of the i-th level (Kalibera & Jones 2013).
    """
    levels = np.array([fit.level for fit in fits])
    sizes = np.array([fit.n for fit in fits], dtype=np.float64)
    squares = np.array([fit.standard_error for fit in fits]) ** 2
    return VarianceSplit(
        level=float(levels.mean()),
        between=max(float(levels.var(ddof=1) - squares.mean()), 0.0),
        within=float((squares * sizes).mean()),
        invocations=len(fits),
        readings=len(fits) / math.fsum(1.0 / sizes),
    )


def readings_per_invocation(
    split: VarianceSplit, *, start_cost: float, reading_cost: float, longest: int
) -> int:
    """Return the readings per invocation that give the narrowest interval for a given cost.

    Parameters
    ----------
    split
        Variance components of a run, `Analysis.split`.
    start_cost
        Cost of one more invocation up to its first stable reading, 0 or more.
    reading_cost
        Cost of one more reading, in the same unit, more than 0.
    longest
        The most readings that an invocation may have, 2 or more.

    Returns
    -------
    int
        sqrt(start_cost/reading_cost * within/between), from 2 to ``longest``; ``longest``
        without variance between invocations.

    Raises
    ------
    InvalidInput
        When an argument is out of range.

    Notes
    -----
    Source: Kalibera & Jones 2013, the optimum of cost times variance.

    Examples
    --------
    >>> split = VarianceSplit(level=1.0, between=1e-4, within=25e-4, invocations=10, readings=200.0)
    >>> readings_per_invocation(split, start_cost=16.0, reading_cost=1.0, longest=1000)
    20
    """
    refuse(
        wrong_number("start_cost", start_cost, zero=True),
        wrong_number("reading_cost", reading_cost),
        wrong_whole("longest", longest, least=MIN_FOR_VARIANCE),
    )
    if split.within == 0.0:
        return MIN_FOR_VARIANCE
    if split.between == 0.0:
        return int(longest)
    # Two roots: the product of tiny variances would leave the range of a double.
    best = math.sqrt(split.within / split.between) * math.sqrt(start_cost / reading_cost)
    return max(MIN_FOR_VARIANCE, round(min(best, longest)))


def combine_values(
    values: Sequence[float], confidence: float, unit: str = "invocation", *, harmonic: bool = False
) -> Estimate:
    """Estimate the mean over two or more invocations, or pieces, from one value of each.

    If it is ``harmonic``, the values are reciprocals, and so is the estimate of theirs.

    Student's t holds at 95 % also for values of unequal variance (Ibragimov & Müller 2010), as
    pieces have if one was on a busier machine.
    """
    levels = np.array(values)
    count = levels.size
    constant = float(levels.min()) == float(levels.max())  # their mean may be rounded
    value = float(levels[0]) if constant else float(levels.mean())
    error = 0.0 if constant else float(levels.std(ddof=1)) / math.sqrt(count)
    estimate = t_interval(
        value,
        StandardError(error, count - 1.0),
        confidence,
        n=count,
        n_effective=float(count),
        method=INVOCATION_MEANS if unit == "invocation" else PIECE_MEANS,
        positive=bool(levels.min() >= 0.0),
    )
    if harmonic:
        estimate = reciprocal(estimate)
    notices = _combination_notices(count, error, estimate.value, unit)
    return replace(estimate, notices=tuple(notices))


def _combination_notices(count: int, error: float, value: float, unit: str) -> Iterator[Notice]:
    if error == 0.0:
        yield Notice.of(Code.CONSTANT, "units", n=count, unit_=unit, value=value)
    if unit == "piece":
        yield from (few_pieces(count, count),) if count < MIN_PIECES else ()
        return
    wanted = MIN_INVOCATIONS
    if count < wanted:
        yield Notice.of(Code.FEW_INVOCATIONS, invocations=count, wanted=wanted)


def few_pieces(told: int, of: int) -> Notice:
    """Say that few pieces were measured so far."""
    counts = many(told, "piece") if told == of else f"{told} of {many(of, 'piece')}"
    return Notice.of(Code.FEW_PIECES, counts_=counts, pieces=told, wanted=MIN_PIECES)


_BATCHES = 20


def rough_figure(
    values: Floats, baseline: Floats | None = None, *, statistic: Statistic, confidence: float
) -> Estimate | None:
    """Return the statistic, with Student's t interval over batches of readings.

    With a ``baseline`` as long, the ratio to its own. The interval of a single reading is
    infinite; if the ratio has no value there is None. No warm-up is looked for.
    """

    def level(start: int, stop: int) -> float:
        sides = [readings[start:stop] for readings in (values, baseline) if readings is not None]
        own, *other = map(statistic.value_of, sides)
        return float(np.divide(own, other[0])) if other else own

    n = values.size
    edges = np.linspace(0, n, min(n, _BATCHES) + 1).astype(int).tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = level(0, n)
        levels = [level(*ends) for ends in pairwise(edges)]
    if not all(map(math.isfinite, (value, *levels))):
        return None
    error, freedom = math.inf, max(len(levels) - 1.0, 1.0)
    if len(levels) > 1:
        error = float(np.std(levels, ddof=1)) / math.sqrt(len(levels))
    below = StandardError(error, freedom)
    positive = all(float(side.min()) >= 0.0 for side in (values, baseline) if side is not None)
    positive &= len(levels) > 1
    return t_interval(
        value,
        below,
        confidence,
        n=n,
        n_effective=float(n),
        method="provisional",
        positive=positive,
    )


def latest(chunks: list[Floats], most: int) -> Floats:
    """Return the last ``most`` readings of chunks, fewer if there are no more."""
    taken: list[Floats] = []
    for chunk in reversed(chunks):
        taken.append(chunk[-most:])
        most -= chunk.size
        if most <= 0:
            break
    return np.concatenate([np.empty(0), *reversed(taken)])
