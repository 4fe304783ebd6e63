"""Which sampling period a machine can keep to, and a stage can go through without waiting."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

_FIRST_S, LONGEST_S = 0.001, 1.0
_EPSILON = 0.005
"""Relative deviation of a realised width from the one wanted, up to which it is kept to."""
_IN_A_ROW = 5
"""Periods in a row that must be kept to, and free of waiting."""
_TRIES = 200
"""Periods of one width until it is given up."""


class PeriodSearch:
    """Finds the sampling period: wait for ``period_s``, sample, tell what was seen.

    Widths double as long as the last periods were free of waiting, and kept to; the widest one
    wins. Narrow periods are widened as well where clocks and sleeping are not exact. One of the
    periods in a row must hold an item (Beard & Chamberlain 2015, section IV-A). Where ``unblocked``
    is False, waiting does not matter, and the first period that is kept to wins.

    Examples
    --------
    A machine that sleeps 60 microseconds too long.

    >>> search = PeriodSearch()
    >>> while not search.finished:
    ...     search.tell(search.period_s + 60e-6, blocked=search.period_s > 0.02, items=40)
    >>> search.period_s
    0.016
    """

    def __init__(self, *, unblocked: bool = True) -> None:
        self.period_s: float | None = _FIRST_S
        """The period to sample next, in seconds; once finished the one found, None for none."""
        self.finished = False
        self.failure: str | None = None
        """Why none was found."""
        self._unblocked = unblocked
        self._widest_s: float | None = None
        self._kept: list[bool] = []
        self._free: list[bool] = []
        self._items: list[float] = []

    def tell(self, realised_s: float, blocked: bool = False, items: float = 0) -> None:
        """Tell realised width, waiting and items of a period; nothing changes once finished."""
        if self.period_s is None or self.finished:
            return
        kept = abs(realised_s - self.period_s) <= _EPSILON * self.period_s
        self._kept.append(kept)
        self._free.append(kept and not (blocked and self._unblocked))
        self._items.append(items)
        is_free = len(self._free) >= _IN_A_ROW and all(self._free[-_IN_A_ROW:])
        if is_free and (any(self._items[-_IN_A_ROW:]) or not self._unblocked):
            self._widest_s = self.period_s
            self._widen(self.period_s, enough=not self._unblocked)
        elif len(self._free) >= _TRIES:
            # Wider periods wait more, but hold more items, and are kept to more exactly.
            waits = _longest_run(self._kept) >= _IN_A_ROW > _longest_run(self._free)
            self._widen(self.period_s, enough=waits or self._widest_s is not None)

    def _widen(self, period_s: float, *, enough: bool) -> None:
        """Go on with twice the width, or end."""
        if enough or period_s >= LONGEST_S:
            self.finished, self.period_s = True, self._widest_s
            self.failure = self._reason(period_s) if self._widest_s is None else None
        else:
            self.period_s = min(2.0 * period_s, LONGEST_S)
            self._kept, self._free, self._items = [], [], []

    def _reason(self, period_s: float) -> str:
        if _longest_run(self._free) >= _IN_A_ROW:
            return (
                f"Nothing passed in {_IN_A_ROW} periods of {period_s:g} s in a row that were free "
                "of waiting: nobody works, or an item takes longer than that."
            )
        if _longest_run(self._kept) >= _IN_A_ROW:
            return (
                f"No period from {period_s:g} s on was free of waiting {_IN_A_ROW} times in a row. "
                "Record blocked time instead, or give the stage a fuller queue for a while."
            )
        return (
            f"No period up to {LONGEST_S:g} s was kept to within {_EPSILON:.2%} {_IN_A_ROW} times "
            "in a row: the machine, or the interpreter, is too busy. Let a separate process watch."
        )


def _longest_run(flags: Iterable[bool]) -> int:
    return max((len(list(group)) for flag, group in groupby(flags) if flag), default=0)
