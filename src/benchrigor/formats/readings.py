"""Readings in a file or a pipe: a CSV column, JSON, or one number per line."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.files import decoded, readable
from benchrigor.formats.fields import parse_json
from benchrigor.formats.guessed_tables import (
    COUNT,
    READABLE,
    SAMPLE,
    are_times,
    chosen,
    figures_of,
    may_be_labels,
    may_be_units,
    table_in,
    times_in,
    unit_in,
    unit_in_name,
    with_paths,
)
from benchrigor.model import Notice
from benchrigor.model.plain_columns import columns_of, values_of
from benchrigor.model.series import Floats, as_series
from benchrigor.model.text_tables import IN_JSON, LastLine, Problems, Table, is_missing
from benchrigor.units import many

_HEAD = 1 << 16  # bytes that show how a long table is written


def name_of(source: str) -> str:
    """Name the source of readings."""
    return "standard input" if source == "-" else source


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The place of readings in a file, and their unit.

    ``column`` is the name or number (from 0) of a CSV column, the key of JSON objects, or a path of
    keys and places such as results.0.times; None stands for the only one, or the only other one
    than ``by``, whose cells name the rounds. Not read are the ``ignored`` first lines, rows with
    another value in a column of ``where``, and, with ``skips_missing``, rows without a reading.
    """

    column: str | None = None
    by: str | None = None
    unit: str | None = None
    ignored: int = 0
    where: tuple[tuple[str, str], ...] = ()
    skips_missing: bool = False

    @property
    def leaves_out(self) -> bool:
        """Whether lines or rows are not to be read."""
        return bool(self.ignored or self.where or self.skips_missing)

    def read(self, source: str, unit: str = "") -> RecordedRounds:
        """Read readings from a file, or from standard input for "-", divided by the column ``by``.

        JSON (a list, an object that holds one, a list of objects, or an object per line) is
        recognised by its first character. All else is CSV (comma, semicolon, tab or spaces). Its
        first line is a header if it holds no number; all rows must have as many cells. A last line
        without a line break is not used if `_is_cut` shows that a part of it is missing. Cells that
        are times with their units are read in ``unit``, else in seconds.
        """
        name = name_of(source)
        (cells,), labels, of_column, unfinished = _cells(source, [self.column], self)
        if isinstance(cells, np.ndarray):
            return RecordedRounds(series=(as_series(cells, name=name),), unit=of_column)
        cells, of_cells = _in_one_unit(cells, unit, name)
        rounds: dict[str, list[Any]] = {} if labels else {"": cells}
        for label, cell in zip(labels, cells, strict=True) if labels else ():
            rounds.setdefault(str(label), []).append(cell)
        counts = [COUNT.fullmatch(cell) if isinstance(cell, str) else None for cell in cells]
        if self.by is None and cells and all(counts):
            return replace(_of_counts(cells), unfinished=unfinished)
        return RecordedRounds(
            series=tuple(as_series(readings, name=name) for readings in rounds.values()),
            labels=tuple(rounds) if labels else (),
            unit=of_cells or of_column,
            unfinished=unfinished,
        )

    def read_pairs(self, source: str, work: str) -> RecordedRounds:
        """Read two series of numbers, as `read` reads one: amounts of work, and their readings."""
        name, read = name_of(source), _cells(source, [work, self.column], self)
        figures = (_in_one_unit(column, "", name)[0] for column in read.figures)
        series = tuple(as_series(column, name=name) for column in figures)
        return RecordedRounds(series=series, unfinished=read.unfinished)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedRounds:
    """The readings of a file, one series per round; a single series if rounds have no names.

    ``trials`` are the numbers of trials of shares, from cells such as 998/1000: then every row is a
    round. ``unit`` is the unit of the readings if cells have their own units, such as 487.5us, or a
    column says it.
    ``notices`` hold the warnings of the tool. ``unfinished`` is a last line without its end.
    """

    series: tuple[Floats, ...]
    labels: tuple[str, ...] = ()
    unit: str = ""
    trials: tuple[float, ...] | None = None
    notices: tuple[Notice, ...] = ()
    unfinished: LastLine | None = None


class _Cells(NamedTuple):
    """Columns of figures, the names of their rounds, and what else the table says."""

    figures: list[Any]
    labels: Sequence[Any] = ()
    unit: str = ""  # that another column names
    unfinished: LastLine | None = None


def has_path(source: str, path: str | None) -> bool:
    """Return whether a dotted path leads to readings in a file of JSON."""
    with suppress(InvalidInput):
        if path is not None and "." in path:
            text = _text(_bytes(source), Columns(), source)
            data = with_paths(parse_json(text, source).data, [path])
            return path in (data[0] if isinstance(data, list) and data else data)
    return False


def _in_one_unit(cells: Any, unit: str, name: str) -> tuple[Any, str]:
    """Return times with their own units in one unit, and that unit; other cells without a unit."""
    if isinstance(cells, np.ndarray) or not are_times(cells):
        return cells, ""
    unit = unit or "s"
    return times_in(unit, cells, name), unit


