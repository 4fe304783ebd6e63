"""The level of a series, beside the transients that fade at its ends, and its standard error.

The mean of readings taken while the machine changed its pace: blocks of equal wall time.
"""

from __future__ import annotations

import math
import statistics

import numpy as np

from benchrigor.errors import NotEstimable
from benchrigor.model import Code, Notice
from benchrigor.model.analysis import LevelFit
from benchrigor.model.series import Floats, Ints
from benchrigor.stats.series.long_run_variance import batch_means, long_run_variance, white_noise

MIN_FOR_VARIANCE = 2  # fewer readings, or invocations, have no variance
MIN_FOR_AUTOCORRELATION = 30  # fewer readings do not show autocorrelation

TRANSIENTS = (1 / 30, 1 / 7)  # time constants fitted beside the level, as shares of the readings
COMPLETE = (*TRANSIENTS, -1 / 24)  # of a complete series, which may end with a cool-down

_MAX_POINTS = 4096  # longer series are averaged to this many batch means
_NEXT = 0.1  # of the way from the median to the least or the greatest reading
_FEW = 64  # readings that are sorted faster as a list
_ROUNDING = 1e-24  # variance, relative to the squared largest deviation, that is rounding
_MIN_BATCHES_FOR_SKEWNESS = 15
# Long-run variance that each transient absorbs, over its share of the effective sample size; by
# simulation 2.5 to 5 for AR(1) 0.5 and 0.9, n = 500 to 4000
_ABSORBED = 3.0


