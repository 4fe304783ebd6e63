"""The beginning of a recording of queues: the meaning of its comments and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchrigor.errors import InvalidInput
from benchrigor.model.series import short
from benchrigor.model.text_tables.tables import Labels, Numbers, TextTable
from benchrigor.queues.rates import LARGEST

TITLE, VERSION = "benchrigor queue recording", "1"
COUNTERS = ("delta", "cumulative")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingHead:
    """The beginning of a recording, which describes its rows."""

    columns: tuple[str, ...]
    # One of `COUNTERS`; None if the recording has no such comment, which counts as "delta".
    counters: str | None = None
    servers: int = 1  # threads or processes that serve side by side, if no column says so
    unit: str = ""  # name of the items
    period_s: float | None = None  # sampling period wanted, in seconds

    @classmethod
    def of(cls, table: TextTable) -> RecordingHead:
        """Read it off a file, or raise InvalidInput naming the line that makes no sense."""
        if not table.header:
            raise InvalidInput(
                f"{table.name} has no header, expected one such as {_EXAMPLE}, and rows"
            )
        check_columns(table.header, where=f"{table.name} line {table.line}")
        about = table.comments
        for key, known in ((TITLE, (VERSION,)), ("counters", COUNTERS)):
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
    def cumulative(self) -> bool:
        """Whether counters count from the beginning on, not within a period."""
        return self.counters == "cumulative"

    @property
    def has_baseline(self) -> bool:
        """Whether the first row of an end only marks the beginning of its first period."""
        return self.cumulative or self.column("t_s") is not None

    @property
    def has_blocked_time(self) -> bool:
        """Whether the recording has the time that an end waited, not only a flag."""
        return self.column("blocked_s") is not None

    def column(self, role: str) -> str | None:
        """Return the column of a role, such as "blocked_s", or None."""
        return next((column for column in self.columns if role_of(column) == role), None)

    @property
    def counted(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return tuple(column for column in self.columns if column != "end")

    def kinds(self) -> dict[str, Numbers | Labels]:
        """Return the kinds of values of the columns, by their names."""
        return {name: _kind(name) for name in self.columns}


def has_known(columns: Sequence[str]) -> bool:
    """Return whether one of the columns is known."""
    return not set(_KNOWN).isdisjoint(columns)


def role_of(column: str) -> str:
    """Return the role of a column: its name, with seconds in place of nanoseconds."""
    return f"{column.removesuffix('_ns')}_s" if column.endswith("_ns") else column


def unit_of(column: str) -> float:
    """Return how many units of a column are a second, an item or a byte."""
    return 1e9 if column.endswith("_ns") else 1.0


def check_columns(columns: Sequence[str], *, where: str) -> None:
    """Refuse columns that are not known, not enough, or contradict each other."""
    unknown = [column for column in columns if column not in _KNOWN]
    if not has_known(columns):
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


def _kind(column: str) -> Numbers | Labels:
    role = role_of(column)
    if role == "end":
        return Labels()
    if role == "t_s":
        return Numbers(least=-LARGEST, most=LARGEST, whole=column == "t_ns")
    return Numbers(least=0.0, most=LARGEST, may_miss=role in {"cpu_s", "delay_s"})
