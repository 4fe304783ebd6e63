"""Checksums of rows, by which damage is seen that SQLite does not see."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

_Values = Sequence[object]

_TYPES: Mapping[str, Any] = {"t": str, "n": int, "b": bytes, "o": str | None}
_NAMES = {"t": "text", "n": "a whole number", "b": "bytes", "o": "text or nothing"}


def checksum(*values: object) -> int:
    """Return the CRC-32 of the values of a row: texts, bytes, whole numbers and None."""
    total = 0
    for value in values:
        if isinstance(value, bytes | memoryview):
            data: bytes | memoryview = value
            kind, size = "bytes", memoryview(value).nbytes
        else:
            data = str(value).encode(errors="surrogateescape")
            kind, size = type(value).__name__, len(data)
        total = zlib.crc32(data, zlib.crc32(f"{kind}{size}:".encode(), total))
    return total


def wrong_in(columns: _Values, marks: _Values, record: _Values, *, kinds: str) -> str | None:
    """Return the problem with a row, or None.

    Parameters
    ----------
    columns
        All columns but the record and its floats.
    marks
        Checksum of record and floats, and one of columns and this; both None in older rows.
    record
        The record and its floats; empty if they were not read.
    kinds
        Letters for the columns: "t" (text), "n" (a whole number) or "o" (text or None).
    """
    for value, kind in zip((*columns, *record), f"{kinds}tb", strict=False):
        if not isinstance(value, _TYPES[kind]):
            return f"it holds {type(value).__name__}, expected {_NAMES[kind]}"
    content, total = marks
    if content is None and total is None:
        return None
    if total != checksum(*columns, content) or (record and content != checksum(*record)):
        return "its checksum differs"
    return None
