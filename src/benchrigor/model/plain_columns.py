"""Columns of plain CSV and flat JSON, a million rows at once; the rest is for careful readers."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import LARGEST, Floats

# All other blanks and line breaks are left to the careful reader, and so are quotes.
_PRINTED = bytes(code for code in range(0x20, 0x7F) if chr(code) != '"') + b"\n"
_AT_ONCE = 1 << 19  # bytes
_SAMPLE = 1000  # bytes that show whether blanks follow separators
_NUMBER = b"0123456789.+-eE naNA"  # NaN is one, too
_COMMENT = re.compile(rb"^ *#", re.MULTILINE)
_LARGEST_WHOLE = (1 << 63) - 1  # as larger ones are read, too
_LONGEST = 17  # sixteen digits and a point
_LARGEST_EXACT = 1 << 53  # whole number up to which all are floats
_POWERS = 10.0 ** np.arange(17)


def columns_of(raw: memoryview, indices: Sequence[int], *, width: int, mark: str) -> list[Floats]:
    """Return columns of readings of rows that are proved plain; an empty list if they are not."""
    kinds = [(index, float) for index in indices]
    return _joined_parts(raw, partial(plain_columns, kinds=kinds, width=width, mark=mark))


def values_of(raw: memoryview, key: str, *, is_only: bool = False) -> list[Floats]:
    r"""Return the numbers of a key of JSON objects proved flat, one per line; else an empty list.

    Every line begins with its only opening brace, and there are no lists. So the text parsed at
    once has one object per line only if every line is an object, and none spans a line break. If
    the key ``is_only``, other keys in an object are not plain.

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
        if is_only and part.count(b":") > count:
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
        if not columns or not all(np.abs(column).max() <= LARGEST for column in columns):  # or NaN
            return []
        parts.append(columns)
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def plain_columns(
    text: bytes, kinds: Sequence[tuple[int, type]], *, width: int, mark: str
) -> list[Any]:
    r"""Return columns of rows that are proved plain; an empty list if they are not.

    In plain rows, every line ends in a line break and has ``width`` cells, no cell is quoted, no
    line is a comment, all characters are printed ASCII, and the cells of columns of numbers are
    decimal or NaN, and not empty. A careful reader returns the same cells from such rows. The kind
    of a column is float, int (floats unless all are whole) or object, for texts.

    Examples
    --------
    >>> plain_columns(b"a,1\nb,2.5\n", [(1, float), (0, object)], width=2, mark=",")
    [array([1. , 2.5]), ['a', 'b']]
    >>> plain_columns(b"a,1\nb,2,5\n", [(1, float)], width=2, mark=",")
    []
    """
    if text.translate(None, _PRINTED + mark.encode()) or (b"#" in text and _COMMENT.search(text)):
        return []
    if (spaced := f"{mark} ".encode()) in text[:_SAMPLE]:
        text = text.replace(spaced, mark.encode())
    codes = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero((codes == ord("\n")) | (codes == ord(mark))).astype(np.int32)
    if ends.size % width:
        return []
    table = ends.reshape(-1, width)
    is_line_end = codes[table] == ord("\n")
    if is_line_end[:, :-1].any() or not is_line_end[:, -1].all():
        return []
    sizes = np.diff(ends, prepend=np.int32(-1))  # with the end of a cell
    column_of = np.tile(np.arange(width, dtype=np.min_scalar_type(width)), len(table))
    is_in = np.repeat(column_of, sizes) if width > 1 else np.zeros(0)
    columns = list[Any]()
    for index, kind in kinds:
        cells = codes[is_in == index].tobytes() if width > 1 else text
        if kind is object:
            columns.append(cells[:-1].decode().split(chr(cells[-1])))
        elif (
            numbers := _numbers(cells.replace(cells[-1:], b" "), sizes[index::width] - 1, kind)
        ) is not None:
            columns.append(numbers)
    return columns if len(columns) == len(kinds) else []


def _numbers(blank: bytes, sizes: npt.NDArray[np.int32], kind: type) -> Any:
    """Return numbers of these sizes that blanks follow; None if some are not plain numbers."""
    if blank.count(b" ") != sizes.size or blank.translate(None, _NUMBER):
        return None
    is_whole = kind is int and not blank.translate(None, b" 0123456789")
    if not is_whole and (decimals := _decimals(blank, sizes)) is not None:
        return decimals
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of text that is not a number
        try:
            numbers = np.fromstring(blank, dtype=np.int64 if is_whole else np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    is_right = numbers.size == sizes.size and not (is_whole and numbers.max() == _LARGEST_WHOLE)
    return numbers if is_right else None


def _decimals(blank: bytes, sizes: npt.NDArray[np.int32]) -> Floats | None:
    """Return numbers that blanks follow; None unless all have up to 16 digits and a point.

    Whole numbers up to 2^53 and powers of ten up to 10^22 are floats, so that their quotient is the
    float nearest to the decimal number (Clinger 1990, section 3).
    """
    digits = blank.translate(None, b".")
    if sizes.max() > _LONGEST or digits.translate(None, b" 0123456789"):
        return None
    stops = np.flatnonzero(np.frombuffer(digits, dtype=np.uint8) == ord(" "))
    counts = np.diff(stops, prepend=-1) - 1
    points = sizes - counts
    if counts.min() == 0 or points.max() > 1:
        return None
    whole = np.fromstring(digits, dtype=np.int64, sep=" ")
    if whole.max() > _LARGEST_EXACT:
        return None
    pointed, places = points == 1, np.zeros(counts.size, dtype=np.int64)
    at = np.flatnonzero(np.frombuffer(blank, dtype=np.uint8) == ord("."))
    places[pointed] = np.cumsum(sizes + 1)[pointed] - 2 - at
    return whole / _POWERS[places]
