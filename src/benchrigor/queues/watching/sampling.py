"""The loop that samples counters, the same in a thread and in a process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput, NotEstimable
from benchrigor.queues.calibrating import PeriodCalibrator
from benchrigor.queues.rates import ServiceRateEstimator
from benchrigor.queues.watching.monitor_report import MonitorReport
from benchrigor.queues.watching.owners import Owner, Owners
from benchrigor.queues.watching.period_block import PeriodBlock
from benchrigor.queues.watching.samples import Cells, Copies, Sample, Span, owners_of, spans_of
from benchrigor.queues.watching.stage import Stage
from benchrigor.queues.watching.stage_figures import StageFigures, WatchedStage
from benchrigor.queues.watching.stage_reader import StageReader
from benchrigor.queues.watching.stretches import Stretches
from benchrigor.stats.service.rate_arithmetic import filter_ratio

__all__ = ["Record", "Sampler", "Watching", "keep_sampling"]

_SAMPLES = 256
"""Samples that are worked off together."""
_GLANCE_NS = 100_000_000
"""How often it is looked who has gone: asking takes as long as half a sample."""
_SOUGHT = 5
"""The same while a period is looked for: fewer in a row decide nothing."""

Record = Callable[[str, PeriodBlock], Any]
"""Is told the name of a stage, and periods of it that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How stages are watched.

    Parameters
    ----------
    period_s
        Sampling period, in seconds; None to find it out.
    method, guards, confidence, target
        As of `ServiceRateEstimator`.
    """

    period_s: float | None = 0.05
    method: str = "busy-time"
    guards: bool = True
    confidence: float = 0.95
    target: float = 0.05

    def estimator(self, servers: int = 1) -> ServiceRateEstimator:
        """Return an estimator for so many servers.

        Raises
        ------
        InvalidInput
            When a part makes no sense.
        """
        # With guards the quantile method joins periods itself, as the waiting of a stage allows.
        as_published = self.method == "quantile" and not self.guards
        return ServiceRateEstimator(
            self.method,
            self.period_s if as_published else None,
            self.guards,
            servers=servers,
            target=self.target,
            confidence=self.confidence,
        )


class Sampler:
    """Samples the cells of all stages at once, and keeps what they come to.

    Samples are worked off some at a time, or when they are asked to be.

    Parameters
    ----------
    stages
        What is watched.
    watching
        How.
    owners
        Knows those who count.

    Attributes
    ----------
    record
        Is told of the periods that count; None where nobody is.
    period_s
        How long to wait for the next sample, in seconds; None when there is to be none.
    failure
        Why there is to be none.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        watching: Watching,
        *,
        owners: Owners | None = None,
    ) -> None:
        self._watching = watching
        self._owners = Owners() if owners is None else owners
        self._pairs = [(StageReader(stage), self._figures(stage)) for stage in stages]
        self._cells = Cells(end for reader, _ in self._pairs for end in reader.ends)
        self._together = Stretches(1 + len(stages))
        reading = (number for number, stage in enumerate(stages) if stage.reads)
        self._first = next(reading, None)
        self._samples: list[Sample] = []
        self._sizes: list[int] = []
        self._threads: list[Owner] = []
        self._due_ns = 0
        self._gone: frozenset[int] = frozenset()
        self._blocked_ns = np.zeros(0, dtype=np.int64)
        self._by_time = watching.method == "busy-time"
        self._search: PeriodCalibrator | None = None
        self.period_s = watching.period_s
        if watching.period_s is None:
            self._search = PeriodCalibrator(unblocked=not self._by_time)
            self.period_s = self._search.ask()
        self.record: Record | None = None
        self.failure: str | None = None
        self.nobody_left = False
        self._first_ns: int | None = None
        self._last_ns = 0

    def sample(self, now_ns: int) -> None:
        """Copy the cells.

        Parameters
        ----------
        now_ns
            What the clock shows, looked at just before.
        """
        copies = self._cells.copy()
        self._first_ns, self._last_ns = self._first_ns or now_ns, now_ns
        if now_ns >= self._due_ns or list(map(len, copies)) != self._sizes:
            self._look_around(copies)
            self._due_ns = now_ns + _GLANCE_NS
        used = {owner: self._owners.used(owner) for owner in self._threads}
        self._samples.append(Sample(at_ns=now_ns, copies=copies, used=used))
        if len(self._samples) >= (_SAMPLES if self._search is None else _SOUGHT):
            self.work_off()

    def _look_around(self, copies: Copies) -> None:
        """See who counts, and who is gone; samples before that are of those who were there."""
        owners = owners_of(self._cells.words([copies])[0])
        gone = self._owners.gone({owner.pid for owner in owners})
        sizes = list(map(len, copies))
        if gone != self._gone or sizes != self._sizes:
            self.work_off()
        self._gone, self._sizes = gone, sizes
        self._threads = [owner for owner in dict.fromkeys(owners) if owner.tid]

    def work_off(self) -> None:
        """Make periods of the samples that were taken, and rates of those."""
        samples, self._samples = self._samples, []
        if not samples:
            return
        words = self._cells.words([each.copies for each in samples])
        blocked_ns = np.zeros(words.shape[1], dtype=np.int64)
        blocked_ns[: self._blocked_ns.size] = self._blocked_ns
        places = self._cells.places
        for span in spans_of(samples, words, places, gone=self._gone, before=blocked_ns):
            self._take([self._read(*each, span) for each in self._pairs])
            self._blocked_ns = span.blocked_ns[-1]
            self.nobody_left = bool(span.live) and not any(span.live)

    def report(self, *, cost_s: float = 0.0) -> MonitorReport:
        """Return what is known by what has been worked off, with what it cost."""
        first_ns = self._last_ns if self._first_ns is None else self._first_ns
        known = [figures.known() for _, figures in self._pairs]
        return MonitorReport(
            stages=tuple(map(self._with_visits, range(len(known)), known)),
            watched_s=(self._last_ns - first_ns) * 1e-9,
            cost_s=cost_s,
            period_s=self.period_s,
            failure=self.failure,
            seeking=self._search is not None,
        )

    def close(self) -> None:
        """Let go of what is open."""
        self._owners.close()

    def _read(self, reader: StageReader, figures: StageFigures, span: Span) -> PeriodBlock | None:
        if figures.failure is not None:
            return None
        try:
            return reader.read(span)
        except InvalidInput as error:  # one stage that was described wrongly is no other's loss
            figures.failure = str(error)
            return None

    def _take(self, found: Sequence[PeriodBlock | None]) -> None:
        """Pass the periods on to the estimators, and to the search for a period."""
        blocks = [each for each in found if each is not None]
        if len(blocks) == len(found):
            items = [each.items for each in blocks]
            self._together.add(np.column_stack([blocks[0].start_s, *items]))
        if self._search is None or self._by_time:
            threads = Counter(thread for reader, _ in self._pairs for thread in reader.threads)
            for (reader, figures), block in zip(self._pairs, found, strict=True):
                if block is not None and block.n:
                    alone = all(threads[each] == 1 for each in reader.threads)
                    figures.tell(block if alone else block.without_times())
        if self._search is not None and blocks:
            self._seek(self._search, blocks)

    def _seek(self, search: PeriodCalibrator, blocks: Sequence[PeriodBlock]) -> None:
        """Tell the search: the stage that waits least is the one that the period is for."""
        widths = blocks[0].period_s.tolist()
        blocked = np.min([each.blocked_s for each in blocks], axis=0) > 0.0
        items = np.sum([each.items for each in blocks], axis=0)
        for told in zip(widths, blocked.tolist(), items.tolist(), strict=True):
            if search.ask() == self.period_s:  # what follows was not sampled with the new one yet
                search.tell(*told)
        self.period_s = search.ask()
        if search.result is not None:
            self._search, self.period_s = None, search.result.period_s
            self._watching = replace(self._watching, period_s=self.period_s)
            if search.result.notice is not None:
                self.failure = search.result.notice.sentence

    def _with_visits(self, number: int, known: WatchedStage) -> WatchedStage:
        """Add how many items the stage served for each that the first one served that reads."""
        if self._first is None:
            return known
        own, first = (self._together.rows[:, 1 + at] for at in (number, self._first))
        try:
            visits = filter_ratio(own, first, confidence=self._watching.confidence)
        except (InvalidInput, NotEstimable):
            return known
        return replace(known, visits=visits)

    def _pass(self, stage: str, block: PeriodBlock) -> None:
        if self.record is not None:
            self.record(stage, block)

    def _figures(self, stage: Stage) -> StageFigures:
        return StageFigures(
            stage, self._estimator, confidence=self._watching.confidence, record=self._pass
        )

    def _estimator(self, servers: int) -> ServiceRateEstimator:
        return self._watching.estimator(servers)


