"""Columns of plain CSV, a million rows at once; other text is left to the careful reader."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from benchrigor.model.series import Floats

_AT_ONCE = 1 << 20  # bytes
_NUMBER = b"0123456789.+-eE"
_MARKS = b"\n\t;,"
_BLANKED = bytes.maketrans(_MARKS, b" " * len(_MARKS))
_LARGEST_EXACT = 1 << 53  # whole number up to which all are floats
_POWERS = 10.0 ** np.arange(17)
# Masks of the last 0 to 8 digits in a word of eight, which has the first in its lowest byte.
_LAST = np.array([0] + [(1 << 64) - (1 << 8 * (8 - n)) for n in range(1, 9)], dtype=np.uint64)
_JOINS = (
    (0x0F0F0F0F0F0F0F0F, 10, 8),
    (0x00FF00FF00FF00FF, 100, 16),
    (0x0000FFFF0000FFFF, 10_000, 32),
)
_PRINTED = bytes(code for code in range(0x20, 0x7F) if chr(code) not in '"\t;, ')

Bytes = npt.NDArray[np.uint8]


def columns_of(raw: memoryview, indices: Sequence[int], *, width: int, mark: str) -> list[Floats]:
    r"""Return columns of numbers of rows that are proved plain; an empty list if they are not.

    In plain rows, every line ends in a line break and has ``width`` cells, no cell is quoted, all
    characters are ASCII, separators of other files do not occur, and the cells of the columns are
    decimal, finite and not empty. A careful reader returns the same numbers from such rows.

    Examples
    --------
    >>> columns_of(memoryview(b"a,1\nb,2.5\n"), [1], width=2, mark=",")
    [array([1. , 2.5])]
    >>> columns_of(memoryview(b"a,1\nb,2,5\n"), [1], width=2, mark=",")
    []
    """
    return _joined_parts(raw, lambda part: _columns_in(part, indices, width, mark.encode()))


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
    parts: list[list[Floats]] = []
    start = 0
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


def _columns_in(part: bytes, indices: Sequence[int], width: int, mark: bytes) -> list[Floats]:
    """Return the columns of whole lines; an empty list if they are not plain."""
    space = b"" if mark == b" " else b" "
    if part.translate(None, _PRINTED + space + mark * (width > 1) + b"\n"):
        return []
    text = np.frombuffer(part, dtype=np.uint8)
    are_ends = text == ord("\n")
    if width > 1:
        are_ends |= text == ord(mark)
    ends = np.flatnonzero(are_ends).astype(np.int32)
    if ends.size % width:
        return []
    table = ends.reshape(-1, width)
    is_line_end = text[table] == ord("\n")
    if is_line_end[:, :-1].any() or not is_line_end[:, -1].all():
        return []
    columns = []
    for index in indices:
        numbers = _numbers_between(text, table, index)
        if numbers is None:
            return []
        columns.append(numbers)
    return columns


def _numbers_between(text: Bytes, ends: npt.NDArray[np.int32], index: int) -> Floats | None:
    """Return the numbers of a column from the ends of its cells; None if some are not numbers."""
    before = ends[:, index - 1] if index else np.append(np.int32(-1), ends[:-1, -1])
    if ends.shape[1] > 1:
        steps = np.zeros(text.size + 1, dtype=np.int8)
        steps[before + 1] += 1
        steps[ends[:, index] + 1] -= 1  # with its end
        text = text[np.cumsum(steps[:-1], dtype=np.int8).view(bool)]
    cells = text.tobytes()
    blank = cells.translate(_BLANKED)
    decimals = None if b" " in cells else _decimals(blank, ends[:, index] - before - 1)
    if decimals is not None or cells.translate(None, _NUMBER + _MARKS):
        return decimals
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of text that is not a number
        try:
            numbers = np.fromstring(blank, dtype=np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    return numbers if numbers.size == len(ends) and np.isfinite(numbers).all() else None


def _decimals(blank: bytes, sizes: npt.NDArray[np.int32]) -> Floats | None:
    """Return numbers that blanks follow; None unless all have up to 16 digits and a point.

    Whole numbers up to 2^53 and powers of ten up to 10^22 are floats, so that their quotient is the
    float nearest to the decimal number (Clinger 1990, section 3). Eight digits are joined at once,
    in pairs (Lemire 2021, section 3).
    """
    digits = blank.translate(None, b".")
    text = np.frombuffer(bytes(16) + digits, dtype=np.uint8)
    stops = np.flatnonzero(text[16:] == ord(" "))
    counts = np.diff(stops, prepend=-1) - 1
    points = sizes - counts
    fits = counts.min() > 0 and counts.max() <= 16 and points.max() <= 1
    if not fits or digits.translate(None, b" 0123456789"):
        return None
    words = np.ndarray(text.size - 7, dtype="<u8", buffer=text, strides=(1,))
    whole = _join_digits(words[stops + 8] & _LAST[np.minimum(counts, 8)])
    if counts.max() > 8:
        whole += _join_digits(words[stops] & _LAST[np.maximum(counts - 8, 0)]) * np.uint64(10**8)
    if whole.max() > _LARGEST_EXACT:
        return None
    pointed, places = points == 1, np.zeros(counts.size, dtype=np.int64)
    at = np.flatnonzero(np.frombuffer(blank, dtype=np.uint8) == ord("."))
    places[pointed] = np.cumsum(sizes + 1)[pointed] - 2 - at
    return whole.astype(np.float64) / _POWERS[places]


def _join_digits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the numbers that words of eight digits stand for."""
    for mask, ten, bits in _JOINS:
        words &= np.uint64(mask)
        words = words * np.uint64(ten) + (words >> np.uint64(bits))
    return words & np.uint64(0xFFFFFFFF)
