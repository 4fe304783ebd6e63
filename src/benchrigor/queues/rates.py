"""The service rate of a stage, learned while it runs: the estimator that everything else feeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Floats, ServiceRate, as_series
from benchrigor.model.series import short
from benchrigor.queues.busy_time import BusyTime
from benchrigor.queues.nonblocking import NonBlocking
from benchrigor.stats.series.interval import check_confidence
from benchrigor.stats.service.moments import Row

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
_FLAGS = ("items", "blocked")
"""May be True or False; who gives that for seconds means something else."""
_BETWEEN = f"({_SHORTEST_S:g} to {_LARGEST:g})"
_EXPECTED = {
    "period_s": f"seconds above 0 {_BETWEEN}",
    "target": f"a relative half-width above 0 {_BETWEEN}",
}
_ANY = f"a number from 0 to {_LARGEST:g}"


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
                servers=self.servers,
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
            Processor time that the stage used, in seconds; None or NaN where it is not known.
        delay_s
            How long it waited for a processor although it could have run, in seconds; None or NaN
            where it is not known.

        Raises
        ------
        InvalidInput
            For numbers that are not finite, negative, or too large for the period.
        """
        values = (items, period_s, blocked_s, blocked, cpu_s, delay_s)
        row = tuple(map(_number, _NAMES, values))
        if row[1] < _SHORTEST_S:
            raise InvalidInput(_misfit("period_s", period_s))
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
            As in `tell`: shape (n,), or one number for all. The last two may hold NaN, for what
            is not known.

        Raises
        ------
        InvalidInput
            Naming the index of the first number that cannot be worked with.
        """
        served = as_series(items, name="items")  # once: what is iterated over is then used up
        size = served.size
        values = (served, period_s, blocked_s, blocked, cpu_s, delay_s)
        rows = np.vstack([_column(*each, size) for each in zip(_NAMES, values, strict=True)])
        index = _first(rows[1] < _SHORTEST_S)
        if index is not None:
            raise InvalidInput(_misfit("period_s", float(rows[1, index]), f"[{index}]"))
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
        items, wall_s, blocked_s, blocked, *_ = rows
        # What is not known adds nothing, and neither does what stands beside it.
        has_cpu, has_delay = np.isfinite(rows[4:])
        cpu_s, delay_s = np.where(np.isfinite(rows[4:]), rows[4:], 0.0)
        timed = blocked_s > _NOTHING
        known = (blocked <= 0.0) | (blocked_s > 0.0)
        waited = timed | ~known
        periods = np.empty((Row.COUNT, items.size))
        periods[Row.ITEMS] = items * known
        busy_s = np.maximum(self.servers * wall_s - np.where(timed, blocked_s, 0.0), 0.0)
        # Who is woken waits for a processor as well, but that is part of the blocked time.
        room_s = np.maximum(busy_s - cpu_s, 0.0)
        periods[Row.BUSY] = busy_s * known
        periods[Row.WALL] = wall_s
        periods[Row.PERIODS] = 1.0
        periods[Row.UNBLOCKED] = ~waited
        periods[Row.USED] = known
        periods[Row.CPU] = cpu_s * known
        periods[Row.CPU_ITEMS] = periods[Row.ITEMS] * has_cpu
        periods[Row.DELAY] = np.minimum(delay_s, room_s) * known
        periods[Row.DELAY_BUSY] = periods[Row.BUSY] * has_delay
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
    problems = []
    if method not in METHODS:
        known = " or ".join(map(repr, METHODS))
        problems.append(f"method is {short(method)}, expected {known}")
    if period_s is not None:
        problems += _no_size("period_s", period_s)
    if not isinstance(guards, bool):
        problems.append(f"guards is {short(guards)}, expected True or False")
    if isinstance(servers, bool) or not isinstance(servers, Integral) or servers < 1:
        problems.append(f"servers is {short(servers)}, expected a whole number from 1 on")
    problems += _no_size("target", target)
    try:
        check_confidence(confidence)
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(problems)


def _no_size(name: str, value: Any) -> list[str]:
    """Say that an option is no number above 0; nothing where it is one."""
    try:
        fits = _number(name, value) >= _SHORTEST_S
    except InvalidInput:
        fits = False
    return [] if fits else [_misfit(name, value)]


def _number(name: str, value: Any) -> float:
    """Return a number from 0 on; NaN for what is not known."""
    if type(value) is float or type(value) is int:  # five times as fast as asking what is Real
        if 0.0 <= value < _LARGEST:
            return value + 0.0  # so that there is no -0.0
    elif value is None and name in _OPTIONAL:
        return math.nan
    known = isinstance(value, Real | np.bool_)
    if isinstance(value, bool | np.bool_) and name not in _FLAGS:
        known = False
    if known and name in _OPTIONAL and value != value:  # noqa: PLR0124  # NaN of any type
        return math.nan
    if not known or not bool(value >= -_NOTHING) or not bool(value < _LARGEST):
        raise InvalidInput(_misfit(name, value))
    return max(float(value), 0.0) + 0.0


def _column(name: str, values: Any, size: int) -> Floats:
    """Return a column of numbers from 0 on; NaN for what is not known."""
    if values is None or isinstance(values, Real | np.bool_):
        return np.full(size, _number(name, values))
    column = _with_gaps(name, values) if name in _OPTIONAL else as_series(values, name=name)
    if column.size != size:
        raise InvalidInput(f"{name} holds {column.size} numbers for {size} items, expected as many")
    index = _first((column < -_NOTHING) | (column >= _LARGEST))
    if index is not None:
        raise InvalidInput(_misfit(name, float(column[index]), f"[{index}]"))
    return np.maximum(column, 0.0) + 0.0  # so that there is no -0.0


def _with_gaps(name: str, values: Any) -> Floats:
    """Return numbers as `as_series` does, but NaN for those that are not known."""
    plain = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    if plain and not hasattr(values, "__array__"):
        values = list(values)
        gaps = np.array([isinstance(each, Real) and each != each for each in values])  # noqa: PLR0124  # NaN
        filled: Any = [0.0 if gap else each for each, gap in zip(values, gaps, strict=True)]
    else:
        filled = np.asarray(values)
        gaps = np.isnan(filled) if filled.dtype.kind == "f" else np.zeros(filled.shape, dtype=bool)
        filled = np.where(gaps, 0.0, filled) if gaps.any() else values
    column = as_series(filled, name=name)
    return np.where(gaps, np.nan, column) if gaps.any() else column


def _misfit(name: str, value: object, where: str = "") -> str:
    """Say what was found, and what was expected."""
    return f"{name}{where} is {short(value)}, expected {_EXPECTED.get(name, _ANY)}"


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
