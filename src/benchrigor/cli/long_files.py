"""Numbers of long files, part by part; a file that is not plain is left to the careful reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter

import numpy as np

from benchrigor.model.series import Floats
from benchrigor.model.text_tables.plain_columns import plain_columns

_AT_ONCE = 1 << 20  # bytes


def columns_of(raw: memoryview, indices: Sequence[int], *, width: int, mark: str) -> list[Floats]:
    """Return columns of numbers of rows that are proved plain; an empty list if they are not."""
    return _joined_parts(raw, partial(plain_columns, indices=indices, width=width, mark=mark))


def values_of(raw: memoryview, key: str) -> list[Floats]:
    r"""Return the numbers of a key of JSON objects proved flat, one per line; else an empty list.

    Every line begins with its only opening brace, and there are no lists. So the text parsed at
    once has one object per line only if every line is an object, and none spans a line break.

    Examples
    --------
    >>> values_of(memoryview(b'{"n": 1, "t": 0.5}\n{"n": 2, "t": 2}\n'), "t")
    [array([0.5, 2. ])]
    """

    def values_in(part: bytes) -> list[Floats]:
        count = part.count(b"\n")
        starts = part.startswith(b"{") + part.count(b"\n{")
        if b"[" in part or not count == starts == part.count(b"{"):
            return []
        try:
            text = part[:-1].replace(b"\n", b",\n").decode()
            values = json.loads(f"[{text}]", object_hook=itemgetter(key))
            is_plain = len(values) == count and {float, int}.issuperset(map(type, values))
            return [np.array(values, dtype=np.float64)] if is_plain else []
        except (ValueError, KeyError, OverflowError):
            return []

    return _joined_parts(raw, values_in)


def _joined_parts(raw: memoryview, read: Callable[[bytes], list[Floats]]) -> list[Floats]:
    """Return the columns of whole lines, read part by part; none if one of the parts has none."""
    parts, start = list[list[Floats]](), 0
    if raw[-1:].tobytes() != b"\n":
        return []
    while start < len(raw):
        part = bytes(raw[start : start + _AT_ONCE])
        part = part[: part.rfind(b"\n") + 1]  # empty if no line ends, which is not plain
        start += len(part)
        columns = read(part.replace(b"\r\n", b"\n") if b"\r" in part else part) if part else []
        if not columns:
            return []
        parts.append(columns)
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
