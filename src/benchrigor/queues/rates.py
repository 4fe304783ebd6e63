"""The service rate of a stage, estimated while it runs, and the sampling period to seek for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Notice
from benchrigor.model.checks import refuse, wrong_number, wrong_whole
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, as_series, short
from benchrigor.queues.busy_time import BusyTime
from benchrigor.queues.data import RateReason, ServiceRate
from benchrigor.queues.nonblocking import NonBlocking
from benchrigor.queues.periods import (
    BUSY_TIME,
    NOTHING,
    QUANTILE,
    Asked,
    table_of,
    wrong_asked,
)
from benchrigor.stats.series.interval import scale

Estimator: TypeAlias = BusyTime | NonBlocking

MOST_RATES = 1000  # rates that are kept, the newest ones
LARGEST = 1e100  # beyond it powers leave the range of a double

_HELD = 1024  # periods that are held back and worked off together
_ROUNDING = 1e-6  # relative excess of blocked time over the period that clocks may show
_SHORTEST_S = 1e-100
_CHUNK = 65_536
_NAMES = ("items", "period_s", "blocked_s", "blocked", "cpu_s", "delay_s")
_OPTIONAL = ("cpu_s", "delay_s")
_FLAGS = ("items", "blocked")  # may be True or False; for seconds these are mistakes


class ServiceRateEstimator:
    """Estimates how fast a stage could go if it never had to wait, period by period.

    Parameters
    ----------
    method
        "busy-time": items over the time in which the stage did not wait. "quantile", for series
        with only a blocked flag: the 0.95 quantile of counts of unblocked periods.
    period_s
        Sampling period wanted, in seconds; with "quantile" other periods do not count. None:
        all do, and "quantile" (with guards) joins them as long as they stay free of waiting.
    guards
        For "quantile". True: the weights of the filter sum to 1; the tolerance is relative; a
        period must hold 16 items, and a twentieth of the periods be free of waiting; the rate is
        the middle of the quantile, which errs high, and of the mean of unblocked periods, which
        errs low. False: as published.
    servers
        Threads or processes that serve side by side; blocked time is summed over them.
    target
        Relative half-width at which "busy-time" has converged.
    confidence
        Nominal coverage of the intervals, in (0, 1).

    Notes
    -----
    It does no I/O, and its memory does not grow: periods of a phase are pooled, and the last 1000
    phases are kept. Source of "quantile": Beard & Chamberlain, 'Run Time Approximation of
    Non-blocking Service Rates for Streaming Systems' (2015).

    Examples
    --------
    A stage that serves 500 items per second, and waits for a tenth of every period.

    >>> est = ServiceRateEstimator()
    >>> for number in range(100):
    ...     est.tell(45 + number % 2, 0.1, blocked_s=0.009)
    >>> rate = est.rates[-1]
    >>> rate.converged, round(rate.estimate.value)
    (True, 500)
    """

    def __init__(
        self,
        method: str = "busy-time",
        period_s: float | None = None,
        guards: bool = True,
        *,
        servers: int = 1,
        target: float = 0.05,
        confidence: float = 0.95,
    ) -> None:
        asked = Asked(
            method=method,
            servers=servers,
            target=target,
            confidence=confidence,
            guards=guards,
            period_s=period_s,
        )
        refuse(wrong_asked(asked))
        self.method, self.servers = method, int(servers)
        self._held: list[tuple[float, ...]] = []
        self._estimator = _new_estimator(replace(asked, servers=self.servers))

    @property
    def rates(self) -> list[ServiceRate]:
        """The rates so far, in order, the present one last; empty before the first period.

        "busy-time" has one for every phase, "quantile" one for every convergence. After them comes
        one that has not converged yet, if it is the only one or differs by a fifth.
        """
        self._flush()
        return self._estimator.rates()

    def tell(
        self,
        items: float,
        period_s: float,
        blocked_s: float = 0.0,
        blocked: bool = False,
        *,
        cpu_s: float | None = None,
        delay_s: float | None = None,
    ) -> None:
        """Add one period.

        Parameters
        ----------
        items
            Served, 0 or more.
        period_s
            Realised width of the period, in seconds, above 0.
        blocked_s
            How long the stage waited for input, or for room for its output, in seconds.
        blocked
            Whether it waited at all; with ``blocked_s`` 0 the time is unknown, and the period does
            not count.
        cpu_s, delay_s
            Processor time used, and time waited for a processor, in seconds; None or NaN if
            unknown.

        Raises
        ------
        InvalidInput
            For numbers that are not finite, negative, or too large for the period.
        """
        times = (time_s for time_s in (cpu_s, delay_s) if time_s is not None)
        usual = all(map(_is_usual, (items, period_s, blocked_s, *times))) and type(blocked) is bool
        if usual and period_s >= _SHORTEST_S and blocked_s <= period_s * self.servers:
            row = (items, period_s, blocked_s, blocked, cpu_s, delay_s)
            self._held.append(tuple(np.nan if value is None else value for value in row))
            if len(self._held) >= _HELD:
                self._flush()
        else:
            self._tell(None, items, period_s, blocked_s, blocked, cpu_s, delay_s)

    def tell_many(
        self,
        items: npt.ArrayLike,
        period_s: npt.ArrayLike,
        blocked_s: npt.ArrayLike = 0.0,
        blocked: npt.ArrayLike = False,
        *,
        cpu_s: npt.ArrayLike | None = None,
        delay_s: npt.ArrayLike | None = None,
    ) -> None:
        """Add many periods at once, with the same result as one by one.

        Parameters
        ----------
        items
            Shape (n,).
        period_s, blocked_s, blocked, cpu_s, delay_s
            As in `tell`: shape (n,), or one number for all. The last two may hold NaN.

        Raises
        ------
        InvalidInput
            Naming the index of the first number that is out of range.
        """
        served = as_series(items, name="items")  # once: it may be an iterator
        self._tell(served.size, served, period_s, blocked_s, blocked, cpu_s, delay_s)

    def _tell(self, size: int | None, *values: Any) -> None:
        """Check values, work off the periods that were held back, and then these."""
        rows = np.vstack([_column(*pair, size) for pair in zip(_NAMES, values, strict=True)])
        too_long = rows[2] > rows[1] * self.servers * (1.0 + _ROUNDING)
        if too_long.any():
            index = int(np.argmax(too_long))
            where = f"[{index}]" if rows.shape[1] > 1 else ""
            of = f" of {self.servers} servers" if self.servers > 1 else ""
            raise InvalidInput(
                f"blocked_s{where} is {rows[2, index]:.9g} in a period of {rows[1, index]:.9g} "
                f"s{of}, expected at most as much; where several serve side by side, say how many: "
                "servers="
            )
        self._flush()
        for start in range(0, rows.shape[1], _CHUNK):
            self._add_rows(rows[:, start : start + _CHUNK])

    def _flush(self) -> None:
        """Work off the periods that were held back."""
        if self._held:
            self._add_rows(np.array(self._held).T + 0.0)
            self._held.clear()

    def _add_rows(self, rows: Floats) -> None:
        items, period_s, blocked_s, blocked, cpu_s, delay_s = rows
        table = table_of(
            servers=self.servers,
            items=items,
            period_s=period_s,
            blocked_s=np.where((blocked > 0.0) & (blocked_s <= 0.0), np.nan, blocked_s),
            cpu_s=cpu_s,
            delay_s=delay_s,
        )
        self._estimator.add(table)


def estimator_of(asked: Asked) -> Estimator:
    """Return what takes tables of periods; as published, those of the width wanted count.

    With guards the quantile method joins periods itself, as the waiting of a stage allows.
    """
    as_published = asked.method == QUANTILE and not asked.guards
    return _new_estimator(asked if as_published else replace(asked, period_s=None))


def _new_estimator(asked: Asked) -> Estimator:
    return (BusyTime if asked.method == BUSY_TIME else NonBlocking)(asked, most=MOST_RATES)


def in_bytes(rate: ServiceRate, item_bytes: float | None) -> ServiceRate:
    """Add the rate in bytes per second, q̄ d / T (Beard & Chamberlain 2015, section IV-B)."""
    if rate.estimate is None or not item_bytes:
        return replace(rate, item_bytes=item_bytes)
    return replace(rate, item_bytes=item_bytes, byte_rate=scale(rate.estimate, item_bytes))


def _is_usual(value: Any) -> bool:
    """Whether it is a number that needs no conversion."""
    return (type(value) is float or type(value) is int) and 0.0 <= value < LARGEST


def _column(name: str, values: Any, size: int | None) -> Floats:
    """Return a column of numbers from 0 on, NaN if unknown; one number without a size."""
    least = _SHORTEST_S if name == "period_s" else 0.0
    expected = f"expected a number from {least:g} to {LARGEST:g}"
    if values is None and name in _OPTIONAL:
        values = np.nan
    is_flag = isinstance(values, bool | np.bool_)
    is_one = size is None or is_flag or isinstance(values, Real)
    if is_one:
        known = name in _FLAGS if is_flag else isinstance(values, Real)
        column = np.full(size or 1, float(min(values, LARGEST)) if known else -np.inf)
    else:
        column = as_series(values, name=name, gaps=name in _OPTIONAL)
        if column.size != size:
            numbers = f"{column.size} numbers for {size} items"
            raise InvalidInput(f"{name} holds {numbers}, expected as many")
    fits = (column >= (least or -NOTHING)) & (column < LARGEST)
    fits |= (name in _OPTIONAL) & np.isnan(column)
    if not fits.all():
        index = int(np.argmin(fits))
        what = f"{name} is {short(values)}" if is_one else f"{name}[{index}] is {column[index]}"
        raise InvalidInput(f"{what}, {expected}")
    positive: Floats = np.maximum(column, 0.0) + 0.0  # to avoid -0.0
    return positive


_START_S = 0.001
_MOST_COST = 0.01  # share of a processor that sampling may take
_TOLERANCE = 0.005  # relative deviation of a realised width from the one wanted
_IN_A_ROW = 5  # periods that must be kept to, and free of waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedPeriod(OneLine):
    """The result of a calibration.

    Parameters
    ----------
    period_s
        The sampling period, in seconds, or None.
    reason, notice
        Why no period was found.
    """

    period_s: float | None
    reason: RateReason | None = None
    notice: Notice | None = None


class PeriodCalibrator:
    """Finds the sampling period: `ask` how long to wait, sample, and `tell` the result.

    Parameters
    ----------
    longest_s, shortest_s
        The longest period, in seconds, and the first.
    tries
        Periods of one width until it is given up, 5 or more.
    unblocked
        Whether the stage must not wait. If it may, the first width that is kept to, and in which it
        waits, is wide enough.

    Raises
    ------
    InvalidInput
        Naming every option that makes no sense.

    Notes
    -----
    Widths double as long as the last five periods were kept to within 0.5 %, and free of waiting;
    the widest one wins (Beard & Chamberlain 2015, section IV-A). One of the five must hold an item.
    Widths also double if clocks and sleeping are too inexact for them, or if sampling takes more
    than 1 % of a processor.

    Examples
    --------
    A machine that sleeps 60 microseconds too long.

    >>> search = PeriodCalibrator(longest_s=0.05)
    >>> while (period_s := search.ask()) is not None:
    ...     search.tell(period_s + 60e-6, blocked=period_s > 0.02, items=40)
    >>> search.result.period_s
    0.016
    """

    def __init__(
        self,
        *,
        longest_s: float = 1.0,
        tries: int = 200,
        unblocked: bool = True,
        shortest_s: float = _START_S,
    ) -> None:
        width, number = wrong_number("longest_s", longest_s), wrong_whole("tries", tries)
        width += wrong_number("shortest_s", shortest_s)
        if not width and longest_s < shortest_s:
            width.append(f"longest_s is {longest_s}, expected {shortest_s:g} at least")
        if not number and tries < _IN_A_ROW:
            number.append(f"tries is {tries}, expected {_IN_A_ROW} at least")
        refuse(width, number)
        self._period_s, self._longest_s = shortest_s, longest_s
        self._tries, self._unblocked = tries, unblocked
        self._widest_s: float | None = None
        self._result: CalibratedPeriod | None = None
        self._begin_width()

    @property
    def result(self) -> CalibratedPeriod | None:
        """The result; None while the search goes on."""
        return self._result

    def ask(self) -> float | None:
        """Return the period to sample next, in seconds; None when finished."""
        return self._period_s if self._result is None else None

    def tell(
        self, realised_s: float, blocked: bool = False, items: float = 0, *, cost_s: float = 0.0
    ) -> None:
        """Take the realised width, in seconds, the waiting and the items of the period.

        ``cost_s`` is the processor time that sampling it took.

        Raises
        ------
        InvalidInput
            When the width is not a finite number above 0, or ``items`` not one from 0 on.
        """
        refuse(wrong_number("realised_s", realised_s), wrong_number("items", items, zero=True))
        if self._result is not None:
            return
        deviation = abs(realised_s - self._period_s)
        kept = max(deviation / _TOLERANCE, cost_s / _MOST_COST) <= self._period_s
        self._kept.append(kept)
        self._free.append(kept and not blocked)
        self._items.append(items)
        kept_now, free_now = (_in_a_row(flags[-_IN_A_ROW:]) for flags in (self._kept, self._free))
        if free_now and any(self._items):
            self._widest_s = self._period_s
            self._widen(enough=False)
        elif not self._unblocked and kept_now and not free_now:
            self._widest_s = self._period_s
            self._widen(enough=True)
        elif len(self._kept) >= self._tries:
            # Wider periods wait more, but hold more items, and are kept to more exactly.
            waits = self._reason() is RateReason.NO_NONBLOCKING
            self._widen(enough=waits or self._widest_s is not None)

    def _begin_width(self) -> None:
        # Whether periods of this width were kept to, and also free of waiting.
        self._kept, self._free = list[bool](), list[bool]()
        self._items: deque[float] = deque(maxlen=_IN_A_ROW)

    def _widen(self, *, enough: bool) -> None:
        """Go on with twice the width, or end."""
        if not enough and self._period_s < self._longest_s:
            self._period_s = min(2.0 * self._period_s, self._longest_s)
            self._begin_width()
        elif self._widest_s is not None:
            self._result = CalibratedPeriod(period_s=self._widest_s)
        else:
            limits = {"longest_s": self._longest_s, "epsilon": _TOLERANCE, "k": _IN_A_ROW}
            figures = {"period_s": self._period_s, **limits}
            reason = self._reason()
            notice = Notice.of(Code.NOT_CONVERGED, str(reason), **figures)
            self._result = CalibratedPeriod(period_s=None, reason=reason, notice=notice)

    def _reason(self) -> RateReason:
        """Return why this width will not do."""
        if _in_a_row(self._free):
            return RateReason.NO_ITEMS
        if _in_a_row(self._kept):
            return RateReason.NO_NONBLOCKING
        return RateReason.UNSTABLE_PERIOD


def _in_a_row(flags: Iterable[bool]) -> bool:
    """Whether enough of them are set one after the other."""
    return any(is_set and len([*run]) >= _IN_A_ROW for is_set, run in groupby(flags))
