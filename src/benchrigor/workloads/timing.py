"""What the timing workloads share: a clock that is judged, and failures that are told apart."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from benchrigor.clocks import clock_cost_ns
from benchrigor.errors import ClockFailed, WorkloadFailed
from benchrigor.model import Code, Floats, Notice
from benchrigor.protocols import Clock, Recorder
from benchrigor.units import scale_for

_CHUNK = 65_536
"""Readings held as Python integers before they are handed over: bounds memory at a few MB."""

_RESOLUTIONS = 1_000
_SHORTEST_NS = 20_000
_COST_ALLOWED = 0.01
"""Share of a reading that reading the clock may take before it is worth a word."""

_TYPICAL = 1_000
"""The last readings of a round, of which the median is typical: past any warm-up."""


class Stopwatch:
    """A clock, and what is known of it before it times anything.

    Parameters
    ----------
    clock
        Its cost is measured here, with about two thousand reads.
    """

    def __init__(self, clock: Clock) -> None:
        self.now_ns = clock.now_ns
        self.resolution_ns = clock.resolution_ns
        self.cost_ns = clock_cost_ns(clock)
        self._told: set[Code] = set()

    @property
    def shortest_ns(self) -> int:
        """How long a reading must last for the clock to resolve a thousandth of it."""
        return max(_RESOLUTIONS * self.resolution_ns, _SHORTEST_NS)

    def report(self, recorder: Recorder, elapsed_ns: Sequence[int]) -> None:
        """State what the clock resolves and costs, and once each what is wrong with that.

        Parameters
        ----------
        recorder
            Receives facts and Notices.
        elapsed_ns
            The round's last readings, at least one, in whole nanoseconds.
        """
        recorder.fact("clock_resolution_s", self.resolution_ns / 1e9)
        recorder.fact("clock_cost_s", self.cost_ns / 1e9)
        typical_ns = statistics.median(elapsed_ns[-_TYPICAL:])
        for notice in self._objections(typical_ns):
            if notice.code not in self._told:
                self._told.add(notice.code)
                recorder.notice(notice)

    def _objections(self, typical_ns: float) -> Iterator[Notice]:
        if typical_ns < self.shortest_ns:
            yield Notice.warning(
                Code.COARSE_CLOCK,
                f"A reading typically lasts {_shown(typical_ns)}, but a clock with steps of "
                f"{_shown(self.resolution_ns)} wants at least {_shown(self.shortest_ns)}: "
                "let a reading hold more work.",
                resolution_s=self.resolution_ns / 1e9,
                typical_s=typical_ns / 1e9,
                wanted_s=self.shortest_ns / 1e9,
            )
        if self.cost_ns > _COST_ALLOWED * typical_ns:
            yield Notice.note(
                Code.CLOCK_COST,
                f"Reading the clock takes {_shown(self.cost_ns)} of a typical reading of "
                f"{_shown(typical_ns)}, and is not subtracted.",
                cost_s=self.cost_ns / 1e9,
                typical_s=typical_ns / 1e9,
            )


def chunks(readings: int) -> Iterator[tuple[int, int]]:
    """Cut a round into chunks, each as (readings before it, readings in it).

    Examples
    --------
    >>> list(chunks(100_000))
    [(0, 65536), (65536, 34464)]
    """
    for done in range(0, readings, _CHUNK):
        yield done, min(_CHUNK, readings - done)


def in_seconds(elapsed_ns: Sequence[int], *, done: int = 0, inner: int = 1) -> Floats:
    """Turn whole nanoseconds into seconds per call.

    Parameters
    ----------
    elapsed_ns
        Readings in nanoseconds, shape (n,).
    done
        Readings of the round before these.
    inner
        Calls in each reading.

    Raises
    ------
    ClockFailed
        For the first negative reading.

    Examples
    --------
    >>> in_seconds([3_000, 5_000], inner=2)
    array([1.5e-06, 2.5e-06])
    """
    # From a list of integers a third faster than np.array (measured, docs/evidence/recording.py).
    whole = np.fromiter(elapsed_ns, dtype=np.int64, count=len(elapsed_ns))
    if whole.min(initial=0) < 0:
        index = int(np.argmax(whole < 0))
        raise ClockFailed(
            f"the clock went backwards by {-whole[index]} ns at reading {done + index}, "
            "expected one that never goes back; use a monotonic clock"
        )
    return whole / (1e9 * inner)


@contextmanager
def failures_of(part: str, elapsed_ns: Sequence[int], done: int | None) -> Iterator[None]:
    """Raise `WorkloadFailed` from whatever the part of a workload run inside raises.

    Parameters
    ----------
    part
        How the message calls it.
    elapsed_ns
        Grows by one with each finished reading.
    done
        Readings of the round before these; None while nothing is recorded yet.
    """
    try:
        yield
    # SystemExit: code under test that exits must not take the session with it.
    except (Exception, SystemExit) as error:
        where = (
            "before the first reading" if done is None else f"at reading {done + len(elapsed_ns)}"
        )
        said = f": {error}" if str(error) else ""
        raise WorkloadFailed(f"{part} raised {type(error).__name__}{said} ({where})") from error


def name_of(function: Callable[[], object]) -> str:
    """Name a function for people: its module and where in it it stands.

    Examples
    --------
    >>> import os.path
    >>> name_of(os.path.getsize), name_of(len)
    ('genericpath.getsize', 'len')
    """
    if isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    place = named.__qualname__.replace("<locals>.", "")
    module = getattr(named, "__module__", None)
    return place if module in {None, "__main__", "builtins"} else f"{module}.{place}"


def _shown(duration_ns: float) -> str:
    scale = scale_for(duration_ns / 1e9, "s")
    return f"{duration_ns / 1e9 * scale.factor:.4g} {scale.name}"
