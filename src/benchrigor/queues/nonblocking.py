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
# Most joined periods that are worked off together: they fit into a processor's cache.
_CHUNK = 4096
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
        ended._rates, ended._kept = self._rates.copy(), [*self._kept]  # noqa: SLF001  # its own
        return ended._last_rates()  # noqa: SLF001  # class

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
        """Forget the window and its figures."""
        self._window = np.zeros(0)
        self._mean = QuantileMean()
        self._sums = np.zeros(4)
        self._seen, self._kept = _EMPTY, [_CLOSED]

    def _step(self) -> bool:
        """Work off some of the periods that wait; return whether there were enough."""
        if not self._number and not self._seek():
            return False
        number = self._number
        most = self._patience - self._tried if self._widening else _CHUNK
        whole = min(self._waiting.shape[1] // number, most)
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
            self._end()
        self._number, self._reason, self._period_s = number, None, period_s
        self._since, self._tried = 0.0, 0
        return True

    def _collect(self, periods: Floats) -> int:
        """Take periods until another number of them should be joined; return how many it took."""
        free = periods[Row.UNBLOCKED] > 0.0
        if self._period_s is not None and self._reason is None:
            free &= np.abs(periods[Row.WALL] / self._period_s - 1.0) <= _WIDTH
        places, before = np.flatnonzero(free), self._window.size
        counts = np.concatenate([self._window, periods[Row.ITEMS, places]])
        # Ends of the periods that count, and of the last one.
        after = np.concatenate([[0], places + 1, periods.shape[1:]])
        unblocked = np.append(0.0, np.cumsum(periods[Row.UNBLOCKED]))[after]
        used = np.minimum(np.arange(after.size), places.size)
        items = np.append(0.0, np.cumsum(counts[before:]))[used]
        sums = np.vstack([after, unblocked, used, items]) + self._sums[:, np.newaxis]
        ends, base = self._ends_of_windows(counts, sums)
        ended = ends[-1][0] if ends else 0
        last = ended if not self._number else -1
        stop, number = int(after[last]), int(used[last])
        self._close_windows(periods[:, :stop], places[:number], ends)
        first = before + ended if ends else 0
        self._window = counts[first : before + number][1 - QUANTILE_COUNTS :]
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
        """Return after how many counting periods the windows end, and the sums by the last one.

        ``sums`` are periods, unblocked ones, counting ones and their items, by the number of
        counting ones.
        """
        quantiles = window_quantiles(counts, normalised=self._guards).tolist()
        ends = []
        base, start = np.zeros(len(sums)), 0
        while self._number:
            self._mean, last = add_quantiles(
                self._mean, quantiles, relative=self._guards, start=start
            )
            if last is None:
                break
            used = last + QUANTILE_COUNTS - self._window.size
            window = sums[:, used] - base
            if self._guards and self._doubt(window) is not None:
                self._mean, start = self._mean._replace(steady=0), last + 1
                continue
            ends.append((used, self._mean))
            # The next window shares no count with this one.
            self._mean, start, base = QuantileMean(), last + QUANTILE_COUNTS, sums[:, used]
            self._turn(float(window[0]))
        return ends, base

    def _turn(self, periods: float) -> None:
        """Let a new number of periods to join be decided, once enough of them have passed."""
        self._since += periods * self._number
        if self._widening and self._since >= _SELDOM * self._sought:
            self._sought = max(_SOUGHT, _SOUGHT_EACH * self._number)
            self._number = 0

    @property
    def _patience(self) -> int:
        """Joined periods after which others may do better."""
        return _MOST_SOUGHT if self._reason is not None else _TRIED

    def _close_windows(
        self, periods: Floats, places: npt.NDArray[np.int64], ends: list[tuple[int, QuantileMean]]
    ) -> None:
        """Add up the windows that end in these periods, and the beginning of the next."""
        # The earlier sums come before the first period, an empty period after the last.
        starts = [0, *(int(places[used - 1]) + 2 for used, _ in ends)]
        seen = np.add.reduceat(np.hstack([self._seen, periods, _EMPTY]), starts, axis=1)
        before = sum(block.shape[1] for block in self._kept)
        if places.size:
            self._kept.append(as_observations(batches_of(periods[:, places])))
        # Pooling takes as long as the rest of a short chunk.
        if ends or before + places.size >= _CHUNK:
            kept = self._pool([before + used for used, _ in ends])
            for number, (_, quantiles) in enumerate(ends):
                window = seen[:, number].copy(), kept[:, number : number + 1].copy()
                self._rates.append(
                    partial(self._rate, quantiles, *window, began_s=self._began_s, reason=None)
                )
                self._began_s += float(seen[Row.WALL, number])
            self._kept = [kept[:, -1:].copy()]
        self._seen = seen[:, -1:].copy()

    def _pool(self, starts: list[int]) -> Floats:
        """Pool the counting periods of the windows that have ended, and of the one under way."""
        return pool(np.hstack([*self._kept, _CLOSED]), np.array([0, *starts]))

    def _end(self) -> None:
        """End the window under way without a rate."""
        self._began_s += float(self._seen[Row.WALL, 0])
        self._turn(float(self._seen[Row.PERIODS, 0]))
        self._restart()

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
        if not self._seen[Row.PERIODS, 0]:
            if not self._waiting.shape[1]:
                return None
            self._seen = self._waiting.sum(axis=1, keepdims=True)
            self._sums = np.array([*self._seen[[Row.PERIODS, Row.UNBLOCKED], 0], 0.0, 0.0])
        reason = self._doubt(self._sums) or RateReason.NOT_CONVERGED
        seen, kept = self._seen[:, 0], self._pool([])
        return self._rate(self._mean, seen, kept, began_s=self._began_s, reason=reason)
