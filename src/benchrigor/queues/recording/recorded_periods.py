"""From the rows of one end of a recording to its periods: differences, units, and checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats
from benchrigor.model.commented_csv import Part
from benchrigor.queues.periods import Periods
from benchrigor.queues.recording.recording_head import RecordingHead, role_of, unit_of

_INEXACT = 1e-3
"""Relative difference of blocked time and period that is allowed: a recorder reads clock and
counters one after the other, and writes so many digits."""
_SUSPICIOUS = 20
"""So many rows in which nothing ever falls, and the items mostly rise, look like counters."""
_NO_COUNTERS = ("period_s", "item_bytes", "servers")
_ABOVE_0 = {"t_s": "a later time than in the row before", "period_s": "more than 0"}
_RISING = "at least as much as in the row before, since counters are cumulative"

Rows = npt.NDArray[np.int64]


class EndReader:
    """Makes periods of the rows of one end, from one part of the file to the next."""

    def __init__(self, head: RecordingHead) -> None:
        self._head = head
        self._last: dict[str, npt.NDArray[Any]] = {}
        self._servers: int | None = None

    def periods(self, part: Part, rows: Rows) -> Periods | None:
        """Return the periods of these rows; None where the only row is the baseline."""
        if self._servers is None:
            self._check_counters(part, rows)
        servers = self._servers_of(part, rows)
        skipped = int(self._head.has_baseline and not self._last)
        gained, rows = self._gained(part, rows, skipped), rows[skipped:]
        if not rows.size:
            return None
        period_s = gained["t_s" if "t_s" in gained else "period_s"]
        if "blocked_s" in gained:
            gained["blocked"] = gained["blocked_s"]
            gained["blocked_s"] = self._fitted(part, rows, gained, servers * period_s)
        return Periods(
            period_s=period_s,
            items=gained["items"],
            blocked_s=gained.get("blocked_s", 0.0),
            blocked=gained["blocked"] > 0.0,
            bytes=gained.get("bytes", gained["items"] * gained.get("item_bytes", np.nan)),
            cpu_s=gained.get("cpu_s", np.nan),
            delay_s=gained.get("delay_s", np.nan),
            servers=servers,
        )

    def _servers_of(self, part: Part, rows: Rows) -> int:
        """Return how many serve side by side; that must not change."""
        if (values := part.columns.get("servers")) is None:
            self._servers = self._head.servers
            return self._servers
        if self._servers is None:
            self._servers = int(values[rows[0]])
        expected = f"{self._servers} as before" if self._servers else "1 or more"
        misfits = (values[rows] != self._servers) | (values[rows] < 1)
        _refuse(part, rows, "servers", misfits, expected)
        return self._servers

    def _gained(self, part: Part, rows: Rows, skipped: int) -> dict[str, Any]:
        """Return what each period brought, in seconds, items or bytes, by the column's role."""
        gained = {}
        for column in self._head.counted:
            role = role_of(column)
            values = part.columns[column][rows]
            if role == "t_s" or (self._head.cumulative and role not in _NO_COUNTERS):
                before = self._last.get(column, values[:0])
                self._last[column] = values[-1:]
                values = np.diff(np.concatenate([before, values]))
            else:
                values = values[skipped:]
            misfits = values <= 0.0 if role in _ABOVE_0 else values < 0.0
            _refuse(part, rows[skipped:], column, misfits, _ABOVE_0.get(role, _RISING))
            gained[role] = values / unit_of(column)
        return gained

    def _fitted(self, part: Part, rows: Rows, gained: dict[str, Any], capacity_s: Floats) -> Floats:
        """Return how long it waited in each period, at most all the time of its servers."""
        blocked_s = gained["blocked_s"]
        misfits = blocked_s > capacity_s * (1.0 + _INEXACT)
        of = f" of {self._servers} servers" if self._servers != 1 else ""
        longest_s = float(capacity_s[np.argmax(misfits)])
        _refuse(
            part,
            rows,
            str(self._head.column("blocked_s")),
            misfits,
            f"no longer than the period{of}, {longest_s:.9g} s; where several serve side by side, "
            "say how many at the beginning: '# servers: 4'",
        )
        # A stage that did nothing in what digits leave of a period is not busy.
        waits = (gained["items"] == 0.0) & (blocked_s >= capacity_s * (1.0 - _INEXACT))
        return np.where(waits, capacity_s, np.minimum(blocked_s, capacity_s))

    def _check_counters(self, part: Part, rows: Rows) -> None:
        """Refuse what is not declared to be cumulative and looks as if it were."""
        if self._head.counters is not None or rows.size < _SUSPICIOUS:
            return
        items, waited = (
            np.diff(part.columns[column][rows])
            for column in ("items", self._head.column("blocked_s") or "blocked")
        )
        never_falls = (items >= 0.0).all() and (waited >= 0.0).all()
        if never_falls and 2 * np.count_nonzero(items) >= items.size:
            raise part.misfit(
                int(rows[-1]),
                "items",
                "less than before now and then: these look like counters since the beginning; "
                "write so on the first line, '# counters: cumulative' (or '# counters: delta')",
            )


def _refuse(part: Part, rows: Rows, column: str, misfits: Any, expected: str) -> None:
    if misfits.any():
        raise part.misfit(int(rows[np.argmax(misfits)]), column, expected)
