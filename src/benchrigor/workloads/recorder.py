"""Collects the results of a round, in chunks, and makes a Round of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Delays, Notice, References, Round, RoundPlan
from benchrigor.model.readings import as_clock_times
from benchrigor.model.series import Floats, Ints, as_series


class RoundRecorder:
    """Receives what one round gives and makes a Round of it.

    Chunks are checked when they arrive and concatenated once, at the end; InvalidInput names the
    first item that is not a finite number.

    Examples
    --------
    >>> from benchrigor.model import RoundPlan
    >>> recorder = RoundRecorder()
    >>> recorder.unit_readings("time", [0.25, 0.5])
    >>> recorder.unit_readings("time", [0.5])
    >>> recorder.reading("throughput", 2.4)
    >>> finished = recorder.finish(RoundPlan(index=0), elapsed_ns=1_250_000_000)
    >>> finished.unit_readings["time"], finished.readings
    (array([0.25, 0.5 , 0.5 ]), {'throughput': 2.4})
    """

    def __init__(self) -> None:
        self._chunks: dict[str, list[Floats]] = {}
        self._readings: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._facts: dict[str, str | float | bool | None] = {}
        self._notices: dict[tuple[Code, object], Notice] = {}
        self._starts: list[Ints] = []
        self._measured: dict[str, list[Any]] = {}
        self._cut = False

    def unit_readings(self, metric: str, values: npt.ArrayLike) -> None:
        """Add readings of successive units of work, shape (n,), in the metric's unit."""
        series = as_series(values, name=f"unit readings of {metric!r}")
        self._chunks.setdefault(metric, []).append(series)

    def reading(self, metric: str, value: float, *, weight: float | None = None) -> None:
        """Give the single reading of the whole round; ``weight`` is its weight in the mean."""
        if metric in self._readings:
            raise InvalidInput(
                f"a second reading of {metric!r}, {value!r}, expected one per round; "
                "give several as unit readings"
            )
        (self._readings[metric],) = as_series([value], name=f"reading of {metric!r}").tolist()
        if weight is not None:
            self._weights[metric] = weight

    def delays(self, values: Delays | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> None:
        """Give measured delays as `Round` has them; plain seconds of readings also in chunks."""
        self._measure("delays", values)

    def starts_ns(self, values: npt.ArrayLike) -> None:
        """Add the start times of n further unit readings, shape (n,), in nanoseconds of a clock."""
        self._starts.append(as_clock_times(values))

    def references(self, values: References | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> None:
        """Give times of fixed work as `Round` has them; plain seconds also in chunks."""
        self._measure("references", values)

    def _measure(self, what: str, values: Any) -> None:
        """Keep values that are given once, or a chunk of plain seconds."""
        if isinstance(values, Mapping):
            values = {
                name: as_series(value, name=f"{what}[{name!r}]") for name, value in values.items()
            }
        elif not isinstance(values, Delays | References):
            values = as_series(values, name=what)
        parts = self._measured.setdefault(what, [])
        if parts and not all(isinstance(chunk, np.ndarray) for chunk in (parts[0], values)):
            raise InvalidInput(
                f"{what} are given again, expected once in a round, or plain seconds in chunks"
            )
        parts.append(values)

    def fact(self, name: str, value: str | float | bool | None) -> None:
        """State how the measuring was done; the last value of a name counts."""
        self._facts[name] = value

    def notice(self, notice: Notice) -> None:
        """Keep a Notice, the first per code and metric."""
        self._notices.setdefault((notice.code, notice.evidence.get("metric")), notice)

    def cut(self) -> None:
        """State that the round was ended before its work was done."""
        self._cut = True

    def finish(self, plan: RoundPlan, elapsed_ns: int, *, ran_ns: int | None = None) -> Round:
        """Return the round with all that was recorded.

        Parameters
        ----------
        plan
            The plan that was carried out.
        elapsed_ns
            Wall time of the whole round, in nanoseconds.
        ran_ns
            Wall time of the workload alone; None if it is not known.
        """
        measured: dict[str, Any] = {
            name: np.concatenate(parts) if len(parts) > 1 else parts[0]
            for name, parts in self._measured.items()
        }
        return Round(
            plan=plan,
            elapsed_ns=elapsed_ns,
            ran_ns=ran_ns,
            unit_readings={name: np.concatenate(rows) for name, rows in self._chunks.items()},
            readings=self._readings,
            facts=dict(self._facts),
            notices=tuple(self._notices.values()),
            starts_ns=np.concatenate(self._starts) if self._starts else None,
            **measured,
            weights=self._weights,
            cut=self._cut,
        )
