"""The plan of a round, and its readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse, wrong_whole
from benchrigor.model.notice import Notice
from benchrigor.model.series import Floats, Ints, as_series

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
        Wall time that the round may take: what is left of the budget, or of the piece; None for no
        limit. A workload that can be interrupted obeys it.
    piece
        The part of the run that it belongs to, counted from 0 (see `Options`).
    """

    index: int
    work: int | float | None = None
    readings: int = 1
    seed: int = 0
    seconds: float | None = field(default=None, compare=False)  # it is the same plan later on
    piece: int = 0


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
        stops, problems = _rising(self.stops)
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
        object.__setattr__(self, "stops", stops)
        seconds = {name: series[f"seconds[{name!r}]"] for name in self.seconds}
        object.__setattr__(self, "seconds", seconds)
        for name in others:
            object.__setattr__(self, name, series.get(name))


def _rising(values: object) -> tuple[Ints, list[str]]:
    """Return indices after groups of readings, read-only, and what is wrong with them."""
    stops: Ints = as_series(values, name="stops").astype(np.int64)
    stops.flags.writeable = False
    return stops, [] if (np.diff(stops, prepend=0) > 0).all() else ["stops do not rise from 1 on"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class References:
    """How long fixed work took that was done in turn with the readings of a round.

    Parameters
    ----------
    stops
        Index after the last unit reading before each measurement, ascending, shape (k,).
    seconds
        By kind of work ("interpreter", "memory"), seconds that it took, each more than 0, shape
        (k,).
    version
        Of the work: times of another version cannot be compared with these.

    Raises
    ------
    InvalidInput
        When a kind does not have a time for each measurement.
    """

    stops: Any
    seconds: Mapping[str, Any]
    version: int = 1

    def __post_init__(self) -> None:
        stops, problems = _rising(self.stops)
        seconds = {name: as_series(each, name=name) for name, each in self.seconds.items()}
        problems += [
            f"references {name!r} has {values.size} items from {values.min():g} on, expected "
            f"{stops.size} of more than 0"
            for name, values in seconds.items()
            if values.size != stops.size or not values.min() > 0.0
        ]
        refuse(problems, [] if seconds else ["references are empty, expected times of some work"])
        object.__setattr__(self, "stops", stops)
        object.__setattr__(self, "seconds", seconds)


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
    starts_ns
        When each unit reading began, by a clock that goes on from round to round, shape (n,); None
        where it is not known.
    delays
        Measured delays, as `Delays`, or as seconds of each unit reading, shape (n,); None where
        nothing was measured.
    references
        Times of fixed work in turn with the readings, as `References`, or as seconds of one kind of
        work after each unit reading, shape (n,); None where none was done.
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
    starts_ns: Ints | None = None
    delays: Delays | None = None
    references: References | None = None
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
        self._take_measured(where)

    def _take_measured(self, where: str) -> None:
        """Check clock times, delays and references, and bring each into its own shape."""
        n, given = self.n_readings, self.delays
        if given is not None and not isinstance(given, Delays):
            seconds = as_series(given, name=f"{where}: delays")
            stops = np.arange(1, seconds.size + 1)
            object.__setattr__(self, "delays", Delays(stops=stops, seconds={"run queue": seconds}))
        work = self.references
        if work is not None and not isinstance(work, References):
            seconds = as_series(work, name=f"{where}: references")
            stops = np.arange(1, seconds.size + 1)
            references = References(stops=stops, seconds={"interpreter": seconds})
            object.__setattr__(self, "references", references)
        starts, problems = self.starts_ns, []
        if starts is not None:
            starts = _clock_times(starts, f"{where}: starts_ns")
            if starts.size != n or (np.diff(starts) < 0).any():
                problems.append(
                    f"{where}: starts_ns has {starts.size} items, expected {n}, one for each unit "
                    "reading, none before the one before it"
                )
            object.__setattr__(self, "starts_ns", starts)
        for name, groups in (("delays", given), ("references", work)):
            if groups is None or isinstance(groups, Delays):
                continue
            stop = int(getattr(self, name).stops[-1])
            if stop > n or (not isinstance(groups, References) and stop != n):
                problems.append(f"{where}: {name} are of {stop} readings, and the round has {n}")
        refuse(problems)

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


def readings_of(finished: Round, metric: str) -> Floats:
    """Return the readings of a metric in a round, or the one of the whole round."""
    single = [finished.readings[metric]] if metric in finished.readings else []
    readings: Floats = finished.unit_readings.get(metric, np.array(single))
    return readings


def _clock_times(values: object, name: str) -> Ints:
    """Return clock times in nanoseconds as a read-only int64 array; whole numbers stay exact."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size == 0:
        array = as_series(values, name=name)
    try:
        starts = array.astype(np.int64)
    except OverflowError as error:
        raise InvalidInput(f"{name}: {error}") from error
    starts.flags.writeable = False
    return starts
