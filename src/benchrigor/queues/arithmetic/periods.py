"""Successive periods of a stage: one table, from the sampler to estimators, files and pictures.

A table is a structured array with a row for every period, or for every stretch of several. NaN is
what is not known. Its fields add up, but for beginnings and servers.

Estimators go on with batches of periods, and moments that combine. A block of batches is a matrix,
shape (rows, n): `Row` names the rows, and a column is a batch of successive periods. Pooling
adjacent batches keeps all that is needed later, so a stream of any length fits into a bounded
number of columns.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.series import Floats
from benchrigor.queues.data import RateReason, ServiceMoments, ServiceProcess, ServiceRate

NOTHING = 1e-9  # seconds below which a time is the rounding of a difference, and counts as 0

_FIELDS = {  # and their values where nobody gives any
    "start_s": 0.0,  # since watching began
    "period_s": np.nan,  # the realised width
    "servers": 1.0,  # threads or processes that serve side by side
    "items": np.nan,
    "blocked_s": 0.0,  # time that all servers together waited
    "cpu_s": np.nan,
    "delay_s": np.nan,  # time that the stage waited for a processor
    "bytes": np.nan,
    "given": np.nan,  # items written, of a stage that reads and writes
    "whole": True,  # whether the same threads served all the time
}
# Of periods whose time of waiting is known, else 0: their items, and the time that was no waiting.
_DERIVED = ("served", "busy_s")

PeriodTable: TypeAlias = npt.NDArray[np.void]


def table_of(*, arrived: Any = (), **columns: Any) -> PeriodTable:
    """Return a table of its columns, shape (n,), or one number for all.

    ``arrived`` are the items that entered the queues which the stage reads, shape (queues, n).
    """
    fields: list[Any] = [(name, np.float64) for name in (*_FIELDS, *_DERIVED)]
    fields.append(("arrived", np.float64, (len(arrived),)))
    table = np.empty(np.size(columns["items"]), dtype=fields)
    for name, value in _FIELDS.items():
        table[name] = columns.get(name, value)
    is_known = ~np.isnan(table["blocked_s"])
    table["served"] = np.where(is_known, table["items"], 0.0)
    waited_s = np.where(table["blocked_s"] > NOTHING, table["blocked_s"], 0.0)
    busy_s = np.maximum(table["servers"] * table["period_s"] - waited_s, 0.0)
    table["busy_s"] = np.where(is_known, busy_s, 0.0)
    for queue, items in enumerate(arrived):
        table["arrived"][:, queue] = items
    return table


def join(table: PeriodTable, starts: Any) -> PeriodTable:
    """Join groups of successive rows, which begin at given ones, ascending from 0."""
    fields = table.dtype.itemsize // table["start_s"].itemsize
    numbers = table.view(np.float64).reshape(table.size, fields)
    joined: PeriodTable = np.add.reduceat(numbers, starts, axis=0).view(table.dtype).ravel()
    for name in ("start_s", "servers"):
        joined[name] = table[name][starts]
    return joined


def item_bytes_of(table: PeriodTable) -> float | None:
    """Return the mean bytes of an item; None if they were not counted, or no item passed."""
    items, size = (float(table[name].sum()) for name in ("items", "bytes"))
    return size / items if items > 0.0 and 0.0 < size < math.inf else None  # unknown is not greater


class PooledPeriods:
    """Stretches of equally many periods; when they are too many, neighbours are joined.

    Parameters
    ----------
    empty
        A table without rows, of the queues that periods have.
    """

    def __init__(self, empty: PeriodTable, *, most: int = 256) -> None:
        self._most, self._size, self._taken = most, 1, 0
        self.full = empty  # the stretches that are full
        self._open = empty

    def add(self, periods: PeriodTable) -> None:
        """Add successive periods."""
        while periods.size:
            room = (self._most - self.full.size) * self._size - self._taken
            self._fill(periods[:room])
            periods = periods[room:]

    def all(self) -> PeriodTable:
        """Return all stretches, including the one that is not full yet."""
        return np.concatenate([self.full, self._open])

    def _fill(self, periods: PeriodTable) -> None:
        """Add periods, no more than there is room for."""
        together = np.concatenate([self._open, periods])
        starts = np.arange(self._open.size - self._taken, together.size, self._size)
        sums = join(together, np.maximum(starts, 0))
        number, self._taken = divmod(self._taken + periods.size, self._size)
        self.full, self._open = np.concatenate([self.full, sums[:number]]), sums[number:]
        if self.full.size == self._most:
            self.full = join(self.full, np.arange(0, self._most, 2))
            self._size *= 2


# Variance of a count since the borders of its batch fall uniformly between two items.
BORDERS = 1.0 / 6.0
RIPE = 64.0  # items of a batch whose count reveals the variance, and the tail, of service times

FEWEST_COUNTS = 30  # observations that moments need
_DETERMINISTIC = 0.1  # squared coefficient of variation below which service is deterministic
# Service is exponential if it is within 15 %, or two standard errors, of 1.
_EXPONENTIAL, _ERRORS = 0.15, 2.0
_WAIT_S = 0.004


class Row(enum.IntEnum):
    """Rows of a block; those before ``COUNT`` are sums over periods, the last seven are moments.

    Processor time and delay are sums over the periods in which they are known; ``CPU_ITEMS`` and
    ``DELAY_BUSY`` are the items and the busy time of the same periods. ``COUNT`` is the number of
    observations (items, busy time); the rows after it are their central moments, as sums.
    """

    ITEMS = 0
    BUSY = 1
    WALL = 2
    PERIODS = 3
    UNBLOCKED = 4
    USED = 5
    CPU = 6
    CPU_ITEMS = 7
    DELAY = 8
    DELAY_BUSY = 9
    COUNT = 10
    ITEMS_2 = 11
    ITEMS_BUSY = 12
    BUSY_2 = 13
    ITEMS_3 = 14
    ITEMS_2_BUSY = 15
    ITEMS_BUSY_2 = 16
    BUSY_3 = 17


_PAIR = slice(Row.ITEMS, Row.BUSY + 1)


def sums_of(table: PeriodTable) -> Floats:
    """Return what adds up of periods, shape (Row.COUNT, n)."""
    known = ~np.isnan(table["blocked_s"])
    # An unknown time adds 0, and so do the items and the busy time of its period.
    has_cpu, has_delay = known & ~np.isnan(table["cpu_s"]), known & ~np.isnan(table["delay_s"])
    served, busy_s = table["served"], table["busy_s"]
    periods = np.empty((Row.COUNT, table.size))
    periods[Row.ITEMS] = served
    periods[Row.BUSY] = busy_s
    periods[Row.WALL] = table["period_s"]
    periods[Row.PERIODS] = 1.0
    periods[Row.UNBLOCKED] = table["blocked_s"] <= NOTHING
    periods[Row.USED] = known
    periods[Row.CPU] = np.where(has_cpu, table["cpu_s"], 0.0)
    periods[Row.CPU_ITEMS] = served * has_cpu
    # A thread that is woken waits for a processor too, but within the blocked time.
    room_s = np.maximum(busy_s - periods[Row.CPU], 0.0)
    periods[Row.DELAY] = np.where(has_delay, np.minimum(table["delay_s"], room_s), 0.0)
    periods[Row.DELAY_BUSY] = busy_s * has_delay
    return periods


def batches_of(columns: npt.ArrayLike) -> Floats:
    """Return batches of single periods from their first rows, shape (Row.COUNT, n)."""
    sums = np.asarray(columns, dtype=np.float64)
    return np.vstack([sums, np.zeros((len(Row) - Row.COUNT, sums.shape[1]))])


def as_observations(batches: Floats) -> Floats:
    """Return the batches, every one as a single observation of items and busy time."""
    found = batches.copy()
    found[Row.COUNT] = batches[Row.USED] > 0.0
    found[Row.ITEMS_2 :] = 0.0
    return found


def pool(batches: Floats, starts: npt.NDArray[np.int64]) -> Floats:
    """Pool adjacent batches; ``starts`` are the first ones of the groups, ascending from 0.

    With the number n_i of observations of a batch, and the distance d_i of their mean from the
    group's: M2 = sum M2_i + n_i d_i^2 and M3 = sum M3_i + 3 d_i M2_i + n_i d_i^3, and similarly for
    products (Pébay 2008, the pairwise formulas summed over a group).
    """
    sums: Floats = np.add.reduceat(batches, starts, axis=1)
    sizes = np.concatenate([starts[1:], [batches.shape[1]]]) - starts
    n = batches[Row.COUNT]
    means, centres = (_share(block[_PAIR], block[Row.COUNT]) for block in (batches, sums))
    c, b = means - np.repeat(centres, sizes, axis=1)
    cc, cb, bb = batches[Row.ITEMS_2 : Row.ITEMS_3]
    added = [
        n * c * c,
        n * c * b,
        n * b * b,
        c * (3.0 * cc + n * c * c),
        2.0 * c * cb + b * (cc + n * c * c),
        2.0 * b * cb + c * (bb + n * b * b),
        b * (3.0 * bb + n * b * b),
    ]
    sums[Row.ITEMS_2 :] += np.add.reduceat(np.vstack(added), starts, axis=1)
    return sums


def rates_of(batches: Floats) -> Floats:
    """Return items per busy second, batch by batch; 0 if it was never busy."""
    return _share(batches[Row.ITEMS], batches[Row.BUSY])


def _share(parts: Floats, wholes: Floats) -> Floats:
    found: Floats = np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0.0)
    return found


def ripen(batches: Floats, *, items: float = 16.0) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Pool adjacent batches until they hold ``items`` on average; return them and their starts."""
    size = batches.shape[1]
    served = float(batches[Row.ITEMS].sum())
    group = 1
    while group < size and served * group < items * size:
        group *= 2
    # A remainder at the end joins the last group.
    starts = np.arange(0, max(size - group, 0) + 1, group, dtype=np.int64)
    if group == 1:
        return batches, starts
    return as_observations(pool(batches, starts)), starts