def fit_level(series: Floats, *, transients: tuple[float, ...] = ()) -> LevelFit:
    """Fit the level of a series and its standard error.

    Parameters
    ----------
    series
        Readings, shape (n,), n >= 2.
    transients
        Time constants, as shares of n, of decaying exponentials fitted along with the level from 30
        readings on, for transients too small to be detected.

    Raises
    ------
    NotEstimable
        With fewer than two readings.
    """
    n = series.size
    if n < MIN_FOR_VARIANCE:
        raise NotEstimable(too_few(n, MIN_FOR_VARIANCE))
    mean = float(series.mean())
    ends = float(series.min()), float(series.max())
    # Scaled by the largest deviation, powers of tiny and of huge readings stay in range.
    scale = max(mean - ends[0], ends[1] - mean)
    if ends[0] == ends[1] or scale == 0.0:
        return exact_fit(float(series[0]), n)
    deviations = series - mean
    deviations /= scale
    enough = n >= MIN_FOR_AUTOCORRELATION
    shares = transients if enough else ()
    points = batch_means(deviations, max(1, n // _MAX_POINTS))
    size = n // points.size
    basis = transient_basis(points.size, shares) if shares else np.empty((0, points.size))
    shift, factor, residuals = _regress(points, basis)
    level = mean + shift * scale
    if shares and not (_is_among(level, ends, series) and _is_faded(series)):
        return fit_level(series)  # a few outliers at an end carry the transients
    constants = tuple(share * n for share in shares)
    explained = float(points @ points - residuals @ residuals) * size
    marginal = (float(deviations @ deviations) - explained) / max(n - 1 - len(shares), 1)
    if marginal <= _ROUNDING:
        return exact_fit(level, n, constants)
    noise = (
        long_run_variance(residuals, fitted=1 + len(shares)) if enough else white_noise(marginal, n)
    )
    total = noise.value * size
    # The slowest noise is what transients absorb, and what the long-run variance is about.
    total *= 1.0 + _ABSORBED * len(shares) * total / marginal / n
    return LevelFit(
        level=level,
        n=n,
        transients=constants,
        variance=marginal * scale**2,
        long_run_variance=total * scale**2,
        order=noise.order,
        batch=noise.batch * size,
        degrees_of_freedom=noise.degrees_of_freedom,
        skewness=_skewness_of_mean(residuals, total / marginal / size if enough else 1.0),
        standard_error=math.sqrt(total * factor / n) * scale,
    )


def median_of(values: Floats) -> float:
    """Return the median, of few readings without the overhead of an array."""
    if values.size > _FEW:
        return float(np.median(values))
    return float(statistics.median(values.tolist()))


def _is_among(level: float, ends: tuple[float, float], series: Floats) -> bool:
    """Whether a level is among the readings, or next to them where transients fade towards it."""
    least, greatest = ends
    if least <= level <= greatest:
        return True
    middle = float(np.median(series))
    below, above = _NEXT * (middle - least), _NEXT * (greatest - middle)
    return least - below <= level <= greatest + above


def _is_faded(series: Floats) -> bool:
    """Whether no end is a lone outlier: farther from the other readings than twice their range.

    A transient fitted to a lone outlier takes the level past the other readings. One that fades
    reaches the second reading too: the fastest one fitted still has exp(-1) of its start there.
    """
    inner = series[1:-1]
    for end, other in ((series[0], series[-1]), (series[-1], series[0])):
        least, greatest = min(float(inner.min()), other), max(float(inner.max()), other)
        if max(least - end, end - greatest) > 2.0 * (greatest - least) > 0.0:
            return False
    return True


def transient_basis(size: int, shares: tuple[float, ...]) -> Floats:
    """Return exponentials at the centres of points, a row each; negative shares grow to the end."""
    rates = 1.0 / np.array(shares)[:, np.newaxis]
    centres = (np.arange(size) + 0.5) / size
    basis: Floats = np.exp(-rates * (centres - (rates < 0.0)))
    return basis


def _regress(points: Floats, basis: Floats) -> tuple[float, float, Floats]:
    """Fit transients along with the level of points of mean zero.

    Returns the shift from mean to level, the factor by which the transients raise the variance of
    the level, and the residuals.
    """
    if not len(basis):
        return 0.0, 1.0, points - points.mean()
    means = basis.mean(axis=1)
    centred = basis - means[:, None]
    residuals = points - points.mean()
    inverse = np.linalg.inv(centred @ centred.T)
    weights: Floats = inverse @ (centred @ residuals)
    factor = 1.0 + points.size * float(means @ inverse @ means)
    rest: Floats = residuals - weights @ centred
    return -float(weights @ means), factor, rest


def _skewness_of_mean(residuals: Floats, tau: float) -> float:
    """Estimate the skewness of the mean from batches of two correlation times ``tau``."""
    size = int(min(max(round(2.0 * tau), 1), residuals.size // _MIN_BATCHES_FOR_SKEWNESS))
    batches = batch_means(residuals, size) if size > 1 or tau > 1.0 else residuals
    deviations = batches - batches.mean()
    spread = float(np.mean(deviations**2))
    if spread <= 0.0:
        return 0.0
    return float(np.mean(deviations**3) / spread**1.5) / math.sqrt(batches.size)


def exact_fit(level: float, n: int, transients: tuple[float, ...] = ()) -> LevelFit:
    """Return the fit of readings without noise."""
    return LevelFit(
        level=level,
        n=n,
        transients=transients,
        variance=0.0,
        long_run_variance=0.0,
        order=0,
        batch=1,
        degrees_of_freedom=float(n - 1),
        skewness=0.0,
        standard_error=0.0,
    )


def all_zero(n: int) -> Notice:
    """Refuse readings that are all 0, unless they count something."""
    return Notice.of(Code.COARSE_CLOCK, "zeros", n=n)


def too_few(n: int, wanted: int) -> Notice:
    """Refuse so few readings."""
    return Notice.of(Code.TOO_FEW_READINGS, n=n, wanted_=wanted)


BLOCKS = "blocks in wall time"

_BLOCKS = 8  # few, since neighbouring seconds have similar levels
_READINGS = 3  # in each block at least, on average


def block_starts(durations: Floats, *, blocks: int = _BLOCKS) -> Ints:
    """Return the first index of each block of equal wall time, without those that would be empty.

    What may be 0 or less is no duration: it is taken for one reading in equal times.
    """
    n = durations.size
    count = max(2, min(blocks, n // _READINGS))
    steps = durations if float(durations.min()) > 0.0 else np.ones(n)
    before = np.cumsum(steps) - steps  # when each reading began
    edges = float(before[-1] + steps[-1]) * np.arange(count) / count
    return np.unique(np.minimum(np.searchsorted(before, edges * (1.0 - 1e-12)), n - 1))


def fit_blocks(values: Floats, starts: Ints) -> LevelFit:
    """Fit the mean of all values, with the variance between blocks as its only source of error.

    A ratio estimator, total over number: with e_k the sum of the deviations in block k, the
    variance of the mean is K/(K - 1) sum e_k^2 / n^2 (Cochran 1977, section 6.3: clusters of
    unequal size), with K - 1 degrees of freedom. Whatever the pace did within blocks is inside e_k.
    """
    n, count = values.size, starts.size
    if float(values.min()) == float(values.max()) or count < 2:
        return exact_fit(float(values[0]), n)
    level = float(values.mean())
    deviations = values - level
    sums = np.add.reduceat(deviations, starts)
    error = math.sqrt(count / (count - 1.0) * float(sums @ sums)) / n
    return LevelFit(
        level=level,
        n=n,
        transients=(),
        variance=float(deviations @ deviations) / (n - 1),
        long_run_variance=n * error * error,
        order=0,
        batch=max(1, n // count),
        degrees_of_freedom=count - 1.0,
        skewness=0.0,
        standard_error=error,
        method=BLOCKS,
    )
