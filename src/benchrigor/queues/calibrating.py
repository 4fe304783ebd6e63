"""Which sampling period a machine can keep to, and a stage can go through without waiting."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Notice, RateReason
from benchrigor.model.series import short

__all__ = ["CalibratedPeriod", "PeriodCalibrator"]

_SHORTEST_S = 1e-6
"""A period below is none: sleeping takes longer, and reading the counters of a stage about as long.
"""
_SENTENCES = {
    RateReason.UNSTABLE_PERIOD: (
        "No period up to {longest_s:g} s was kept to within {epsilon:.2%} {k} times in a row: "
        "the machine, or the interpreter, is too busy. Let a separate process watch."
    ),
    RateReason.NO_NONBLOCKING: (
        "No period from {period_s:g} s on was free of waiting {k} times in a row. Record blocked "
        "time instead, or give the stage a fuller queue for a while."
    ),
    RateReason.NO_ITEMS: (
        "Nothing passed in {k} periods of {period_s:g} s in a row that were free of waiting: "
        "nobody works, or an item takes longer than that."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedPeriod:
    """What a calibration came to.

    Parameters
    ----------
    period_s
        The sampling period, in seconds; None where there is none.
    reason
        Why there is none.
    notice
        The same in a sentence.
    """

    period_s: float | None
    reason: RateReason | None = None
    notice: Notice | None = None


class PeriodCalibrator:
    """Finds the sampling period: ask how long to wait, sample, tell what was seen.

    Parameters
    ----------
    start_s
        The first period, in seconds; a microsecond at least, since no sleep and few reads of a
        clock are shorter.
    longest_s
        The longest.
    epsilon
        Relative deviation of realised widths from the one wanted, up to which they are stable.
    k
        Periods in a row that must be stable, and free of waiting.
    tries
        Periods of one width until it is given up.
    unblocked
        Whether waiting matters. Busy time is known however long a stage waits; then the first
        period that is stable is as good as any wider one.

    Raises
    ------
    InvalidInput
        Naming every option that makes no sense.

    Notes
    -----
    Beard & Chamberlain (2015), section IV-A: widen as long as the last k periods were free of
    blocking and their realised widths stayed within epsilon; here by doubling. Narrow periods are
    unstable because clocks and sleeping are not exact, so that these are widened, too. A period in
    which nothing passed tells nothing of waiting: of k in a row one must hold an item. The widest
    period that did wins.

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
        start_s: float = 0.001,
        longest_s: float = 1.0,
        epsilon: float = 0.005,
        k: int = 5,
        tries: int = 200,
        *,
        unblocked: bool = True,
    ) -> None:
        _check(start_s, longest_s, epsilon, k, tries)
        self._period_s, self._longest_s, self._epsilon = start_s, longest_s, epsilon
        self._k, self._tries, self._unblocked = k, tries, unblocked
        self._widest_s: float | None = None
        self._result: CalibratedPeriod | None = None
        self._seen = _Seen()

    @property
    def result(self) -> CalibratedPeriod | None:
        """What was found; None while the search goes on."""
        return self._result

    def ask(self) -> float | None:
        """Return the period to sample next, in seconds; None when finished."""
        return self._period_s if self._result is None else None

    def tell(self, realised_s: float, blocked: bool = False, items: float = 0) -> None:
        """Tell what was seen in the period that was asked for; nothing is learned once finished.

        Parameters
        ----------
        realised_s
            Its realised width, in seconds.
        blocked
            Whether the stage waited.
        items
            That passed.

        Raises
        ------
        InvalidInput
            When the width is no finite number above 0, or items none from 0 on.
        """
        problems = []
        if not _is_number(realised_s) or not 0.0 < realised_s < math.inf:
            problems.append(f"realised_s is {short(realised_s)}, expected seconds above 0")
        if not _is_number(items) or not 0.0 <= items < math.inf:
            problems.append(f"items is {short(items)}, expected a finite number from 0 on")
        if problems:
            raise InvalidInput(problems)
        if self._result is not None:
            return
        kept = abs(realised_s - self._period_s) <= self._epsilon * self._period_s
        self._seen.add(items, kept=kept, free=kept and not (blocked and self._unblocked))
        reason = self._judge()
        if reason is None:
            self._widest_s = self._period_s
            self._widen()
        elif self._seen.periods >= self._tries:
            self._give_up(reason)

    def _judge(self) -> RateReason | None:
        """Say what is against this width so far; None where nothing is."""
        seen = self._seen
        if seen.free >= self._k and (seen.items > 0.0 or not self._unblocked):
            return None
        if seen.longest_free >= self._k:
            return RateReason.NO_ITEMS
        if seen.longest_kept >= self._k:
            return RateReason.NO_NONBLOCKING
        return RateReason.UNSTABLE_PERIOD

    def _widen(self, reason: RateReason | None = None) -> None:
        """Go on with twice the width, or end."""
        if self._period_s >= self._longest_s or (reason is None and not self._unblocked):
            self._end(reason)
        else:
            self._period_s = min(2.0 * self._period_s, self._longest_s)
            self._seen = _Seen()

    def _give_up(self, reason: RateReason) -> None:
        """Go back to the widest that did, or on where a wider one may do better."""
        if self._widest_s is not None or reason is RateReason.NO_NONBLOCKING:
            self._end(reason)
        else:
            self._widen(reason)

    def _end(self, reason: RateReason | None) -> None:
        if self._widest_s is not None or reason is None:
            self._result = CalibratedPeriod(period_s=self._widest_s)
            return
        figures = {
            "period_s": self._period_s,
            "longest_s": self._longest_s,
            "epsilon": self._epsilon,
            "k": self._k,
        }
        notice = Notice.refusal(Code.NOT_CONVERGED, _SENTENCES[reason].format(**figures), **figures)
        self._result = CalibratedPeriod(period_s=None, reason=reason, notice=notice)


