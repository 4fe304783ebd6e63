"""Which readings of a run count for its number, and why the others do not."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import attempt, refuse, wrong_whole
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, Ints, as_series, check_items, short


class Reason(enum.IntEnum):
    """Why a reading counts, or does not."""

    KEPT = 0
    WARM_UP = 1
    COOL_DOWN = 2
    MARGIN = 3
    DISTURBED = 4
    RED_ROUND = 5
    COLD = 6
    PILOT = 7
    SHORT = 8
    CUT = 9
    SMALL_WORK = 10
    FURTHER = 11
    OTHER_LEVEL = 12
    UNSTEADY = 13

    @property
    def word(self) -> str:
        """Its name as users read it."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection(OneLine):
    """Which readings count, with a reason for each; stored as runs of readings with one reason.

    A disturbed reading is left out, and one that stands for similar disturbed ones counts twice or
    more. The estimate follows from the readings and from this alone.

    Parameters
    ----------
    reason, count, length
        Of each run of readings: their `Reason`, how often each counts, and their number; shape
        (k,).

    Examples
    --------
    >>> selection = Selection(reason=[1, 0, 4, 0], count=[0, 1, 0, 2], length=[2, 2, 1, 1])
    >>> selection.reasons, selection.counts
    (array([1, 1, 0, 0, 4, 0], dtype=int8), array([0, 0, 1, 1, 0, 2]))
    """

    reason: Ints
    count: Ints
    length: Ints

    def __post_init__(self) -> None:
        for name in ("reason", "count", "length"):
            column = np.asarray(getattr(self, name), dtype=np.int64)
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @classmethod
    def of(cls, reasons: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Selection:
        """Return it from a reason and a count for each reading."""
        alike = (reasons[1:] == reasons[:-1]) & (counts[1:] == counts[:-1])
        changes = np.flatnonzero(~alike) + 1
        starts = np.append(0, changes)[: reasons.size]
        return cls(
            reason=reasons[starts],
            count=counts[starts],
            length=np.diff(np.append(starts, reasons.size)),
        )

    @property
    def n(self) -> int:
        """Number of readings."""
        return int(self.length.sum())

    @property
    def reasons(self) -> npt.NDArray[np.int8]:
        """The `Reason` of each reading, shape (n,), read-only."""
        reasons = np.repeat(self.reason.astype(np.int8), self.length)
        reasons.flags.writeable = False
        return reasons

    @property
    def counts(self) -> Ints:
        """How often each reading counts, shape (n,), read-only; 0 where it does not."""
        counts: Ints = np.repeat(self.count, self.length)
        counts.flags.writeable = False
        return counts

    def at(self, places: Ints) -> Selection:
        """Return it of the readings at these places; those at -1 are of red rounds."""
        reasons = np.append(self.reasons, np.int8(Reason.RED_ROUND))[places]
        return Selection.of(reasons, np.append(self.counts, 0)[places])


_COLD = 10  # readings at the start that are left out if nothing is cut


def without_margins(start: int, stop: int, n: int) -> slice:
    """Return the readings to measure of the stable phase of a series of n readings.

    The tail of a transient goes on after the change point: half as many readings again as were cut
    are left out at each end, up to a quarter of the phase; at least the first ten, which may be
    cold, or the fiftieth part of a short series.
    """
    most = (stop - start) // 4
    early = max(start // 2, min(_COLD, n // 50) - start)
    return slice(start + min(early, most), stop - min((n - stop) // 2, most))


_END_NS = 2.0**63
Facts = Mapping[str, str | int | float | bool | None]
WARM_UP = "warm-up: "  # Prefix of unit readings that are kept, but belong to no metric


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan(OneLine):
    """One round that a session asks for.

    Parameters
    ----------
    index
        The round's identity, counted from 0.
    work
        Work amount in the workload's own unit (bytes, requests); a whole number if all amounts
        are. None if the workload has no amount to choose.
    readings
        Requested unit readings; workloads that give one reading per round ignore it.
    seed
        Seed for random choices of the workload; the same in a repeated or resumed session.
    seconds
        Maximum wall time of the round: the rest of the budget, or of the piece; None for no limit.
        A workload that can be interrupted obeys it.
    piece
        The part of the run to which the round belongs, counted from 0 (see `Options`).
    """

    index: int
    work: int | float | None = None
    readings: int = 1
    seed: int = 0
    seconds: float | None = field(default=None, compare=False)  # it is the same plan later on
    piece: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delays(OneLine):
    """Measured delays of a round, for k groups of successive readings; arrays have shape (k,).

    Parameters
    ----------
    stops
        Index after the last unit reading of a group, ascending; the last is the number of
        readings. A round with one reading is one group.
    seconds
        By source ("run queue", "steal"), seconds that a group waited for a processor.
    duration_s
        Wall time of a group in seconds; None if it is the sum of its readings.
    known
        Share of a group's work with a known delay, 0 to 1; None if the delay of all work is known.
    own
        Further seconds that a group waited while other threads of its own process may have had
        the processor; None for no such wait.
    busy
        Processor time of a group in seconds, including other threads and children; None if it was
        not measured.

    Raises
    ------
    InvalidInput
        When a group is empty, or a source has another number of delays than there are groups.
    """

    stops: Any
    seconds: Mapping[str, Any]
    duration_s: Any = None
    known: Any = None
    own: Any = None
    busy: Any = None

    def __post_init__(self) -> None:
        stops, problems = _rising(self.stops)
        seconds = _by_name(self.seconds, stops.size, problems)
        others = {
            name: values if values is None else _column(name, values, stops.size, problems)
            for name in ("duration_s", "known", "own", "busy")
            for values in [getattr(self, name)]
        }
        refuse(problems)
        for name, value in {"stops": stops, "seconds": seconds, **others}.items():
            object.__setattr__(self, name, value)


def _by_name(
    seconds: object, size: int, problems: list[str], *, zero: bool = True
) -> dict[str, Floats]:
    """Return seconds of groups by source of delay or kind of work; add the problem with them."""
    if not isinstance(seconds, Mapping):
        raise InvalidInput(f"seconds is {short(seconds)}, expected a mapping from names to series")
    return {
        name: _column(f"seconds[{name!r}]", values, size, problems, zero=zero)
        for name, values in seconds.items()
    }


def _column(
    name: str, values: object, size: int, problems: list[str], *, zero: bool = True
) -> Floats:
    """Return one number per group, 0 or more or above 0; add the problem to the problems."""
    series = as_series(values, name=name)
    at = int(series.argmin())
    if series.size != size:
        problems.append(f"{name} has {series.size} items, expected {size}")
    elif series[at] < 0.0 or (series[at] == 0.0 and not zero):
        expected = "0 or more" if zero else "more than 0"
        problems.append(f"{name}[{at}] is {float(series[at])!r}, expected {expected}")
    return series


def _rising(values: object) -> tuple[Ints, list[str]]:
    """Return indices after groups of readings, read-only, and the problem with them."""
    stops: Ints = as_series(values, name="stops").astype(np.int64)
    stops.flags.writeable = False
    return stops, [] if (np.diff(stops, prepend=0) > 0).all() else ["stops do not rise from 1 on"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class References(OneLine):
    """Times of fixed work, which alternates with the readings of a round; arrays have shape (k,).

    Parameters
    ----------
    stops
        Index after the last unit reading before a measurement of the work, ascending.
    seconds
        By kind of work ("interpreter", "command"), its times in seconds, all above 0.
    version
        Version of the work: times of another version cannot be compared with these.
    busy
        Processor time in seconds of the unit readings since the previous measurement, including
        other threads and children; None if it was not measured.

    Raises
    ------
    InvalidInput
        When a kind has another number of times than measurements, or the version is not a whole
        number.
    """

    stops: Any
    seconds: Mapping[str, Any]
    version: int = 1
    busy: Any = None

    def __post_init__(self) -> None:
        stops, problems = _rising(self.stops)
        problems += wrong_whole("version", self.version)
        seconds = _by_name(self.seconds, stops.size, problems, zero=False)
        if self.busy is not None:
            object.__setattr__(self, "busy", _column("busy", self.busy, stops.size, problems))
        refuse(problems, [] if seconds else ["seconds is empty, expected times of some work"])
        object.__setattr__(self, "stops", stops)
        object.__setattr__(self, "seconds", seconds)


_LONGEST_NS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round(OneLine):
    """One finished round and its readings.

    Parameters
    ----------
    plan
        The plan that was carried out.
    elapsed_ns
        Wall time of the whole round, including setup and the time since the previous round.
    unit_readings
        Per metric the readings of successive units of work, in the metric's unit: any 1-D
        sequence of numbers, kept as a read-only float64 array of shape (n,). Values that another
        tool took as warm-up have the name "warm-up: METRIC"; they do not count.
    readings
        Per metric one reading for the whole round.
    facts
        How the workload measured (inner loop, cost of the clock, first call).
    ran_ns
        Wall time of the workload alone; None if it is not known.
    starts_ns
        Start times of the unit readings, by a clock that continues from round to round, shape
        (n,); None if they are not known.
    delays
        Measured delays: `Delays`, or seconds per unit reading, shape (n,), plain or by source;
        None if they were not measured.
    references
        Times of fixed work that alternates with the readings: `References`, or seconds after every
        unit reading, shape (n,), plain or by kind of work; None without such work.
    weights
        By metric, the weight of its one reading in the mean: the trials of a share, the seconds of
        a rate. By default a rate counts by the duration of the round, other metrics count equally.
    cut
        Whether the round ended before its work was done. Its duration then has no meaning, and it
        has no readings of the whole round.

    Raises
    ------
    InvalidInput
        When a reading is not a finite number, the elapsed time is negative, or a cut round has a
        reading of the whole round.
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
        if not isinstance(self.plan, RoundPlan):
            raise InvalidInput(f"plan is {short(self.plan)}, expected a RoundPlan")
        where = f"round {self.plan.index}"
        by_name = ("unit_readings", "readings", "facts", "weights")
        refuse(
            f"{where}: {name} is {short(getattr(self, name))}, expected a mapping from names"
            for name in by_name
            if not isinstance(getattr(self, name), Mapping)
        )
        if not isinstance(self.notices, tuple | list):
            raise InvalidInput(f"{where}: notices is {short(self.notices)}, expected a tuple")
        if self.cut and self.readings:
            name = next(iter(self.readings))
            refuse([f"{where} was cut, but has a reading of {name!r}, expected unit readings only"])
        for name in ("elapsed_ns", "ran_ns"):
            if name == "elapsed_ns" or self.ran_ns is not None:
                refuse(
                    wrong_whole(f"{where}: {name}", getattr(self, name), least=0, most=_LONGEST_NS)
                )
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
        self._take_measurements(where)

    def _take_measurements(self, where: str) -> None:
        """Check and convert clock times, delays and references."""
        n, problems = self.n_readings, list[str]()
        for name, kind, usual in _MEASURED:
            name_here = f"{where}: {name}"
            taken = attempt(problems, _take, getattr(self, name), kind, usual, n, name_here)
            object.__setattr__(self, name, taken)
        if self.references is not None and (stop := int(self.references.stops[-1])) > n:
            problems.append(f"{where}: references are of {stop} readings, and the round has {n}")
        if self.starts_ns is not None:
            starts = as_clock_times(self.starts_ns, f"{where}: starts_ns")
            back = np.flatnonzero(np.diff(starts) < 0)
            if starts.size != n:
                problems.append(
                    f"{where}: starts_ns has {starts.size} items, expected {n}, one for each unit "
                    "reading"
                )
            elif back.size:
                at = int(back[0]) + 1
                problems.append(
                    f"{where}: starts_ns[{at}] is {starts[at]}, expected none before the one "
                    f"before it, {starts[at - 1]}"
                )
            object.__setattr__(self, "starts_ns", starts)
        refuse(problems)

    @property
    def duration_s(self) -> float:
        """Duration of its work in seconds: its reading of "time", else the wall time."""
        if "time" in self.readings:
            return float(self.readings["time"])
        return (self.elapsed_ns if self.ran_ns is None else self.ran_ns) / 1e9

    @property
    def calls_per_reading(self) -> int:
        """How many calls each of its unit readings averages."""
        calls = self.facts.get("inner_loop", 1)
        return calls if isinstance(calls, int) else 1

    @property
    def n_readings(self) -> int:
        """Number of readings of the metric with the most readings."""
        counted = (
            reading for name, reading in self.unit_readings.items() if not name.startswith(WARM_UP)
        )
        return max([*map(len, counted), int(bool(self.readings))])


def readings_of(finished: Round, metric: str) -> Floats | None:
    """Return the unit readings of a metric in a round, or its one reading of the whole round."""
    single = finished.readings.get(metric)
    found = finished.unit_readings.get(metric)
    return np.array([single]) if found is None and single is not None else found


# Field of a round, its type, and the name that plain seconds get in it.
_MEASURED = (("delays", Delays, "run queue"), ("references", References, "interpreter"))


def _take(given: Any, kind: type, usual: str, n: int, name: str) -> Any:
    """Return delays or references; make them from plain or named seconds of the readings."""
    if given is None or isinstance(given, kind):
        return given
    seconds = given if isinstance(given, Mapping) else {usual: given}
    try:
        return kind(stops=range(1, n + 1), seconds=seconds)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {problem}" for problem in error.problems) from None


def as_clock_times(values: object, name: str = "starts_ns") -> Ints:
    """Return clock times in nanoseconds as a read-only int64 array; whole numbers stay exact."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size == 0:
        array = as_series(values, name=name)
    fits = np.abs(array.astype(np.float64)) < _END_NS
    check_items(array, fits, "nanoseconds, below 2**63 in size", name=name)
    starts: Ints = array.astype(np.int64)
    starts.flags.writeable = False
    return starts
