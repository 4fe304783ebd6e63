"""The segments of a run, and the interference that their durations show, also of several runs."""

from __future__ import annotations

import enum
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput
from benchrigor.files import open_text, write_whole
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.model.readings import Facts
from benchrigor.model.series import LARGEST, Floats, as_series, short
from benchrigor.model.text_tables import Labels, Numbers, TextTable, is_number, one_line, write_head
from benchrigor.safe_text import escaped

KNOWN_FROM = 90.0  # per cent of a session's time for which delay must be measured, for a light
ELSEWHERE = "other threads or processes used most of the processor time"


class Light(enum.StrEnum):
    """The meaning of a share of interference for the numbers of a run."""

    GREEN = "green"  # Below 7.5 %: good for performance analysis
    YELLOW = "yellow"  # 7.5 to 15 %: the order of magnitude; worth another run
    RED = "red"  # Above 15 %: run it again
    # Of a session: delay is not known for nine tenths of its time; or it has no number, or fewer
    # than five readings, and is not red
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentGroup(OneLine):
    """Segments with the same features, which should take the same time.

    Attributes
    ----------
    computation
        By feature, its lowest and highest value in the group.
    nominal
        By feature, the common value of its segments.
    median_s, mad_s
        Median and median absolute deviation (not scaled by 1.4826) of their durations without
        measured delay.
    threshold_s
        Duration beyond which a segment is interfered with.
    duration_s
        Wall time of all of them, delays included.
    flagged, excess_s
        How many last longer than the threshold, and their time beyond it.
    """

    n: int
    computation: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    nominal: Mapping[str, str | int | float] = field(default_factory=dict)
    median_s: float
    mad_s: float
    threshold_s: float
    duration_s: float
    flagged: int
    excess_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference(OneLine):
    """The interference of one run; percentages are of its wall time, interference included.

    Attributes
    ----------
    percent
        Estimated, instantaneous: the time of segments beyond the threshold of their group.
    measured_percent
        Measured delay: waiting for a processor, throttling, steal.
    light
        Of the sum of both; a session has measured delay alone.
    probability_high
        Probability that a run with this sum is highly interfered (logistic function).
    unclustered_percent
        Time in groups of fewer than five segments; their interference is not counted.
    continuous_percent
        Percentage by which group medians exceed the medians of the reference; None without one.
    above_median_percent
        Time of the same segments beyond the median of their group: more than ``percent``.
    flagged_percent
        Share of segments, not of time, beyond the threshold of their group.
    known_percent
        Share of the rounds' time for which delay was measured. Below 90 % the light of a session
        is unknown, and the sum is a lower limit; a profile is judged by its estimate.
    n, duration_s
        Number of segments, and their wall time.
    delays
        Measured delay by source; the sum is larger if a segment has more delay than wall time.
    groups
        Groups of five segments or more, the one with most excess first.
    """

    percent: float
    measured_percent: float
    light: Light
    probability_high: float
    unclustered_percent: float
    continuous_percent: float | None
    above_median_percent: float
    flagged_percent: float
    n: int
    duration_s: float
    delays: Mapping[str, float] = field(default_factory=dict)
    groups: tuple[SegmentGroup, ...] = ()
    notices: tuple[Notice, ...] = ()
    known_percent: float = 100.0

    @property
    def total_percent(self) -> float:
        """Measured and estimated together, the base of the light."""
        return self.measured_percent + self.percent

    @property
    def is_measured(self) -> bool:
        """Whether delay was measured, even if it was 0."""
        return bool(self.delays) or self.measured_percent > 0.0

    @property
    def least(self) -> str:
        """The words before a share that is a lower limit; else empty."""
        is_limit = self.light is Light.UNKNOWN and self.known_percent < KNOWN_FROM
        return "at least " if is_limit else ""

    def __str__(self) -> str:
        lost = f"{self.least}{self.total_percent:.1f}% of {self.duration_s:.3g} s lost"
        parts = [f"{self.light} light: {lost}"]
        parts.append(f"{self.measured_percent:.1f}% measured, {self.percent:.1f}% estimated")
        if self.continuous_percent is not None:
            parts.append(f"{self.continuous_percent:+.1f}% continuous")
        return escaped(" · ".join([*parts, f"{self.n:,} segments"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeGroup(OneLine):
    """Segments of several runs with the same features; see `SegmentGroup`.

    ``duration`` is of one undisturbed segment, in seconds; None if too few runs have enough.
    """

    n: int
    computation: Mapping[str, tuple[float, float]]
    nominal: Mapping[str, str | int | float]
    duration: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite(OneLine):
    """One program without instantaneous interference and measured delay, from several runs.

    ``duration`` is of the program, in seconds; the runs are the unit of inference.
    """

    duration: Estimate
    groups: tuple[CompositeGroup, ...]
    runs: tuple[Interference, ...]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentProfile(OneLine):
    """The segments of one run, from one process or merged over several.

    A segment is a part of a program's execution between two boundaries, such as one step of a
    loop. All arrays have shape (n,), one item per segment, in the order in which they ran.

    Parameters
    ----------
    duration_s
        Wall time in seconds, delays included.
    computation
        By name, amounts of computation (instructions, CPU seconds, units of work): near numbers
        mean the same work.
    nominal
        By name, other activity (bytes read, messages sent, a label): only equal numbers or strings
        mean the same work.
    delays
        By source ("run queue", "steal"), measured delay in seconds. If the sum exceeds the wall
        time, since counters and clocks do not tick together, `delay_s` is the wall time.
    evidence
        By name, further counts (page faults, context switches). They never form groups.
    program
        Name of the program, for people.
    run
        Identity of the run, the same in the profiles of all its processes; empty if unknown.
    process, processes
        Index of the process, and number of processes in the run.
    facts
        How it was recorded, and counts over the whole run.

    Raises
    ------
    InvalidInput
        Naming every column that does not fit.

    Examples
    --------
    >>> profile = SegmentProfile(duration_s=[0.1, 0.2], nominal={"label": ["solve", "write"]})
    >>> profile.n, profile.delay_s
    (2, array([0., 0.]))
    """

    duration_s: Any
    computation: Mapping[str, Any] = field(default_factory=dict)
    nominal: Mapping[str, Any] = field(default_factory=dict)
    delays: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    program: str = ""
    run: str = ""
    process: int = 0
    processes: int = 1
    facts: Facts = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems: list[str] = []
        duration_s = attempt(problems, _numbers, self.duration_s, "duration_s")
        if duration_s is not None:
            attempt(problems, _seconds, duration_s, "duration_s")
        object.__setattr__(self, "duration_s", duration_s)
        for kind, check in _CHECKS.items():
            columns = {
                name: attempt(problems, check, values, f"{kind}[{name!r}]")
                for name, values in getattr(self, kind).items()
            }
            object.__setattr__(self, kind, columns)
            problems += [
                f"{kind}[{name!r}] has {column.size} items, expected {duration_s.size} as "
                "duration_s has"
                for name, column in columns.items()
                if not (column is None or duration_s is None or column.size == duration_s.size)
            ]
        if not 0 <= self.process < self.processes:
            problems.append(
                f"process is {self.process} of {self.processes} processes, expected 0 to "
                f"{self.processes - 1}"
            )
        refuse(problems)

    @property
    def n(self) -> int:
        """Number of segments."""
        return int(self.duration_s.size)

    @property
    def delay_s(self) -> Floats:
        """Measured delays of the segments from all sources, capped at their wall time."""
        delay_s: Floats = sum(self.delays.values(), start=np.zeros(self.n))
        capped: Floats = np.minimum(delay_s, self.duration_s)
        return capped

    def save(self, path: str | Path) -> None:
        """Write the profile to a CSV file, whole or not at all (``docs/interference.md``)."""
        text = io.StringIO(newline="")
        _write({part.name: getattr(self, part.name) for part in fields(self)}, text)
        write_whole(path, text.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> SegmentProfile:
        """Read a profile; raise InvalidInput naming the line, or the column and segment."""
        with open_text(path) as file:
            columns = _read(file, name=str(path))
        try:
            return cls(**columns)
        except InvalidInput as error:
            raise InvalidInput([f"{path}: {problem}" for problem in error.problems]) from error


def _numbers(values: object, name: str) -> Floats:
    return as_series(values, name=name)


def _seconds(values: object, name: str) -> Floats:
    series = as_series(values, name=name)
    if (negative := series < 0.0).any():
        index = int(np.argmax(negative))
        raise InvalidInput(f"{name}[{index}] is {float(series[index])!r}, expected 0 or more")
    return series


def _labels(values: object, name: str) -> npt.NDArray[Any]:
    """Return a column of numbers or strings."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray):
        raise InvalidInput(f"{name} is {short(values)}, expected a 1-D sequence")
    labels = np.asarray(values)
    if labels.dtype.kind not in "biufU" or labels.ndim != 1:
        raise InvalidInput(
            f"{name} has shape {labels.shape} of {labels.dtype}, expected numbers or strings (n,)"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        index = int(np.argmax(~np.isfinite(labels)))
        raise InvalidInput(f"{name}[{index}] is {float(labels[index])!r}, expected a finite number")
    labels = labels.astype(np.int64 if labels.dtype.kind == "b" else labels.dtype)
    labels.flags.writeable = False
    return labels


_CHECKS = {"computation": _numbers, "delays": _seconds, "evidence": _numbers, "nominal": _labels}


_TITLE = "benchrigor segment profile"
_VERSION = "1"
_FIELDS = {
    "computation": "computation",
    "nominal": "nominal",
    "delay": "delays",
    "evidence": "evidence",
}
_TEXTS = ("program", "run")
_COUNTS = ("process", "processes")
_COUNT = Numbers(least=0, most=1e9, counts=True)
_KINDS = dict.fromkeys(("duration_s", "delay"), Numbers(least=0.0, most=LARGEST))
_BOOLS = {"True": True, "False": False}


def _write(profile: Mapping[str, Any], file: IO[str]) -> None:
    """Write the fields of a `SegmentProfile` as commented CSV."""
    columns = {
        f"{kind}:{name}": values
        for kind, field in _FIELDS.items()
        for name, values in profile[field].items()
    }
    columns = {"duration_s": profile["duration_s"], **columns}
    about = {name: profile[name] for name in (*_TEXTS, *_COUNTS)}
    facts = {key: value for key, value in profile["facts"].items() if key not in about}
    rows = write_head(file, {_TITLE: _VERSION, **about, **facts}, list(columns))
    cells = [
        map(one_line, values) if values.dtype.kind == "U" else values.tolist()
        for values in columns.values()
    ]
    rows.writerows(zip(*cells, strict=True))


def _read(file: IO[str], *, name: str) -> dict[str, Any]:
    """Return the parameters of the `SegmentProfile` that a file holds."""
    table = TextTable(file, name=name, knows=lambda cells: "duration_s" in cells)
    about = table.comments
    if _TITLE not in about:
        raise InvalidInput(f"{name} is not a segment profile, expected '# {_TITLE}: 1' on line 1")
    if (version := about.pop(_TITLE)) != _VERSION:
        raise InvalidInput(f"{name} is a segment profile of version {version}, expected {_VERSION}")
    heads = _heads(table.header, name)
    kinds = [Labels() if kind == "nominal" else _KINDS.get(kind, Numbers()) for kind, _ in heads]
    columns = dict(zip(table.header, kinds, strict=True))
    parts = [part.columns for part in table.parts(columns)]
    if not parts:
        raise InvalidInput(f"{name} has no segments, expected a row for each")
    fields: dict[str, Any] = {field: {} for field in _FIELDS.values()}
    for (kind, title), (head, column) in zip(heads, columns.items(), strict=True):
        values = np.concatenate([part.pop(head) for part in parts])
        if isinstance(column, Labels):
            values = np.array(_labels_in(column.distinct))[values]
        if title:
            fields[_FIELDS[kind]][title] = values
        else:
            fields[kind] = values
    return {**_about(table), **fields}


def _heads(header: Sequence[str], name: str) -> list[tuple[str, str]]:
    """Return kinds and names of the columns, or raise naming the problem with the header."""
    heads = [(kind.strip(), title.strip()) for kind, _, title in (h.partition(":") for h in header)]
    wanted = ", ".join(("duration_s", *(f"{kind}:NAME" for kind in _FIELDS)))
    problems, times = [], Counter(heads)
    for head, text in zip(heads, header, strict=True):
        if head != ("duration_s", "") and (head[0] not in _FIELDS or not head[1]):
            problems.append(f"{name}: column {text!r}, expected one of {wanted}")
        elif times[head] > 1:
            problems.append(f"{name}: several columns {text!r}, expected one")
    if ("duration_s", "") not in heads:
        problems.append(f"{name} has no column duration_s, expected one")
    refuse(problems)
    return heads


def _labels_in(texts: list[str]) -> Sequence[str | int | float]:
    """Return numbers if all are written as Python would, else texts: "007" is not "7"."""
    if texts and isinstance(_plain(texts[0]), str):
        return texts
    values = [_plain(text) for text in texts]
    are_alike = len(set(map(type, values))) == 1 and list(map(str, values)) == texts
    return values if are_alike else texts


def _about(table: TextTable) -> dict[str, Any]:
    """Return the fields of the profile in the comment lines; the other lines become facts."""
    known: dict[str, Any] = {
        key: table.comments[key] if key in _TEXTS else int(table.number(key, _COUNT) or 0)
        for key in (*_TEXTS, *_COUNTS)
        if key in table.comments
    }
    others = {key: text for key, text in table.comments.items() if key not in known}
    return {**known, "facts": {key: _BOOLS.get(text, _plain(text)) for key, text in others.items()}}


def _plain(text: str) -> str | int | float:
    """Return a number if the text is a finite one; an int if 64 bits hold it."""
    if not (is_number(text) and math.isfinite(number := float(text))):
        return text
    with suppress(ValueError):
        if -(2**63) <= (whole := int(text)) < 2**63:
            return whole
    return number
