"""Which readings of a run count for its number, and why the others do not."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Ints


class Reason(enum.IntEnum):
    """Why a reading counts, or does not."""

    KEPT = 0
    WARM_UP = 1
    COOL_DOWN = 2
    MARGIN = 3
    DISTURBED = 4
    RED_ROUND = 5
    COLD = 6
    PILOT = 7
    SHORT = 8
    CUT = 9
    SMALL_WORK = 10
    FURTHER = 11
    OTHER_LEVEL = 12
    UNSTEADY = 13

    @property
    def word(self) -> str:
        """Its name as users read it."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection(OneLine):
    """Which readings count, with a reason for each; stored as runs of readings with one reason.

    A disturbed reading is left out, and one that stands for similar disturbed ones counts twice or
    more. The estimate follows from the readings and from this alone.

    Parameters
    ----------
    reason, count, length
        Of each run of readings: their `Reason`, how often each counts, and their number; shape
        (k,).

    Examples
    --------
    >>> selection = Selection(reason=[1, 0, 4, 0], count=[0, 1, 0, 2], length=[2, 2, 1, 1])
    >>> selection.reasons, selection.counts
    (array([1, 1, 0, 0, 4, 0], dtype=int8), array([0, 0, 1, 1, 0, 2]))
    """

    reason: Ints
    count: Ints
    length: Ints

    def __post_init__(self) -> None:
        for name in ("reason", "count", "length"):
            column = np.asarray(getattr(self, name), dtype=np.int64)
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @classmethod
    def of(cls, reasons: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Selection:
        """Return it from a reason and a count for each reading."""
        alike = (reasons[1:] == reasons[:-1]) & (counts[1:] == counts[:-1])
        changes = np.flatnonzero(~alike) + 1
        starts = np.append(0, changes)[: reasons.size]
        return cls(
            reason=reasons[starts],
            count=counts[starts],
            length=np.diff(np.append(starts, reasons.size)),
        )

    @property
    def n(self) -> int:
        """Number of readings."""
        return int(self.length.sum())

    @property
    def reasons(self) -> npt.NDArray[np.int8]:
        """The `Reason` of each reading, shape (n,), read-only."""
        reasons = np.repeat(self.reason.astype(np.int8), self.length)
        reasons.flags.writeable = False
        return reasons

    @property
    def counts(self) -> Ints:
        """How often each reading counts, shape (n,), read-only; 0 where it does not."""
        counts: Ints = np.repeat(self.count, self.length)
        counts.flags.writeable = False
        return counts

    def at(self, places: Ints) -> Selection:
        """Return it of the readings at these places; those at -1 are of red rounds."""
        reasons = np.append(self.reasons, np.int8(Reason.RED_ROUND))[places]
        return Selection.of(reasons, np.append(self.counts, 0)[places])


_COLD = 10  # readings at the start that are left out if nothing is cut


def without_margins(start: int, stop: int, n: int) -> slice:
    """Return the readings to measure of the stable phase of a series of n readings.

    The tail of a transient goes on after the change point: half as many readings again as were cut
    are left out at each end, up to a quarter of the phase; at least the first ten, which may be
    cold, or the fiftieth part of a short series.
    """
    most = (stop - start) // 4
    early = max(start // 2, min(_COLD, n // 50) - start)
    return slice(start + min(early, most), stop - min((n - stop) // 2, most))
