"""Readings from a file or a pipe: a CSV column, JSON, or one number per line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchrigor.cli.options import ignored_lines
from benchrigor.errors import InvalidInput
from benchrigor.model import Floats, as_series
from benchrigor.model.commented_csv import is_number, rows_of
from benchrigor.model.text import many

_COUNT = re.compile(r"[0-9]{1,15}/[0-9]{1,15}")  # so many successes of so many trials


def name_of(source: str) -> str:
    """Say where readings come from."""
    return "standard input" if source == "-" else source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedRounds:
    """The readings of a file, one series for each round; all in one where no round is named.

    ``trials`` are the trials behind each share, where cells such as 998/1000 tell them: then each
    row is a round.
    """

    series: tuple[Floats, ...]
    labels: tuple[str, ...] = ()
    trials: tuple[float, ...] | None = None


def read_rounds(source: str, column: str | None, by: str | None = None) -> RecordedRounds:
    """Read readings from a file, or from standard input for "-", divided by the column ``by``.

    JSON (a list, an object that holds one, a list of objects, or an object per line) is recognised
    by its first character. All else is CSV (comma, semicolon, tab or spaces), whose first line is a
    header if it holds no number. ``column`` is the name or number (from 0) of a CSV column, or the
    key of JSON objects; None stands for the only one, or the only other one than ``by``.
    """
    name = name_of(source)
    cells, *labels = _cells(source, [column], by)
    rounds: dict[str, list[Any]] = {} if labels else {"": cells}
    for label, cell in zip(*labels, cells, strict=True) if labels else ():
        rounds.setdefault(str(label), []).append(cell)
    counts = [_COUNT.fullmatch(each) if isinstance(each, str) else None for each in cells]
    if by is None and cells and all(counts):
        return _of_counts(cells, name)
    series = tuple(as_series(each, name=name) for each in rounds.values())
    return RecordedRounds(series=series, labels=tuple(rounds) if by is not None else ())


def read_columns(source: str, columns: Sequence[str | None]) -> list[Floats]:
    """Read several columns of numbers, as `read_rounds` reads one."""
    return [as_series(each, name=name_of(source)) for each in _cells(source, columns)]


def _of_counts(cells: Sequence[str], name: str) -> RecordedRounds:
    """Return the shares of counts such as 998/1000, and their trials."""
    counts = [tuple(map(int, cell.split("/"))) for cell in cells]
    for cell, (successes, trials) in zip(cells, counts, strict=True):
        if not 0 < trials >= successes:
            raise InvalidInput(f"{name} has {cell!r}, expected successes/trials, such as 998/1000")
    return RecordedRounds(
        series=tuple(np.array([successes / trials]) for successes, trials in counts),
        trials=tuple(float(trials) for _, trials in counts),
    )


def _cells(source: str, columns: Sequence[str | None], by: str | None = None) -> list[list[Any]]:
    """Read columns of figures from a file, and the labels in the column ``by`` after them."""
    name = name_of(source)
    text = _text(source, name)
    if not text.strip():
        raise InvalidInput(f"{name} is empty, expected readings")
    read = _from_json if text.lstrip()[0] in "[{" else _from_csv
    return read(text, columns, by, name)


def _text(source: str, name: str) -> str:
    try:
        stdin = source == "-"
        text = sys.stdin.read() if stdin else Path(source).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is no text: {error}") from error
    ignored = ignored_lines()
    lines = text.splitlines() if ignored else []
    if ignored and not any(map(str.strip, lines[ignored:])):
        raise InvalidInput(
            f"{name} has {many(len(lines), 'line')}, of which --ignore-lines leaves none to read"
        )
    # Blank lines in their place: errors count the lines of the whole file.
    return "\n" * ignored + "\n".join(lines[ignored:]) if ignored else text


def _from_json(
    text: str, columns: Sequence[str | None], by: str | None, name: str
) -> list[list[Any]]:
    data = _parsed(text, name)
    keys = [*columns, *([] if by is None else [by])]
    if isinstance(data, dict):
        lists = [each for each, value in data.items() if isinstance(value, list)]
        chosen = [data[key] for key in _chosen(keys, lists, name, "lists", by)]
        if len(set(map(len, chosen))) > 1:
            raise InvalidInput(f"{name} has lists of different length, expected as many of each")
        return chosen
    if data and all(isinstance(row, dict) for row in data):
        named = _chosen(keys, list(data[0]), name, "keys", by)
        for index, row in enumerate(data):
            for key in named:
                if key not in row:
                    raise InvalidInput(f"{name}[{index}] has no {key!r}")
        return [[row[key] for row in data] for key in named]
    unknown = next((key for key in keys if key is not None), None)
    if unknown is not None:
        raise InvalidInput(f"{name} is a plain list, which has no column {unknown!r}")
    return [data]


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as whole:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise InvalidInput(f"{name} is no JSON: {whole}") from whole


def _from_csv(
    text: str, wanted: Sequence[str | None], by: str | None, name: str
) -> list[list[Any]]:
    rows = _rows(text, name)
    first = [cell.strip() for cell in rows[0][1]]
    # 1_000 heads no column, but is a number that other programs do not read.
    has_header = not any(_is_figure(re.sub(r"(?<=\d)_(?=\d)", "", cell)) for cell in first)
    columns = first if has_header else [str(number) for number in range(len(first))]
    numbered = dict(zip(map(str, range(len(first))), columns, strict=True))
    if has_header and len(rows) == 1:
        raise InvalidInput(f"{name} has {','.join(first)!r} and no line after it, expected numbers")
    names = [*wanted, *([] if by is None else [by])]
    names = [each if each in columns else numbered.get(each or "", each) for each in names]
    indices = [columns.index(each) for each in _chosen(names, columns, name, "columns", by)]
    cells: list[list[Any]] = [[] for _ in indices]
    for line, row in rows[1:] if has_header else rows:
        for number, index in enumerate(indices):
            cell = row[index].strip() if index < len(row) else ""
            is_label = number == len(wanted)
            if not (cell if is_label else _is_figure(cell)):
                expected = "the name of a round" if is_label else "a number"
                raise InvalidInput(f"{name} line {line} has {cell!r}, expected {expected}")
            cells[number].append(cell if is_label or "/" in cell else float(cell))
    return cells


def _is_figure(cell: str) -> bool:
    return is_number(cell) or _COUNT.fullmatch(cell) is not None


def _rows(text: str, name: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with the number of its line."""
    lines = [line.strip(" ") for line in text.splitlines()]
    first = next(line for line in lines if line.strip())
    delimiter = next((mark for mark in (",", ";", "\t") if mark in first), " ")
    rows = rows_of(lines, name, delimiter=delimiter, skipinitialspace=True)
    return [(line, row) for line, row in rows if any(map(str.strip, row))]


def _chosen(
    wanted: Sequence[str | None], names: Sequence[str], name: str, kind: str, by: str | None
) -> list[str]:
    """Return the columns that are meant: those asked for, and the only other one for None."""
    others = [each for each in names if each not in wanted]
    if not names:
        raise InvalidInput(f"{name} has no {kind}, expected one with the readings")
    unknown = next((each for each in wanted if each is not None and each not in names), None)
    if unknown is not None or (None in wanted and len(others) != 1):
        some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        found = "" if unknown is None else f", found {unknown!r}"
        flag = "--column" if unknown is None or unknown != by else "--round"
        raise InvalidInput(f"{name} has the {kind} {some}: choose one with {flag}{found}")
    chosen = [others[0] if each is None else each for each in wanted]
    if by is not None and chosen[-1] in chosen[:-1]:
        raise InvalidInput(
            f"--round is {by!r}, which holds the readings, expected another of {name}"
        )
    return chosen
