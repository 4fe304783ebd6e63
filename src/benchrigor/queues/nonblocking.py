"""The published estimator: counts of periods without blocking, one rate per convergence."""

from __future__ import annotations

import copy
from collections import deque

import numpy as np

from benchrigor.model import Floats, RateReason, ServiceRate
from benchrigor.stats.nonblocking import WINDOW, Settling, settle, window_quantiles
from benchrigor.stats.periods import FEWEST_ITEMS, FEWEST_SHARE, joined, widest
from benchrigor.stats.servicerates import apart, moved, quantile_rate
from benchrigor.stats.tallies import Row, observed, pooled, tallied

__all__ = ["NonBlocking"]

_RATES = 1000
"""Rates that are remembered."""
_SOUGHT, _SOUGHT_EACH = 128, 50
"""Periods, at least, by which it is decided how many of them to join; and per joined one."""
_MOST_SOUGHT = 2048
_SELDOM = 4
"""It is decided anew with a new window, once so many times as many periods have passed."""
_CHUNK, _LEAST_CHUNK = 400, 64
"""Joined periods that are worked off together, at most and at least if there are as many."""
_TRIED = 400
"""Joined periods after which it is decided anew, where the rate is in doubt."""
_WIDTH = 0.01
"""Relative deviation from the period wanted from which on a realised one does not count."""
_MOST = 64
"""Periods joined into one at most."""
_ALL = np.zeros(1, dtype=np.int64)


