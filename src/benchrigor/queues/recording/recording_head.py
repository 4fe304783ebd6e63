"""The beginning of a recording of queues: comment lines, and a header that names the columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchrigor.errors import InvalidInput
from benchrigor.model.series import short
from benchrigor.model.text import many

__all__ = ["COUNTERS", "TITLE", "VERSION", "Head", "check_columns", "read_head"]

TITLE, VERSION = "benchrigor queue recording", "1"
COUNTERS = ("delta", "cumulative")

_NANO = 1e9
_MOST = 1e9
"""Servers, or seconds of a period, of which there are always fewer."""
_COLUMNS = {
    "t_ns": ("t", _NANO),
    "t_s": ("t", 1.0),
    "period_ns": ("period", _NANO),
    "period_s": ("period", 1.0),
    "items": ("items", 1.0),
    "blocked": ("blocked", 1.0),
    "blocked_ns": ("blocked_s", _NANO),
    "blocked_s": ("blocked_s", 1.0),
    "end": ("end", 1.0),
    "bytes": ("bytes", 1.0),
    "item_bytes": ("item_bytes", 1.0),
    "cpu_ns": ("cpu_s", _NANO),
    "cpu_s": ("cpu_s", 1.0),
    "delay_ns": ("delay_s", _NANO),
    "delay_s": ("delay_s", 1.0),
    "servers": ("servers", 1.0),
}
"""What each column tells, and how many of its units are a second (or an item, or a byte)."""
_ALTERNATIVES = (
    ("t_ns", "t_s", "period_ns", "period_s"),
    ("items",),
    ("blocked", "blocked_ns", "blocked_s"),
    ("bytes", "item_bytes"),
    ("cpu_ns", "cpu_s"),
    ("delay_ns", "delay_s"),
)
_WANTED = 3
"""The first so many of them must be there."""
_EXAMPLE = "t_ns,items,blocked_ns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the beginning of a recording says of its rows.

    Parameters
    ----------
    columns
        Their names, in order.
    lines
        How many lines it takes.
    counters
        "delta": rows hold what each period brought; "cumulative": what there was since the
        beginning; None where it is not said, which is taken for "delta".
    servers
        Threads or processes that serve side by side, where no column says so.
    unit
        What an item is called; empty where it is not said.
    period_s
        Sampling period that was wanted, in seconds; None where it is not said.
    facts
        What the other comments say.
    """

    columns: tuple[str, ...]
    lines: int
    counters: str | None = None
    servers: int = 1
    unit: str = ""
    period_s: float | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def cumulative(self) -> bool:
        """Whether counters hold what there was since the beginning."""
        return self.counters == "cumulative"

    @property
    def has_baseline(self) -> bool:
        """Whether the first row of an end is only where its first period begins."""
        return self.cumulative or self.column("t") is not None

    @property
    def has_blocked_time(self) -> bool:
        """Whether it is recorded for how long an end waited, not only whether."""
        return self.column("blocked_s") is not None

    def column(self, role: str) -> str | None:
        """Return the column that tells something, such as "blocked_s"; None where none does."""
        return next((name for name in self.columns if _COLUMNS[name][0] == role), None)

    @staticmethod
    def role(column: str) -> str:
        """Return what a column tells."""
        return _COLUMNS[column][0]

    @staticmethod
    def divisor(column: str) -> float:
        """Return how many units of a column are a second, an item or a byte."""
        return _COLUMNS[column][1]


def check_columns(columns: Sequence[str], *, where: str) -> None:
    """Refuse columns that are not known, not enough, or contradict each other.

    Raises
    ------
    InvalidInput
        Naming all that is wrong.

    Examples
    --------
    >>> check_columns(["t_ns", "items"], where="run.csv, line 1")
    Traceback (most recent call last):
    benchrigor.errors.InvalidInput: run.csv, line 1: no column blocked, blocked_ns or blocked_s, ...
    """
    unknown = [each for each in columns if each not in _COLUMNS]
    if len(unknown) == len(columns):
        raise InvalidInput(
            f"{where}: {short(','.join(columns))} names no column that is known, expected a "
            f"header such as {_EXAMPLE}"
        )
    known = ", ".join(_COLUMNS)
    problems = [f"{where}: column {short(each)}, expected one of {known}" for each in unknown]
    problems += [
        f"{where}: several columns {each}, expected one"
        for each in dict.fromkeys(columns)
        if each in _COLUMNS and list(columns).count(each) > 1
    ]
    for number, names in enumerate(_ALTERNATIVES):
        found = [each for each in names if each in columns]
        if len(found) > 1:
            problems.append(f"{where}: columns {' and '.join(found)}, expected one of them")
        elif not found and number < _WANTED and not unknown:
            problems.append(_missing(names, where))
    if problems:
        raise InvalidInput(problems)


def _missing(names: Sequence[str], where: str) -> str:
    listed = " or ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
    hint = (
        ": without it, waiting cannot be told from serving (0 throughout for what never waits)"
        if "blocked" in names
        else ""
    )
    return f"{where}: no column {listed}, expected one{hint}"


def read_head(lines: Iterator[str], *, name: str) -> Head:
    """Take the comments and the header off the lines of a recording.

    Parameters
    ----------
    lines
        Of the file, from its beginning.
    name
        Of the file, for errors.

    Raises
    ------
    InvalidInput
        Naming the line, what was found and what was expected.
    """
    about: dict[str, tuple[str, int]] = {}
    number = 0
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix("\ufeff") if number == 1 else line
        if text.startswith("#"):
            key, _, value = text[1:].partition(":")
            about[key.strip()] = value.strip(), number
        elif not text.isspace():
            return _head(text, about, number, name)
    found = f"{name} has no header after {many(number, 'line')}" if number else f"{name} is empty"
    raise InvalidInput(f"{found}, expected a header such as {_EXAMPLE}, and rows")


def _head(text: str, about: dict[str, tuple[str, int]], number: int, name: str) -> Head:
    version, where = about.pop(TITLE, (VERSION, 0))
    if version != VERSION:
        raise InvalidInput(f"{name}, line {where}: version {version}, expected {VERSION}")
    columns = tuple(each.strip() for each in next(csv.reader([text])))
    check_columns(columns, where=f"{name}, line {number}")
    counters, where = about.pop("counters", (None, 0))
    if counters not in {None, *COUNTERS}:
        raise InvalidInput(
            f"{name}, line {where}: counters {short(counters)}, expected {' or '.join(COUNTERS)}"
        )
    return Head(
        columns=columns,
        lines=number,
        counters=counters,
        servers=int(_number("servers", about, name, whole=True) or 1),
        unit=about.pop("unit", ("", 0))[0],
        period_s=_number("period_s", about, name, whole=False),
        facts={key: value for key, (value, _) in about.items()},
    )


def _number(key: str, about: dict[str, tuple[str, int]], name: str, *, whole: bool) -> float | None:
    """Return the number that a comment gives, above 0; None where there is no such comment."""
    text, where = about.pop(key, (None, 0))
    if text is None:
        return None
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = 0
    if not 0.0 < number < _MOST:
        expected = f"{'a whole number from 1 on' if whole else 'seconds above 0'}, below {_MOST:g}"
        raise InvalidInput(f"{name}, line {where}: {key} {short(text)}, expected {expected}")
    return number
