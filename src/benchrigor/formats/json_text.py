"""JSON, as one document or as one object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model.series import short
from benchrigor.model.text_tables.rows import LastLine

_MOST_DIGITS = 300
_HUGE = re.compile(rf"\d{{{_MOST_DIGITS}}}")
_SPACE = re.compile(r"\s*")
_FEWEST_WHOLE = 2  # lines before one that is unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The data of a JSON text; ``unfinished`` is a last line cut off."""

    data: Any
    are_lines: bool = False
    unfinished: LastLine | None = None


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
        raise InvalidInput(f"{name} is no JSON: {whole}") from whole


def _json_documents(text: str) -> Parsed:
    """Return documents as a line each, or as `cat` joins files, without an unfinished last line."""
    decoder = json.JSONDecoder(parse_int=_whole if _HUGE.search(text) else None)
    at, items = _below_space(text, 0), list[Any]()
    while at < len(text):
        try:
            item, end = decoder.raw_decode(text, at)
        except ValueError:
            if "\n" in text[at:] or len(items) < _FEWEST_WHOLE:
                raise
            unfinished = LastLine(number=text.count("\n", 0, at) + 1, text=text[at:])
            return Parsed(data=items, are_lines=True, unfinished=unfinished)
        items.append(item)
        at = _below_space(text, end)
    return Parsed(data=items, are_lines=True)


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
