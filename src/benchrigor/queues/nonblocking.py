"""The published estimator: counts of periods without blocking, one rate per convergence."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Floats
from benchrigor.queues.arithmetic.moments import Row, as_observations, batches_of, pool
from benchrigor.queues.arithmetic.published_method import (
    FEWEST_ITEMS,
    FEWEST_SHARE,
    QUANTILE_COUNTS,
    QuantileMean,
    add_quantiles,
    join_periods,
    widest,
    window_quantiles,
)
from benchrigor.queues.arithmetic.service_rate import Asked, apart, has_moved, quantile_rate
from benchrigor.queues.data.service import RateReason, ServiceRate

# Fewest periods that decide how many of them to join; and the same per joined one.
_SOUGHT, _SOUGHT_EACH = 128, 50
_MOST_SOUGHT = 2048
_SELDOM = 4  # a new window may decide again after this multiple of the periods that decided
_PIECE = 256  # most joined periods that are worked off together
_BLOCKS = 16  # of these, whose periods are kept one by one
_LATER = 4096  # joined periods after which nothing is decided where their number is fixed
_TRIED = 400  # joined periods after which it decides again, if the rate is in doubt
# Relative deviation from the period wanted from which on a realised one does not count.
_WIDTH = 0.01
_MOST = 64  # most periods joined into one
_EMPTY = np.zeros((Row.COUNT, 1))
_CLOSED = batches_of(_EMPTY)


class NonBlocking:
    """The estimator of Beard & Chamberlain; its options are those of `ServiceRateEstimator`."""

    def __init__(self, asked: Asked, *, most: int) -> None:
        self._period_s, self._guards = asked.period_s, asked.guards
        self._rate = partial(quantile_rate, asked=asked)
        self._widening = asked.guards and asked.period_s is None
        # Rates that have converged; computed on request, since most are never read.
        self._rates: deque[ServiceRate | Callable[[], ServiceRate]] = deque(maxlen=most)
        self._waiting = np.zeros((Row.COUNT, 0))
        self._number, self._sought = 0 if self._widening else 1, _SOUGHT
        self._since, self._tried, self._final = 0.0, 0, False
        self._reason: RateReason | None = None
        self._began_s = 0.0
        self._restart()

    def add(self, periods: Floats) -> None:
        """Take more periods, shape (Row.COUNT, n)."""
        self._waiting = np.hstack([self._waiting, periods])
        while self._step():
            pass
        self._waiting = self._waiting.copy()  # a part would keep the whole

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
        self.add(self._waiting[:, :0])
        rates = [rate if isinstance(rate, ServiceRate) else rate() for rate in self._rates]
        current = self._current()
        if current is not None and (not rates or has_moved(rates[-1], current)):
            rates.append(current)
        return rates

    def _restart(self) -> None:
        """Begin another window."""
        self._counts = np.zeros(0)  # the last ones, of which the next quantile is
        self._mean = QuantileMean()
        self._sums = np.zeros(4)  # periods, unblocked ones, counting ones, and items of these
        self._seen, self._kept = _EMPTY, [_CLOSED]  # sums of all periods, and those that count

    def _step(self) -> bool:
        """Work off some of the periods that wait; return whether there were enough."""
        if not self._number and not self._seek():
            return False
        number = self._number
        whole = min(self._waiting.shape[1] // number, self._patience - self._tried, _PIECE)
        if not whole:
            return False
        used = self._collect(join_periods(self._waiting[:, : whole * number], number))
        self._waiting = self._waiting[:, used * number :]
        return True

    def _seek(self) -> bool:
        """Decide how many periods to join; look at more of them until one number will do."""
        size = self._waiting.shape[1]
        if not size or (size < self._sought and not self._final):
            return False
        sought = self._waiting[:, : self._sought]
        wide = widest(sought)
        if isinstance(wide, RateReason):
            if self._sought < (size if self._final else _MOST_SOUGHT):
                self._sought *= 2
                return self._seek()
            self._number, self._reason, self._tried = 1, wide, 0
            return True
        number = min(wide, _MOST)
        period_s = float(np.sort(sought[Row.WALL])[sought.shape[1] // 2]) * number
        if self._reason is not None or period_s != self._period_s:
            self._end_window()  # without a rate
        self._number, self._reason, self._period_s = number, None, period_s
        self._since, self._tried = 0.0, 0
        return True

    def _collect(self, periods: Floats) -> int:
        """Take periods, up to the one with which the rate converges; return how many it took."""
        free = periods[Row.UNBLOCKED] > 0.0
        if self._period_s is not None and self._reason is None:
            free &= np.abs(periods[Row.WALL] / self._period_s - 1.0) <= _WIDTH
        places = np.flatnonzero(free)
        counts = np.concatenate([self._counts, periods[Row.ITEMS, places]])
        quantiles = window_quantiles(counts, normalised=self._guards).tolist()
        self._mean, last = add_quantiles(self._mean, quantiles, relative=self._guards)
        if last is not None:
            counts = counts[: last + QUANTILE_COUNTS]
            places = places[: counts.size - self._counts.size]
            periods = periods[:, : places[-1] + 1]
        self._counts = counts[1 - QUANTILE_COUNTS :]
        self._keep(periods, places)
        self._tried += periods.shape[1]
        if last is not None:
            self._converge()
        if self._tried >= self._patience:
            self._tried = 0
            if self._widening and self._doubt(self._sums) is not None:
                self._number = 0
        return int(periods.shape[1])

    def _keep(self, periods: Floats, places: npt.NDArray[np.int64]) -> None:
        """Add periods to the window; those at some places count."""
        counting = as_observations(batches_of(periods[:, places]))
        unblocked = periods[Row.UNBLOCKED].sum()
        items = counting[Row.ITEMS].sum()
        self._sums = self._sums + np.array([periods.shape[1], unblocked, places.size, items])
        self._seen = self._seen + periods.sum(axis=1, keepdims=True)
        if places.size:
            self._kept.append(counting)
        if len(self._kept) >= _BLOCKS:
            self._kept = [self._all_kept()]

    def _all_kept(self) -> Floats:
        return pool(np.hstack(self._kept), np.zeros(1, dtype=np.int64))

    def _converge(self) -> None:
        """End the window with a rate, unless that is in doubt: then more periods decide."""
        if self._guards and self._doubt(self._sums) is not None:
            self._mean = self._mean._replace(steady=0)
            return
        found = self._mean, self._seen[:, 0], self._all_kept()
        self._rates.append(partial(self._rate, *found, began_s=self._began_s, reason=None))
        self._tried = 0
        self._end_window()

    def _end_window(self) -> None:
        """End the window; let a number of periods to join be decided anew, after enough of them."""
        self._began_s += float(self._seen[Row.WALL, 0])
        self._since += float(self._seen[Row.PERIODS, 0]) * self._number
        if self._widening and self._since >= _SELDOM * self._sought:
            self._sought = max(_SOUGHT, _SOUGHT_EACH * self._number)
            self._number = 0
        self._restart()

    @property
    def _patience(self) -> int:
        """Joined periods after which others may do better."""
        if not self._widening:
            return _LATER
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
        return RateReason.APART if apart(self._mean, items / used) else None

    def _current(self) -> ServiceRate | None:
        """Return the rate of the window under way; None before the first period."""
        if not self._sums[0]:
            if not self._waiting.shape[1]:
                return None
            self._keep(self._waiting, np.zeros(0, dtype=np.int64))
        reason = self._doubt(self._sums) or RateReason.NOT_CONVERGED
        found = self._mean, self._seen[:, 0], self._all_kept()
        return self._rate(*found, began_s=self._began_s, reason=reason)
