"""The service rate of a stage, learned while it runs: the estimator that everything else feeds."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Floats, ServiceRate, as_series
from benchrigor.model.series import short
from benchrigor.queues.busy_time import BusyTime
from benchrigor.queues.nonblocking import NonBlocking
from benchrigor.stats.intervals import check_confidence
from benchrigor.stats.tallies import Row

__all__ = ["METHODS", "ServiceRateEstimator"]

METHODS = ("busy-time", "quantile")

_HELD = 1024
"""Periods that are kept back and worked off together."""
_ROUNDING = 1e-6
"""Relative excess of blocked time over the period that clocks may show."""
_NOTHING = 1e-9
"""What is less is the rounding of differences, and counts as 0: no clock sees less."""

_LARGEST, _SHORTEST_S = 1e100, 1e-100
"""Beyond them powers leave the range of a double."""
_CHUNK = 65_536
_NAMES = ("items", "period_s", "blocked_s", "blocked", "cpu_s", "delay_s")
_OPTIONAL = ("cpu_s", "delay_s")


class ServiceRateEstimator:
    """Tells how fast a stage could go if it never had to wait; told period by period.

    Parameters
    ----------
    method
        "busy-time", the default: items over the time in which the stage did not wait. Or
        "quantile", the published one, for series that hold no more than a blocked flag: the 0.95
        quantile of counts of unblocked periods.
    period_s
        Sampling period wanted, in seconds; with "quantile" other periods do not count. None:
        periods are taken as they come, and joined by "quantile" (with guards) as long as they stay
        free of waiting.
    guards
        For "quantile". True: the filter's weights sum up to 1; the tolerance is relative; a period
        must hold 16 items, and a twentieth of the periods be free of waiting; and the rate is the
        middle between the quantile, which errs high, and the mean of unblocked periods, which errs
        low. False: as published.
    servers
        Threads or processes that serve side by side; blocked time is the sum of theirs.
    target
        Relative half-width at which "busy-time" has converged.
    confidence
        Nominal coverage of the intervals, in (0, 1).

    Notes
    -----
    It does no I/O, and its memory does not grow: stretches of a phase are pooled, of phases the
    last 1000 are kept. Source of "quantile": Beard & Chamberlain, 'Run Time Approximation of
    Non-blocking Service Rates for Streaming Systems' (2015).

    Examples
    --------
    A stage that serves 500 items per second, and waits for a tenth of each period.

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
        _check_options(
            method=method,
            period_s=period_s,
            guards=guards,
            servers=servers,
            target=target,
            confidence=confidence,
        )
        self.method, self.servers = method, int(servers)
        self._held: list[tuple[float, ...]] = []
        self._estimator: BusyTime | NonBlocking = (
            BusyTime(servers=self.servers, target=target, confidence=confidence)
            if method == "busy-time"
            else NonBlocking(
                period_s=None if period_s is None else float(period_s),
                guards=guards,
                confidence=confidence,
            )
        )

    @property
    def rates(self) -> list[ServiceRate]:
        """What has been found so far, in order; the last one speaks of now.

        With "busy-time" one rate per phase. With "quantile" one per convergence, and behind them
        what has not converged yet if there is nothing else, or if it differs by a fifth. Empty
        before the first period.
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
        """Tell what happened in one period.

        Parameters
        ----------
        items
            Served, 0 or more.
        period_s
            Realised width of the period, in seconds, above 0.
        blocked_s
            How long the stage waited for input, or for room for its output, in seconds.
        blocked
            Whether it waited at all; with ``blocked_s`` 0 for a time that is not known, so that the
            period does not count.
        cpu_s
            Processor time that the stage used, in seconds; None where it is not known.
        delay_s
            How long it waited for a processor although it could have run, in seconds.

        Raises
        ------
        InvalidInput
            For numbers that are not finite, negative, or too large for the period.
        """
        values = (items, period_s, blocked_s, blocked, cpu_s, delay_s)
        row = tuple(map(_number, _NAMES, values))
        if row[1] < _SHORTEST_S:
            raise InvalidInput(f"period_s is {short(period_s)}, expected seconds above 0")
        if not _fits(row[2], row[1], self.servers):
            raise InvalidInput(_too_long(row[2], row[1], self.servers))
        self._held.append(row)
        if len(self._held) >= _HELD:
            self._flush()

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
        """Tell of many periods at once; the same as telling them one by one.

        Parameters
        ----------
        items
            Shape (n,).
        period_s, blocked_s, blocked, cpu_s, delay_s
            As in `tell`: shape (n,), or one number for all.

        Raises
        ------
        InvalidInput
            Naming the index of the first number that cannot be worked with.
        """
        values = (items, period_s, blocked_s, blocked, cpu_s, delay_s)
        size = as_series(items, name="items").size
        rows = np.vstack([_column(*each, size) for each in zip(_NAMES, values, strict=True)])
        index = _first(rows[1] < _SHORTEST_S)
        if index is not None:
            raise InvalidInput(f"period_s[{index}] is {rows[1, index]}, expected seconds above 0")
        index = _first(~_fits(rows[2], rows[1], self.servers))
        if index is not None:
            found = rows[2, index], rows[1, index]
            raise InvalidInput(_too_long(*found, self.servers, f"[{index}]"))
        self._flush()
        for start in range(0, size, _CHUNK):
            self._add(rows[:, start : start + _CHUNK])

    def _flush(self) -> None:
        """Work off the periods that were held back."""
        if self._held:
            self._add(np.array(self._held).T)
            self._held.clear()

    def _add(self, rows: Floats) -> None:
        """Hand the periods on, as what they came to."""
        items, wall_s, blocked_s, blocked, cpu_s, delay_s = rows
        timed = blocked_s > _NOTHING
        known = (blocked <= 0.0) | (blocked_s > 0.0)
        waited = timed | ~known
        periods = np.empty((Row.COUNT, items.size))
        periods[Row.ITEMS] = items * known
        busy_s = np.maximum(self.servers * wall_s - np.where(timed, blocked_s, 0.0), 0.0)
        # Who is woken waits for a processor as well, but that is part of the blocked time.
        room_s = np.maximum(busy_s - np.nan_to_num(cpu_s), 0.0)
        periods[Row.BUSY] = busy_s * known
        periods[Row.WALL] = wall_s
        periods[Row.PERIODS] = 1.0
        periods[Row.UNBLOCKED] = ~waited
        periods[Row.USED] = known
        periods[Row.CPU] = cpu_s * known
        periods[Row.DELAY] = np.minimum(delay_s, room_s) * known
        self._estimator.add(periods)


def _check_options(
    *,
    method: str,
    period_s: float | None,
    guards: object,
    servers: int,
    target: float,
    confidence: float,
) -> None:
    if method not in METHODS:
        raise InvalidInput(f"method is {short(method)}, expected {' or '.join(map(repr, METHODS))}")
    if period_s is not None and not _number("period_s", period_s) > 0.0:
        raise InvalidInput(f"period_s is {period_s!r}, expected seconds above 0")
    if not isinstance(guards, bool):
        raise InvalidInput(f"guards is {short(guards)}, expected True or False")
    if isinstance(servers, bool) or not isinstance(servers, Integral) or servers < 1:
        raise InvalidInput(f"servers is {short(servers)}, expected a whole number from 1 on")
    if not _number("target", target) > 0.0:
        raise InvalidInput(f"target is {target!r}, expected a relative half-width above 0")
    check_confidence(confidence)


def _number(name: str, value: Any) -> float:
    """Return a number from 0 on; NaN for what is not known."""
    if type(value) is float or type(value) is int:  # five times as fast as asking what is Real
        if 0.0 <= value < _LARGEST:
            return value
    elif value is None and name in _OPTIONAL:
        return math.nan
    known = isinstance(value, Real | np.bool_)
    if not known or not bool(value >= -_NOTHING) or not bool(value < _LARGEST):
        raise InvalidInput(f"{name} is {short(value)}, expected a number from 0 to {_LARGEST:g}")
    return max(float(value), 0.0)


def _column(name: str, values: Any, size: int) -> Floats:
    """Return a column of numbers from 0 on; NaN for what is not known."""
    if values is None or isinstance(values, Real | np.bool_):
        return np.full(size, _number(name, values))
    column = as_series(values, name=name)
    if column.size != size:
        raise InvalidInput(f"{name} holds {column.size} numbers for {size} items, expected as many")
    index = _first(column < -_NOTHING)
    if index is not None:
        raise InvalidInput(f"{name}[{index}] is {column[index]}, expected a number from 0 on")
    return np.maximum(column, 0.0)


def _fits(blocked_s: Any, period_s: Any, servers: int) -> Any:
    """Tell whether so much waiting has room in a period."""
    return blocked_s <= period_s * servers * (1.0 + _ROUNDING)


def _first(flags: npt.NDArray[np.bool_]) -> int | None:
    """Return the first index of a flag that is set."""
    return int(np.argmax(flags)) if flags.any() else None


def _too_long(blocked_s: float, period_s: float, servers: int, where: str = "") -> str:
    of = f" of {servers} servers" if servers > 1 else ""
    return (
        f"blocked_s{where} is {blocked_s:.9g} in a period of {period_s:.9g} s{of}, expected at "
        "most as much; where several serve side by side, say how many: servers="
    )
