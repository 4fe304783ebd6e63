"""Readings from a file or a pipe: a CSV column, JSON, or one number per line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchrigor.cli.options import ignored_lines
from benchrigor.errors import InvalidInput
from benchrigor.model import Floats, as_series
from benchrigor.model.commented_csv import is_number, rows_of
from benchrigor.model.text import many


def name_of(source: str) -> str:
    """Say where readings come from."""
    return "standard input" if source == "-" else source


def read_readings(source: str, column: str | None) -> Floats:
    """Read a series of readings from a file, or from standard input for "-".

    JSON (a list, an object that holds one, a list of objects, or an object per line) is recognised
    by its first character. All else is CSV (comma, semicolon, tab or spaces), whose first line is a
    header if it holds no number. ``column`` is the name or number (from 0) of a CSV column, or the
    key of JSON objects; None stands for the only one.
    """
    name = name_of(source)
    text = _text(source, name)
    if not text.strip():
        raise InvalidInput(f"{name} is empty, expected readings")
    read = _from_json if text.lstrip()[0] in "[{" else _from_csv
    return as_series(read(text, column, name), name=name)


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


def _from_json(text: str, key: str | None, name: str) -> Any:
    data = _parsed(text, name)
    if isinstance(data, dict):
        lists = [each for each, value in data.items() if isinstance(value, list)]
        return data[_chosen(key, lists, name, "lists")]
    if data and all(isinstance(row, dict) for row in data):
        key = _chosen(key, list(data[0]), name, "keys")
        for index, row in enumerate(data):
            if key not in row:
                raise InvalidInput(f"{name}[{index}] has no {key!r}")
        return [row[key] for row in data]
    if key is not None:
        raise InvalidInput(f"{name} is a plain list without columns, found --column {key!r}")
    return data


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as whole:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise InvalidInput(f"{name} is no JSON: {whole}") from whole


def _from_csv(text: str, column: str | None, name: str) -> list[float]:
    rows = _rows(text, name)
    first = [cell.strip() for cell in rows[0][1]]
    # 1_000 heads no column, but is a number that other programs do not read.
    has_header = not any(is_number(re.sub(r"(?<=\d)_(?=\d)", "", cell)) for cell in first)
    columns = first if has_header else [str(number) for number in range(len(first))]
    if column is not None and column not in columns and column.isdecimal():
        column = dict(enumerate(columns)).get(int(column), column)
    if has_header and len(rows) == 1:
        raise InvalidInput(f"{name} has {','.join(first)!r} and no line after it, expected numbers")
    index = columns.index(_chosen(column, columns, name, "columns"))
    values = []
    for line, row in rows[1:] if has_header else rows:
        cell = row[index].strip() if index < len(row) else ""
        if not is_number(cell):
            raise InvalidInput(f"{name} line {line} has {cell!r}, expected a number")
        values.append(float(cell))
    return values


def _rows(text: str, name: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with the number of its line."""
    lines = [line.strip(" ") for line in text.splitlines()]
    first = next(line for line in lines if line.strip())
    delimiter = next((mark for mark in (",", ";", "\t") if mark in first), " ")
    rows = rows_of(lines, name, delimiter=delimiter, skipinitialspace=True)
    return [(line, row) for line, row in rows if any(map(str.strip, row))]


def _chosen(wanted: str | None, names: Sequence[str], name: str, kind: str) -> str:
    """Return the column that is meant: the one asked for, or the only one."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is not None and wanted in names:
        return wanted
    if not names:
        raise InvalidInput(f"{name} has no {kind}, expected one with the readings")
    some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    found = "" if wanted is None else f", found {wanted!r}"
    raise InvalidInput(f"{name} has the {kind} {some}: choose one with --column{found}")