def service_moments(batches: Floats) -> ServiceMoments | None:
    """Return the moments of the service time from how counts vary with busy time.

    None with fewer than 30 observations, or without any item. Batches must have `ripen`.

    Counts of a renewal process over a long busy time t have the cumulants t a, t b, t c with
    a = 1/m, b = s^2/m^3, c = 3 s^4/m^5 - k/m^4, for service times of mean m, variance s^2 and third
    central moment k (Cox 1962, Renewal Theory, chapter 4). When a period ends depends on the
    services in it, since the queue may run empty. So b and c come from Wald's identity
    E exp(x N - K(x) t) = 1 to third order; it holds for any end of a period. With the residual
    e = N - a t, b = E e^2 / E t and c = (E e^3 - 3 b E e t) / E t.

    >>> rng = np.random.default_rng(1)
    >>> periods = np.zeros((Row.COUNT, 5000))
    >>> periods[Row.ITEMS], periods[Row.BUSY] = rng.poisson(100.0, 5000), 0.1
    >>> periods[Row.USED] = 1.0
    >>> moments = service_moments(as_observations(batches_of(periods)))
    >>> str(moments.process), round(moments.mean_s * 1e3, 2)
    ('exponential', 1.0)
    """
    whole = batches[:, 0]
    if batches.shape[1] > 1:
        whole = pool(batches, np.zeros(1, dtype=np.int64))[:, 0]
    count, items, busy = (float(whole[row]) for row in (Row.COUNT, Row.ITEMS, Row.BUSY))
    if count < FEWEST_COUNTS or items <= 0.0:
        return None
    rate, mean_s = items / busy, busy / items
    _, cb, bb, ccc, ccb, cbb, bbb = whole[Row.ITEMS_2 :].tolist()
    spread = dispersion(whole)
    skew = ccc - 3.0 * rate * ccb + 3.0 * rate**2 * cbb - rate**3 * bbb
    skew = (skew - 3.0 * spread * (cb - rate * bb)) / busy
    variance_s2 = spread * mean_s**3
    return ServiceMoments(
        n=int(count),
        mean_s=mean_s,
        variance_s2=variance_s2,
        third_s3=3.0 * variance_s2**2 / mean_s - skew * mean_s**4,
        process=_resembling(spread * mean_s, count),
    )


