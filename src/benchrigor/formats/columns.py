"""Columns of what a tool wrote, as CSV or as JSON lines: texts, and numbers within limits."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from benchrigor.errors import InvalidInput
from benchrigor.formats.json_text import Parsed
from benchrigor.model.series import LARGEST
from benchrigor.model.text_tables.rows import mark_by
from benchrigor.model.text_tables.tables import (
    Kinds,
    Labels,
    Numbers,
    Part,
    Problems,
    Table,
    TextTable,
)

Knows = Callable[[Sequence[str]], object]

A_TIME = Numbers(least=0.0, most=LARGEST)
A_NUMBER = Numbers(least=-LARGEST, most=LARGEST)
_HEAD = 10_000  # characters in which the first line of a tool ends


def begins_with(text: str, knows: Knows) -> bool:
    """Return whether a tool knows the cells of the first line of a text, whatever parts them."""
    return mark_by(text[:_HEAD].partition("\n")[0], knows) is not None


def columns_in(
    source: str | Parsed,
    place: str,
    kinds: Kinds | None = None,
    *,
    knows: Knows = bool,
    names: Sequence[str] = (),
) -> Part:
    """Return the rows of CSV, or of objects; InvalidInput tells all cells that do not fit.

    Without ``kinds`` all columns of a CSV are texts. ``names`` are those of one without a header.
    """
    if isinstance(source, Parsed):
        part = Part(kinds or {}, partial(source.table, place, list(kinds or ())))
        part.check(problems := Problems())
        problems.refuse()
        return part
    lines = io.StringIO(source if source.endswith("\n") else f"{source}\n")
    table = TextTable(lines, name=place, knows=knows, names=names, spans_lines=True)
    times = Counter(table.header)
    if twice := [name for name in times if times[name] > 1]:
        line = table.head[0]
        raise InvalidInput(f"{place} line {line} names {twice[0]!r} twice, expected it once")
    kinds = {name: Labels() for name in times} if kinds is None else kinds
    empty = Table(name=place, columns={}, rows=())
    return ([*table.parts(kinds)] or [Part(kinds, lambda: empty)])[0]
