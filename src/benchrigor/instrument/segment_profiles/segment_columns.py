"""Keeps what is recorded of segments, in bounded memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.instrument.host_delays import Rises, charge
from benchrigor.instrument.segment_profiles.thread_counters import EVIDENCE, NOMINAL
from benchrigor.stats import Quantiser

__all__ = ["RESERVED", "SegmentColumns"]

_QUANTISED = ("computation", *NOMINAL, *EVIDENCE)
RESERVED = frozenset({"label", "unfinished", *NOMINAL})
"""Names of nominal features that are not the user's."""
_WIDTH = 1 + len(_QUANTISED)
_NONE = math.nan
_WHOLE = 2.0**53
"""Beyond it a float no longer tells one whole number from the next."""
_ROWS = 2_048
"""Quantising so many at once takes about a microsecond each."""


class SegmentColumns:
    """Columns that grow by a segment at a time.

    Durations, delays and work stay exact (24 bytes a segment, and 4 for its label); the rest is
    quantised (about a byte each).

    Parameters
    ----------
    bins
        How many distinct values each quantised column may have; None keeps all exactly.
    """

    def __init__(self, bins: int | None) -> None:
        self._rows = array("q")
        self._bins = bins
        self._kept = [self._column() for _ in _QUANTISED]
        self._counts: dict[str, Quantiser | _Exact] = {}
        self._durations_ns = array("q")
        self._run_queue_ns = array("q")
        self._charged_ns: dict[str, array[int]] = {}
        self._charged = 0
        self._works = array("d")
        self._labels: dict[str, int] = {}
        self._label_of = array("L")
        self._unfinished = array("q")

    def __len__(self) -> int:
        return len(self._durations_ns)

    def add(self, duration_ns: int, gains: Iterable[int], label: str, work: float | None) -> None:
        """Keep one segment: its wall time, and how much each of the thread's counters grew."""
        rows = self._rows
        rows.extend(gains)
        self._run_queue_ns.append(rows[-_WIDTH])
        self._durations_ns.append(duration_ns)
        self._works.append(_NONE if work is None else work)
        self._label_of.append(self._labels.setdefault(label, len(self._labels)))

    def add_counts(self, counts: dict[str, int | float]) -> None:
        """Keep what the user counted of the last segment, and set it to 0."""
        for name, amount in counts.items():
            if name not in self._counts:
                self._counts[name] = self._column()
                for _ in range(len(self) - 1):
                    self._counts[name].append(0)
            self._counts[name].append(amount)
            counts[name] = 0

    def mark_unfinished(self) -> None:
        """Say that the last segment was left before its end."""
        self._unfinished.append(len(self) - 1)

    @property
    def full(self) -> bool:
        """Whether it is time to `pack`."""
        return len(self._rows) >= _ROWS * _WIDTH

    def pack(self) -> None:
        """Quantise what has come since the last time."""
        rows = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, _WIDTH)
        if rows.size:
            for kept, column in zip(self._kept, rows.T[1:], strict=True):
                kept.add(column)
        self._rows = array("q")

    def charge(self, rises: Rises) -> None:
        """Charge what the host lost since the last call to the segments since then.

        Throttled time is taken out of their run delay, so that none counts twice.
        """
        first, self._charged = self._charged, len(self)
        parts = charge(rises, self._durations_ns[first:], self._run_queue_ns[first:])
        for source, part in parts.items():
            charged = self._charged_ns.setdefault(source, array("q"))
            charged.frombytes(bytes(charged.itemsize * (first - len(charged))))
            charged.extend(part)
            if source == "throttled":
                for index, share_ns in enumerate(part, first):
                    self._run_queue_ns[index] -= share_ns

    def profile_columns(self, computation: str, missing: Iterable[str]) -> dict[str, Any]:
        """Return the columns of a `SegmentProfile`, without those that are missing."""
        self.pack()
        missing = frozenset(missing)
        found = dict(zip(_QUANTISED, (kept.values() for kept in self._kept), strict=True))
        computed = found["computation"] / (1e9 if computation.endswith("_s") else 1.0)
        # A descriptor that comes from elsewhere (a socket, a pipe) shows only when it goes.
        found["closes"] = np.maximum(found["closes"], 0.0)
        evidence = {name: found[name] for name in EVIDENCE if name not in missing}
        nominal: dict[str, npt.NDArray[Any]] = {}
        if any(self._labels):
            nominal["label"] = np.array(list(self._labels))[np.array(self._label_of)]
        if self._unfinished:
            nominal["unfinished"] = np.zeros(len(self), dtype=np.int64)
            nominal["unfinished"][self._unfinished] = 1
        nominal |= {name: _whole(found[name]) for name in NOMINAL if name not in missing}
        nominal |= {name: _whole(kept.values()) for name, kept in self._counts.items()}
        works = np.array(self._works)
        if self.without_work:
            by_name = {computation: computed}
        else:
            by_name = {"work": works}
            evidence[computation] = computed
        return {
            "duration_s": _seconds(self._durations_ns),
            "computation": by_name,
            "nominal": nominal,
            "delays": self._delays(missing),
            "evidence": evidence,
        }

    @property
    def without_work(self) -> int:
        """How many segments have no amount of work."""
        return int(np.isnan(np.asarray(self._works)).sum())

    def _delays(self, missing: frozenset[str]) -> dict[str, npt.NDArray[np.float64]]:
        delays = {} if "run queue" in missing else {"run queue": _seconds(self._run_queue_ns)}
        for source, charged in self._charged_ns.items():
            seconds = np.zeros(len(self))
            seconds[: len(charged)] = _seconds(charged)
            delays[source] = seconds
        return delays

    def _column(self) -> Quantiser | _Exact:
        return _Exact() if self._bins is None else Quantiser(self._bins)


class _Exact:
    """A column like `Quantiser`'s, of exact values."""

    def __init__(self) -> None:
        self._values = array("d")

    def append(self, value: float) -> None:
        self._values.append(value)

    def add(self, values: npt.NDArray[Any]) -> None:
        self._values.frombytes(values.astype(np.float64).tobytes())

    def values(self) -> npt.NDArray[np.float64]:
        return np.array(self._values)


def _seconds(nanoseconds: array[int]) -> npt.NDArray[np.float64]:
    return np.array(nanoseconds, dtype=np.float64) / 1e9


def _whole(values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return counts as integers, which are faster to group, where all of them are."""
    whole = (values == np.rint(values)).all() and (np.abs(values) < _WHOLE).all()
    return values.astype(np.int64) if whole else values
