"""Picks readings from the output of a command."""

from __future__ import annotations

import codecs
import io
import json
import math
import re
import signal
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, BinaryIO, Literal, Self

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.codec import value_at
from benchrigor.model.metric import A_DURATION, Metric, describe_metric
from benchrigor.model.one_line import OneLine
from benchrigor.model.series import short
from benchrigor.model.text_tables import cells_in, is_number
from benchrigor.safe_text import hide_secrets
from benchrigor.units import Quantity, has_time_unit, many, rest_of_duration, show_value, time_in
from benchrigor.workloads.processes.own_signals import handle

# Returns the picked items of a line, not yet checked to be numbers.
Finder = Callable[[str], Iterable[Any]]

_FORM = re.compile(r"([^:=]+)(?::([^=]+))?=(regex|column|json):(.+)", re.DOTALL)

_MARKS = ".,'\u2019\u00a0\u202f"  # within a number: point, comma, marks between thousands
_DIGITS = f"0123456789{_MARKS}"
_EXPONENT = re.compile(r"[eE][-+]?[0-9]+")
# One number with commas: 1,5 and 1,234.5 and 1.234,5 are; 1.5,2.5 and 10,20,30 are several.
_WITH_COMMA = re.compile(
    r"[-+]?([0-9]+,[0-9]+|[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?|[0-9]{1,3}(\.[0-9]{3})+,[0-9]+)"
)
_QUANTIFIER = re.compile(r"\{[0-9]*,[0-9]*\}")
_LONGEST_NUMBER = 40