def dispersion(batch: Floats) -> float:
    """Return the variance of items per busy second, of one batch, shape (rows,)."""
    busy, count = float(batch[Row.BUSY]), float(batch[Row.COUNT])
    rate = float(batch[Row.ITEMS]) / busy
    cc, cb, bb = map(float, batch[Row.ITEMS_2 : Row.ITEMS_3])
    residuals = max(0.0, cc - 2.0 * rate * cb + rate**2 * bb)
    return residuals / busy * count / max(count - 1.0, 1.0)


def share_of_waits(moments: ServiceMoments, delay_share: float) -> float:
    """Return the share of the variance of service times that waits for a processor may explain.

    Work that is interrupted at random for w at a time, during a share d of a mean of m, varies as a
    compound Poisson process does: w d / m is the squared coefficient of variation. With w = 4 ms,
    as long as schedulers commonly let a neighbour run, constant work of 1 ms that waits 20% of its
    time has 0.64 (simulated: 0.64).
    """
    return _WAIT_S * delay_share / moments.mean_s / max(moments.variation, _DETERMINISTIC)


def _resembling(variation: float, count: float) -> ServiceProcess:
    """Name the process of a squared coefficient of variation."""
    # The variance of that many counts has a relative standard error of sqrt(2 / n).
    reach = max(_EXPONENTIAL, _ERRORS * math.sqrt(2.0 / count))
    if variation < _DETERMINISTIC:
        return ServiceProcess.DETERMINISTIC
    return ServiceProcess.EXPONENTIAL if abs(variation - 1.0) < reach else ServiceProcess.OTHER


