"""Successive periods of a stage: one table, from the sampler to estimators, files and pictures.

A table is a structured array with a row for every period, or for every batch of several. NaN stands
for unknown values. `join` makes one row of several, and keeps all that is needed later:
so a stream of any length fits into a bounded number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import (
    attempt,
    wrong_choice,
    wrong_number,
    wrong_values,
    wrong_whole,
)
from benchrigor.model.series import Floats, Ints
from benchrigor.queues.data import RateReason, ServiceMoments, ServiceProcess, ServiceRate
from benchrigor.stats.series.interval import check_confidence

NOTHING = 1e-9  # seconds below which a time is the rounding of a difference, and counts as 0

_GIVEN = {  # fields, and their values where nobody gives any
    "start_s": 0.0,  # since watching began
    "period_s": np.nan,  # the realised width
    "servers": 1.0,  # threads or processes that serve side by side
    "items": np.nan,
    "blocked_s": 0.0,  # time that all servers together waited
    "cpu_s": np.nan,
    "delay_s": np.nan,  # time that the stage waited for a processor
    "bytes": np.nan,
    "given": np.nan,  # items written, of a stage that reads and writes
    "whole": 1.0,  # whether the same threads served all the time
}
# Sums that follow from these. Unknown values add 0.
_DERIVED = (
    "periods",
    "used",  # of these, those with a known time of waiting; the next fields are of them
    "unblocked",  # those without waiting
    "served",  # items
    "busy_s",  # time of all servers that was no waiting
    "cpu_known_s",  # processor time, and the items of the periods in which it is known
    "cpu_served",
    "delay_known_s",  # time waited for a processor, and the busy time of the same periods
    "delay_busy_s",
)
# Observations of items and busy time, one in a period, and their central moments as sums.
_MOMENTS = ("items_2", "items_busy", "busy_2", "items_3", "items_2_busy", "items_busy_2", "busy_3")
_FIELDS = (*_GIVEN, *_DERIVED, "observed", *_MOMENTS)
_OF_PAIRS = slice(_FIELDS.index("served"), _FIELDS.index("busy_s") + 1)
_OF_MOMENTS = slice(len(_FIELDS) - len(_MOMENTS), len(_FIELDS))

_ALL = np.zeros(1, dtype=np.int64)  # where one group begins that holds all rows

PeriodTable: TypeAlias = npt.NDArray[np.void]


def empty(size: int = 0, *, queues: int = 0) -> PeriodTable:
    """Return a table with rows of nothing, of a stage that reads so many queues."""
    return np.zeros(size, dtype=_row_of(queues))


@cache
def _row_of(queues: int) -> np.dtype[np.void]:
    """Return the type of a row, which takes longer to make than a short table."""
    fields: list[Any] = [(name, np.float64) for name in _FIELDS]
    return np.dtype([*fields, ("arrived", np.float64, (queues,))])


def table_of(*, arrived: Any = (), **columns: Any) -> PeriodTable:
    """Return a table of its columns, shape (n,), or one number for all.

    ``arrived`` are the items that entered the queues which the stage reads, shape (queues, n).
    """
    table = empty(np.size(columns["items"]), queues=len(arrived))
    for name, value in _GIVEN.items():
        table[name] = columns.get(name, value)
    table["periods"] = 1.0
    table["unblocked"] = table["blocked_s"] <= NOTHING
    table["used"] = table["observed"] = is_known = ~np.isnan(table["blocked_s"])
    table["served"] = np.where(is_known, table["items"], 0.0)
    waited_s = np.where(table["blocked_s"] > NOTHING, table["blocked_s"], 0.0)
    busy_s = np.maximum(table["servers"] * table["period_s"] - waited_s, 0.0)
    table["busy_s"] = np.where(is_known, busy_s, 0.0)
    derive_processor(table)
    for queue, items in enumerate(arrived):
        table["arrived"][:, queue] = items
    return table


def derive_processor(table: PeriodTable) -> None:
    """Derive what adds up of the processor time and the delay of periods."""
    served, busy_s, is_known = table["served"], table["busy_s"], table["used"] > 0.0
    has_cpu, has_delay = (is_known & ~np.isnan(table[name]) for name in ("cpu_s", "delay_s"))
    table["cpu_known_s"] = np.where(has_cpu, table["cpu_s"], 0.0)
    table["cpu_served"] = served * has_cpu
    # A thread that is woken waits for a processor too, but within the blocked time.
    room_s = np.maximum(busy_s - table["cpu_known_s"], 0.0)
    table["delay_known_s"] = np.where(has_delay, np.minimum(table["delay_s"], room_s), 0.0)
    table["delay_busy_s"] = busy_s * has_delay


# --- Rows are copied as plain numbers: numpy copies structured ones field by field.


def _numbers(table: PeriodTable) -> Floats:
    """Return a view of a table as plain numbers, shape (n, fields)."""
    numbers = table.view(np.float64)
    return numbers.reshape(table.size, table.itemsize // numbers.itemsize)


def _as_table(numbers: Floats, like: PeriodTable) -> PeriodTable:
    table: PeriodTable = np.ascontiguousarray(numbers).view(like.dtype).reshape(len(numbers))
    return table


def rows_of(table: PeriodTable, which: Any) -> PeriodTable:
    """Return some rows, by their indices or flags, as a copy."""
    return _as_table(_numbers(table)[which], table)


def stack(*tables: PeriodTable) -> PeriodTable:
    """Return the rows of tables, one after the other; the first may leave arrivals out."""
    first = _numbers(tables[0])
    rest = [_numbers(table)[:, : first.shape[1]] for table in tables[1:]]
    return _as_table(np.concatenate([first, *rest]), tables[0])


def join(table: PeriodTable, starts: Ints = _ALL) -> PeriodTable:
    """Join groups of rows, which begin at ascending places, to one observation each."""
    joined = _sums(table, starts)
    joined["observed"] = joined["used"] > 0.0
    _numbers(joined)[:, _OF_MOMENTS] = 0.0
    return joined


def pool(table: PeriodTable, starts: Ints = _ALL) -> PeriodTable:
    """Join groups of rows, and keep all observations.

    With the number n_i of observations of a row, and the distance d_i of their mean from the
    group's: M2 = sum M2_i + n_i d_i^2 and M3 = sum M3_i + 3 d_i M2_i + n_i d_i^3, and similarly for
    products (Pébay 2008, the pairwise formulas summed over a group).
    """
    pooled = _sums(table, starts)
    sizes = np.concatenate([starts[1:], [table.size]]) - starts
    means, centres = (
        _share(_numbers(rows)[:, _OF_PAIRS].T, rows["observed"]) for rows in (table, pooled)
    )
    c, b = means - np.repeat(centres, sizes, axis=1)
    n, cc, cb, bb = (table[name] for name in ("observed", *_MOMENTS[:3]))
    added = [
        n * c * c,
        n * c * b,
        n * b * b,
        c * (3.0 * cc + n * c * c),
        2.0 * c * cb + b * (cc + n * c * c),
        2.0 * b * cb + c * (bb + n * b * b),
        b * (3.0 * bb + n * b * b),
    ]
    _numbers(pooled)[:, _OF_MOMENTS] += np.add.reduceat(added, starts, axis=1).T
    return pooled


def _sums(table: PeriodTable, starts: Ints) -> PeriodTable:
    """Return the sums of groups of rows; beginnings and servers are of the first row of each."""
    if starts.size == table.size:  # as reduceat would, in a twentieth of its time
        return stack(table)
    sums = _as_table(np.add.reduceat(_numbers(table), starts, axis=0), table)
    for name in ("start_s", "servers"):
        sums[name] = table[name][starts]
    return sums


def even_starts(size: int, number: int) -> Ints:
    """Return where groups of ``number`` successive periods begin; the last may be longer."""
    return np.arange(0, size - number + 1, number)


def join_evenly(table: PeriodTable, number: int) -> PeriodTable:
    """Join every ``number`` successive periods to one, which is unblocked, or used, if all are."""
    if number == 1:
        return table
    starts = even_starts(table.size, number)
    table = table[: starts.size * number]
    joined = join(table, starts)
    joined["periods"] = 1.0
    for name in ("unblocked", "used"):
        joined[name] = np.minimum.reduceat(table[name], starts)
    joined["observed"] = joined["used"]
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
        return stack(self.full, self._open)

    def _fill(self, periods: PeriodTable) -> None:
        """Add periods, no more than there is room for."""
        together = stack(self._open, periods)
        starts = np.arange(self._open.size - self._taken, together.size, self._size)
        sums = join(together, np.maximum(starts, 0))
        number, self._taken = divmod(self._taken + periods.size, self._size)
        self.full, self._open = stack(self.full, sums[:number]), sums[number:]
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


def _share(parts: Floats, wholes: Floats) -> Floats:
    found: Floats = np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0.0)
    return found


def ripen(batches: PeriodTable, *, items: float = 16.0) -> tuple[PeriodTable, Ints]:
    """Pool adjacent batches until they hold ``items`` on average; return them and their starts."""
    size = batches.size
    served = float(batches["served"].sum())
    group = 1
    while group < size and served * group < items * size:
        group *= 2
    # A remainder at the end joins the last group.
    starts = np.arange(0, max(size - group, 0) + 1, group, dtype=np.int64)
    if group == 1:
        return batches, starts
    return join(batches, starts), starts


def service_moments(batches: PeriodTable) -> ServiceMoments | None:
    """Return the moments of the service time from how counts vary with busy time.

    None with fewer than 30 observations, or without any item. Batches must have `ripen`.

    Counts of a renewal process over a long busy time t have the cumulants t a, t b, t c with
    a = 1/m, b = s^2/m^3, c = 3 s^4/m^5 - k/m^4, for service times of mean m, variance s^2 and third
    central moment k (Cox 1962, Renewal Theory, chapter 4). When a period ends depends on the
    services in it, since the queue may run empty. So b and c come from Wald's identity
    E exp(x N - K(x) t) = 1 to third order; it holds for any end of a period. With the residual
    e = N - a t, b = E e^2 / E t and c = (E e^3 - 3 b E e t) / E t.

    >>> rng = np.random.default_rng(1)
    >>> periods = table_of(items=rng.poisson(100.0, 5000), period_s=0.1)
    >>> moments = service_moments(periods)
    >>> str(moments.process), round(moments.mean_s * 1e3, 2)
    ('exponential', 1.0)
    """
    whole = batches if batches.size == 1 else pool(batches)
    count, items, busy = (float(whole[name][0]) for name in ("observed", "served", "busy_s"))
    if count < FEWEST_COUNTS or items <= 0.0:
        return None
    rate, mean_s = items / busy, busy / items
    _, cb, bb, ccc, ccb, cbb, bbb = (float(whole[name][0]) for name in _MOMENTS)
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


def dispersion(batch: PeriodTable) -> float:
    """Return the variance of items per busy second, of one batch."""
    names = ("observed", "served", "busy_s", *_MOMENTS[:3])
    count, items, busy, cc, cb, bb = (float(batch[name][0]) for name in names)
    rate = items / busy
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


def wrong_asked(asked: Asked) -> list[str]:
    """Return the problems with what an estimator is asked for."""
    problems = wrong_choice("method", asked.method, METHODS)
    is_flag = isinstance(asked.guards, bool)
    problems += wrong_values([("guards", asked.guards, is_flag, "True or False")])
    attempt(problems, check_confidence, asked.confidence)
    if asked.period_s is not None:
        problems += wrong_number("period_s", asked.period_s)
    problems += wrong_whole("servers", asked.servers)
    return problems + wrong_number("target", asked.target)


def has_moved(former: ServiceRate, latter: ServiceRate) -> bool:
    """Return whether a rate differs from a former one by a fifth, and by three standard errors."""
    if former.estimate is None or latter.estimate is None:
        return False
    gap = abs(latter.estimate.value - former.estimate.value)
    errors = math.hypot(former.estimate.half_width, latter.estimate.half_width) / 2.0
    return gap > max(_MOVED * former.estimate.value, _BEYOND * errors)


def service_rate(
    seen: PeriodTable,
    kept: PeriodTable,
    *,
    asked: Asked,
    began_s: float,
    estimate: Estimate | None,
    reason: RateReason | None,
    moments: ServiceMoments | None,
    cpu_rate: Estimate | None = None,
) -> ServiceRate:
    """Make a rate from a row for all periods, and a row for those that count."""
    counted = ("periods", "used", "served", "delay_busy_s", "delay_known_s")
    number, used, served, busy_s, delay_s = (float(kept[name][0]) for name in counted)
    periods, unblocked, wall_s = (
        float(seen[name][0]) for name in ("periods", "unblocked", "period_s")
    )
    delay_share = delay_s / busy_s if busy_s > 0.0 else None
    notices = []
    if delay_share is not None and delay_share > DISTURBED:
        notices.append(Notice.of(Code.DISTURBED_RATE, delay_share=delay_share))
    if used < number:
        notices.append(Notice.of(Code.DROPPED_PERIODS, dropped=1.0 - used / number))
    return ServiceRate(
        estimate=estimate,
        converged=reason is None,
        reason=reason,
        method=asked.method,
        start_s=began_s,
        stop_s=began_s + wall_s,
        periods=int(periods),
        unblocked=int(unblocked),
        used=int(used),
        period_s=wall_s / periods,
        items=int(served),
        servers=asked.servers,
        cpu_rate=cpu_rate,
        delay_share=delay_share,
        moments=moments,
        notices=tuple(notices),
    )