_LONGEST_LINE = 2**20
_PIECE = 2**16
_TICK_S = 0.1  # of processor time
_MOST_TICKS = 5  # during the search of one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick(OneLine):
    """A metric in the output of a command, and the position of its readings.

    Lines are searched one by one, except JSON objects over several. Lines longer than 1 MiB are
    not searched.

    Parameters
    ----------
    metric
        Name of the metric, without a colon or an equals sign.
    unit
        Unit of its readings, without an equals sign; empty for a bare number.
    words
        Properties of the metric, in the words of `describe_metric`: ("harmonic", "±1%").
    how
        The kind of ``where``.
    where
        For "regex", a pattern that may match several times in a line. Its one group is the
        reading, or the whole match without a group. A part of a number is refused, such as the 1
        of 1,5 or of 1e-05, unless the pattern has the mark (a comma) that separates two numbers.
        For "column", the number of a column, counted from 0. Lines with a comma are split at
        commas outside of quotes, others at white space, or at semicolons if these leave more
        numbers; a quote that its line does not close is refused; lines without a number there,
        such as headers, are skipped.
        A number with a comma among words, as in 1,234 ms, or between semicolons is refused.
        Unit readings count in the rows of a table only: in most lines with the same number of
        cells, and words in the same cells (fewer than half of these may differ).
        For "json", a key, dotted for nested objects, with the index of an item in a list. Other
        lines than JSON objects with this key are skipped. An object may span several lines if its
        brackets open at the end of a line and close in a line of their own.
    unit_readings
        Whether the numbers found are readings of successive units of work. Otherwise the last
        number is the reading of the whole round.

    A duration that is printed with its unit, such as 487.51us or 0m1.234s, is converted to the
    unit of its metric, also when a pattern picks its digits only.

    Raises
    ------
    InvalidInput
        When ``where`` does not fit ``how``, or a name has a forbidden sign.

    Examples
    --------
    >>> pick = Pick.parse("rate:req/s=regex:rps: ([0-9.]+)")
    >>> pick.metric, pick.unit, pick.how, pick.where
    ('rate', 'req/s', 'regex', 'rps: ([0-9.]+)')
    >>> str(pick)
    'rate:req/s=regex:rps: ([0-9.]+)'
    >>> str(Pick.parse("ok:share=regex:ok ([0-9]+/[0-9]+)").measured.kind)
    'share'
    """

    metric: str
    unit: str = ""
    words: tuple[str, ...] = ()
    how: Literal["regex", "column", "json"]
    where: str
    unit_readings: bool = False

    def __post_init__(self) -> None:
        match = _FORM.fullmatch(str(self))
        described = (self.metric, self.description, self.how, self.where)
        if match is None or match.groups("") != described or self.measured.unit != self.unit:
            raise _wrong_form(str(self))
        self.finder()

    @classmethod
    def parse(cls, text: str, *, unit_readings: bool = False) -> Self:
        """Read ``NAME[:UNIT[,WORD]...]=regex:PATTERN``, ``...=column:N`` or ``...=json:KEY``.

        Raises
        ------
        InvalidInput
            When the text has another form.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise _wrong_form(text)
        metric, description, how, where = match.groups("")
        unit = describe_metric(metric, description).unit
        words = tuple(filter(None, map(str.strip, description.split(","))))
        return cls(
            metric=metric,
            unit=unit,
            words=tuple(word for word in words if word != unit),
            how=how,  # type: ignore[arg-type]  # the form admits no other
            where=where,
            unit_readings=unit_readings,
        )

    @property
    def measured(self) -> Metric:
        """The metric that the words describe."""
        return describe_metric(self.metric, self.description)

    @property
    def description(self) -> str:
        """Unit and words."""
        return ",".join(filter(None, (self.unit, *self.words)))

    def __str__(self) -> str:
        description = self.description and f":{self.description}"
        return f"{self.metric}{description}={self.how}:{self.where}"

    def finder(self) -> Finder:
        """Return the function that finds the picked items in a line."""
        if self.how == "json":
            return _in_json(self.where)
        find = {"regex": _in_matches, "column": _in_column}[self.how]
        return find(self.where, is_duration=self.measured.kind is Quantity.TIME)


class _TakesLong(Exception):
    """A search goes on and on."""


class OutputSearch:
    """Finds readings in the output of a command, given in pieces of any size.

    Needs memory for the longest line searched and 8 bytes per reading.

    Parameters
    ----------
    picks
        Items to find, one per metric.
    name
        Of the command, for errors.
    """

    def __init__(self, picks: Sequence[Pick], *, name: str = "the command") -> None:
        self.found: dict[str, array[float]] = {pick.metric: array("d") for pick in picks}
        self.trials: dict[str, float] = {}  # of the last share in the form 998/1000
        self._counts = {pick.metric for pick in picks if _may_count(pick)}
        self._durations = {pick.metric for pick in picks if pick.measured.kind is Quantity.TIME}
        self._finders = [(pick, pick.finder()) for pick in picks]
        self._objects = _JsonObjects()
        self.is_whole = True  # whether all output was given
        self._name = name
        self._decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True
        )
        self._begun = ""  # of the last line
        self._is_too_long = False
        self._size = self._lines = self._too_long = 0
        self._searching: Pick | None = None
        self._ticked = self._ticks = 0  # the line of the last tick, and how many it had

    def feed(self, output: bytes) -> None:
        """Search the lines that end in this piece.

        WorkloadFailed when a picked item is not a finite number.
        """
        self._size += len(output)
        with self._limit():
            self._add(self._decoder.decode(output))

    def finish(self) -> None:
        """Search the last line too, which has no end."""
        with self._limit():
            self._add(self._decoder.decode(b"", final=True))
            if self._begun or self._is_too_long:
                self._search(self._begun)
                self._begun = ""
        for line in self._objects.rest():
            self._pick(line, of_json=True)

    def check(self) -> None:
        """Raise WorkloadFailed unless all picks have readings."""
        for pick, _ in self._finders:
            if not self.found[pick.metric]:
                none = "none of them holds" if self._size else "expected"
                raise WorkloadFailed(
                    f"{self._name} printed {self.printed}, {none} a reading for metric "
                    f"{pick.metric!r} (pick: {pick})"
                )

    @property
    def printed(self) -> str:
        """How much was printed."""
        if not self._size:
            return "nothing"
        skipped = ""
        if self._too_long:
            skipped = f" ({self._too_long} longer than 1 MiB, not searched)"
        return f"{show_value(self._size, 'B')} in {many(self._lines, 'line')}{skipped}"

    @contextmanager
    def _limit(self) -> Iterator[None]:
        """End the search of a line that takes long, as by a pattern that tries all ways to part it.

        It can be ended in the main thread only. Ticks of processor time in one and the same line
        count: a process that stands still gets one of them, however long it waits.
        """
        if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
            yield
            return
        try:
            with handle({signal.SIGVTALRM: self._tick}):
                signal.setitimer(signal.ITIMER_VIRTUAL, _TICK_S, _TICK_S)
                try:
                    yield
                finally:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        except _TakesLong:
            raise WorkloadFailed(
                f"the search in line {self._lines} of what {self._name} printed was ended after "
                f"{_TICK_S * _MOST_TICKS:g} s, expected a pattern that matches or fails at once: "
                f"repeat no group with repeated content, as (a+)+ does (pick: {self._searching})"
            ) from None

    def _tick(self, _number: int, _frame: FrameType | None) -> None:
        if self._lines != self._ticked:
            self._ticked, self._ticks = self._lines, 0
        self._ticks += 1
        if self._ticks >= _MOST_TICKS:
            raise _TakesLong

    def _add(self, text: str) -> None:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._search(f"{line}\n")
        if len(self._begun) >= _LONGEST_LINE:
            self._begun, self._is_too_long = "", True

    def _search(self, line: str) -> None:
        self._lines += 1
        if self._is_too_long or len(line) > _LONGEST_LINE:
            # A part of a line will not do: it may end within a number.
            self._too_long += 1
            self._is_too_long = False
            return
        self._pick(line, of_json=False)
        for text in self._objects.take(line):
            self._pick(text, of_json=True)

    def _pick(self, text: str, *, of_json: bool) -> None:
        """Find in a line, or in a JSON object of several, what those picks look for."""
        for pick, find in self._finders:
            if (pick.how == "json") != of_json:
                continue
            self._searching = pick
            for item in find(text):
                where = f"line {self._lines} of what {self._name} printed"
                self.found[pick.metric].append(self._number(item, pick, where))

    def _number(self, item: Any, pick: Pick, line: str) -> float:
        """Return a number, or the share of successes in trials."""
        if isinstance(item, _Part):
            raise _wrong_output(item, pick, line, item.expected)
        successes, slash, trials = str(item).partition("/")
        self.trials.pop(pick.metric, None)
        if not slash or pick.metric not in self._counts:
            number = _number(item, pick, line)
            if number < 0.0 and pick.metric in self._durations:
                raise _wrong_output(item, pick, line, A_DURATION)
            return number
        number, of = (_number(part, pick, line) for part in (successes, trials))
        if not 0.0 <= number <= of or of == 0.0:
            raise _wrong_output(item, pick, line, "successes/trials, such as 998/1000")
        self.trials[pick.metric] = of
        return number / of


class _JsonObjects:
    """Joins the lines of an object that spans several.

    An object begins with a bracket at the end of a line, and ends with a bracket indented like its
    first line. The lines of an object without an end are given one by one.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._end = ""

    def take(self, line: str) -> list[str]:
        """Return the texts that are whole with this line."""
        bare = line.strip()
        if not self._lines:
            if not (bare.startswith(("{", "[")) and bare.endswith(("{", "[", ","))):
                return [line]
            indent = line[: len(line) - len(line.lstrip())]
            self._end, self._size = indent + ("}" if bare[0] == "{" else "]"), 0
        self._lines.append(line)
        self._size += len(line)
        if self._size > _LONGEST_LINE:
            return self.rest()
        return ["".join(self.rest())] if line.rstrip() == self._end else []

    def rest(self) -> list[str]:
        """Return the lines of an object that has not ended."""
        lines, self._lines = self._lines, []
        return lines


