"""The estimator of service rates that programs tell of periods: what it takes, and which method."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse
from benchrigor.model.series import Floats, as_series, short
from benchrigor.queues.busy_time import BusyTime
from benchrigor.queues.data import ServiceRate
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
        self._held: list[tuple[float, ...]] = []
        self._estimator = _new_estimator(asked)
        self.method, self.servers = method, int(servers)

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
    refuse(wrong_asked(asked))
    asked = replace(asked, servers=int(asked.servers))
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
