"""Which sampling period a machine can keep to, and a stage can go through without waiting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from benchrigor.model import Code, Notice, RateReason
from benchrigor.model.checks import refuse, wrong_number, wrong_share, wrong_whole

_SHORTEST_S = 1e-6  # no sleep is shorter, and reading the counters of a stage takes about as long
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
    """The result of a calibration.

    Parameters
    ----------
    period_s
        The sampling period, in seconds; None where there is none.
    reason, notice
        Why there is none.
    """

    period_s: float | None
    reason: RateReason | None = None
    notice: Notice | None = None


class PeriodCalibrator:
    """Finds the sampling period: ask how long to wait, sample, and tell what happened.

    Parameters
    ----------
    start_s, longest_s
        The first period and the longest, in seconds, a microsecond at least.
    epsilon
        Relative deviation of a realised width from the one wanted, up to which it is kept to.
    k
        Periods in a row that must be kept to, and free of waiting.
    tries
        Periods of one width until it is given up.
    unblocked
        Whether waiting matters; if not, the first period that is kept to wins.

    Raises
    ------
    InvalidInput
        Naming every option that makes no sense.

    Notes
    -----
    Widths double as long as the last k periods were kept to, and free of waiting; the widest one
    wins. One of the k must hold an item. Narrow periods, which clocks and sleeping are too inexact
    for, are widened as well (Beard & Chamberlain 2015, section IV-A).

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
        problems = [*_wrong_width("start_s", start_s), *_wrong_width("longest_s", longest_s)]
        if not problems and start_s > longest_s:
            problems.append(f"start_s is {start_s} and longest_s {longest_s}, expected no less")
        counts = [*wrong_whole("k", k), *wrong_whole("tries", tries)]
        if not counts and k > tries:
            counts.append(f"k is {k} and tries {tries}, expected at least as many tries")
        refuse(problems, counts, wrong_share("epsilon", epsilon))
        self._period_s, self._longest_s, self._epsilon = start_s, longest_s, epsilon
        self._k, self._tries, self._unblocked = k, tries, unblocked
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

    def tell(self, realised_s: float, blocked: bool = False, items: float = 0) -> None:
        """Tell realised width, in seconds, waiting and items of the period that was asked for.

        Raises
        ------
        InvalidInput
            When the width is no finite number above 0, or items none from 0 on.
        """
        refuse(wrong_number("realised_s", realised_s), wrong_number("items", items, zero=True))
        if self._result is not None:
            return
        kept = abs(realised_s - self._period_s) <= self._epsilon * self._period_s
        self._kept.append(kept)
        self._free.append(kept and not (blocked and self._unblocked))
        self._items.append(items)
        is_free = len(self._free) >= self._k and all(self._free[-self._k :])
        if is_free and (any(self._items[-self._k :]) or not self._unblocked):
            self._widest_s = self._period_s
            self._widen(enough=not self._unblocked)
        elif len(self._free) >= self._tries:
            # Wider periods wait more, but hold more items, and are kept to more exactly.
            waits = self._reason() is RateReason.NO_NONBLOCKING
            self._widen(enough=waits or self._widest_s is not None)

    def _begin_width(self) -> None:
        self._kept: list[bool] = []
        self._free: list[bool] = []
        self._items: list[float] = []

    def _widen(self, *, enough: bool) -> None:
        """Go on with twice the width, or end."""
        if not enough and self._period_s < self._longest_s:
            self._period_s = min(2.0 * self._period_s, self._longest_s)
            self._begin_width()
        elif self._widest_s is not None:
            self._result = CalibratedPeriod(period_s=self._widest_s)
        else:
            figures = {
                "period_s": self._period_s,
                "longest_s": self._longest_s,
                "epsilon": self._epsilon,
                "k": self._k,
            }
            reason = self._reason()
            sentence = _SENTENCES[reason].format(**figures)
            notice = Notice.refusal(Code.NOT_CONVERGED, sentence, **figures)
            self._result = CalibratedPeriod(period_s=None, reason=reason, notice=notice)

    def _reason(self) -> RateReason:
        """Return what is against this width."""
        if _longest_run(self._free) >= self._k:
            return RateReason.NO_ITEMS
        if _longest_run(self._kept) >= self._k:
            return RateReason.NO_NONBLOCKING
        return RateReason.UNSTABLE_PERIOD


def _longest_run(flags: Iterable[bool]) -> int:
    return max((len(list(group)) for flag, group in groupby(flags) if flag), default=0)


def _wrong_width(name: str, value: float) -> list[str]:
    wrong = wrong_number(name, value)
    if not wrong and value < _SHORTEST_S:
        return [f"{name} is {value}, expected seconds, {_SHORTEST_S:g} at least"]
    return wrong
