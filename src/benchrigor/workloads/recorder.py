"""Collects what a round gives, in chunks, and makes a Round of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    Code,
    Delays,
    Floats,
    Notice,
    References,
    Round,
    RoundPlan,
    as_series,
)
from benchrigor.model.series import Ints


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
        self._delays: dict[str, list[Floats]] = {}
        self._starts: list[Ints] = []
        self._references: list[References] = []
        self._cut = False

    def unit_readings(self, metric: str, values: npt.ArrayLike) -> None:
        """Add readings of successive units of work, shape (n,), in the metric's unit."""
        chunks = self._chunks.setdefault(metric, [])
        chunks.append(as_series(values, name=f"unit readings of {metric!r}"))

    def reading(self, metric: str, value: float, *, weight: float | None = None) -> None:
        """Give the one reading of the whole round; ``weight`` is what it counts in the mean."""
        if metric in self._readings:
            raise InvalidInput(
                f"a second reading of {metric!r}, {value!r}, expected one per round; "
                "give several as unit readings"
            )
        (self._readings[metric],) = as_series([value], name=f"reading of {metric!r}").tolist()
        if weight is not None:
            self._weights[metric] = weight

    def delays(
        self,
        stops: npt.ArrayLike,
        seconds: npt.ArrayLike,
        duration_s: npt.ArrayLike | None = None,
        known: npt.ArrayLike | None = None,
        own: npt.ArrayLike | None = None,
    ) -> None:
        """Add the measured delays of groups of successive readings, as `Delays` has them.

        All calls in a round give the same of the last three, or leave them out.
        """
        columns: dict[str, npt.ArrayLike | None] = {"stops": stops, "seconds": seconds}
        columns |= {"duration_s": duration_s, "known": known, "own": own}
        for name, values in columns.items():
            if values is not None:
                self._delays.setdefault(name, []).append(as_series(values, name=name))

    def starts_ns(self, values: npt.ArrayLike) -> None:
        """Add when so many further unit readings began, shape (n,), in nanoseconds of a clock."""
        self._starts.append(np.asarray(values))

    def references(self, stops: npt.ArrayLike, seconds: Mapping[str, npt.ArrayLike]) -> None:
        """Add times of fixed work in turn with the readings, as `References` has them."""
        self._references.append(References(stops=stops, seconds=seconds))

    def fact(self, name: str, value: str | float | bool | None) -> None:
        """State how the measuring was done; the last value of a name counts."""
        self._facts[name] = value

    def notice(self, notice: Notice) -> None:
        """Keep a notice, the first of each code and metric."""
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
            Wall time of the workload alone; None where it is not known.
        """
        delays = None
        if self._delays:
            columns = {name: np.concatenate(parts) for name, parts in self._delays.items()}
            delays = Delays(seconds={"run queue": columns.pop("seconds")}, **columns)
        references = None
        if self._references:
            references = References(
                stops=np.concatenate([each.stops for each in self._references]),
                seconds={
                    name: np.concatenate([each.seconds[name] for each in self._references])
                    for name in self._references[0].seconds
                },
            )
        return Round(
            plan=plan,
            elapsed_ns=elapsed_ns,
            ran_ns=ran_ns,
            unit_readings={name: np.concatenate(rows) for name, rows in self._chunks.items()},
            readings=self._readings,
            facts=dict(self._facts),
            notices=tuple(self._notices.values()),
            starts_ns=np.concatenate(self._starts) if self._starts else None,
            delays=delays,
            references=references,
            weights=self._weights,
            cut=self._cut,
        )
