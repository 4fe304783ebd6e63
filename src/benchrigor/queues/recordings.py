"""Recordings of queues: the counts of the ends of queues, period by period, by any program.

A recording is CSV in UTF-8 or UTF-16, parted by commas, semicolons, tabs or blanks: comment lines
``# key: value``, a header that names the columns in any order, and a row for every period of an
end. Lines that begin with # between rows are not read::

    # counters: cumulative
    t_ns,end,items,blocked_ns
    1000000,parse,0,0
    51000000,parse,41,8200000

================================  ==================================================================
column                            meaning
================================  ==================================================================
``t_ns`` or ``t_s``               when the counters were read, ascending; the first row of an end
                                  only marks the beginning of its first period
``period_ns`` or ``period_s``     instead of that: the realised width of the period
``items``                         items served
``blocked_ns`` or ``blocked_s``   time spent waiting, for input or for room
``blocked``                       if that is unknown: how often it waited; 0 or 1 will do
``end``                           name of the end, or of the stage, if there are several
``bytes`` or ``item_bytes``       bytes served, or the size of one item
``cpu_ns`` or ``cpu_s``           processor time used; ``nan`` if unknown
``delay_ns`` or ``delay_s``       time spent waiting for a processor; ``nan`` if unknown
``servers``                       threads or processes that serve side by side at this end
================================  ==================================================================

Time, items and one of the blocked columns must be there. Comments with a meaning:

``counters: delta`` (the default)
    A row holds the counts of its period.
``counters: cumulative``
    All but times, ``period_*``, ``item_bytes`` and ``servers`` count from some beginning on, and
    never decrease. The first row of an end is its baseline.
``servers: 4``
    For all ends, without such a column. Blocked time is the sum over the servers.
``unit: requests``
    Name of the items.
``period_s: 0.05``
    Wanted width of the periods.

A last line without its line break was not finished by its writer, and does not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.files import open_text
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import Floats, Ints, short
from benchrigor.model.text_tables import (
    Labels,
    LastLine,
    Numbers,
    Part,
    TextTable,
    one_line,
    write_head,
)
from benchrigor.queues.data import ServiceRate
from benchrigor.queues.estimator import (
    LARGEST,
    Estimator,
    estimator_of,
)
from benchrigor.queues.periods import (
    BUSY_TIME,
    METHODS,
    QUANTILE,
    Asked,
    PeriodTable,
    PooledPeriods,
    item_bytes_of,
    join,
    table_of,
)

_TITLE, _VERSION = "benchrigor queue recording", "1"
_COUNTERS = ("delta", "cumulative")
_SERVERS = Numbers(least=1, most=1e9, counts=True)
_PERIOD_S = Numbers(least=1e-9, most=1e9)
_REQUIRED = (
    ("t_ns", "t_s", "period_ns", "period_s"),
    ("items",),
    ("blocked", "blocked_ns", "blocked_s"),
)
# A recording may have one column of a group.
_OPTIONAL = (
    ("end",),
    ("bytes", "item_bytes"),
    ("cpu_ns", "cpu_s"),
    ("delay_ns", "delay_s"),
    ("servers",),
)
_KNOWN = [column for columns in (*_REQUIRED, *_OPTIONAL) for column in columns]
_EXAMPLE = "t_ns,items,blocked_ns"
_MOST_ENDS = 1000
# Allowed relative difference of blocked time and period: a recorder reads clock and counters one
# after the other, and writes a limited number of digits.
_INEXACT = 1e-3
# From this number of rows on, columns that never fall and mostly rise look like counters.
_SUSPICIOUS = 20
_NO_COUNTERS = ("period_s", "item_bytes", "servers")
_ABOVE_0 = {"t_s": "a later time than in the row before", "period_s": "more than 0"}
_RISING = "at least as much as in the row before, since counters are cumulative"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingHead:
    """The beginning of a recording, which describes its rows."""

    columns: tuple[str, ...]
    # One of `_COUNTERS`; None if the recording has no such comment, which counts as "delta".
    counters: str | None
    servers: int  # threads or processes that serve side by side, if no column says so
    unit: str  # name of the items
    period_s: float | None  # sampling period wanted, in seconds

    @classmethod
    def of(cls, table: TextTable) -> RecordingHead:
        """Read it off a file, or raise InvalidInput naming the line that makes no sense."""
        if not table.header:
            raise InvalidInput(
                f"{table.name} has no header, expected one such as {_EXAMPLE}, and rows"
            )
        _check_columns(table.header, where=f"{table.name} line {table.line}")
        about = table.comments
        for key, known in ((_TITLE, (_VERSION,)), ("counters", _COUNTERS)):
            if about.get(key, known[0]) not in known:
                raise InvalidInput(
                    f"{table.place_of(key)}: {key} {short(about[key])}, expected "
                    f"{' or '.join(known)}"
                )
        return cls(
            columns=table.header,
            counters=about.get("counters"),
            servers=int(table.number("servers", _SERVERS) or 1),
            unit=about.get("unit", ""),
            period_s=table.number("period_s", _PERIOD_S),
        )

    @property
    def roles(self) -> dict[str, str]:
        """The columns by their roles: their names, with seconds in place of nanoseconds."""
        return {
            f"{column[:-3]}_s" if column.endswith("_ns") else column: column
            for column in self.columns
        }


def _has_known(columns: Sequence[str]) -> bool:
    return not set(_KNOWN).isdisjoint(columns)


def _check_columns(columns: Sequence[str], *, where: str) -> None:
    """Refuse columns that are not known, not enough, or contradict each other."""
    unknown = [column for column in columns if column not in _KNOWN]
    if not _has_known(columns):
        raise InvalidInput(
            f"{where}: {short(','.join(columns))} names no column that is known, expected a "
            f"header such as {_EXAMPLE}"
        )
    known = ", ".join(_KNOWN)
    problems = [f"{where}: column {short(name)}, expected one of {known}" for name in unknown]
    for names in (*_REQUIRED, *_OPTIONAL):
        present = [column for column in columns if column in names]
        if len(present) > 1:
            problems.append(f"{where}: columns {' and '.join(present)}, expected one of them")
        elif not present and names in _REQUIRED and not unknown:
            hint = ", with 0 throughout for what never waits" if "blocked" in names else ""
            problems.append(f"{where}: no column {' or '.join(names)}, expected one{hint}")
    if problems:
        raise InvalidInput(problems)


def _kind(role: str, column: str) -> Numbers | Labels:
    if role == "end":
        return Labels()
    if role == "t_s":
        return Numbers(least=-LARGEST, most=LARGEST, whole=column == "t_ns")
    return Numbers(least=0.0, most=LARGEST, may_miss=role in {"cpu_s", "delay_s"})


class Recording:
    r"""A recording that is read once, from its beginning to its end.

    Parameters
    ----------
    lines, name
        Of the file; errors name it.

    Attributes
    ----------
    head
        Its ``columns``, ``counters``, ``servers``, ``unit`` and ``period_s``.

    Raises
    ------
    InvalidInput
        When it does not begin as a recording does.

    Examples
    --------
    >>> recording = Recording(["period_s,items,blocked_s\n", "0.1,40,0.02\n"], name="run.csv")
    >>> for end, periods in recording.periods():
    ...     print(periods.items, periods.blocked_s)
    [40.] [0.02]
    """

    def __init__(self, lines: Iterable[str], *, name: str) -> None:
        self.name = name
        self._table = TextTable(lines, name=name, knows=_has_known)
        self.head = RecordingHead.of(self._table)
        self._ends: dict[str, _EndReader] = {}

    @classmethod
    @contextmanager
    def open(cls, path: str | Path) -> Iterator[Self]:
        """Open a file until the context ends; InvalidInput if it is not a recording."""
        try:
            file = open_text(path)  # closed below
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
        with file:
            yield cls(file, name=str(path))

    @property
    def ends(self) -> tuple[str, ...]:
        """Names of the ends that have been read so far; "" without such a column."""
        return tuple(self._ends)

    @property
    def unfinished(self) -> LastLine | None:
        """A last line without its line break, which does not count."""
        return self._table.unfinished

    def periods(self) -> Iterator[tuple[str, Any]]:
        """Yield the names of ends and their successive periods, part by part of the file.

        These are record arrays, with NaN for unknown values.

        Raises
        ------
        InvalidInput
            Naming lines and columns of the cells that do not fit, the first five in full.
        """
        kinds = {column: _kind(role, column) for role, column in self.head.roles.items()}
        is_empty = True
        for part in self._table.parts(kinds):
            for end, rows in _rows_of_ends(part, kinds.get("end")):
                periods = self._reader(end).periods(part, rows)
                if periods is not None:
                    is_empty = False
                    yield end, periods.view(np.recarray)
        if is_empty:
            found = "no rows, expected one for each period"
            if self._ends:
                found = "one row, expected two at least: the first is where the first period begins"
            raise InvalidInput(f"{self.name} has {found}")

    def _reader(self, end: str) -> _EndReader:
        reader = self._ends.setdefault(end, _EndReader(self.head))
        if len(self._ends) > _MOST_ENDS:
            raise InvalidInput(
                f"{self.name} has more than {_MOST_ENDS} ends, expected fewer: 'end' names the end "
                "of a queue, the same one in each of its rows"
            )
        return reader


def _rows_of_ends(part: Part, names: object) -> Iterator[tuple[str, Ints]]:
    """Yield the ends and their rows, in the order in which the ends first appear."""
    if not isinstance(names, Labels):
        yield "", np.arange(part.n)
        return
    codes, distinct = part.columns["end"], names.distinct
    order = np.argsort(codes, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        name = distinct[codes[rows[0]]]
        part.refuse(rows if not name else (), "end", "a name")
        yield name, rows


class _EndReader:
    """Makes periods of the rows of one end, from one part of the file to the next."""

    def __init__(self, head: RecordingHead) -> None:
        self._head, self._roles = head, head.roles
        self._counts_on = head.counters == "cumulative"  # from the beginning, not within a period
        # Whether the first row only marks the beginning of the first period.
        self._has_baseline = self._counts_on or "t_s" in self._roles
        self._last: dict[str, npt.NDArray[Any]] = {}
        self._servers: int | None = None
        self._stop_s = 0.0  # of the last period, since the first began

    def periods(self, part: Part, rows: Ints) -> PeriodTable | None:
        """Return the periods of these rows; None if the only row is the baseline."""
        if self._servers is None:
            self._check_counters(part, rows)
        servers = self._servers_of(part, rows)
        skipped = int(self._has_baseline and not self._last)
        gained, rows = self._differences(part, rows, skipped), rows[skipped:]
        if not rows.size:
            return None
        period_s = gained["t_s" if "t_s" in gained else "period_s"]
        if "blocked_s" in gained:
            blocked_s = self._fit_waiting(part, rows, gained, servers * period_s)
        else:
            blocked_s = np.where(gained["blocked"] > 0.0, np.nan, 0.0)
        stop_s = self._stop_s + np.cumsum(period_s)
        self._stop_s = float(stop_s[-1])
        return table_of(
            start_s=stop_s - period_s,
            period_s=period_s,
            items=gained["items"],
            blocked_s=blocked_s,
            bytes=gained.get("bytes", gained["items"] * gained.get("item_bytes", np.nan)),
            cpu_s=gained.get("cpu_s", np.nan),
            delay_s=gained.get("delay_s", np.nan),
            servers=servers,
        )

    def _servers_of(self, part: Part, rows: Ints) -> int:
        """Return how many serve side by side; that must not change."""
        if (values := part.columns.get("servers")) is None:
            self._servers = self._head.servers
            return self._servers
        if self._servers is None:
            self._servers = int(values[rows[0]])
        expected = f"{self._servers} as before" if self._servers else "1 or more"
        misfits = (values[rows] != self._servers) | (values[rows] < 1)
        part.refuse(rows[misfits], "servers", expected)
        return self._servers

    def _differences(self, part: Part, rows: Ints, skipped: int) -> dict[str, Any]:
        """Return the counts of the periods, in seconds, items or bytes, by the column's role."""
        gained = {}
        for role, column in self._roles.items():
            if role == "end":
                continue
            values = part.columns[column][rows]
            if role == "t_s" or (self._counts_on and role not in _NO_COUNTERS):
                before = self._last.get(column, values[:0])
                self._last[column] = values[-1:]
                values = np.diff(np.concatenate([before, values]))
            else:
                values = values[skipped:]
            misfits = values <= 0.0 if role in _ABOVE_0 else values < 0.0
            part.refuse(rows[skipped:][misfits], column, _ABOVE_0.get(role, _RISING))
            gained[role] = values / (1e9 if column.endswith("_ns") else 1.0)
        return gained

    def _fit_waiting(
        self, part: Part, rows: Ints, gained: dict[str, Any], capacity_s: Floats
    ) -> Floats:
        """Return the time waited in the periods, limited to the time of all servers."""
        blocked_s = gained["blocked_s"]
        misfits = blocked_s > capacity_s * (1.0 + _INEXACT)
        of = f" of {self._servers} servers" if self._servers != 1 else ""
        longest_s = float(capacity_s[np.argmax(misfits)])
        part.refuse(
            rows[misfits],
            self._roles["blocked_s"],
            f"no longer than the period{of}, {longest_s:.9g} s; where several serve side by side, "
            "say how many at the beginning: '# servers: 4'",
        )
        # Without items, a rest of a period within the rounding is not busy time.
        waits = (gained["items"] == 0.0) & (blocked_s >= capacity_s * (1.0 - _INEXACT))
        return np.where(waits, capacity_s, np.minimum(blocked_s, capacity_s))

    def _check_counters(self, part: Part, rows: Ints) -> None:
        """Refuse counters that look cumulative and are not declared to be."""
        if self._head.counters is not None or rows.size < _SUSPICIOUS:
            return
        items, waited = (
            np.diff(part.columns[column][rows])
            for column in ("items", self._roles.get("blocked_s", "blocked"))
        )
        never_falls = (items >= 0.0).all() and (waited >= 0.0).all()
        if never_falls and 2 * np.count_nonzero(items) >= items.size:
            part.refuse(
                rows[-1:],
                "items",
                "less than before now and then: these look like counters since the beginning; "
                "write so on the first line, '# counters: cumulative' (or '# counters: delta')",
            )


