"""The file format of segment profiles: comment lines, a header of typed columns, one row each."""

from __future__ import annotations

import csv
import itertools
import math
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from benchrigor.errors import InvalidInput

__all__ = ["read", "write"]

_TITLE = "benchrigor segment profile"
_VERSION = "1"
_FIELDS = {
    "computation": "computation",
    "nominal": "nominal",
    "delay": "delays",
    "evidence": "evidence",
}
_TEXTS = ("program", "run")
_COUNTS = ("process", "processes")
_BOOLS = {"True": True, "False": False}
_ROWS = 1_024
"""So many are held as text at once."""


def write(profile: Mapping[str, Any], file: IO[str]) -> None:
    """Write the fields of a `SegmentProfile` as CSV: comments, typed columns, rows."""
    heads = {
        _one_line(f"{kind}:{name}"): values
        for kind, field in _FIELDS.items()
        for name, values in profile[field].items()
    }
    about = {each: profile[each] for each in (*_TEXTS, *_COUNTS)}
    facts = {key: value for key, value in profile["facts"].items() if key not in about}
    file.write(f"# {_TITLE}: {_VERSION}\n")
    for key, value in {**about, **facts}.items():
        if value is not None and value != "":
            file.write(f"# {key}: {_one_line(value)}\n")
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["duration_s", *heads])
    columns = [column.tolist() for column in (profile["duration_s"], *heads.values())]
    texts = [
        [_one_line(text) for text in column] if isinstance(column[0], str) else column
        for column in columns
    ]
    rows.writerows(zip(*texts, strict=True))


def _one_line(value: object) -> str:
    """Keep a segment to a line: so line tools read the file, and csv quotes no lone return."""
    return " ".join(str(value).splitlines())


def read(file: IO[str], *, name: str) -> dict[str, Any]:
    """Return the parameters of the `SegmentProfile` that a file holds.

    Raises
    ------
    InvalidInput
        Naming the file, the line, and what was expected there.
    """
    try:
        return _read(file, name)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name} is no segment profile: {error}") from error


def _read(file: IO[str], name: str) -> dict[str, Any]:
    about, line, above = _comments(file)
    if _TITLE not in about:
        raise InvalidInput(f"{name} is no segment profile, expected '# {_TITLE}: 1' on line 1")
    if (version := about.pop(_TITLE)) != _VERSION:
        raise InvalidInput(f"{name} is a segment profile of version {version}, expected {_VERSION}")
    table = csv.reader(itertools.chain([line], file), strict=True)
    heads = _heads(next(table, []), name)
    columns = _columns(_numbered(table, above, name), heads, name)
    found: dict[str, Any] = {field: {} for field in _FIELDS.values()}
    for (kind, title), values in zip(heads, columns, strict=True):
        if title:
            found[_FIELDS[kind]][title] = values
        else:
            found[kind] = values
    return {**_about(about, name), **found}


def _columns(
    rows: Iterator[tuple[int, list[str]]], heads: list[tuple[str, str]], name: str
) -> list[npt.NDArray[Any]]:
    """Return the columns of a table, or raise naming the first line that does not fit."""
    kept: list[_Labels | _Numbers] = [
        _Labels() if kind == "nominal" else _Numbers() for kind, _ in heads
    ]
    while chunk := list(itertools.islice(rows, _ROWS)):
        lines, texts = zip(*chunk, strict=True)
        lengths = [*map(len, texts)]
        if lengths.count(len(heads)) < len(lengths):
            line, n = next(
                each for each in zip(lines, lengths, strict=True) if each[1] != len(heads)
            )
            raise InvalidInput(
                f"{name}, line {line}: {n} values, expected {len(heads)} as in the header"
            )
        for column, part in zip(kept, zip(*texts, strict=True), strict=True):
            if (bad := column.extend(part)) is not None:
                raise InvalidInput(
                    f"{name}, line {lines[bad]}: {part[bad]!r}, expected a finite number"
                )
    if not len(kept[0]):
        raise InvalidInput(f"{name} has no segments, expected a row for each")
    return [column.values() for column in kept]


