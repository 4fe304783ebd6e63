"""Columns of what a tool wrote, as CSV or as JSON lines: texts, and numbers within limits."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.json_text import Parsed
from benchrigor.model.series import LARGEST
from benchrigor.model.text_tables.rows import mark_by
from benchrigor.model.text_tables.tables import Kinds, Labels, Numbers, Part, Problems, TextTable

Knows = Callable[[Sequence[str]], object]

A_TIME = Numbers(least=0.0, most=LARGEST)
A_NUMBER = Numbers(least=-LARGEST, most=LARGEST)
_HEAD = 10_000  # characters in which the first line of a tool ends


def begins_with(text: str, knows: Knows) -> bool:
    """Return whether a tool knows the cells of the first line of a text, whatever parts them."""
    return mark_by(text[:_HEAD].partition("\n")[0], knows) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table, texts and numbers in lists; ``part`` has its rows, if any."""

    values: Mapping[str, list[Any]]
    part: Part | None

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Return the cells of some columns, row by row."""
        return zip(*(self.values[name] for name in names), strict=True)


def columns_in(
    source: str | Parsed,
    place: str,
    kinds: Kinds | None,
    *,
    knows: Knows = bool,
    names: Sequence[str] = (),
) -> Columns:
    """Return columns of CSV or of objects; one that is not there is empty, or NaN.

    InvalidInput tells all cells that do not fit. Without ``kinds`` all columns of a CSV are texts.
    ``names`` are those of a CSV without a header.
    """
    if isinstance(source, Parsed) and kinds is not None:
        problems, table_of = Problems(), partial(source.table, place, [*kinds])
        part = Part(kinds, table_of)
        part.check(problems)
        problems.refuse()
        return _columns(kinds, part)
    text = str(source)
    lines = io.StringIO(text if text.endswith("\n") else f"{text}\n")
    table = TextTable(lines, name=place, knows=knows, names=names, spans_lines=True)
    times = Counter(table.header)
    if twice := [name for name in times if times[name] > 1]:
        line = table.head[0]
        raise InvalidInput(f"{place} line {line} names {twice[0]!r} twice, expected it once")
    kinds = {name: Labels() for name in times} if kinds is None else kinds
    parts = [*table.parts({name: kind for name, kind in kinds.items() if name in times})]
    return _columns(kinds, parts[0] if parts else None)


def _columns(kinds: Kinds, part: Part | None) -> Columns:
    values = dict[str, list[Any]]()
    for name, kind in kinds.items():
        if part is None or name not in part.columns:
            values[name] = ["" if isinstance(kind, Labels) else math.nan] * (part.n if part else 0)
            continue
        values[name] = part.columns[name].tolist()
        if isinstance(kind, Labels):
            distinct = kind.distinct
            values[name] = [distinct[index] for index in values[name]]
    return Columns(values=values, part=part)
