"""Picks readings from what a command prints."""

from __future__ import annotations

import io
import json
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, Self

from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Metric
from benchrigor.model.metric import describe_metric
from benchrigor.model.text import many, show_value
from benchrigor.units import Quantity

# Returns what a line holds where a pick looks, not yet checked to be a number.
Finder = Callable[[str], Iterable[Any]]

_FORM = re.compile(r"([^:=]+)(?::([^=]+))?=(regex|column|json):(.+)", re.DOTALL)

_LONGEST_LINE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """What is read from the output of a command, and where in it the readings are.

    Every line is searched by itself. A line longer than 1 MiB is not searched.

    Parameters
    ----------
    metric
        Name of the metric; no colon or equals sign in it.
    unit
        Unit of its readings; no equals sign in it, empty for a bare number.
    words
        What it is, in the words of `describe_metric`: ("harmonic", "±1%").
    how
        The kind of ``where``.
    where
        For "regex", a pattern that may match several times in a line; its one group, or the
        whole match when it has none, is the reading.
        For "column", the number of a column, counted from 0. Lines with a comma are split at
        commas, others at white space; lines without a number there, such as headers, are skipped.
        For "json", a key, dotted for nested objects; lines that are no JSON object with this key
        are skipped.
    unit_readings
        All that is found are readings of successive units of work. Otherwise the last one is the
        reading of the whole round.

    Raises
    ------
    InvalidInput
        When ``where`` is not what ``how`` says, or a name has a sign that it must not have.

    Examples
    --------
    >>> pick = Pick.parse("rate:req/s=regex:rps: ([0-9.]+)")
    >>> pick.metric, pick.unit, pick.how, pick.where
    ('rate', 'req/s', 'regex', 'rps: ([0-9.]+)')
    >>> str(pick)
    'rate:req/s=regex:rps: ([0-9.]+)'
    >>> Pick.parse("ok:share=regex:ok ([0-9]+/[0-9]+)").measured.kind
    <Quantity.SHARE: 'share'>
    """

    metric: str
    unit: str = ""
    words: tuple[str, ...] = ()
    how: Literal["regex", "column", "json"]
    where: str
    unit_readings: bool = False

    def __post_init__(self) -> None:
        match = _FORM.fullmatch(str(self))
        described = (self.metric, self._description, self.how, self.where)
        if match is None or match.groups("") != described or self.measured.unit != self.unit:
            raise _misformed(str(self))
        self.finder()

    @classmethod
    def parse(cls, text: str, *, unit_readings: bool = False) -> Self:
        """Read ``NAME[:UNIT[,WORD]...]=regex:PATTERN``, ``...=column:N`` or ``...=json:KEY``.

        Raises
        ------
        InvalidInput
            When the text has none of these forms.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise _misformed(text)
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
        return describe_metric(self.metric, self._description)

    @property
    def _description(self) -> str:
        return ",".join(filter(None, (self.unit, *self.words)))

    def __str__(self) -> str:
        description = self._description and f":{self._description}"
        return f"{self.metric}{description}={self.how}:{self.where}"

    def finder(self) -> Finder:
        """Return the function that finds in a line what is picked."""
        return {"regex": _in_matches, "column": _in_column, "json": _in_json}[self.how](self.where)


def read_picks(
    output: BinaryIO, picks: Sequence[Pick], *, name: str = "the command"
) -> dict[str, array[float]]:
    r"""Find the readings in the output of a command, per metric at least one number.

    Needs memory for the longest line searched and 8 bytes per reading, however long the output.
    Raises WorkloadFailed when something picked is not a finite number, or nothing is found.
    """
    size = output.seek(0, io.SEEK_END)
    output.seek(0)
    searches = [(pick, pick.finder(), array("d")) for pick in picks]
    lines = too_long = 0
    for lines, line in enumerate(_lines(output), start=1):
        if line is None:
            too_long += 1
            continue
        for pick, find, numbers in searches:
            for item in find(line):
                numbers.append(_number(item, pick, f"line {lines} of what {name} printed"))
    for pick, _, numbers in searches:
        if not numbers:
            printed = _amount(size, lines, too_long)
            raise WorkloadFailed(
                f"{name} printed {printed} a reading for metric {pick.metric!r} (pick: {pick})"
            )
    return {pick.metric: numbers for pick, _, numbers in searches}


def _misformed(text: str) -> InvalidInput:
    return InvalidInput(
        f"pick is {text!r}, expected NAME[:UNIT[,WORD]...]=regex:PATTERN, ...=column:N or "
        "...=json:KEY"
    )


def _in_matches(where: str) -> Finder:
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
    return pattern.findall


def _in_column(where: str) -> Finder:
    if not re.fullmatch("[0-9]{1,6}", where):
        raise InvalidInput(f"column is {where!r}, expected its number, counted from 0")
    column = int(where)

    def find(line: str) -> list[float]:
        cells = line.split("," if "," in line else None)
        try:
            return [float(cells[column])]
        except (IndexError, ValueError):
            return []

    return find


def _in_json(where: str) -> Finder:
    keys = where.split(".")

    def find(line: str) -> list[object]:
        if "{" not in line:
            return []
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            return []
        for key in keys:
            if not isinstance(item, dict) or key not in item:
                return []
            item = item[key]
        return [item]

    return find


def _lines(output: BinaryIO) -> Iterator[str | None]:
    """Yield the lines of an output, None for each that is too long.

    A part of a line will not do: it may end within a number.
    """
    text = io.TextIOWrapper(output, encoding="utf-8", errors="replace")
    try:
        while line := text.readline(_LONGEST_LINE):
            piece = line
            while len(piece) == _LONGEST_LINE and not piece.endswith("\n"):
                piece = text.readline(_LONGEST_LINE)
            yield line if piece is line else None
    finally:
        text.detach()


def _number(item: Any, pick: Pick, line: str) -> float:
    try:
        number = math.nan if isinstance(item, bool) else float(item)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise WorkloadFailed(
            f"{line}: {str(item)[:80]!r} is picked for metric {pick.metric!r}, "
            f"expected a finite number (pick: {pick})"
        )
    return number


def _amount(size: int, lines: int, too_long: int) -> str:
    """Say how much was printed, in words that end before "a reading"."""
    if not size:
        return "nothing, expected"
    skipped = f" ({too_long} longer than 1 MiB, not searched)" if too_long else ""
    return f"{show_value(size, 'B')} in {many(lines, 'line')}{skipped}, none of which holds"