def _comments(file: IO[str]) -> tuple[dict[str, str], str, int]:
    """Return the comments at the beginning, the line after them, and how many they are."""
    about: dict[str, str] = {}
    for above, line in enumerate(file):
        if not line.startswith("#"):
            return about, line, above
        key, _, value = line[1:].partition(":")
        about[key.strip()] = value.strip()
    return about, "", 0


def _numbered(table: Any, above: int, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, with the numbers of their last lines."""
    line = above + table.line_num
    try:
        for row in table:
            line = above + table.line_num
            if row:
                yield line, row
    except csv.Error as error:
        raise InvalidInput(
            f"{name} is no segment profile: {error}, in the row after line {line}; expected "
            "quotes that are closed"
        ) from error


class _Numbers:
    """A column of numbers, 8 bytes each."""

    def __init__(self) -> None:
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, texts: Sequence[str]) -> int | None:
        """Keep more of them; return the place of the first that is no finite number."""
        try:
            values = array("d", map(float, texts))
        except ValueError:
            values = None
        # Python takes 1_000 for a number; other programs do not.
        if values is None or not np.isfinite(values).all() or "_" in "".join(texts):
            return next(i for i, text in enumerate(texts) if isinstance(_plain(text.strip()), str))
        self._values.extend(values)
        return None

    def values(self) -> npt.NDArray[np.float64]:
        return np.array(self._values)


class _Labels:
    """A column of labels: each of the distinct ones once, and 4 or 8 bytes for each row."""

    def __init__(self) -> None:
        self._places: defaultdict[str, int] = defaultdict()
        self._places.default_factory = self._places.__len__
        self._place_of = array("L")

    def __len__(self) -> int:
        return len(self._place_of)

    def extend(self, texts: Sequence[str]) -> int | None:
        """Keep more of them."""
        self._place_of.extend(map(self._places.__getitem__, map(str.strip, texts)))
        return None

    def values(self) -> npt.NDArray[Any]:
        distinct = np.array(_labels(list(self._places)))
        found: npt.NDArray[Any] = distinct[np.array(self._place_of)]
        return found


def _heads(header: list[str], name: str) -> list[tuple[str, str]]:
    """Return kind and name of each column, or raise naming what is wrong with the header."""
    heads = [(kind.strip(), title.strip()) for kind, _, title in (h.partition(":") for h in header)]
    wanted = ", ".join(("duration_s", *(f"{kind}:NAME" for kind in _FIELDS)))
    problems = []
    for head, text in zip(heads, header, strict=True):
        if head != ("duration_s", "") and (head[0] not in _FIELDS or not head[1]):
            problems.append(f"{name}: column {text!r}, expected one of {wanted}")
        elif heads.count(head) > 1:
            problems.append(f"{name}: several columns {text!r}, expected one")
    if ("duration_s", "") not in heads:
        problems.append(f"{name} has no column duration_s, expected one")
    if problems:
        raise InvalidInput(problems)
    return heads


def _labels(texts: list[str]) -> Sequence[str | int | float]:
    """Return numbers where all are written as Python would, else texts: "007" is not "7"."""
    values: list[int | float] = []
    for text in texts:
        value = _plain(text)
        alike = not values or type(value) is type(values[0])
        if isinstance(value, str) or str(value) != text or not alike:
            return texts
        values.append(value)
    return values


def _about(about: dict[str, str], name: str) -> dict[str, Any]:
    """Return what the comment lines say of the profile, the rest of them as facts."""
    found: dict[str, Any] = {key: about.pop(key) for key in _TEXTS if key in about}
    for key in _COUNTS:
        if key in about:
            text = about.pop(key)
            if not text.isdecimal():
                raise InvalidInput(f"{name}: {key} is {text!r}, expected a whole number from 0 on")
            found[key] = int(text)
    facts = {key: _BOOLS.get(text, _plain(text)) for key, text in about.items()}
    return {**found, "facts": facts}


def _plain(text: str) -> str | int | float:
    """Return a number where the text is one that is finite; an int where 64 bits hold it."""
    if "_" in text:
        return text
    try:
        whole = int(text)
        return whole if -(2**63) <= whole < 2**63 else float(whole)
    except (ValueError, OverflowError):
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