def read_picks(
    output: BinaryIO,
    picks: Sequence[Pick],
    *,
    name: str = "the command",
    cut: bool = False,
    is_late: Callable[[], bool] = lambda: False,
) -> OutputSearch:
    """Find the readings in the output of a command, one number or more per metric.

    If the command was ``cut``, only whole lines are searched, and metrics may lack readings. The
    same holds if the search ends early because it ``is_late``; ``is_whole`` shows that. Raises
    WorkloadFailed when a picked item is not a finite number, or a metric has no reading.
    """
    search = OutputSearch(picks, name=name)
    output.seek(0)
    while piece := output.read(_PIECE):
        search.feed(piece)
        if is_late():
            search.is_whole = not output.read(1)
            break
    if not cut and search.is_whole:
        search.finish()
        search.check()
    return search


def wrong_picks(picks: Sequence[Pick]) -> list[str]:
    """Name the metrics with several picks."""
    picked = Counter(pick.metric for pick in picks)
    return [
        f"two picks for metric {metric!r}, expected one for each"
        for metric, times in picked.items()
        if times > 1
    ]


def _may_count(pick: Pick) -> bool:
    """Whether 998/1000 is a share of trials for this pick."""
    return not pick.unit_readings and pick.measured.kind in (None, Quantity.SHARE)


def _wrong_form(text: str) -> InvalidInput:
    return InvalidInput(
        f"pick is {text!r}, expected NAME[:UNIT[,WORD]...]=regex:PATTERN, ...=column:N or "
        "...=json:KEY"
    )


