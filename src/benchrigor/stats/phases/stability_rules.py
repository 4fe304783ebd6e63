"""The verdict on the longest phase of a series: whether it is stable, and if not, why.

Every rule is one named statistic against one number. They are tried from the most to the least
telling: a trend is also a series without a dominant segment.

The statistics tell how stationary readings are: effective sample size by the slowest noise,
movement, and steps. All look at the ranks of up to 2047 batch means, so that tails hardly matter
and the cost does not grow with the number of readings.

A `Trend` tells whether readings climb or fall to the end, apart from the steps of a machine's pace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

from benchrigor.model import Code, Notice
from benchrigor.model.analysis import PhaseReason
from benchrigor.model.series import Floats
from benchrigor.stats.changepoints.variance_inflation import doubled_ranks
from benchrigor.stats.series.interval import MIN_FOR_AUTOCORRELATION, TRANSIENTS, transient_basis
from benchrigor.stats.series.long_run_variance import batch_means, long_run_variance
from benchrigor.units import show_value

_WANTED = float(MIN_FOR_AUTOCORRELATION)  # effective sample size
_UNIT_ROOT = 13.7 / 2  # effective sample size below which noise may be a random walk
_BOTH = 0.8  # share of it that the mean of both effective sample sizes must reach
_SLOW = 5.0  # variance inflation from which noise is slow
_CONCORDANT = 0.8  # rank correlation of levels with their order from which they rise, or fall
_MIN_PHASES = 4  # this number of levels that rise, or fall, is a movement
_MAX_PHASES = 512  # of more levels, this number is compared
_LONG_TAIL = 0.1  # share of the readings after the longest phase that may be a movement
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestPhase:
    """The longest phase of a series, and what speaks for and against it."""

    borders: tuple[int, ...]  # 0, the first index of each later phase, n
    medians: tuple[float, ...]  # of the phases
    index: int
    inflation: float  # variance inflation of the change points
    slow_effective: float  # effective sample size by its slowest noise
    changes: tuple[int, ...] = ()  # material change points inside, by a second search
    thirds: tuple[float, ...] = ()  # medians, where it moves slowly and materially
    raw: tuple[float, ...] = ()  # medians of all segments before any were joined
    joined: tuple[float, ...] = ()  # medians of the segments that were joined into it
    materiality: float = 0.0  # relative difference that keeps neighbours apart

    @property
    def n(self) -> int:
        """Length of the series."""
        return self.borders[-1]

    @property
    def size(self) -> int:
        """Readings in the phase."""
        return self.borders[self.index + 1] - self.borders[self.index]

    @property
    def effective(self) -> float:
        """Effective sample size, by the variance inflation."""
        return self.size / self.inflation

    @property
    def dominant(self) -> bool:
        """Whether the phase holds more than half of the readings."""
        return 2 * self.size > self.n

    @property
    def shortage(self) -> tuple[float, float] | None:
        """Effective sample size, and the size wanted, if it is too small.

        Wanted are 30 by the better of both estimates, 5 by the variance inflation alone, and as
        many as exclude a unit root; less of a short phase, in which neither is known well.
        """
        both = max(self.effective, self.slow_effective), min(_WANTED, self.size / 4)
        one = self.effective, min(5.0, self.size / 20)
        slow = self.slow_effective, min_effective(self.size)
        return next((pair for pair in (one, both, slow) if pair[0] < pair[1]), None)

    @property
    def like_random_walk(self) -> bool:
        """Whether a unit root is not excluded, nor by the geometric mean of both estimates."""
        least = min_effective(self.size)
        mean = math.sqrt(self.effective * min(self.slow_effective, self.size))
        return self.slow_effective < least and mean < _BOTH * least

    @property
    def climbing(self) -> bool:
        """Whether segments too similar to part climb or fall materially together."""
        low, high = sorted((abs(self.joined[0]), abs(self.joined[-1]))) if self.joined else (0, 0)
        return _concordant(self.joined) and high - low >= self.materiality * low

    @property
    def recent(self) -> tuple[float, ...]:
        """Medians from the phase on that holds the middle reading."""
        middle = int(np.searchsorted(self.borders, self.n // 2, side="right")) - 1
        return self.medians[middle:]


def min_effective(size: int) -> float:
    """Return the effective sample size that excludes a unit root; less of a short phase."""
    return min(_UNIT_ROOT, size / 10)


def find_reason(phase: LongestPhase) -> PhaseReason:
    """Return why the phase is stable, or why it is not.

    * Trend, still moving: the medians of all phases, or of those after the middle reading, are
      concordant with time (Mann 1945, Kendall 1938). A trend is also found among the segments that
      were joined into a dominant phase, or among all segments if the phase looks like a random
      walk. After a dominant phase more than a tenth of the readings must move; fewer are a
      cool-down.
    * Random walk: for AR(1) the effective sample size by the slowest noise is about n (1 - phi)/2;
      Dickey & Fuller (1979) reject a unit root at 5 % if n (1 - phi) exceeds 13.7 (n = 100).
    * Too few effective readings: see `LongestPhase.shortage`. Also if only one of the two estimates
      looks like a random walk, or if no phase dominates and slow noise hides changes.
    * Not stable inside: a second search finds material changes, or the phase drifts or bends.
    """
    if not phase.dominant:
        rules = {
            PhaseReason.TREND: _concordant(phase.medians) or _concordant(phase.raw),
            PhaseReason.RANDOM_WALK: phase.like_random_walk,
            PhaseReason.STILL_MOVING: _concordant(phase.recent),
            PhaseReason.FEW_EFFECTIVE: phase.inflation >= _SLOW and phase.effective < _WANTED,
            PhaseReason.NO_DOMINANT_SEGMENT: True,
        }
    else:
        behind = phase.n - phase.borders[phase.index + 1]
        walk = phase.like_random_walk
        rules = {
            PhaseReason.TREND: phase.climbing or (walk and _concordant(phase.raw)),
            PhaseReason.NOT_STABLE_INSIDE: bool(phase.changes or phase.thirds),
            PhaseReason.RANDOM_WALK: walk,
            PhaseReason.FEW_EFFECTIVE: phase.shortage is not None,
            PhaseReason.STILL_MOVING: behind > _LONG_TAIL * phase.n and _concordant(phase.recent),
            PhaseReason.STABLE: True,
        }
    return next(reason for reason, holds in rules.items() if holds)


def _concordant(medians: Sequence[float]) -> bool:
    return len(medians) >= _MIN_PHASES and abs(concordance(medians)) >= _CONCORDANT


def concordance(levels: Sequence[float]) -> float:
    """Return Kendall's rank correlation of levels (or of 512 of them) with their order."""
    chosen = np.asarray(levels)[:: -(-len(levels) // _MAX_PHASES)]
    signs = np.sign(chosen[np.newaxis, :] - chosen[:, np.newaxis])
    return float(np.triu(signs).sum()) / (chosen.size * (chosen.size - 1) / 2)


def explain_reason(reason: PhaseReason, phase: LongestPhase) -> Notice:
    """Return the Notice that says with figures why the stable phase is missing."""
    slow, count = phase.slow_effective, len(phase.medians)
    effective, wanted = (phase.dominant and phase.shortage) or (phase.effective, _WANTED)
    which = f"the longest of {count} segments" if count > 1 else "the only segment"
    return Notice.of(
        Code.NO_STABLE_PHASE,
        str(reason),
        which_=which,
        how_=_how(reason, phase),
        effective_=slow if reason is PhaseReason.RANDOM_WALK else effective,
        wanted_=wanted,
        reason=str(reason),
        n=phase.n,
        segments=count,
        longest=phase.size,
        share=phase.size / phase.n,
        inflation=phase.inflation,
        independent=None if math.isinf(slow) else slow,
        changes_inside=len(phase.changes),
    )


def _how(reason: PhaseReason, phase: LongestPhase) -> str:
    """Say how readings move, for the reasons that name it."""
    match reason:
        case PhaseReason.TREND:
            return _movement(phase.joined if phase.climbing else phase.raw or phase.medians)
        case PhaseReason.STILL_MOVING:
            return _movement(phase.recent, len(phase.medians))
        case PhaseReason.NOT_STABLE_INSIDE:
            return _unrest(phase)
    return ""


def _movement(levels: Sequence[float], count: int | None = None) -> str:
    direction = "rise" if levels[-1] > levels[0] else "fall"
    which = f"{len(levels)}" if count is None else f"the last {len(levels)} of {count}"
    return f"the medians of {which} segments {direction} from {levels[0]:.4g} to {levels[-1]:.4g}"


def _unrest(phase: LongestPhase) -> str:
    if not phase.changes:
        thirds = ", ".join(f"{median:.4g}" for median in phase.thirds)
        return f"moves as a whole, the medians of its thirds are {thirds}"
    shown = ", ".join(str(place) for place in phase.changes[:_MAX_SHOWN])
    more = len(phase.changes) - _MAX_SHOWN
    return f"changes inside, at {shown}" + (f" and {more} more" if more > 0 else "")


MAX_POINTS = 1_024
_WAVES = 2
_LEVEL = 0.0002
_MAX_STEPS = 12
_BULK = (0.05, 0.95)
_ROUNDING = 1e-12


def effective_sample_size(series: Floats) -> float:
    """Return the effective sample size of the batch means by the slowest noise of their ranks.

    Infinite for fewer than 30 readings and for constant ones, which show no noise.
    """
    ranks = _ranks(series)
    square = float(ranks @ ranks)
    if ranks.size < MIN_FOR_AUTOCORRELATION or square == 0.0:
        return math.inf
    return square / long_run_variance(ranks).largest


def movement_p_value(series: Floats) -> float:
    """Return the p-value of slow movement; 1 for fewer than 30 readings and without noise.

    An F test of the two slowest cosines against the long-run variance around them (Mueller & Watson
    2008), with fading transients fitted next to them. With two degrees of freedom in the numerator
    the F distribution is 1 - (1 + 2 F / nu)^(-nu/2).
    """
    ranks = _ranks(series)
    m = ranks.size
    if m < MIN_FOR_AUTOCORRELATION:
        return 1.0
    centres = (np.arange(m) + 0.5) / m
    waves = np.cos(np.pi * np.outer(np.arange(1, _WAVES + 1), centres))
    beside = np.vstack([np.ones(m), transient_basis(m, TRANSIENTS)])
    fitted, _ = np.linalg.qr(np.vstack([beside, waves]).T)
    weights = fitted.T @ ranks
    residuals = ranks - fitted @ weights
    square = float(residuals @ residuals)
    if square <= _ROUNDING * float(ranks @ ranks):
        return 1.0
    noise = long_run_variance(residuals, fitted=weights.size)
    # Noise is seldom less than white; an autoregression fitted to white noise says so at times.
    # The bound makes up for an order that is chosen too low, so its freedom needs not.
    variance = max(noise.largest, square / (m - weights.size))
    moved = float(weights[-_WAVES:] @ weights[-_WAVES:]) / variance
    freedom = noise.freedom_of_order
    return float((1.0 + moved / freedom) ** (-freedom / 2.0))


def steps_beyond_noise(series: Floats, places: Sequence[int]) -> tuple[tuple[int, ...], float]:
    """Return the steps that slow noise does not explain, and the variance inflation.

    ``places`` are the first indices of all levels after the first. Student's t compares the mean
    ranks of neighbouring levels, by the long-run variance around all levels. Unless its p-value is
    below 0.0002, the least significant step is dropped, and the others are tested again. Beyond
    twelve steps the least significant ones are dropped in any case: a series that changes this
    often is a process with levels of noise. All steps stay if there are fewer than 30 readings,
    or if steps are closer together than batches. A step between levels farther apart than the span
    of either stays next to up to eleven others, since ranks do not show its size.
    """
    ranks = _ranks(series)
    m, left, inflation = ranks.size, tuple(places), 1.0
    clear = _clear_steps(series, left) if 0 < len(left) <= _MAX_STEPS else set()
    while left:
        borders = np.array([0, *(place * m // series.size for place in left), m])
        counts = np.diff(borders)
        if m < MIN_FOR_AUTOCORRELATION or counts.min() == 0 or counts.size >= m:
            break
        levels = np.add.reduceat(ranks, borders[:-1]) / counts
        steps = np.abs(np.diff(levels)) / np.sqrt(1.0 / counts[1:] + 1.0 / counts[:-1])
        weakest = int(np.argmin(steps))  # whatever the noise around the levels
        if len(left) <= _MAX_STEPS:
            p_values, inflation = _step_p_values(steps, ranks, np.repeat(levels, counts))
            p_values[[place in clear for place in left]] = 0.0
            weakest = int(np.argmax(p_values))
            if p_values[weakest] < _LEVEL:
                break
        left = left[:weakest] + left[weakest + 1 :]
    return left, inflation


def _clear_steps(series: Floats, places: tuple[int, ...]) -> set[int]:
    """Return the steps between levels farther apart than the span of either, without tails."""
    borders = (0, *places, series.size)
    spans = [np.quantile(series[start:stop], _BULK) for start, stop in pairwise(borders)]
    return {
        place
        for place, (one, other) in zip(places, pairwise(spans), strict=True)
        if max(other[0] - one[1], one[0] - other[1]) > max(np.ptp(one), np.ptp(other))
    }


def _step_p_values(steps: Floats, ranks: Floats, levels: Floats) -> tuple[Floats, float]:
    """Return the p-value of each step between levels along ranks; also the variance inflation."""
    residuals = ranks - levels
    square = float(residuals @ residuals)
    if square <= _ROUNDING * float(ranks @ ranks):
        # Without noise every step is certain; the smallest one is still the least significant.
        return _LEVEL * 0.5 * steps.min() / steps, 1.0
    noise = long_run_variance(residuals, fitted=steps.size + 1)
    white = square / (ranks.size - steps.size - 1)
    inflation = max(1.0, noise.largest / white)
    tails = scipy.special.stdtr(noise.freedom_of_order, -steps / np.sqrt(white * inflation))
    return np.asarray(2.0 * tails), inflation


def _ranks(series: Floats) -> Floats:
    """Return ranks about their mean, ties sharing theirs."""
    points = batch_means(series, max(1, series.size // MAX_POINTS))
    below = doubled_ranks(np.sort(points), points)
    ranks: Floats = below / 2.0 - below.mean() / 2.0
    return ranks


_POINTS = 256
_DEGREE = 3  # of the polynomial that stands for any smooth movement
_MATERIAL = 0.02  # movement over the second half, relative to the level, that is one
_TURNING = 1.25  # the way there and back, relative to the way gained, that is still one way
_MOST_STEPS = 16  # next to more a ramp is only their remainder
_PARTS = 16
_ORDER = 0.8  # rank correlation of their medians with time
_FAR, _ROUGH_ORDER = 8.0, 0.5  # ends further apart are of the work, if medians follow in order
_FEWEST, _ERRORS, _LATE = 7, 3.0, 0.5  # of few readings in order
_DOUBTFUL = 2.0  # standard errors of an order that may be a movement
_EVIDENCE = 2.0  # difference of information criteria, in favour of a movement


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Where a movement begins and ends: medians of the first and the last tenth."""

    first: float
    last: float

    def way(self, unit: str = "") -> str:
        """Say from where to where it goes; a unit that both ends share is said once."""
        first, last = (show_value(end, unit) for end in (self.first, self.last))
        number, _, name = first.partition(" ")
        start = number if last.endswith(f" {name}") else first
        return f"{'rises' if self.last > self.first else 'falls'} from {start} to {last}"


def find_trend(series: Floats, steps: Sequence[int]) -> Trend | None:
    """Find a movement that goes on to the end of a series and is not a sequence of steps.

    Three models of the medians of 256 to 511 batches are compared by the Bayesian information
    criterion (Schwarz 1978), with the long-run variance as noise: levels between the ``steps``;
    these levels and a ramp through all of them, as of a leak on a machine that changes its pace;
    and a cubic polynomial, which is any smooth movement. A smooth one is a trend if over the second
    half of the series it moves one way, by 2 % of the level or more. Fewer than 30 readings must be
    in order.
    """
    if series.size < MIN_FOR_AUTOCORRELATION:
        return ends_of(series) if _is_in_order(series) else None
    points = _batch_medians(series)
    m = points.size
    if float(points.min()) == float(points.max()):
        return None
    if float(points.min()) > 0.0:
        points = np.log(points)
    else:  # relative to their size
        points = points / float(np.median(np.abs(points)) or np.abs(points).max())
    places = sorted({place * m // series.size for place in steps} - {0})
    levels = np.repeat(np.arange(len(places) + 1), np.diff([0, *places, m]))
    time = (np.arange(m) + 0.5) / m - 0.5
    between = np.eye(len(places) + 1)[levels]
    ramp = np.column_stack([between, time])
    smooth = np.vander(time, _DEGREE + 1)
    by_levels, by_ramp, by_smooth = (
        _residuals(levels, points) for levels in (between, ramp, smooth)
    )
    price = math.log(m)
    # A step costs its place and its height; of very many steps none may be worth it.
    gains = {
        "ramp": _gain(by_levels, by_ramp) - price if len(places) <= _MOST_STEPS else -math.inf,
        "smooth": min(
            _gain(by_levels, by_smooth) + (2 * len(places) - _DEGREE) * price,
            _gain(points - points.mean(), by_smooth) - _DEGREE * price,
        ),
    }
    best = max(gains, key=gains.__getitem__)
    if gains[best] < _EVIDENCE:
        return None
    if best == "ramp":
        slope = float(np.linalg.lstsq(ramp, points, rcond=None)[0][-1])
        return ends_of(series) if abs(slope) / 2.0 >= _MATERIAL else None
    return ends_of(series) if _goes_one_way(points - by_smooth, points) else None


def _is_in_order(series: Floats) -> bool:
    """Whether few readings are in an order that chance does not make, and a single step neither.

    Kendall's (1938) test at three standard errors, which takes seven readings at least; the second
    half must follow the order too, and move materially.
    """
    n = series.size
    if n < _FEWEST:
        return False
    order = concordance(series.tolist())
    half = series[n // 2 :]
    late = concordance(half.tolist()) * math.copysign(1.0, order)
    moved = abs(float(half[-2:].mean() - half[:2].mean()))
    is_ordered = abs(order) >= _ERRORS * _order_error(n) and late >= _LATE
    return is_ordered and moved >= _MATERIAL * abs(float(half.mean()))


def may_move(series: Floats, n_effective: float) -> bool:
    """Whether up to 500 readings climb or fall by Kendall's test at two standard errors.

    Autocorrelation widens the error as it does that of a mean. A movement of one reading in twenty
    series is chance: this says where to wait for more, not what moves.
    """
    n = series.size
    widened = math.sqrt(max(n / n_effective, 1.0))
    return abs(concordance(series.tolist())) >= _DOUBTFUL * _order_error(n) * widened


def _order_error(n: int) -> float:
    """Return the standard error of Kendall's rank correlation of readings in a random order."""
    return math.sqrt(2.0 * (2 * n + 5) / (9.0 * n * (n - 1)))


def _goes_one_way(path: Floats, points: Floats) -> bool:
    """Whether a smooth movement goes on over the second half, and its points with it.

    A polynomial bends beyond its readings, and a restless pace drifts: medians of sixteenths must
    follow their order as well.
    """
    late = np.diff(path[path.size // 2 :])
    moved = float(late.sum())
    parts = _medians_of_parts(points)
    least = min(moved, parts[-1] - parts[_PARTS // 2 - 1], key=abs)
    one_way = float(np.abs(late).sum()) <= _TURNING * abs(moved)
    order = concordance(parts) * math.copysign(1.0, moved)
    return one_way and order >= _ORDER and abs(least) >= _MATERIAL and least * moved > 0.0


def find_far_ends(series: Floats) -> Trend | None:
    """Find a start and an end that are too far apart for the pace of a machine.

    The medians of sixteenths between them must roughly follow in order: levels that come back are
    no movement. Of fewer than 30 readings each end would be one or two, which a cold start or a
    busy neighbour moves as far: `find_trend` judges these by their order.
    """
    if series.size < MIN_FOR_AUTOCORRELATION:
        return None
    ends = ends_of(series)
    low, high = sorted((ends.first, ends.last))
    is_ordered = abs(concordance(_medians_of_parts(series))) >= _ROUGH_ORDER
    return ends if is_ordered and high > _FAR * low > 0.0 else None


def ends_of(series: Floats) -> Trend:
    """Return where a series begins and ends."""
    tenth = max(1, series.size // 10)
    return Trend(first=float(np.median(series[:tenth])), last=float(np.median(series[-tenth:])))


def _medians_of_parts(series: Floats) -> list[float]:
    """Return the medians of sixteenths, in order."""
    return [float(np.median(part)) for part in np.array_split(series, _PARTS) if part.size]


def _batch_medians(series: Floats) -> Floats:
    """Return the medians of 256 to 511 batches, which brief disturbances leave alone."""
    size = max(1, series.size // _POINTS)
    count = series.size // size
    medians: Floats = np.median(series[: count * size].reshape(count, size), axis=1)
    return medians


def _residuals(basis: Floats, points: Floats) -> Floats:
    fitted, _ = np.linalg.qr(basis)
    rest: Floats = points - fitted @ (fitted.T @ points)
    return rest


def _gain(simple: Floats, other: Floats) -> float:
    """Return how much better the other residuals are, in units of the smaller long-run variance."""
    noise = min(
        max(long_run_variance(residuals).largest, float(residuals @ residuals) / residuals.size)
        for residuals in (simple, other)
    )
    difference = float(simple @ simple) - float(other @ other)
    if noise <= 0.0:
        return math.copysign(math.inf, difference) if difference else 0.0
    return difference / noise
