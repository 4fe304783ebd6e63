"""Doubles the bounds of full queues, as RaftLib does to see how fast their producers are.

Beard & Chamberlain 2015, section III: a full queue hides the service rate of its producer. The
authors' program doubles a queue that was full in 80 % of its samples, three times in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchrigor.queues.counting.writers import Double, End
from benchrigor.queues.stages.monitor_report import QueueGrowth
from benchrigor.queues.stages.stage import HEAD, TAIL, Stage
from benchrigor.queues.watching.sampler import keep_sampling
from benchrigor.queues.watching.thread_watch import WatchThread

FULL = 0.8  # a queue counts as full if its producers wait for room for this share of a period
IN_A_ROW = 3
MOST_TIMES = 64  # the bound that the program has set


class FullQueue:
    """Decides whether one queue has been full."""

    def __init__(self) -> None:
        self._at_ns: int | None = None
        self._blocked_ns = self._full = 0

    def is_full(self, now_ns: int, blocked_ns: int) -> bool:
        """Whether it was full in three periods in a row, by the time waited until now."""
        before_ns, before = self._at_ns, self._blocked_ns
        self._at_ns, self._blocked_ns = now_ns, blocked_ns
        if before_ns is None or now_ns <= before_ns:
            return False
        is_full = blocked_ns - before >= FULL * (now_ns - before_ns)
        self._full = self._full + 1 if is_full else 0
        if self._full < IN_A_ROW:
            return False
        self._full = 0
        return True


class GrowthWatch:
    """Looks at the tails of queues period by period, in a thread, and grows those that are full."""

    def __init__(self, stages: Iterable[Stage], *, period_s: float) -> None:
        ends = {_tail(end).key: end for stage in stages for end in (*stage.reads, *stage.writes)}
        self._queues: list[tuple[End, Double, FullQueue]] = [
            (_tail(end), end.double, FullQueue()) for end in ends.values() if end.double
        ]
        self.fixed = tuple(
            _tail(end).name.removesuffix(TAIL) for end in ends.values() if not end.double
        )
        self.growths: tuple[QueueGrowth, ...] = ()
        self._period_s = period_s
        self._began_ns: int | None = None
        self._thread = WatchThread("benchrigor-growth", self._watch)

    @property
    def failure(self) -> str | None:
        """Why it grows no more."""
        failure = self._thread.failure
        return failure and f"queues grow no more: {failure}"

    def start(self) -> None:
        """Begin."""
        if self._queues:
            self._thread.start()

    def stop(self) -> None:
        """End; grown queues keep their bounds until their taps are closed."""
        if self._queues:
            self._thread.stop()

    def grow(self, now_ns: int) -> float:
        """Grow the queues that have been full; return the seconds until the next call."""
        self._began_ns = self._began_ns or now_ns
        for tail, double, seen in self._queues:
            # Of several producers the one that waited longest counts.
            blocked_ns = max((counts.blocked_ns for counts in tail.read(now_ns)), default=0)
            if seen.is_full(now_ns, blocked_ns) and (moved := double(MOST_TIMES)) is not None:
                at_s = (now_ns - self._began_ns) * 1e-9
                name = tail.name.removesuffix(TAIL)
                grown = QueueGrowth(name=name, before=moved[0], after=moved[1], at_s=at_s)
                self.growths = (*self.growths, grown)
        return self._period_s

    def _watch(self, wait: Callable[[float], bool]) -> None:
        keep_sampling(self.grow, wait)


def _tail(end: End) -> End:
    """Return the producer's end of the queue of an end."""
    if end.name.endswith(HEAD):
        return End(end.page, end.name.removesuffix(HEAD) + TAIL)
    return end