class RecordingWriter:
    """Writes a recording row by row.

    Parameters
    ----------
    file
        Open for text; may be a pipe.
    columns
        Names of the columns, in order.
    counters
        "delta" or "cumulative".
    facts
        Other comments, such as ``servers``, ``unit`` or ``period_s``; None is left out.

    Raises
    ------
    InvalidInput
        For columns, or counters, that are not known.
    OSError
        When the file cannot be written, at any time.

    Examples
    --------
    >>> import sys
    >>> rows = RecordingWriter(sys.stdout, columns=("t_ns", "end", "items", "blocked"),
    ...                        counters="delta", facts={"unit": "lines"})
    # benchrigor queue recording: 1
    # counters: delta
    # unit: lines
    t_ns,end,items,blocked
    >>> rows.add(1_000, "parse", 12, False)
    1000,parse,12,0
    """

    def __init__(
        self,
        file: IO[str],
        *,
        columns: Sequence[str],
        counters: str,
        facts: Mapping[str, object] | None = None,
    ) -> None:
        _check(columns, counters)
        self._file, self._size = file, len(columns)
        comments = {_TITLE: _VERSION, "counters": counters, **(facts or {})}
        self._rows = write_head(file, comments, columns)
        file.flush()

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        columns: Sequence[str],
        counters: str,
        facts: Mapping[str, object] | None = None,
    ) -> Self:
        """Write to a new file, row by row: a killed program loses one row or none."""
        _check(columns, counters)
        file = Path(path).open("w", encoding="utf-8", newline="", buffering=1)  # noqa: SIM115  # kept
        return cls(file, columns=columns, counters=counters, facts=facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, *row: object) -> None:
        """Write a row, its values in the order of the columns; None for unknown ones."""
        if len(row) != self._size:
            raise InvalidInput(f"row has {len(row)} values, expected {self._size} as columns has")
        self._rows.writerow(map(_cell, row))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _check(columns: Sequence[str], counters: str) -> None:
    _check_columns(columns, where="columns")
    if counters not in _COUNTERS:
        raise InvalidInput(f"counters is {short(counters)}, expected {' or '.join(_COUNTERS)}")