class _Seen:
    """Periods of one width."""

    def __init__(self) -> None:
        self.periods = self.kept = self.free = self.longest_kept = self.longest_free = 0
        self.items = 0.0

    def add(self, items: float, *, kept: bool, free: bool) -> None:
        """Add a period: whether its width was kept, and it was free of waiting as well."""
        self.periods += 1
        self.kept = self.kept + 1 if kept else 0
        self.free, self.items = (self.free + 1, self.items + items) if free else (0, 0.0)
        self.longest_kept = max(self.longest_kept, self.kept)
        self.longest_free = max(self.longest_free, self.free)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check(start_s: float, longest_s: float, epsilon: float, k: int, tries: int) -> None:
    problems = [
        *_no_widths(start_s, longest_s),
        *_no_counts(k, tries),
    ]
    if not _is_number(epsilon) or not 0.0 < epsilon < 1.0:
        problems.append(f"epsilon is {short(epsilon)}, expected a number above 0 and below 1")
    if problems:
        raise InvalidInput(problems)


def _no_widths(start_s: float, longest_s: float) -> Iterator[str]:
    """Say what is wrong with the first and the longest period."""
    found = {"start_s": start_s, "longest_s": longest_s}
    misfits = {
        name: value
        for name, value in found.items()
        if not _is_number(value) or not _SHORTEST_S <= value < math.inf
    }
    for name, value in misfits.items():
        yield f"{name} is {short(value)}, expected seconds, {_SHORTEST_S:g} at least"
    if not misfits and start_s > longest_s:
        yield (
            f"start_s is {short(start_s)} and longest_s {short(longest_s)}, expected the first "
            "not above the other"
        )


def _no_counts(k: int, tries: int) -> Iterator[str]:
    """Say what is wrong with the number of periods."""
    found = {"k": k, "tries": tries}
    misfits = {name: value for name, value in found.items() if not _is_whole(value) or value < 1}
    for name, value in misfits.items():
        yield f"{name} is {short(value)}, expected a whole number from 1 on"
    if not misfits and k > tries:
        yield f"k is {k} and tries {tries}, expected at least as many tries"
