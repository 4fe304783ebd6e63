"""Rows of a tool's file, as CSV or as JSON lines: texts, and numbers within limits.

It also groups the requests of load generators by name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, one_series, scale, warn_of_failures
from benchrigor.formats.json_text import Parsed
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import LARGEST, short
from benchrigor.model.text_tables.rows import mark_by
from benchrigor.model.text_tables.tables import (
    Kinds,
    Labels,
    Numbers,
    Part,
    Problems,
    TextTable,
)

Request = tuple[str, float, str]  # name, time, error; none if it is empty
Knows = Callable[[Sequence[str]], object]

A_TIME = Numbers(least=0.0, most=LARGEST)
A_NUMBER = Numbers(least=-LARGEST, most=LARGEST)
_HEAD = 10_000  # characters in which the first line of a tool ends


def begins_with(text: str, knows: Knows) -> bool:
    """Return whether a tool knows the cells of the first line of a text, whatever parts them."""
    return mark_by(text[:_HEAD].partition("\n")[0], knows) is not None


def parts_in(
    source: str | Parsed,
    place: str,
    kinds: Kinds | None = None,
    *,
    knows: Knows = bool,
    names: Sequence[str] = (),
    fewest: int = 0,
) -> Iterator[Part]:
    """Yield the rows of CSV, or of objects; InvalidInput lists all cells that do not fit.

    Without ``kinds`` all columns of a CSV are texts. ``names`` are those of one without a header,
    and it has the ``fewest`` of them at least.
    """
    if isinstance(source, Parsed):
        part = Part(kinds or {}, partial(source.table, place, list(kinds or ())))
        part.check(problems := Problems())
        problems.refuse()
        return iter((part,))
    text = source if source.endswith("\n") else f"{source}\n"
    lines = (line[0] for line in re.finditer(r".*\n", text))
    table = TextTable(lines, name=place, knows=knows, names=names, spans_lines=True)
    if 0 < (n := len(table.header)) < fewest:
        line = table.line + 1
        raise InvalidInput(f"{place} line {line} has {n} cells, expected {fewest} or more")
    times = Counter(table.header)
    if twice := [name for name in times if times[name] > 1]:
        line = table.head[0]
        raise InvalidInput(f"{place} line {line} names {twice[0]!r} twice, expected it once")
    return table.parts({name: Labels() for name in times} if kinds is None else kinds)


def rows_in(
    source: str | Parsed, place: str, kinds: Kinds, **how: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of these columns row by row, of `parts_in`."""
    return chain.from_iterable(part.rows() for part in parts_in(source, place, kinds, **how))


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