def _cell(value: object) -> object:
    if value is None:
        return "nan"
    if isinstance(value, bool | np.bool_):
        return int(value)
    if not isinstance(value, str):
        return value
    # After a blank, which is not read, it begins no comment.
    return " " * value.startswith("#") + one_line(value)


PUBLISHED = "published"
_MOST = 4096  # stretches that are kept; joining halves their number
_ROUNDING = 1e-9


class Stretches(NamedTuple):
    """Successive stretches of time, shape (n,)."""

    start_s: Floats  # seconds since the first period
    stop_s: Floats
    # Items per second of the time in which the end did not wait; NaN if it always did.
    rates: Floats
    # Share of the time in which it waited, or of the periods if only these are known.
    waiting: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedEnd(OneLine):
    """One end of a recording.

    Parameters
    ----------
    name
        Of the end; empty if the recording names none.
    rates
        In order; empty without a period.
    periods
        Its periods, joined where there are too many for memory and a picture.
    """

    name: str
    rates: tuple[ServiceRate, ...]
    periods: PeriodTable

    def stretches(self, most: int = 400) -> Stretches:
        """Return the time in up to ``most`` stretches."""
        size = self.periods.size
        table = join(self.periods, np.arange(0, size, max(1, -(-size // most))))
        start_s, period_s, busy_s = table["start_s"], table["period_s"], table["busy_s"]
        capacity_s = table["servers"] * period_s
        is_busy = busy_s > _ROUNDING * capacity_s
        served = table["served"] * table["servers"]
        return Stretches(
            start_s=start_s,
            stop_s=start_s + period_s,
            rates=np.divide(served, busy_s, out=np.full(table.size, np.nan), where=is_busy),
            waiting=1.0 - busy_s / capacity_s,
        )

    def throughput(self, start_s: float, stop_s: float) -> tuple[float, float | None]:
        """Return items per second between two times since the first period, and mean bytes of one.

        Waiting is included. The bytes are None if they were not counted, or no item passed.
        """
        middle_s = self.periods["start_s"] + self.periods["period_s"] / 2.0
        inside = (middle_s >= start_s) & (middle_s <= stop_s)
        window = self.periods[inside if inside.any() else slice(None)]
        return float(window["items"].sum() / window["period_s"].sum()), item_bytes_of(window)


def rate_recording(
    recording: Recording,
    *,
    end: str | None = None,
    method: str | None = None,
    target: float = 0.05,
    confidence: float = 0.95,
) -> list[RecordedEnd]:
    r"""Estimate how fast the ends of a recording could go if they never had to wait.

    Parameters
    ----------
    recording
        A new one, not read before.
    end
        Only this one.
    method
        "busy-time", "quantile", or "published" ("quantile" without guards); None for "busy-time"
        if blocked time is known, and for "quantile" if only blocked periods are.
    target, confidence
        As of `ServiceRateEstimator`.

    Returns
    -------
    list of RecordedEnd
        In the order in which they first appear.

    Raises
    ------
    InvalidInput
        Naming line and column of a value that does not fit, or the ends that the recording has.

    Examples
    --------
    >>> rows = (f"0.1,{45 + number % 2},0.009\n" for number in range(100))
    >>> recording = Recording(["period_s,items,blocked_s\n", *rows], name="run.csv")
    >>> (found,) = rate_recording(recording)
    >>> found.rates[-1].converged, round(found.rates[-1].estimate.value)
    (True, 500)
    """
    method = method or (BUSY_TIME if "blocked_s" in recording.head.roles else QUANTILE)
    wanted = {"target": target, "confidence": confidence}
    estimators: dict[str, Estimator] = {}
    pooled = defaultdict[str, PooledPeriods](lambda: PooledPeriods(table_of(items=()), most=_MOST))
    for name, periods in recording.periods():
        if end in {None, name}:
            if name not in estimators:
                estimators[name] = _estimator(method, recording.head, periods, **wanted)
            estimators[name].add(periods)
            pooled[name].add(periods)
    if end is not None and end not in recording.ends:
        raise InvalidInput(_unknown(end, recording))
    return [
        RecordedEnd(
            name=name,
            rates=tuple(estimators[name].rates()) if name in estimators else (),
            periods=pooled[name].all(),
        )
        for name in recording.ends
        if end in {None, name}
    ]


def _estimator(
    method: str, head: RecordingHead, periods: PeriodTable, **wanted: float
) -> Estimator:
    if method not in {*METHODS, PUBLISHED}:
        known = ", ".join((*METHODS, PUBLISHED))
        raise InvalidInput(f"method is {method!r}, expected one of {known}")
    is_published = method == PUBLISHED
    asked = Asked(
        method=QUANTILE if is_published else method,
        period_s=head.period_s or float(np.median(periods["period_s"])),
        guards=not is_published,
        servers=int(periods["servers"][0]),
        **wanted,
    )
    return estimator_of(asked)


def _unknown(end: str, recording: Recording) -> str:
    if "end" not in recording.head.roles:
        return f"{recording.name} has no column 'end', and so no end {end!r}: leave the name out"
    names = ", ".join(recording.ends[:10]) + (", ..." if len(recording.ends) > 10 else "")
    return f"{recording.name} has no end {end!r}, expected one of {names}"