METHODS = BUSY_TIME, QUANTILE = "busy-time", "quantile"

# Share of its busy time that a stage may wait for a processor before its rate is doubtful.
DISTURBED = 0.05
# Relative change, and standard errors, by which a rate that has not converged is another one.
_MOVED, _BEYOND = 0.2, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an estimator is asked for; see `ServiceRateEstimator`."""

    method: str = BUSY_TIME
    period_s: float | None = 0.05  # sampling period wanted, in seconds; None to find one out
    guards: bool = True
    servers: int = 1
    target: float = 0.05
    confidence: float = 0.95


def has_moved(former: ServiceRate, latter: ServiceRate) -> bool:
    """Return whether a rate differs from a former one by a fifth, and by three standard errors."""
    if former.estimate is None or latter.estimate is None:
        return False
    gap = abs(latter.estimate.value - former.estimate.value)
    errors = math.hypot(former.estimate.half_width, latter.estimate.half_width) / 2.0
    return gap > max(_MOVED * former.estimate.value, _BEYOND * errors)


def service_rate(
    seen: Floats,
    kept: Floats,
    *,
    asked: Asked,
    began_s: float,
    estimate: Estimate | None,
    reason: RateReason | None,
    moments: ServiceMoments | None,
    cpu_rate: Estimate | None = None,
) -> ServiceRate:
    """Make a rate from the sums over all periods, and over the periods that count."""
    busy_s = float(kept[Row.DELAY_BUSY])
    delay_share = float(kept[Row.DELAY]) / busy_s if busy_s > 0.0 else None
    notices = []
    if delay_share is not None and delay_share > DISTURBED:
        notices.append(Notice.of(Code.DISTURBED_RATE, delay_share=delay_share))
    if kept[Row.USED] < kept[Row.PERIODS]:
        dropped = 1.0 - float(kept[Row.USED] / kept[Row.PERIODS])
        notices.append(Notice.of(Code.DROPPED_PERIODS, dropped=dropped))
    return ServiceRate(
        estimate=estimate,
        converged=reason is None,
        reason=reason,
        method=asked.method,
        start_s=began_s,
        stop_s=began_s + float(seen[Row.WALL]),
        periods=int(seen[Row.PERIODS]),
        unblocked=int(seen[Row.UNBLOCKED]),
        used=int(kept[Row.USED]),
        period_s=float(seen[Row.WALL] / seen[Row.PERIODS]),
        items=int(kept[Row.ITEMS]),
        servers=asked.servers,
        cpu_rate=cpu_rate,
        delay_share=delay_share,
        moments=moments,
        notices=tuple(notices),
    )
