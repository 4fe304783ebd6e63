"""The plan of a round, and its readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.notice import Notice
from benchrigor.model.series import as_series

Facts = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    """One round that a session asks for.

    Parameters
    ----------
    index
        The round's identity, counted from 0.
    work
        Work amount in the workload's own unit (bytes, requests), whole where amounts are; None
        where there is none to choose.
    readings
        Unit readings wanted; ignored by workloads that give one reading per round.
    seed
        For what the workload draws; the same in a repeated or resumed session.
    seconds
        Wall time that the round may take: what is left of the budget; None for no limit. A
        workload that can be interrupted obeys it.
    """

    index: int
    work: int | float | None = None
    readings: int = 1
    seed: int = 0
    seconds: float | None = field(default=None, compare=False)  # it is the same plan later on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delays:
    """The measured delays of a round, for groups of successive readings.

    Parameters
    ----------
    stops
        Index after the last unit reading of each group, ascending, shape (k,); the last one is
        the number of readings. A round with one reading is one group.
    seconds
        By source ("run queue", "steal"), seconds that each group waited for a processor, shape
        (k,).
    duration_s
        Wall time of each group in seconds, shape (k,); None where it is that of its readings.
    known
        Share of the work of each group whose delay was seen, 0 to 1, shape (k,); None for all.
    own
        Seconds that each group waited beside, for a processor that other threads of its own process
        may have had, shape (k,); None for none.

    Raises
    ------
    InvalidInput
        When a group is empty, or a source does not have a delay for each.
    """

    stops: Any
    seconds: Mapping[str, Any]
    duration_s: Any = None
    known: Any = None
    own: Any = None

    def __post_init__(self) -> None:
        stops = as_series(self.stops, name="stops").astype(np.int64)
        problems = [] if (np.diff(stops, prepend=0) > 0).all() else ["stops do not rise from 1 on"]
        columns = {f"seconds[{name!r}]": each for name, each in self.seconds.items()}
        others = {"duration_s": self.duration_s, "known": self.known, "own": self.own}
        columns |= {name: each for name, each in others.items() if each is not None}
        series = {name: as_series(each, name=name) for name, each in columns.items()}
        problems += [
            f"{name} has {values.size} items from {values.min():g} on, expected "
            f"{stops.size} of 0 or more"
            for name, values in series.items()
            if values.size != stops.size or values.min() < 0.0
        ]
        refuse(problems)
        stops.flags.writeable = False
        object.__setattr__(self, "stops", stops)
        seconds = {name: series[f"seconds[{name!r}]"] for name in self.seconds}
        object.__setattr__(self, "seconds", seconds)
        for name in others:
            object.__setattr__(self, name, series.get(name))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """One finished round and its readings.

    Parameters
    ----------
    plan
        The plan that was carried out.
    elapsed_ns
        Wall time of the whole round, with setup and what passed since the round before.
    unit_readings
        Per metric the readings of successive units of work, in the metric's unit: any 1-D
        sequence of numbers, kept as a read-only float64 array of shape (n,).
    readings
        Per metric one reading for the whole round.
    facts
        How the workload measured (inner loop, cost of the clock, first call).
    ran_ns
        Wall time of the workload alone; None where it is not known.
    delays
        Measured delays; None where nothing was measured.
    weights
        Per metric what its one reading counts in the mean: the trials behind a share, the seconds
        behind a rate. Without one, a rate counts by the duration of the round, others all alike.
    cut
        It was ended before its work was done: its duration means nothing, and it has no readings
        of the whole round.

    Raises
    ------
    InvalidInput
        When a reading is not a finite number or the elapsed time is negative, or a cut round has
        a reading of the whole.
    """

    plan: RoundPlan
    elapsed_ns: int
    unit_readings: Mapping[str, Any] = field(default_factory=dict)
    readings: Mapping[str, float] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    ran_ns: int | None = None
    delays: Delays | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    cut: bool = False

    def __post_init__(self) -> None:
        where = f"round {self.plan.index}"
        if self.cut and self.readings:
            name = next(iter(self.readings))
            refuse([f"{where} was cut, but has a reading of {name!r}, expected unit readings only"])
        for name in ("elapsed_ns", "ran_ns"):
            if name == "elapsed_ns" or self.ran_ns is not None:
                refuse(wrong_whole(f"{where}: {name}", getattr(self, name), least=0))
                object.__setattr__(self, name, int(getattr(self, name)))
        units = {
            name: as_series(values, name=f"{where}: unit_readings[{name!r}]")
            for name, values in self.unit_readings.items()
        }
        single = {
            name: float(as_series([value], name=f"{where}: readings[{name!r}]")[0])
            for name, value in self.readings.items()
        }
        weights = {
            name: float(as_series([value], name=f"{where}: weights[{name!r}]")[0])
            for name, value in self.weights.items()
        }
        refuse(
            f"{where}: weights[{name!r}] is {value!r}, expected more than 0 for one of its readings"
            for name, value in weights.items()
            if not value > 0.0 or name not in single
        )
        object.__setattr__(self, "unit_readings", units)
        object.__setattr__(self, "readings", single)
        object.__setattr__(self, "weights", weights)

    @property
    def duration_s(self) -> float:
        """Duration of its work in seconds: its reading of "time", else the wall time."""
        if "time" in self.readings:
            return float(self.readings["time"])
        return (self.elapsed_ns if self.ran_ns is None else self.ran_ns) / 1e9

    @property
    def n_readings(self) -> int:
        """Number of readings of the metric that has most of them."""
        return max([*map(len, self.unit_readings.values()), int(bool(self.readings))])
