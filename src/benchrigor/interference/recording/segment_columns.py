"""The columns of recorded segments, kept in bounded memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.interference.binning import Quantiser
from benchrigor.interference.recording.thread_counters import EVIDENCE, FLOATING_POINT, NOMINAL
from benchrigor.machine.host_delays import HostDelay, attribute_delay

BINS = 256  # distinct values kept per counter (published)
_COUNTERS = ("computation", *NOMINAL, *EVIDENCE)
# Names of nominal features that are not the user's.
RESERVED = frozenset({"label", "unfinished", *NOMINAL})
_WIDTH = 1 + len(_COUNTERS)
# Share of all instructions from which on floating-point operations are the work of a program; an
# interpreter of bytecode takes some 50 instructions per operation.
_MUCH_FLOATING_POINT = 0.05
_WHOLE = 2.0**53  # beyond it a float no longer separates one whole number from the next
_ROWS = 2_048  # quantising this number at once takes about a microsecond per row


class SegmentColumns:
    """Columns that grow by a segment at a time.

    Durations, delays and work stay exact (24 bytes a segment, and 4 for its label); counters are
    quantised (about a byte per value).
    """

    def __init__(self) -> None:
        self._rows = array("q")
        self._counters = {name: Quantiser(BINS) for name in _COUNTERS}
        self._counts: dict[str, Quantiser] = {}
        self._durations_ns = array("q")
        self._run_delays_ns = array("q")
        self._host_delays_ns: dict[str, array[int]] = {}
        self._attributed = 0
        self._works = array("d")
        self._labels: dict[str, int] = {}
        self._label_of = array("L")
        self._unfinished = array("q")

    def __len__(self) -> int:
        return len(self._durations_ns)

    def add(
        self, duration_ns: int, counters: Iterable[int], label: str, work: float | None
    ) -> None:
        """Keep one segment: its wall time, and the growth of the counters."""
        rows = self._rows
        rows.extend(counters)
        self._run_delays_ns.append(rows[-_WIDTH])
        self._durations_ns.append(duration_ns)
        self._works.append(math.nan if work is None else work)
        self._label_of.append(self._labels.setdefault(label, len(self._labels)))

    def add_counts(self, counts: dict[str, int | float]) -> None:
        """Keep the user's counts of the last segment, and set them to 0."""
        for name, amount in counts.items():
            if name not in self._counts:
                self._counts[name] = Quantiser(BINS)
                for _ in range(len(self) - 1):
                    self._counts[name].append(0)
            self._counts[name].append(amount)
            counts[name] = 0

    def mark_unfinished(self) -> None:
        """Mark the last segment as left before its end."""
        self._unfinished.append(len(self) - 1)

    @property
    def full(self) -> bool:
        """Whether it is time to `pack`."""
        return len(self._rows) >= _ROWS * _WIDTH

    def pack(self) -> None:
        """Quantise the counters since the last time."""
        rows = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, _WIDTH)
        if rows.size:
            for counter, column in zip(self._counters.values(), rows.T[1:], strict=True):
                counter.add(column)
        self._rows = array("q")

    def attribute(self, host: HostDelay) -> None:
        """Attribute the host's delay since the last call to the segments since then.

        Throttled time is taken out of their run delay, so that none counts twice.
        """
        first, self._attributed = self._attributed, len(self)
        parts = attribute_delay(host, self._durations_ns[first:], self._run_delays_ns[first:])
        for source, part in parts.items():
            delays = self._host_delays_ns.setdefault(source, array("q"))
            delays.frombytes(bytes(delays.itemsize * (first - len(delays))))
            delays.extend(part)
            if source == "throttled":
                for index, delay_ns in enumerate(part, first):
                    self._run_delays_ns[index] -= delay_ns

    def profile_columns(self, computation: str, missing: Iterable[str]) -> dict[str, Any]:
        """Return the columns of a `SegmentProfile`, without those that are missing."""
        self.pack()
        missing = frozenset(missing)
        counters = {name: counter.values() for name, counter in self._counters.items()}
        computed = counters["computation"] / (1e9 if computation.endswith("_s") else 1.0)
        # A descriptor from elsewhere (a socket, a pipe) shows only when it is closed.
        counters["closes"] = np.maximum(counters["closes"], 0.0)
        evidence = {name: counters[name] for name in EVIDENCE if name not in missing}
        nominal: dict[str, npt.NDArray[Any]] = {}
        if any(self._labels):
            nominal["label"] = np.array(list(self._labels))[np.array(self._label_of)]
        if self._unfinished:
            nominal["unfinished"] = np.zeros(len(self), dtype=np.int64)
            nominal["unfinished"][self._unfinished] = 1
        nominal |= {name: _as_whole(counters[name]) for name in NOMINAL if name not in missing}
        nominal |= {name: _as_whole(counter.values()) for name, counter in self._counts.items()}
        work = {computation: computed}
        instructions = computed.sum() if computation == "instructions" else math.inf
        operated = evidence.get(FLOATING_POINT)
        if operated is not None and operated.sum() >= _MUCH_FLOATING_POINT * instructions:
            work, evidence[computation] = {FLOATING_POINT: evidence.pop(FLOATING_POINT)}, computed
        if not self.without_work:
            evidence |= work
            work = {"work": np.array(self._works)}
        return {
            "duration_s": _seconds(self._durations_ns),
            "computation": work,
            "nominal": nominal,
            "delays": self._delays(missing),
            "evidence": evidence,
        }

    @property
    def without_work(self) -> int:
        """How many segments have no amount of work."""
        return int(np.isnan(np.asarray(self._works)).sum())

    def _delays(self, missing: frozenset[str]) -> dict[str, npt.NDArray[np.float64]]:
        delays = {} if "run queue" in missing else {"run queue": _seconds(self._run_delays_ns)}
        for source, delays_ns in self._host_delays_ns.items():
            delays[source] = np.zeros(len(self))
            delays[source][: len(delays_ns)] = _seconds(delays_ns)
        return delays


def _seconds(nanoseconds: array[int]) -> npt.NDArray[np.float64]:
    return np.array(nanoseconds, dtype=np.float64) / 1e9


def _as_whole(values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return counts as integers, which are faster to group, if all of them are."""
    whole = (values == np.rint(values)).all() and (np.abs(values) < _WHOLE).all()
    return values.astype(np.int64) if whole else values
