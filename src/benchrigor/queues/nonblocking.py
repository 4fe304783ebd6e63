"""The published estimator: counts of periods without blocking, one rate per convergence.

Beard & Chamberlain, 'Run Time Approximation of Non-blocking Service Rates for Streaming Systems'
(2015). What its text leaves open (the window's length, sigma of the second filter, the tolerance)
is as in the authors' RaftLib of 2015.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model import Estimate
from benchrigor.model.series import Floats
from benchrigor.queues.data import RateReason, ServiceRate
from benchrigor.queues.periods import (
    BORDERS,
    QUANTILE,
    Asked,
    PeriodTable,
    dispersion,
    empty,
    even_starts,
    has_moved,
    join,
    join_evenly,
    pool,
    rows_of,
    service_moments,
    service_rate,
    stack,
)
from benchrigor.stats.series.interval import student_t

# Fewest periods that decide how many of them to join; and the same per joined one.
_SOUGHT, _SOUGHT_EACH = 128, 50
_MOST_SOUGHT = 2048
_SELDOM = 4  # a new window may decide again after this multiple of the periods that decided
_CHUNK = 4096  # most joined periods that are worked off together: they fit into a cache
_TRIED = 400  # joined periods after which it decides again, if the rate is in doubt
# Relative deviation from the period wanted from which on a realised one does not count.
_WIDTH = 0.01
_MOST = 64  # most periods joined into one

_APART = 0.25
FEWEST_ITEMS = 16.0  # items that a period must hold: of fewer, some are free of waiting by chance
FEWEST_SHARE = 0.05  # share of periods free of waiting below which slow service has chosen them
# Share down to which periods are widened: the bias of choosing slow service then about cancels the
# bias of the quantile.
_GOOD_SHARE = 0.20
_IN_A_ROW = 5
_FEWEST_PERIODS = 25

QUANTILE_COUNTS = 16  # counts of one quantile
STEADY_QUANTILES = 16  # quantiles in a row with an error that hardly bends, at convergence
_CONVERGED = 5e-7  # change of the error, in items, below which the published method has converged
# The same in terms of the running mean, so that the length of a period does not matter.
_RELATIVE = 1e-5
_RADIUS = 2
_FILTERED = QUANTILE_COUNTS - 2 * _RADIUS  # counts of a window that the filter leaves
_QUANTILE = 1.64485  # 0.95 quantile of a normal distribution (equation 3)
# Equation 2. Its sum is 0.990866, which makes every rate 0.9 % too low.
_KERNEL = np.exp(-(np.arange(-_RADIUS, _RADIUS + 1.0) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
# Equation 4, sigma 1/2, at -1, 0, 1 less its mean is this times 1, -2, 1; with its mean a constant
# error would never pass for steady.
_CURVATURE = 1.49577


class NonBlocking:
    """The estimator of Beard & Chamberlain; its options are as in `ServiceRateEstimator`."""

    def __init__(self, asked: Asked, *, most: int) -> None:
        self._period_s, self._guards = asked.period_s, asked.guards
        self._rate = partial(quantile_rate, asked=asked)
        self._widening = asked.guards and asked.period_s is None
        # Rates that have converged; computed on request, since most are never read.
        self._rates: deque[ServiceRate | Callable[[], ServiceRate]] = deque(maxlen=most)
        self._waiting = empty()
        self._number, self._sought = 0 if self._widening else 1, _SOUGHT
        self._since, self._tried, self._final = 0.0, 0, False
        self._reason: RateReason | None = None
        self._began_s = 0.0
        self._restart()

    def add(self, periods: PeriodTable) -> None:
        """Take more periods."""
        self._waiting = stack(self._waiting, periods)
        while self._step():
            pass
        self._waiting = stack(self._waiting)  # a part would keep the whole

    def rates(self) -> list[ServiceRate]:
        """Return the rates of all convergences; last one that has not converged, if it differs."""
        for number, rate in enumerate(self._rates):
            if not isinstance(rate, ServiceRate):
                self._rates[number] = rate()
        ended = copy.copy(self)
        ended._rates = self._rates.copy()  # noqa: SLF001  # its own class
        ended._kept = [*self._kept]  # noqa: SLF001
        return ended._last_rates()  # noqa: SLF001

    def _last_rates(self) -> list[ServiceRate]:
        """Return the rates as if no more periods came; that changes it, and a copy is asked."""
        self._final = True
        self.add(empty())
        rates = [rate if isinstance(rate, ServiceRate) else rate() for rate in self._rates]
        current = self._current()
        if current is not None and (not rates or has_moved(rates[-1], current)):
            rates.append(current)
        return rates

    def _restart(self) -> None:
        """Begin another window."""
        self._counts = np.zeros(0)  # the last ones, from which the next quantile is
        self._mean = QuantileMean()
        self._sums = np.zeros(4)  # periods, unblocked ones, counting ones, and items of these
        self._seen, self._kept = empty(1), [empty(1)]  # all periods, and those that count

    def _step(self) -> bool:
        """Work off some of the periods that wait; return whether there were enough."""
        if not self._number and not self._seek():
            return False
        number = self._number
        most = self._patience - self._tried if self._widening else _CHUNK
        whole = min(self._waiting.size // number, most)
        if not whole:
            return False
        used = self._collect(join_evenly(self._waiting[: whole * number], number))
        self._waiting = self._waiting[used * number :]
        return True

    def _seek(self) -> bool:
        """Decide how many periods to join; look at more of them until one number will do."""
        size = self._waiting.size
        if not size or (size < self._sought and not self._final):
            return False
        sought = self._waiting[: self._sought]
        wide = widest(sought)
        if isinstance(wide, RateReason):
            if self._sought < (size if self._final else _MOST_SOUGHT):
                self._sought *= 2
                return self._seek()
            self._number, self._reason, self._tried = 1, wide, 0
            return True
        number = min(wide, _MOST)
        period_s = float(np.sort(sought["period_s"])[sought.size // 2]) * number
        if self._reason is not None or period_s != self._period_s:
            self._end_window()
        self._number, self._reason, self._period_s = number, None, period_s
        self._since, self._tried = 0.0, 0
        return True

    def _collect(self, periods: PeriodTable) -> int:
        """Take periods until another number of them should be joined; return how many it took."""
        free = periods["unblocked"] > 0.0
        if self._period_s is not None and self._reason is None:
            free &= np.abs(periods["period_s"] / self._period_s - 1.0) <= _WIDTH
        places, before = np.flatnonzero(free), self._counts.size
        counts = np.concatenate([self._counts, periods["served"][places]])
        # Ends of the periods that count, and of the last one; what there was of the window by then.
        after = np.concatenate([[0], places + 1, [periods.size]])
        unblocked = np.append(0.0, np.cumsum(periods["unblocked"]))[after]
        used = np.minimum(np.arange(after.size), places.size)
        items = np.append(0.0, np.cumsum(counts[before:]))[used]
        sums = np.vstack([after, unblocked, used, items]) + self._sums[:, np.newaxis]
        ends, base = self._ends_of_windows(counts, sums)
        ended = ends[-1][0] if ends else 0
        last = -1 if self._number else ended
        stop, number = int(after[last]), int(used[last])
        self._close_windows(periods[:stop], places[:number], ends)
        first = before + ended if ends else 0
        self._counts = counts[first : before + number][1 - QUANTILE_COUNTS :]
        self._sums = sums[:, last] - base
        self._tried = int(self._sums[0]) if ends else self._tried + stop
        if self._tried >= self._patience:
            self._tried = 0
            if self._widening and self._doubt(self._sums) is not None:
                self._number = 0
        return stop

    def _ends_of_windows(
        self, counts: Floats, sums: Floats
    ) -> tuple[list[tuple[int, QuantileMean]], Floats]:
        """Return after how many counting periods windows converge, and the sums by the last one.

        A window whose rate is in doubt goes on. ``sums`` are periods, unblocked ones, counting ones
        and items of these, by the number of counting ones.
        """
        quantiles = window_quantiles(counts, normalised=self._guards).tolist()
        ends, base, start = [], np.zeros(len(sums)), 0
        while self._number:
            self._mean, last = add_quantiles(
                self._mean, quantiles, relative=self._guards, start=start
            )
            if last is None:
                break
            used = last + QUANTILE_COUNTS - self._counts.size
            window = sums[:, used] - base
            if self._guards and self._doubt(window) is not None:
                self._mean, start = self._mean._replace(steady=0), last + 1
                continue
            ends.append((used, self._mean))
            # The next window shares no count with this one.
            self._mean, start, base = QuantileMean(), last + QUANTILE_COUNTS, sums[:, used]
            self._pass(float(window[0]))
        return ends, base

    def _close_windows(
        self,
        periods: PeriodTable,
        places: npt.NDArray[np.int64],
        ends: Sequence[tuple[int, QuantileMean]],
    ) -> None:
        """Add up the windows that end in these periods, and the beginning of the next."""
        # The earlier sums come before the first period, an empty one after the last.
        starts = [0, *(int(places[used - 1]) + 2 for used, _ in ends)]
        seen = join(stack(self._seen, periods, empty(1)), np.array(starts))
        before = sum(block.size for block in self._kept)
        if places.size:
            self._kept.append(rows_of(periods, places))
        # Pooling takes as long as the rest of a short chunk.
        if ends or before + places.size >= _CHUNK:
            kept = self._pool([before + used for used, _ in ends])
            for number, (_, quantiles) in enumerate(ends):
                window = (rows[number : number + 1] for rows in (seen, kept))  # few: they stay
                self._rates.append(
                    partial(self._rate, quantiles, *window, began_s=self._began_s, reason=None)
                )
                self._began_s += float(seen["period_s"][number])
            self._kept = [kept[-1:]]
        self._seen = seen[-1:]

    def _pool(self, starts: Sequence[int]) -> PeriodTable:
        """Pool the counting periods of the windows that have ended, and of the one under way."""
        return pool(stack(*self._kept, empty(1)), np.array([0, *starts]))

    def _end_window(self) -> None:
        """End the window without a rate."""
        self._began_s += float(self._seen["period_s"][0])
        self._pass(float(self._seen["periods"][0]))
        self._restart()

    def _pass(self, periods: float) -> None:
        """Decide again, once enough periods have passed, how many of them are joined."""
        self._since += periods * self._number
        if self._widening and self._since >= _SELDOM * self._sought:
            self._sought = max(_SOUGHT, _SOUGHT_EACH * self._number)
            self._number = 0

    @property
    def _patience(self) -> int:
        """Joined periods after which others may do better."""
        return _MOST_SOUGHT if self._reason is not None else _TRIED

    def _doubt(self, sums: Floats) -> RateReason | None:
        """Return why the converged rate is not reliable, or None."""
        if self._reason is not None or not self._guards:
            return self._reason
        periods, unblocked, used, items = sums.tolist()
        if not unblocked:
            return RateReason.NO_NONBLOCKING
        if unblocked < FEWEST_SHARE * periods:
            return RateReason.FEW_NONBLOCKING
        if used < FEWEST_SHARE * unblocked:
            return RateReason.UNSTABLE_PERIOD
        if items < FEWEST_ITEMS * used:
            return RateReason.FEW_ITEMS
        return RateReason.APART if _apart(self._mean, items / used) else None

    def _current(self) -> ServiceRate | None:
        """Return the rate of the window under way; None before the first period."""
        if not self._sums[0]:
            if not self._waiting.size:
                return None
            self._seen = join(self._waiting)
            self._sums = np.array([*self._seen[["periods", "unblocked"]][0], 0.0, 0.0])
        reason = self._doubt(self._sums) or RateReason.NOT_CONVERGED
        found = self._mean, self._seen, self._pool([])
        return self._rate(*found, began_s=self._began_s, reason=reason)


def widest(periods: PeriodTable) -> int | RateReason:
    """Find how many periods to join into one sampling period, or why none will do.

    Wide ones have less noise, narrow ones less waiting (section IV-A): widths double as long as
    five in a row are free of waiting, and the widest wins. To exclude chance, periods free of
    waiting must hold 16 items, and be a fifth of all (a twentieth if no width has a fifth). Single
    periods cannot be narrower and need no five in a row.
    """
    few = periods.size < _FEWEST_PERIODS and periods["unblocked"].any()
    reason = RateReason.NOT_CONVERGED if few else RateReason.NO_NONBLOCKING
    best, number = 0, 1
    while periods.size // number >= _FEWEST_PERIODS:
        starts = even_starts(periods.size, number)
        unblocked = np.minimum.reduceat(periods["unblocked"], starts)
        served = np.add.reduceat(periods["served"], starts)
        share = float(unblocked.mean())
        if _longest_run(unblocked) < (_IN_A_ROW if number > 1 else 1):
            break
        # The items of blocked periods may be unknown.
        if float(served @ unblocked) < FEWEST_ITEMS * float(unblocked.sum()):
            reason = RateReason.FEW_ITEMS
        elif share < FEWEST_SHARE:
            reason = RateReason.FEW_NONBLOCKING
        elif share >= _GOOD_SHARE or not best:
            best = number
        number *= 2
    return best or reason


class QuantileMean(NamedTuple):
    """The running mean of quantiles.

    Of ``n`` quantiles the ``mean`` and the sum of squared deviations ``second``; the last two
    standard ``errors`` of the mean, and how many quantiles in a row left them ``steady``.
    """

    n: int = 0
    mean: float = 0.0
    second: float = 0.0
    errors: tuple[float, ...] = ()
    steady: int = 0

    @property
    def deviation(self) -> float:
        """Standard deviation of the quantiles."""
        return math.sqrt(self.second / (self.n - 1)) if self.n > 1 else 0.0


def window_quantiles(counts: Floats, *, normalised: bool) -> Floats:
    """Return the 0.95 quantiles of all windows of 16 counts of unblocked periods, shape (n - 15,).

    Equations 2 and 3: Gaussian filter of radius 2 without padding, then mean + 1.64485 standard
    deviations of the 12 remaining counts. ``normalised`` lets the filter's weights sum up to 1;
    as published they do not.

    >>> window_quantiles(np.full(17, 100.0), normalised=False).round(4)
    array([99.0866, 99.0866])
    """
    if counts.size < QUANTILE_COUNTS:
        return np.zeros(0)
    kernel = _KERNEL / _KERNEL.sum() if normalised else _KERNEL
    filtered = np.convolve(counts, kernel, mode="valid")
    # A column is a window, one count on from the last: a view, since there are many chunks.
    shape = _FILTERED, counts.size - QUANTILE_COUNTS + 1
    windows = np.ndarray(shape, buffer=filtered, strides=2 * filtered.strides)
    means = windows.sum(axis=0) / _FILTERED
    off = windows - means
    quantiles: Floats = means + _QUANTILE * np.sqrt((off * off).sum(axis=0) / (_FILTERED - 1))
    return quantiles


def add_quantiles(
    before: QuantileMean, quantiles: Sequence[float], *, relative: bool, start: int = 0
) -> tuple[QuantileMean, int | None]:
    """Add quantiles from the ``start`` on to a running mean; return it, and where it converged.

    Converged: the curvature (equation 4) of the standard error of the mean was within the tolerance
    for 16 quantiles in a row. The tolerance is in items, as published, or ``relative`` to the mean.
    Mean and deviation by Welford (1962), one by one: regular counts converge every 33 periods, for
    which arrays cost more than they save.
    """
    n, mean, second, errors, steady = before
    older, old = (math.inf, math.inf, *errors)[-2:]  # fewer than three are not steady
    fixed, share = (0.0, _RELATIVE / _CURVATURE) if relative else (_CONVERGED / _CURVATURE, 0.0)
    sqrt = math.sqrt
    for place in range(start, len(quantiles)):
        quantile = quantiles[place]
        off = quantile - mean
        n += 1
        mean += off / n
        second += off * (quantile - mean)
        error = sqrt(second / ((n - 1 or 1) * n))
        bend = error - old - old + older
        older, old = old, error
        limit = fixed + share * mean
        if -limit <= bend <= limit:
            steady += 1
            if steady >= STEADY_QUANTILES:
                return QuantileMean(n, mean, second, (older, old), steady), place
        else:
            steady = 0
    return QuantileMean(n, mean, second, (older, old)[-n:] if n else (), steady), None


def _longest_run(flags: Floats) -> int:
    """Return the length of the longest run of set flags."""
    borders = np.flatnonzero(np.concatenate([[1.0], 1.0 - flags, [1.0]]))
    return int(np.diff(borders).max()) - 1


def quantile_rate(
    quantiles: QuantileMean,
    seen: PeriodTable,
    kept: PeriodTable,
    *,
    began_s: float,
    reason: RateReason | None,
    asked: Asked,
) -> ServiceRate:
    """Return the service rate by the quantile of unblocked periods.

    ``seen`` is a row for all periods of the window, ``kept`` for those that count; ``reason`` says
    why it has not converged.
    """
    return service_rate(
        seen,
        kept,
        asked=asked,
        began_s=began_s,
        estimate=_of_quantiles(quantiles, kept, asked) if quantiles.n else None,
        reason=reason,
        moments=service_moments(kept) if kept["used"][0] else None,
    )


def _of_quantiles(quantiles: QuantileMean, kept: PeriodTable, asked: Asked) -> Estimate:
    """Turn the mean quantile into a rate; with guards, the middle between it and the plain mean.

    The mean of unblocked counts errs low, since slow service chose these periods; the quantile errs
    high, the more the fewer items a period holds. The interval reaches from the one to the other
    and beyond either by its error, which includes the places of period borders between items.
    """
    names = ("used", "served", "busy_s", "period_s")
    used, served, busy_s, wall_s = (float(kept[name][0]) for name in names)
    period_s = wall_s / used
    freedom = max(quantiles.n / QUANTILE_COUNTS, 1.0)  # windows overlap
    reach = student_t(freedom, asked.confidence)
    high = quantiles.mean / period_s
    borders = BORDERS / used
    above = reach * math.sqrt(quantiles.deviation**2 / freedom + borders) / period_s
    low, below = high, above
    if asked.guards:
        low = served / wall_s
        spread = dispersion(kept) * busy_s / used**2
        below = reach * math.sqrt(spread + borders) / period_s
    return Estimate(
        value=(low + high) / 2.0,
        low=max(0.0, min(low - below, high - above)),
        high=max(low + below, high + above),
        confidence=asked.confidence,
        n=int(used),
        n_effective=freedom,
        method=QUANTILE,
    )


def _apart(quantiles: QuantileMean, mean: float) -> bool:
    """Return whether the quantile lies so far above the mean that neither is reliable."""
    return quantiles.mean > (1.0 + _APART) * mean
