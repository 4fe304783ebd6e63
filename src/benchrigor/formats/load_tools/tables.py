"""Tables of requests: every row is checked."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Notice
from benchrigor.model.series import short


def rows_in(text: str, place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV, each with the number of its last line; cells may hold line breaks.

    All have as many cells as the first.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    width = 0
    try:
        for row in filter(None, reader):
            width = width or len(row)
            if len(row) != width:
                raise InvalidInput(
                    f"{place} line {reader.line_num} has {len(row)} cells, expected {width}"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise InvalidInput(f"{place} line {reader.line_num} is no CSV: {error}") from error


def number(cell: str, column: str, line: int, place: str) -> float:
    """Return the number in a cell."""
    try:
        return float(cell)
    except ValueError:
        raise InvalidInput(
            f"{place} line {line} has {short(cell)} for {column}, expected a number"
        ) from None


def failed(n: int, total: int, first: str) -> tuple[Notice, ...]:
    """Warn of requests that failed: an error may be faster or slower than an answer."""
    if not n:
        return ()
    sentence = f"{n:,} of {total:,} requests failed ({first}), and their times count."
    return (Notice.warning(Code.FAILED_RUNS, sentence, failed=n, requests=total),)


def unfinished(line: int, rest: str) -> Notice:
    """Say that a last line is cut off, as by a tool that was killed."""
    sentence = f"Line {line} has no end and is not used: {short(rest)}."
    return Notice.note(Code.UNFINISHED_LINE, sentence, line=line)
