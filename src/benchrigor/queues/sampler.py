"""Samples the cells of all stages, makes periods and rates of the samples, and seeks the period."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from benchrigor.model import Code, Estimate, Notice
from benchrigor.model.checks import refuse, wrong_number, wrong_whole
from benchrigor.model.one_line import OneLine
from benchrigor.queues.data import RateReason
from benchrigor.queues.periods import (
    BUSY_TIME,
    Asked,
    PeriodTable,
    PooledPeriods,
    derive_processor,
    table_of,
)
from benchrigor.queues.rate_arithmetic import filter_ratio
from benchrigor.queues.stage_figures import (
    Cells,
    Copies,
    Sample,
    Span,
    StageFigures,
    if_estimable,
    owners_of,
    spans_of,
)
from benchrigor.queues.stages import MonitorReport, Stage, WatchedStage
from benchrigor.queues.writers import Owner, Owners

_SAMPLES = 256  # samples that are worked off together; as few as the search needs while it lasts
_IN_A_ROW = 5  # periods that must be kept to, and free of waiting, in the search for their width
# Of that search: sampling in shorter periods takes more than 1 % of a processor; longer ones take
# minutes; this number of tries ends within seconds.
_LIMITS: dict[str, Any] = {"shortest_s": 0.05, "longest_s": 0.2, "tries": 40}
# How often it checks which processes have ended: a check takes as long as half a sample.
_GLANCE_NS = 100_000_000

# Takes the name of a stage, and periods of it that count.
Record = Callable[[str, PeriodTable], None]


class Sampler:
    """Samples the cells of all stages at once, and works the samples off some at a time."""

    thread_time = staticmethod(time.thread_time)

    def __init__(
        self, stages: Sequence[Stage], asked: Asked, *, owners: Owners | None = None
    ) -> None:
        self._asked = asked
        # Know the processes and threads that count.
        self.owners = Owners() if owners is None else owners
        # Separates reports and samples; the program that counts does not use it.
        self.lock = threading.RLock()
        self.record: Record | None = None  # takes the periods that count
        # How long to wait for the next sample, in seconds; None to sample no more.
        self.period_s = asked.period_s
        self.failure: str | None = None  # why it samples no more
        self.nobody_left = False
        by_time = asked if asked.period_s else replace(asked, method=BUSY_TIME)
        self._stages = [StageFigures(stage, by_time) for stage in stages]
        self._cells = Cells(end for stage in self._stages for end in stage.reader.ends)
        self._items = PooledPeriods(table_of(items=(), arrived=[()] * len(stages)))
        self._first = next((number for number, stage in enumerate(stages) if stage.reads), None)
        self._samples: list[Sample] = []
        self._sizes: list[int] = []
        self._threads: list[Owner] = []
        self._due_ns = 0
        self._gone: frozenset[int] = frozenset()
        self._blocked_ns = np.zeros(0, dtype=np.int64)
        self._by_time = asked.method == BUSY_TIME
        self._search: PeriodCalibrator | None = None
        self._provisional: list[WatchedStage] = []  # by "busy-time", until the method has a rate
        self._spent_s = self._seek_s = 0.0  # processor time by the last sample, and search step
        if asked.period_s is None:
            self._search = PeriodCalibrator(unblocked=not self._by_time, **_LIMITS)
            self.period_s = self._search.ask()
        self._first_ns: int | None = None
        self._last_ns = 0

    @property
    def began(self) -> bool:
        """Whether it has sampled."""
        return self._first_ns is not None

    def sample(self, now_ns: int) -> None:
        """Copy the cells at a time of the clock, which was read just before."""
        with self.lock:
            self._spent_s = self.thread_time()
            copies = self._cells.copy()
            self._first_ns, self._last_ns = self._first_ns or now_ns, now_ns
            if now_ns >= self._due_ns or list(map(len, copies)) != self._sizes:
                self._look_around(copies)
                self._due_ns = now_ns + _GLANCE_NS
            used = {owner: self.owners.used(owner) for owner in self._threads}
            self._samples.append(Sample(at_ns=now_ns, copies=copies, used=used))
            if len(self._samples) >= (_SAMPLES if self._search is None else _IN_A_ROW):
                self.work_off()

    def work_off(self) -> None:
        """Make periods of the samples so far, and rates of the periods."""
        with self.lock:
            samples, self._samples = self._samples, []
            if samples:
                before = self._blocked_ns
                for span in spans_of(samples, self._cells, gone=self._gone, before=before):
                    self._take(span)
                    self._blocked_ns = span.blocked_ns[-1]
                    self.nobody_left = bool(span.live) and not any(span.live)

    def report(self, *, cost_s: float = 0.0) -> MonitorReport:
        """Return the results from the samples worked off so far, and the cost."""
        with self.lock:
            first_ns = self._last_ns if self._first_ns is None else self._first_ns
            known = self._known()
            return MonitorReport(
                stages=tuple(
                    replace(stage, visits=self._visits(number))
                    for number, stage in enumerate(known)
                ),
                watched_s=(self._last_ns - first_ns) * 1e-9,
                cost_s=cost_s,
                period_s=self.period_s,
                failure=self.failure,
                seeking=self._search is not None,
            )

    def _known(self) -> list[WatchedStage]:
        """Return the results; rates are provisional until the method has a rate of its own.

        The method needs periods of one width, and so has no rate while that is sought.
        """
        known = [stage.known() for stage in self._stages]
        if self._search is not None:
            return [_provisional(stage) for stage in known]
        return [
            before if now.rate is None or now.rate.estimate is None else now
            for now, before in zip(known, self._provisional or known, strict=True)
        ]

    def _look_around(self, copies: Copies) -> None:
        """Check who counts, and who is gone; work off earlier samples with the former owners."""
        owners = owners_of(self._cells.table([copies])[0])
        gone = self.owners.gone({owner.pid for owner in owners})
        sizes = list(map(len, copies))
        if gone != self._gone or sizes != self._sizes:
            self.work_off()
        self._gone, self._sizes = gone, sizes
        self._threads = [owner for owner in dict.fromkeys(owners) if owner.tid]

    def _take(self, span: Span) -> None:
        """Pass the periods on to estimators, recording, and the search for a period."""
        read = [stage.read(span) for stage in self._stages]
        tables = [periods for periods in read if periods is not None]
        if len(tables) == len(read):
            items = [periods["items"] for periods in tables]
            start_s = tables[0]["start_s"]
            self._items.add(table_of(start_s=start_s, items=items[0], arrived=items))
        threads = Counter(thread for stage in self._stages for thread in stage.reader.threads)
        for stage, periods in zip(self._stages, read, strict=True):
            if periods is None or not periods.size:
                continue
            if any(threads[thread] > 1 for thread in stage.reader.threads):
                # The time of a thread that serves several stages cannot be divided among them.
                periods["cpu_s"] = periods["delay_s"] = np.nan
                derive_processor(periods)
            for counted in stage.tell(periods):
                if self.record is not None and (self._search is None or self._by_time):
                    self.record(stage.name, counted)
        if self._search is not None and tables:
            self._seek(self._search, tables)

    def _seek(self, search: PeriodCalibrator, tables: Sequence[PeriodTable]) -> None:
        """Pass periods to the search, with the waiting of the stage that waits least."""
        widths = tables[0]["period_s"].tolist()
        blocked = np.min([periods["blocked_s"] for periods in tables], axis=0) > 0.0
        items = np.sum([periods["items"] for periods in tables], axis=0)
        cost_s, self._seek_s = (self._spent_s - self._seek_s) / max(len(widths), 1), self._spent_s
        for period in zip(widths, blocked.tolist(), items.tolist(), strict=True):
            # Later ones were sampled with the old period; without items it is unknown whether the
            # stage would wait.
            if search.ask() == self.period_s and (period[-1] or not self._by_time):
                search.tell(*period, cost_s=cost_s)
        self.period_s = search.ask()
        if search.result is not None:
            self._adopt(search.result)

    def _adopt(self, found: CalibratedPeriod) -> None:
        """Go on with the period that was found; "busy-time" can use any."""
        self._search, self.period_s = None, found.period_s
        if self._by_time:
            self.period_s = found.period_s or _LIMITS["shortest_s"]
            return
        self._provisional = [_provisional(stage.known()) for stage in self._stages]
        for stage in self._stages:
            if stage.failure is None:
                stage.restart(replace(self._asked, period_s=self.period_s))
        if found.notice is not None:
            self.failure = f"{found.notice.sentence} Shorter ones take more of a processor."

    def _visits(self, number: int) -> Estimate | None:
        """Return how many items a stage served per item of the first stage that reads."""
        if self._first is None:
            return None
        items, confidence = self._items.full["arrived"].T, self._asked.confidence
        return if_estimable(filter_ratio, items[number], items[self._first], confidence=confidence)


def _provisional(stage: WatchedStage) -> WatchedStage:
    rates = (replace(rate, converged=False, reason=RateReason.PROVISIONAL) for rate in stage.rates)
    return replace(stage, rates=tuple(rates))


_START_S = 0.001
_MOST_COST = 0.01  # share of a processor that sampling may take
_TOLERANCE = 0.005  # relative deviation of a realised width from the one wanted


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
        self.result: CalibratedPeriod | None = None  # None while the search goes on
        self._begin_width()

    def ask(self) -> float | None:
        """Return the period to sample next, in seconds; None when finished."""
        return self._period_s if self.result is None else None

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
        if self.result is not None:
            return
        deviation = abs(realised_s - self._period_s)
        kept = max(deviation / _TOLERANCE, cost_s / _MOST_COST) <= self._period_s
        self._kept.append(kept)
        self._free.append(kept and not blocked)
        self._items.append(items)
        kept_now, free_now = (_in_a_row(flags[-_IN_A_ROW:]) for flags in (self._kept, self._free))
        if free_now and any(self._items):
            self._widest_s = self._period_s
            self._widen(enough=False)
        elif not self._unblocked and kept_now and not free_now:
            self._widest_s = self._period_s
            self._widen(enough=True)
        elif len(self._kept) >= self._tries:
            # Wider periods wait more, but hold more items, and are kept to more exactly.
            waits = self._reason() is RateReason.NO_NONBLOCKING
            self._widen(enough=waits or self._widest_s is not None)

    def _begin_width(self) -> None:
        # Whether periods of this width were kept to, and also free of waiting.
        self._kept, self._free = list[bool](), list[bool]()
        self._items: deque[float] = deque(maxlen=_IN_A_ROW)

    def _widen(self, *, enough: bool) -> None:
        """Go on with twice the width, or end."""
        if not enough and self._period_s < self._longest_s:
            self._period_s = min(2.0 * self._period_s, self._longest_s)
            self._begin_width()
        elif self._widest_s is not None:
            self.result = CalibratedPeriod(period_s=self._widest_s)
        else:
            limits = {"longest_s": self._longest_s, "epsilon": _TOLERANCE, "k": _IN_A_ROW}
            figures = {"period_s": self._period_s, **limits}
            reason = self._reason()
            notice = Notice.of(Code.NOT_CONVERGED, str(reason), **figures)
            self.result = CalibratedPeriod(period_s=None, reason=reason, notice=notice)

    def _reason(self) -> RateReason:
        """Return why this width will not do."""
        if _in_a_row(self._free):
            return RateReason.NO_ITEMS
        if _in_a_row(self._kept):
            return RateReason.NO_NONBLOCKING
        return RateReason.UNSTABLE_PERIOD


def _in_a_row(flags: Iterable[bool]) -> bool:
    """Whether enough of them are set one after the other."""
    return any(is_set and len([*run]) >= _IN_A_ROW for is_set, run in groupby(flags))