class NonBlocking:
    """The estimator of Beard & Chamberlain.

    Parameters
    ----------
    period_s, guards, confidence
        As `ServiceRateEstimator` has them.
    """

    def __init__(self, *, period_s: float | None, guards: bool, confidence: float) -> None:
        self._period_s, self._guards, self._confidence = period_s, guards, confidence
        self._widening = guards and period_s is None
        self._found: deque[ServiceRate] = deque(maxlen=_RATES)
        self._waiting = np.zeros((Row.COUNT, 0))
        self._number, self._sought = 0 if self._widening else 1, _SOUGHT
        self._since, self._final = 0.0, False
        self._tried, self._chunk = 0, _CHUNK
        self._reason: RateReason | None = None
        self._began_s = 0.0
        self._restart()

    def add(self, periods: Floats) -> None:
        """Take more periods, the first eight rows of their tallies, shape (8, n)."""
        self._waiting = np.hstack([self._waiting, periods])
        while self._step():
            pass

    def rates(self) -> list[ServiceRate]:
        """Return the rate of each convergence; last what has not converged, where it differs."""
        copied = copy.copy(self)
        return copied._ended()  # noqa: SLF001  # its own class

    def _ended(self) -> list[ServiceRate]:
        """Return the rates as if no more periods came; what is changed is a copy's."""
        self._final = True
        self._found = deque(self._found)
        self.add(self._waiting[:, :0])
        current = self._current()
        if current is None or (self._found and not moved(self._found[-1], current)):
            return list(self._found)
        return [*self._found, current]

    def _restart(self) -> None:
        """Forget the window, and what was learned from it."""
        self._window = np.zeros(0)
        self._settling = Settling()
        self._seen = np.zeros(Row.COUNT)
        self._kept = tallied(np.zeros((Row.COUNT, 1)))

    def _step(self) -> bool:
        """Work off some of the periods that wait; tell whether there were enough."""
        if not self._number and not self._seek():
            return False
        number = self._number
        whole = min(self._waiting.shape[1] // number, self._chunk, self._patience - self._tried)
        if not whole:
            return False
        used = self._collect(joined(self._waiting[:, : whole * number], number))
        self._waiting = self._waiting[:, used * number :]
        return True

    def _seek(self) -> bool:
        """Decide how many periods to join, by more and more of them while none will do."""
        size = self._waiting.shape[1]
        if not size or (size < self._sought and not self._final):
            return False
        sought = self._waiting[:, : self._sought]
        found = widest(sought)
        if isinstance(found, RateReason):
            if self._sought < (size if self._final else _MOST_SOUGHT):
                self._sought *= 2
                return self._seek()
            self._number, self._reason, self._tried = 1, found, 0
            return True
        period_s = float(np.sort(sought[Row.WALL])[sought.shape[1] // 2]) * min(found, _MOST)
        if self._reason is not None or period_s != self._period_s:
            self._end()
        self._number, self._reason, self._period_s = min(found, _MOST), None, period_s
        self._since, self._tried = 0.0, 0
        return True

    def _collect(self, periods: Floats) -> int:
        """Take periods up to where the rate converges; return how many."""
        free = periods[Row.UNBLOCKED] > 0.0
        if self._period_s is not None and self._reason is None:
            free &= np.abs(periods[Row.WALL] / self._period_s - 1.0) <= _WIDTH
        places = np.flatnonzero(free)
        counts = np.concatenate([self._window, periods[Row.ITEMS, places]])
        quantiles = window_quantiles(counts, normalised=self._guards)
        used, taken = int(periods.shape[1]), int(places.size)
        last: int | None = None
        if quantiles.size:
            self._settling, last = settle(
                self._settling,
                quantiles,
                relative=self._guards,
                stopping=self._reason is None,
            )
        if last is not None:
            taken = places.size - (quantiles.size - 1 - last)
            used = int(places[taken - 1]) + 1
        self._window = counts[: counts.size - (places.size - taken)][1 - WINDOW :]
        self._account(periods[:, :used], periods[:, places[:taken]])
        self._tried += used
        if last is not None and self._doubt() is None:
            self._found.append(self._rate(None))
            self._chunk = min(max(4 * used, _LEAST_CHUNK), _CHUNK)
            self._end()
        elif last is not None:
            self._settling = self._settling._replace(steady=0)
        if self._tried >= self._patience:
            self._tried = 0
            if self._widening and self._doubt() is not None:
                self._number = 0
        return used

    @property
    def _patience(self) -> int:
        """Joined periods after which it is looked whether others would do better."""
        return _MOST_SOUGHT if self._reason is not None else _TRIED

    def _account(self, periods: Floats, kept: Floats) -> None:
        self._seen = self._seen + periods.sum(axis=1)
        if kept.shape[1]:
            self._kept = pooled(np.hstack([self._kept, observed(tallied(kept))]), _ALL)

    def _end(self) -> None:
        """End a window; the next begins where it ended, with other periods if that is due."""
        self._began_s += float(self._seen[Row.WALL])
        self._since += float(self._seen[Row.PERIODS]) * self._number
        if self._widening and self._since >= _SELDOM * self._sought:
            self._sought = max(_SOUGHT, _SOUGHT_EACH * self._number)
            self._number = 0
        self._tried = 0
        self._restart()

    def _doubt(self) -> RateReason | None:
        """Say why what has settled is no rate to be relied on."""
        if self._reason is not None or not self._guards:
            return self._reason
        periods, used = float(self._seen[Row.PERIODS]), float(self._kept[Row.USED, 0])
        unblocked = float(self._seen[Row.UNBLOCKED])
        if not unblocked:
            return RateReason.NO_NONBLOCKING
        if unblocked < FEWEST_SHARE * periods:
            return RateReason.FEW_NONBLOCKING
        if used < FEWEST_SHARE * unblocked:
            return RateReason.UNSTABLE_PERIOD
        if self._kept[Row.ITEMS, 0] < FEWEST_ITEMS * used:
            return RateReason.FEW_ITEMS
        return RateReason.APART if apart(self._settling, self._kept[:, 0]) else None

    def _current(self) -> ServiceRate | None:
        """Return what is known of the window under way; None where nothing has been told."""
        if not self._seen[Row.PERIODS]:
            if not self._waiting.shape[1]:
                return None
            self._account(self._waiting, self._waiting[:, :0])
        return self._rate(self._doubt() or RateReason.NOT_CONVERGED)

    def _rate(self, reason: RateReason | None) -> ServiceRate:
        return quantile_rate(
            self._settling,
            self._seen,
            self._kept,
            began_s=self._began_s,
            guards=self._guards,
            reason=reason,
            confidence=self._confidence,
        )
