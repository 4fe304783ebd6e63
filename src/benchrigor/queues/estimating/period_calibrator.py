"""Which sampling period a machine can keep to, and a stage can go through without waiting."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from benchrigor.model import Code, Notice
from benchrigor.model.checks import refuse, wrong_number, wrong_whole
from benchrigor.model.one_line import OneLine
from benchrigor.queues.data import RateReason

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
        self._kept.tell(kept)
        self._free.tell(kept and not blocked)
        self._items.append(items)
        if self._free.now >= _IN_A_ROW and any(self._items):
            self._widest_s = self._period_s
            self._widen(enough=False)
        elif not self._unblocked and self._kept.now >= _IN_A_ROW > self._free.now:
            self._widest_s = self._period_s
            self._widen(enough=True)
        elif self._kept.told >= self._tries:
            # Wider periods wait more, but hold more items, and are kept to more exactly.
            waits = self._reason() is RateReason.NO_NONBLOCKING
            self._widen(enough=waits or self._widest_s is not None)

    def _begin_width(self) -> None:
        self._kept, self._free = _Run(), _Run()
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
        if self._free.longest >= _IN_A_ROW:
            return RateReason.NO_ITEMS
        if self._kept.longest >= _IN_A_ROW:
            return RateReason.NO_NONBLOCKING
        return RateReason.UNSTABLE_PERIOD


class _Run:
    """How many periods in a row were as they should be: now, and at most."""

    def __init__(self) -> None:
        self.now = self.longest = self.told = 0

    def tell(self, fits: bool) -> None:
        """Take one more period."""
        self.told += 1
        self.now = self.now + 1 if fits else 0
        self.longest = max(self.longest, self.now)
