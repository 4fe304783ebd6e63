"""Columns of plain CSV, a million rows at once; what is not plain is left to the careful reader."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from benchrigor.model import Floats

_AT_ONCE = 1 << 24  # bytes
_NUMBER = b"0123456789.+-eE"
_MARKS = b"\n\t;,"
_BLANKED = bytes.maketrans(_MARKS, b" " * len(_MARKS))
_PRINTED = bytes(code for code in range(0x20, 0x7F) if chr(code) not in '"\t;, ')

Bytes = npt.NDArray[np.uint8]


def columns_of(raw: memoryview, indices: Sequence[int], *, width: int, mark: str) -> list[Floats]:
    r"""Return columns of numbers of rows that are proved plain; an empty list if they are not.

    Plain is: each line ends in a line break and has ``width`` cells, no cell is quoted, all
    characters are of ASCII, separators of other files do not occur, and what stands in the columns
    is decimal, finite and not empty. Of such rows a careful reader returns the same numbers.

    Examples
    --------
    >>> columns_of(memoryview(b"a,1\nb,2.5\n"), [1], width=2, mark=",")
    [array([1. , 2.5])]
    >>> columns_of(memoryview(b"a,1\nb,2,5\n"), [1], width=2, mark=",")
    []
    """
    parts: list[list[Floats]] = []
    start = 0
    if raw[-1:].tobytes() != b"\n":
        return []
    while start < len(raw):
        part = bytes(raw[start : start + _AT_ONCE])
        part = part[: part.rfind(b"\n") + 1]  # empty if no line ends, which is not plain
        start += len(part)
        columns = _columns_in(part.replace(b"\r\n", b"\n"), indices, width, mark.encode())
        if not columns:
            return []
        parts.append(columns)
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _columns_in(part: bytes, indices: Sequence[int], width: int, mark: bytes) -> list[Floats]:
    """Return the columns of whole lines; an empty list if they are not plain."""
    space = b"" if mark == b" " else b" "
    if not part or part.translate(None, _PRINTED + space + mark * (width > 1) + b"\n"):
        return []
    text = np.frombuffer(part, dtype=np.uint8)
    ends = np.flatnonzero((text == ord(mark)) | (text == ord("\n"))).astype(np.int32)
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
    """Return the numbers of a column, whose cells end where ``ends`` says; None if some are not."""
    if ends.shape[1] > 1:
        before = ends[:, index - 1] if index else np.append(np.int32(-1), ends[:-1, -1])
        steps = np.zeros(text.size + 1, dtype=np.int8)
        steps[before + 1] += 1
        steps[ends[:, index] + 1] -= 1  # with its end
        text = text[np.cumsum(steps[:-1], dtype=np.int8).view(bool)]
    cells = text.tobytes()
    if cells.translate(None, _NUMBER + _MARKS):
        return None
    blank = cells.translate(_BLANKED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of text that is not a number
        try:
            numbers = np.fromstring(blank, dtype=np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    return numbers if numbers.size == len(ends) and np.isfinite(numbers).all() else None