def _in_matches(where: str, *, is_duration: bool) -> Finder:
    try:
        pattern = re.compile(where)
    except re.error as error:
        raise InvalidInput(
            f"pattern is {where!r}, expected a regular expression: {error}"
        ) from error
    if pattern.groups > 1:
        raise InvalidInput(
            f"pattern is {where!r} with {pattern.groups} groups, expected one group at most, "
            "around the number; write the others as (?:...)"
        )

    # Marks that the pattern names: there it parts numbers on purpose.
    meant = set(_QUANTIFIER.sub("", where)) - {"."} | set("." * (r"\." in where))

    def find(line: str) -> list[str]:
        return [_whole(line, match, meant, is_duration) for match in pattern.finditer(line)]

    return find


class _Part(str):
    """A number that was picked only in part: as a reading it would be wrong."""

    __slots__ = ()
    expected = "a number picked whole, with a decimal point and without commas or marks"


class _OpenQuote(_Part):
    """A quoted cell that goes on in the next line, or never ends."""

    __slots__ = ()
    expected = "each quoted cell whole in one line"


def _whole(line: str, match: re.Match[str], meant: set[str], is_duration: bool) -> str:
    """Return the picked text, or the whole number as a `_Part` if only a part was picked.

    A duration includes the unit that follows it. At the marks in ``meant`` the pattern separates
    numbers on purpose.
    """
    picked, (start, stop) = match[match.re.groups] or "", match.span(match.re.groups)
    ahead, behind = (
        line[max(0, start - _LONGEST_NUMBER) : start],
        line[stop : stop + _LONGEST_NUMBER],
    )
    before = ahead[len(ahead.rstrip(_DIGITS)) :]
    after = behind[: len(behind) - len(behind.lstrip(_DIGITS))]
    exponent = _EXPONENT.match(behind)
    if not is_number(picked):
        return picked
    if not (before or after or exponent):
        return picked + rest_of_duration(behind) if is_duration else picked
    cuts = {"e"} if exponent else set()
    for beside, at_edge in (
        (before[:-3:-1], start == match.start()),
        (after[:2], stop == match.end()),
    ):
        if (beside[:1].isdigit() and at_edge) or beside[1:].isdigit():
            cuts.add(beside[0])
    if before == "." and not ahead[-2:-1].isalnum():
        cuts.add(".")
    after = exponent[0] if exponent else after
    number, follows = f"{before}{picked}{after}", behind[len(after) : len(after) + 1]
    if not follows.strip():
        number = number.rstrip(".,")  # of the sentence
    # Numbers in brackets, or of another form, are a list.
    is_list = f"{ahead[: -len(before) or None][-1:]}{follows}" in {"[]", "()", "{}"}
    if cuts - meant == {","} and (is_list or not _WITH_COMMA.fullmatch(number)):
        return picked
    return _Part(number) if cuts - meant else picked


def _in_column(where: str, *, is_duration: bool) -> Finder:
    if not re.fullmatch("[0-9]{1,6}", where):
        raise InvalidInput(f"column is {short(where)}, expected its number, counted from 0")
    column = int(where)

    def find(line: str) -> list[float | str]:
        words, cells = line.split(), cells_in(line)
        if cells is None:
            return [_OpenQuote(line.strip())]
        for parts in (words, cells) if len(words) > 1 else (cells,):
            if len(parts) > column and _WITH_COMMA.fullmatch(parts[column].strip()):
                return [_Part(parts[column])]
        try:
            cell = cells[column]
        except IndexError:
            return []
        if is_duration and has_time_unit(cell):
            return [cell.strip()]
        return [float(cell)] if is_number(cell) else []

    return find


def _in_json(where: str) -> Finder:
    def find(line: str) -> list[Any]:
        if "{" not in line:
            return []
        try:
            return [value_at(json.loads(line), where)]
        except (LookupError, ValueError, RecursionError):
            return []

    return find


def _number(item: Any, pick: Pick, line: str) -> float:
    try:
        if isinstance(item, str) and pick.measured.kind is Quantity.TIME:
            number = time_in(pick.unit, item)
        else:
            number = float(item) if is_number(str(item)) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise _wrong_output(item, pick, line, "a finite number")
    return number


def _wrong_output(item: Any, pick: Pick, line: str, expected: str) -> WorkloadFailed:
    return WorkloadFailed(
        f"{line}: {hide_secrets(str(item)[:1_000])[:80]!r} is picked for metric {pick.metric!r}, "
        f"expected {expected} (pick: {pick})"
    )
