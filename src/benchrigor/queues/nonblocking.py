"""The published estimator: counts of periods without blocking, one rate per convergence."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats, RateReason, ServiceRate
from benchrigor.stats.service.moments import Row, observed, pooled, tallied
from benchrigor.stats.service.published_method import (
    FEWEST_ITEMS,
    FEWEST_SHARE,
    WINDOW,
    Settling,
    joined,
    settle,
    widest,
    window_quantiles,
)
from benchrigor.stats.service.service_rate import apart, moved, quantile_rate

_RATES = 1000
"""Rates that are remembered."""
_SOUGHT, _SOUGHT_EACH = 128, 50
"""Periods, at least, by which it is decided how many of them to join; and per joined one."""
_MOST_SOUGHT = 2048
_SELDOM = 4
"""It is decided anew with a new window, once so many times as many periods have passed."""
_CHUNK = 4096
"""Joined periods that are worked off together at most; so many fit into a processor's cache."""
_TRIED = 400
"""Joined periods after which it is decided anew, where the rate is in doubt."""
_WIDTH = 0.01
"""Relative deviation from the period wanted from which on a realised one does not count."""
_MOST = 64
"""Periods joined into one at most."""
_EMPTY = np.zeros((Row.COUNT, 1))


class _Sums(NamedTuple):
    """What a window has come to so far: its periods, and the items of those that count."""

    periods: float = 0.0
    unblocked: float = 0.0
    used: float = 0.0
    items: float = 0.0


class _Place(NamedTuple):
    """How many periods of a chunk went before, and how many of those that count."""

    periods: int = 0
    used: int = 0


class _Chunk:
    """Joined periods that are worked off together.

    Parameters
    ----------
    periods
        The first rows of their tallies, shape (rows, n).
    free
        Which of them count, shape (n,).
    window
        The last counts before them, 15 at most.
    normalised
        As `window_quantiles` has it.
    """

    def __init__(
        self, periods: Floats, free: npt.NDArray[np.bool_], window: Floats, *, normalised: bool
    ) -> None:
        self.periods = periods
        self._places = np.flatnonzero(free)
        self._counts = np.concatenate([window, periods[Row.ITEMS, self._places]])
        self._before = window.size
        # Lists, for of so few numbers at a time they are added up faster.
        self._items: list[float] = periods[Row.ITEMS, self._places].tolist()
        self._unblocked: list[float] = [0.0, *np.cumsum(periods[Row.UNBLOCKED]).tolist()]
        self.quantiles: list[float] = window_quantiles(self._counts, normalised=normalised).tolist()

    def behind(self, quantile: int) -> _Place:
        """Return the place behind the last count of a quantile."""
        used = quantile + WINDOW - self._before
        return _Place(int(self._places[used - 1]) + 1, used)

    def end(self) -> _Place:
        """Return the place behind the last period."""
        return _Place(int(self.periods.shape[1]), int(self._places.size))

    def since(self, sums: _Sums, start: _Place, stop: _Place) -> _Sums:
        """Return sums to which what lies between two places has been added."""
        return _Sums(
            sums.periods + stop.periods - start.periods,
            sums.unblocked + self._unblocked[stop.periods] - self._unblocked[start.periods],
            sums.used + stop.used - start.used,
            sums.items + sum(self._items[start.used : stop.used]),
        )

    def window(self, ended: _Place | None, stop: _Place) -> Floats:
        """Return the last counts, 15 at most, of the window that began at a place."""
        first = 0 if ended is None else self._before + ended.used
        return self._counts[first : self._before + stop.used][1 - WINDOW :]

    def kept(self, stop: _Place) -> Floats:
        """Return the periods that count up to a place."""
        return self.periods[:, self._places[: stop.used]]


class _Window(NamedTuple):
    """A window that has ended: with how many periods that count, and where, and what it came to."""

    stop: int
    settling: Settling | None
    seen: Floats
    began_s: float


class _Found:
    """A rate that has converged; it is put into words when somebody asks for it."""

    def __init__(self, in_words: Callable[[], ServiceRate]) -> None:
        self._in_words = in_words

    @cached_property
    def rate(self) -> ServiceRate:
        """The rate."""
        return self._in_words()