def _of_counts(cells: Sequence[str]) -> RecordedRounds:
    """Return the shares of counts such as 998/1000, and their trials."""
    counts = [tuple(map(int, cell.split("/"))) for cell in cells]
    return RecordedRounds(
        series=tuple(np.array([successes / trials]) for successes, trials in counts),
        trials=tuple(float(trials) for _, trials in counts),
    )


def _cells(source: str, wanted: Sequence[str | None], columns: Columns) -> _Cells:
    name, by, raw = name_of(source), columns.by, _bytes(source)
    is_whole = by is None and not (columns.ignored or columns.where)
    if is_whole and (plain := _plain(raw, wanted, name)):
        return plain
    text = _text(raw, columns, name)
    if not text.strip():
        raise InvalidInput(f"{name} is empty, expected readings")
    asked = [*wanted, *([] if by is None else [by])]
    table = table_in(text, [*asked, *(key for key, _ in columns.where)], name)
    used = chosen(table, asked, by)
    table = _selected(table, used, len(wanted), columns)
    unit = unit_in(table.columns, used, name) or unit_in_name(used[0])
    figures = [figures_of(table, key) for key in used[: len(wanted)]]
    labels = table.columns[used[-1]] if by is not None else ()
    problems, empty = Problems(), [row for row, label in enumerate(labels) if label in {None, ""}]
    problems.add(empty, lambda row: table.misfit(row, used[-1], "the name of a round"))
    problems.refuse()
    return _Cells(figures, labels, unit, table.unfinished)


def _selected(table: Table, used: Sequence[str], readings: int, columns: Columns) -> Table:
    """Return rows that may be read, of the columns as long; the first ``readings`` have figures."""
    n, *others = {len(table.columns[key]) for key in used}
    if others:
        raise InvalidInput(f"{table.name} has lists of different length, expected as many of each")
    alike = {key: cells for key, cells in table.columns.items() if len(cells) == n}
    table = replace(table, columns=alike)
    if not (columns.where or columns.skips_missing):
        return table
    kept = [*range(n)]
    for key, value in columns.where:
        cells = table.columns[chosen(table, [key], flag="--where")[0]]
        kept = [row for row in kept if value in (str(cells[row]), IN_JSON.get(repr(cells[row])))]
    if columns.skips_missing:
        several = [table.columns[key] for key in used[:readings]]
        kept = [row for row in kept if not any(is_missing(cells[row]) for cells in several)]
    if not kept:
        raise InvalidInput(f"{table.name} has no row left by --where and --missing, expected one")
    return table.with_rows(kept)


def _plain(raw: bytes, wanted: Sequence[str | None], name: str) -> _Cells | None:
    """Read columns of a long file if its rows are proved plain; else return None."""
    head = raw[:_HEAD].removeprefix(BOM_UTF8)
    lines = head[: head.rfind(b"\n") + 1].splitlines(keepends=True)
    is_json = head.startswith(b"{")
    if len(raw) <= _HEAD or not (lines if is_json else head.isascii() and lines[2 * SAMPLE :]):
        return None
    try:
        text = b"".join(lines).decode().replace("\r\n", "\n")
        if "\0" in text or len(text.splitlines()) != len(lines):
            return None
        table = table_in(text, wanted, name)
        used = chosen(table, wanted)
    except (InvalidInput, UnicodeDecodeError):  # the careful reader names it, of the whole file
        return None
    names, start = [*table.columns], table.rows[0]
    for (key, cells), before in zip(table.columns.items(), ["", *names], strict=False):
        if may_be_units(key, cells[0], is_beside=before in used) or (
            key not in used and may_be_labels(cells, raw, start or 1)
        ):
            return None
    if is_json and len(used) == 1:
        figures = values_of(memoryview(raw), used[0], is_only=wanted == [None])
    elif table.mark:
        first = len(raw[:_HEAD]) - len(head) + sum(map(len, lines[: start - 1]))
        indices = [names.index(key) for key in used]
        figures = columns_of(memoryview(raw)[first:], indices, width=len(names), mark=table.mark)
    else:
        return None
    return _Cells(figures, unit=unit_in_name(used[0])) if figures else None


def _bytes(source: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if source == "-" else readable(source).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{name_of(source)} cannot be read: {error.strerror}") from error


def _text(raw: bytes, columns: Columns, name: str) -> str:
    try:
        text = decoded(raw)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is not text, expected {READABLE}: {error}") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidInput(f"{name} line {line} has a NUL byte, expected text in UTF-8")
    ignored = columns.ignored
    lines = text.splitlines(keepends=True) if ignored else []
    if ignored and not any(map(str.strip, lines[ignored:])):
        raise InvalidInput(
            f"{name} has {many(len(lines), 'line')}, of which --ignore-lines leaves none to read"
        )
    # Blank lines in their place: errors count the lines of the whole file.
    return "\n" * ignored + "".join(lines[ignored:]) if ignored else text
