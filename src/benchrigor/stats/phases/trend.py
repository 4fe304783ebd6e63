"""Whether readings climb or fall to the end, apart from the steps of a machine's pace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchrigor.model.series import Floats
from benchrigor.model.text import show_value
from benchrigor.stats.phases.stability_rules import concordance
from benchrigor.stats.series.level import MIN_FOR_AUTOCORRELATION
from benchrigor.stats.series.long_run_variance import long_run_variance

_POINTS = 256
_DEGREE = 3  # of the polynomial that stands for any smooth movement
_MATERIAL = 0.02  # movement over the second half, relative to the level, that is one
_TURNING = 1.25  # the way there and back, relative to the way gained, that is still one way
_MOST_STEPS = 16  # next to more a ramp is what they leave over
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
    else:  # relative to what they are of in size
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
