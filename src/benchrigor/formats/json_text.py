"""JSON, as one document or as one object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.codec import value_at
from benchrigor.model.series import short
from benchrigor.model.text_tables.rows import LastLine
from benchrigor.model.text_tables.tables import Table

_MOST_DIGITS = 300
_HUGE = re.compile(rf"\d{{{_MOST_DIGITS}}}")
_SPACE = re.compile(r"\s*")
_FEWEST_WHOLE = 2  # lines before one that is unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The data of a JSON text; ``unfinished`` is a last line cut off.

    If it is of several documents, ``lines`` are the numbers of those in which they begin.
    """

    data: Any
    lines: Sequence[int] = ()
    unfinished: LastLine | None = None

    def some(self, indices: Sequence[int]) -> Parsed:
        """Return some of the documents."""
        lines, data = ([every[index] for index in indices] for every in (self.lines, self.data))
        return replace(self, lines=lines, data=data)

    def table(self, name: str, keys: Sequence[str]) -> Table:
        """Return the values of objects at some paths, as columns."""
        columns = {key: [_value_at(item, key) for item in self.data] for key in keys}
        rows = self.lines or range(len(self.data))
        return Table(name=name, columns=columns, rows=rows, are_items=not self.lines)


def _value_at(item: Any, path: str) -> Any:
    with suppress(LookupError):
        return value_at(item, path)
    return None


def loads(text: str) -> Any:
    """Parse JSON; whole numbers that no float can hold are infinite."""
    return json.loads(text, parse_int=_whole if _HUGE.search(text) else None)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def parse_json(text: str, name: str) -> Parsed:
    """Parse JSON, or documents that stand one after another; InvalidInput if it is neither."""
    try:
        return Parsed(data=loads(text))
    except (ValueError, RecursionError) as whole:
        with suppress(ValueError, RecursionError):
            return _json_documents(text)
        raise InvalidInput(f"{name} is not JSON: {whole}") from whole


def _json_documents(text: str) -> Parsed:
    """Return documents as a line each, or as `cat` joins files, without an unfinished last line."""
    decoder = json.JSONDecoder(parse_int=_whole if _HUGE.search(text) else None)
    at, items, before = _below_space(text, 0), list[Any](), 0
    lines = list[int]()
    while at < len(text):
        lines.append((lines[-1] if lines else 1) + text.count("\n", before, at))
        try:
            item, end = decoder.raw_decode(text, at)
        except ValueError:
            if "\n" in text[at:] or len(items) < _FEWEST_WHOLE:
                raise
            unfinished = LastLine(number=lines.pop(), text=text[at:])
            return Parsed(data=items, lines=lines, unfinished=unfinished)
        items.append(item)
        at, before = _below_space(text, end), at
    return Parsed(data=items, lines=lines)


def _below_space(text: str, start: int) -> int:
    return _SPACE.match(text, start).end()  # type: ignore[union-attr]  # it may be empty


def load_object(path: Path) -> Mapping[str, Any]:
    """Return the object in a file of a folder; InvalidInput if it holds anything else."""
    try:
        data = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(data, Mapping):
        found = "a list" if isinstance(data, list) else short(data)
        raise InvalidInput(f"{path} is {found}, expected an object")
    return data