def keep_sampling(
    take: Callable[[int], float | None],
    wait: Callable[[float], bool],
    *,
    now_ns: Callable[[], int] = time.perf_counter_ns,
) -> None:
    """Sample on a grid of times, so that no period makes the next one later.

    Parameters
    ----------
    take
        Takes a sample at the time it is given, in nanoseconds, and returns how many seconds there
        are to the next one; None ends it.
    wait
        Waits for so many seconds, or until it is told to stop, and returns whether it was.
    now_ns
        Reads the clock.

    Notes
    -----
    Times of the grid that have passed are skipped.

    Examples
    --------
    >>> from benchrigor.testing import FakeClock
    >>> clock, seen = FakeClock(), []
    >>> def take(now_ns):
    ...     seen.append(now_ns)
    ...     clock.advance(25 if now_ns == 20 else 3)
    ...     return 10e-9 if len(seen) < 5 else None
    >>> def wait(seconds):
    ...     return clock.sleep_ns(round(seconds * 1e9)) is not None
    >>> keep_sampling(take, wait, now_ns=clock.now_ns)
    >>> seen
    [0, 10, 20, 50, 60]
    """
    due_ns = now_ns()
    while not wait(max(0, due_ns - now_ns()) * 1e-9):
        period_s = take(now_ns())
        if period_s is None:
            return
        period_ns = max(1, round(period_s * 1e9))
        late_ns = max(0, now_ns() - due_ns)
        due_ns += period_ns * (1 + late_ns // period_ns)
