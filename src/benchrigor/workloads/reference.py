"""Fixed work that is timed in turn with a workload: it tells the pace of the machine."""

from __future__ import annotations

from benchrigor.clocks import WallClock
from benchrigor.protocols import Clock

VERSION = 1  # of the work: any change of it makes other times

_EVERY_NS = 500_000  # the pace of a shared processor changes within a millisecond
MOST_SHARE = 0.05  # of the time that the reference may take
_LONG_SHARE = 0.01  # of a long reading, after which the reference is repeated for so long
_MOST_REPEATS = 100
_WARM_UP = 100  # calls, after which the interpreter has specialised its byte code
_STEPS = range(50)


class Reference:
    """Times a loop of byte code over a small dict, whenever half a millisecond has passed.

    The loop is run twice, and the second run counts: the first one brings its data back into the
    caches, whatever the workload has done to them.

    Parameters
    ----------
    clock
        Times the work.

    Examples
    --------
    >>> Reference().measure(lasting_ns=500_000) > 0
    True
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._now = (clock or WallClock()).now_ns
        self._table: dict[int, int] = {}
        self._due_ns = 0
        self._cost_ns = 1
        self._every_ns = 0
        self._cost_ns = 2 * min(self.measure(0) for _ in range(_WARM_UP))
        self._every_ns = max(_EVERY_NS, int(self._cost_ns / MOST_SHARE))
        self._due_ns += self._every_ns

    def is_due(self, now_ns: int) -> bool:
        """Return whether enough time has passed since it was measured last."""
        return now_ns >= self._due_ns

    def measure(self, lasting_ns: int) -> int:
        """Return the nanoseconds of the work after a reading, or readings, that took so long.

        The mean of repeated runs where that was long.
        """
        now, table = self._now, self._table
        repeats = repeats_after(lasting_ns, self._cost_ns)
        _loop(table)
        start = now()
        for _ in range(repeats):
            _loop(table)
        stop = now()
        self._due_ns = stop + self._every_ns
        return max((stop - start) // repeats, 1)


def repeats_after(lasting_ns: int, cost_ns: int) -> int:
    """Return how often work of such a cost is repeated after something that took so long."""
    return max(1, min(int(_LONG_SHARE * lasting_ns / cost_ns), _MOST_REPEATS))


def _loop(table: dict[int, int]) -> None:
    for step in _STEPS:
        key = step & 63
        table[key] = (table.get(key, 0) + step) & 255