class NonBlocking:
    """The estimator of Beard & Chamberlain.

    Parameters
    ----------
    period_s, guards, servers, confidence
        As `ServiceRateEstimator` has them.
    """

    def __init__(
        self, *, period_s: float | None, guards: bool, servers: int, confidence: float
    ) -> None:
        self._period_s, self._guards = period_s, guards
        self._in_words = partial(
            quantile_rate, servers=servers, guards=guards, confidence=confidence
        )
        self._widening = guards and period_s is None
        self._found: deque[_Found] = deque(maxlen=_RATES)
        self._waiting = np.zeros((Row.COUNT, 0))
        self._number, self._sought = 0 if self._widening else 1, _SOUGHT
        self._since, self._final = 0.0, False
        self._tried = 0
        self._reason: RateReason | None = None
        self._began_s = 0.0
        self._kept = tallied(_EMPTY)
        self._loose: list[Floats] = []
        self._loosely = 0
        self._ended: list[_Window] = []
        self._restart()

    def add(self, periods: Floats) -> None:
        """Take more periods, the first rows of their tallies, shape (Row.COUNT, n)."""
        self._waiting = np.hstack([self._waiting, periods])
        while self._step():
            pass
        self._waiting = self._waiting.copy()  # a part would keep the whole

    def rates(self) -> list[ServiceRate]:
        """Return the rate of each convergence; last what has not converged, where it differs."""
        self._pool()
        copied = copy.copy(self)
        return copied._as_if_over()  # noqa: SLF001  # its own class

    def _as_if_over(self) -> list[ServiceRate]:
        """Return the rates as if no more periods came; what is changed is a copy's."""
        self._final = True
        self._found, self._loose, self._ended = self._found.copy(), [], []
        self.add(self._waiting[:, :0])
        self._pool()
        rates = [each.rate for each in self._found]
        current = self._current()
        if current is not None and (not rates or moved(rates[-1], current)):
            rates.append(current)
        return rates

    def _restart(self) -> None:
        """Forget the window, and what was learned from it."""
        self._window = np.zeros(0)
        self._settling = Settling()
        self._seen = np.zeros(Row.COUNT)
        self._sums = _Sums()

    def _step(self) -> bool:
        """Work off some of the periods that wait; tell whether there were enough."""
        if not self._number and not self._seek():
            return False
        number = self._number
        most = self._patience - self._tried if self._widening else _CHUNK
        whole = min(self._waiting.shape[1] // number, most)
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
        """Take periods, up to where others should be joined; return how many."""
        free = periods[Row.UNBLOCKED] > 0.0
        if self._period_s is not None and self._reason is None:
            free &= np.abs(periods[Row.WALL] / self._period_s - 1.0) <= _WIDTH
        chunk = _Chunk(periods, free, self._window, normalised=self._guards)
        ends = self._settle(chunk)
        stop = chunk.end() if self._number else ends[-1][0]
        ended = ends[-1][0] if ends else None
        self._window = chunk.window(ended, stop)
        self._account(chunk, ends, stop)
        self._sums = chunk.since(_Sums() if ended else self._sums, ended or _Place(), stop)
        self._tried = stop.periods - ended.periods if ended else self._tried + stop.periods
        if self._tried >= self._patience:
            self._tried = 0
            if self._widening and self._doubt(self._sums, self._settling) is not None:
                self._number = 0
        return stop.periods

    def _settle(self, chunk: _Chunk) -> list[tuple[_Place, Settling]]:
        """Return where a window ends in a chunk, and how its rate has settled."""
        ends = []
        sums, start, at = self._sums, 0, _Place()
        while self._number:
            self._settling, last = settle(
                self._settling, chunk.quantiles, relative=self._guards, start=start
            )
            if last is None:
                break
            stop = chunk.behind(last)
            if self._guards:
                sums, at = chunk.since(sums, at, stop), stop
                if self._doubt(sums, self._settling) is not None:
                    self._settling, start = self._settling._replace(steady=0), last + 1
                    continue
            ends.append((stop, self._settling))
            # The next window shares no count with this one.
            self._settling, start = Settling(), last + WINDOW
            self._turn(sums.periods)
            sums = _Sums()
        return ends

    def _turn(self, periods: float) -> None:
        """Ask for other periods to be joined once so many have passed as make that due."""
        self._since += periods * self._number
        if self._widening and self._since >= _SELDOM * self._sought:
            self._sought = max(_SOUGHT, _SOUGHT_EACH * self._number)
            self._number = 0

    @property
    def _patience(self) -> int:
        """Joined periods after which it is looked whether others would do better."""
        return _MOST_SOUGHT if self._reason is not None else _TRIED

    def _account(self, chunk: _Chunk, ends: list[tuple[_Place, Settling]], stop: _Place) -> None:
        """Add up each window that ends in a chunk, and the beginning of the next."""
        # Before the first period what went before; an empty one at the end, where no other may be.
        columns = self._seen[:, np.newaxis], chunk.periods[:, : stop.periods], _EMPTY
        starts = [0, *(place.periods + 1 for place, _ in ends)]
        seen = np.add.reduceat(np.hstack(columns), starts, axis=1)
        for number, (place, settling) in enumerate(ends):
            each = seen[:, number].copy()
            self._ended.append(_Window(self._loosely + place.used, settling, each, self._began_s))
            self._began_s += float(each[Row.WALL])
        self._seen = seen[:, -1].copy()
        self._loose.append(chunk.kept(stop))
        self._loosely += stop.used
        if self._loosely >= _CHUNK or len(self._loose) >= _CHUNK:
            self._pool()

    def _pool(self) -> None:
        """Pool the periods that count, of each window that has ended, and of the one under way.

        For many chunks at once: it takes as long as all the rest of a short one.
        """
        if not self._loose and not self._ended:
            return
        loose = observed(tallied(np.hstack([_EMPTY[:, :0], *self._loose])))
        starts = np.array([0, *(each.stop + 1 for each in self._ended)])
        kept = pooled(np.hstack([self._kept, loose, tallied(_EMPTY)]), starts)
        for number, each in enumerate(self._ended):
            if each.settling is not None and len(self._ended) - number <= _RATES:
                converged = partial(
                    self._in_words,
                    each.settling,
                    each.seen,
                    kept[:, number : number + 1].copy(),
                    began_s=each.began_s,
                    reason=None,
                )
                self._found.append(_Found(converged))
        self._kept, self._loosely = kept[:, -1:].copy(), 0
        self._loose, self._ended = [], []

    def _end(self) -> None:
        """End the window under way without a rate."""
        if self._sums.used:
            self._ended.append(_Window(self._loosely, None, self._seen, self._began_s))
        self._began_s += float(self._seen[Row.WALL])
        self._turn(float(self._seen[Row.PERIODS]))
        self._restart()

    def _doubt(self, sums: _Sums, settling: Settling) -> RateReason | None:
        """Say why what has settled is no rate to be relied on."""
        if self._reason is not None or not self._guards:
            return self._reason
        if not sums.unblocked:
            return RateReason.NO_NONBLOCKING
        if sums.unblocked < FEWEST_SHARE * sums.periods:
            return RateReason.FEW_NONBLOCKING
        if sums.used < FEWEST_SHARE * sums.unblocked:
            return RateReason.UNSTABLE_PERIOD
        if sums.items < FEWEST_ITEMS * sums.used:
            return RateReason.FEW_ITEMS
        return RateReason.APART if apart(settling, sums.items / sums.used) else None

    def _current(self) -> ServiceRate | None:
        """Return what is known of the window under way; None where nothing has been told."""
        if not self._seen[Row.PERIODS]:
            if not self._waiting.shape[1]:
                return None
            self._seen = self._waiting.sum(axis=1)
            periods, unblocked = self._seen[[Row.PERIODS, Row.UNBLOCKED]].tolist()
            self._sums = _Sums(periods=periods, unblocked=unblocked)
        return self._in_words(
            self._settling,
            self._seen,
            self._kept,
            began_s=self._began_s,
            reason=self._doubt(self._sums, self._settling) or RateReason.NOT_CONVERGED,
        )
