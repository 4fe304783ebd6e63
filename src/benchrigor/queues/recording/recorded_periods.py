"""From the rows of one end to its periods: widths, differences of counters, and what must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats
from benchrigor.queues.recording.recorded_rows import Places, Rows
from benchrigor.queues.recording.recording_head import Head

__all__ = ["EndReader", "Periods"]

_INEXACT = 1e-3
"""Relative difference of blocked time and period that is forgiven: a recorder reads clock and
counters one after the other, and writes so many digits."""
_SUSPICIOUS = 20
"""So many rows in which nothing ever falls, and the items mostly rise, look like counters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Periods:
    """Successive periods of one end of a queue, or of one stage; arrays of shape (n,).

    Parameters
    ----------
    period_s
        Realised width, in seconds.
    items
        That were served.
    blocked
        Whether it waited at all.
    blocked_s
        How long it waited, in seconds; None where it is only known whether.
    bytes
        That were served; None where it is not known.
    cpu_s, delay_s
        Processor time that it used, and time that it waited for a processor, in seconds; NaN, or
        None throughout, where they are not known.
    servers
        Threads or processes that serve side by side.
    """

    period_s: Floats
    items: Floats
    blocked: npt.NDArray[np.bool_]
    blocked_s: Floats | None = None
    bytes: Floats | None = None
    cpu_s: Floats | None = None
    delay_s: Floats | None = None
    servers: int = 1

    @property
    def n(self) -> int:
        """How many there are."""
        return int(self.items.size)


class EndReader:
    """Makes periods of the rows of one end, from one part of the file to the next.

    Parameters
    ----------
    head
        What the columns are.
    """

    def __init__(self, head: Head) -> None:
        self._head = head
        self._last: npt.NDArray[Any] | None = None
        self._servers: int | None = None

    def periods(self, rows: Rows, places: Places) -> Periods | None:
        """Return the periods of these rows; None where the only one is where counting begins.

        Raises
        ------
        InvalidInput
            Naming line and column of what goes back, or of time that is longer than it can be.
        """
        head, part = self._head, rows.table[places]
        if self._servers is None:
            _check_declared(head, rows, places)
        servers = self._served_by(rows, places)
        if head.has_baseline and self._last is None:
            self._last, part, places = part[:1], part[1:], places[1:]
        if not part.size:
            return None
        before = part if self._last is None else np.concatenate([self._last, part[:-1]])
        self._last = part[-1:] if head.has_baseline else None
        return _Span(rows, places, part, before, head).periods(servers)

    def _served_by(self, rows: Rows, places: Places) -> int:
        """Return how many serve side by side; that must not change."""
        column = self._head.column("servers")
        if self._servers is None:
            first = rows.table[column][places[0]] if column else self._head.servers
            self._servers = int(first)
        if column:
            values = rows.table[column][places]
            fits = (values == self._servers) & (values >= 1)
            if not fits.all():
                expected = f"{self._servers} as before" if self._servers else "1 or more"
                raise rows.misfit(int(places[np.argmin(fits)]), column, expected)
        return self._servers


class _Span:
    """Rows of one end, and the rows before them."""

    def __init__(
        self,
        rows: Rows,
        places: Places,
        part: npt.NDArray[Any],
        before: npt.NDArray[Any],
        head: Head,
    ) -> None:
        self._rows, self._places, self._head = rows, places, head
        self._part, self._before = part, before

    def periods(self, servers: int) -> Periods:
        """Return what these rows tell."""
        period_s, items = self._widths(), self._gained("items")
        blocked_s = self._blocked_s(servers * period_s, items, servers)
        size = self._head.column("item_bytes")
        return Periods(
            period_s=period_s,
            items=items,
            blocked=(self._gained("blocked") if blocked_s is None else blocked_s) > 0.0,
            blocked_s=blocked_s,
            bytes=items * self._part[size] if size else self._known("bytes"),
            cpu_s=self._known("cpu_s"),
            delay_s=self._known("delay_s"),
            servers=servers,
        )

    def _widths(self) -> Floats:
        """Return the widths of the periods, in seconds."""
        column = self._head.column("t")
        if column is None:
            column = str(self._head.column("period"))
            widths = self._part[column] / self._head.divisor(column)
            expected = "more than 0"
        else:
            widths = (self._part[column] - self._before[column]) / self._head.divisor(column)
            expected = "a later time than in the row before"
        self._refuse(widths <= 0.0, column, expected)
        return np.asarray(widths, dtype=np.float64)

    def _known(self, role: str) -> Floats | None:
        """Return what a column gained; None where there is no such column."""
        column = self._head.column(role)
        return self._gained(column) if column else None

    def _gained(self, column: str) -> Floats:
        """Return how much a counter has gained in each period, in seconds, items or bytes."""
        gained = self._part[column]
        if self._head.cumulative:
            gained = gained - self._before[column]
            self._refuse(
                gained < 0.0,
                column,
                "at least as much as in the row before, since counters are cumulative",
            )
        return np.asarray(gained / self._head.divisor(column), dtype=np.float64)

    def _blocked_s(self, capacity_s: Floats, items: Floats, servers: int) -> Floats | None:
        """Return how long it waited in each period; None where only whether is known."""
        column = self._head.column("blocked_s")
        if column is None:
            return None
        blocked_s = self._gained(column)
        beyond = blocked_s > capacity_s * (1.0 + _INEXACT)
        of = f" of {servers} servers" if servers > 1 else ""
        worst_s = float(capacity_s[np.argmax(beyond)])
        self._refuse(
            beyond,
            column,
            f"no longer than the period{of}, {worst_s:.9g} s; where several serve side by side, "
            "say how many at the beginning: '# servers: 4'",
        )
        # Nor is a stage busy that did nothing in what digits leave of a period.
        idle = (items == 0.0) & (blocked_s >= capacity_s * (1.0 - _INEXACT))
        return np.where(idle, capacity_s, np.minimum(blocked_s, capacity_s))

    def _refuse(self, misfits: npt.NDArray[np.bool_], column: str, expected: str) -> None:
        if misfits.any():
            raise self._rows.misfit(int(self._places[np.argmax(misfits)]), column, expected)


def _check_declared(head: Head, rows: Rows, places: Places) -> None:
    """Refuse what is not said to be cumulative and looks as if it were."""
    if head.counters is not None or places.size < _SUSPICIOUS:
        return
    items = np.diff(rows.table["items"][places])
    waited = head.column("blocked_s") or "blocked"
    never_falls = (items >= 0.0).all() and (np.diff(rows.table[waited][places]) >= 0.0).all()
    if never_falls and 2 * np.count_nonzero(items) >= items.size:
        raise rows.misfit(
            int(places[-1]),
            "items",
            "less than before now and then: these look like counters since the beginning; say so "
            "on the first line, '# counters: cumulative' (or else '# counters: delta')",
        )
