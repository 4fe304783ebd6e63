"""Tables of requests: every row is checked, and requests are grouped by name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, one_series, scale, warn_of_failures
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import short

Request = tuple[str, float, str]  # name, time, error; none if it is empty


def rows_in(text: str, place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of its last line and its cells, for the rows of a CSV.

    Cells may hold line breaks. All rows have the same number of cells.
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


def by_name(
    requests: Iterable[Request], tool: str, *, seconds: float, place: str
) -> Iterator[Recorded]:
    """Return a series of times per name; failed requests count, and a Notice says so."""
    grouped: dict[str, list[Request]] = {}
    for request in requests:
        grouped.setdefault(request[0], []).append(request)
    for name, several in grouped.items():
        errors = [error for _, _, error in several if error]
        times = scale([time for _, time, _ in several], seconds, f"{place} {name}")
        yield Recorded(
            name=name,
            metrics=(TIME,),
            rounds=one_series(TIME, times),
            tool=tool,
            notices=warn_of_failures(
                len(errors), len(several), f"such as by {short(errors[0])}" if errors else ""
            ),
        )
