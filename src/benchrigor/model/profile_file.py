"""The file format of segment profiles: comment lines, a header of typed columns, one row each."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from benchrigor.errors import InvalidInput

if TYPE_CHECKING:
    from benchrigor.model.segments import SegmentProfile

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


def write(profile: SegmentProfile, file: IO[str]) -> None:
    """Write a profile as CSV: ``# key: value`` lines, ``kind:name`` columns, a row per segment."""
    heads = {
        _one_line(f"{kind}:{name}"): values
        for kind, field in _FIELDS.items()
        for name, values in getattr(profile, field).items()
    }
    about = {each: getattr(profile, each) for each in (*_TEXTS, *_COUNTS)}
    facts = {key: value for key, value in profile.facts.items() if key not in about}
    file.write(f"# {_TITLE}: {_VERSION}\n")
    for key, value in {**about, **facts}.items():
        if value is not None and value != "":
            file.write(f"# {key}: {_one_line(value)}\n")
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["duration_s", *heads])
    columns = [column.tolist() for column in (profile.duration_s, *heads.values())]
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
        about, header, rows = _parts(file)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name} is no segment profile: {error}") from error
    if _TITLE not in about:
        raise InvalidInput(f"{name} is no segment profile, expected '# {_TITLE}: 1' on line 1")
    if (version := about.pop(_TITLE)) != _VERSION:
        raise InvalidInput(f"{name} is a segment profile of version {version}, expected {_VERSION}")
    heads = _heads(header, name)
    for line, row in rows:
        if len(row) != len(heads):
            raise InvalidInput(
                f"{name}, line {line}: {len(row)} values, expected {len(heads)} as in the header"
            )
    if not rows:
        raise InvalidInput(f"{name} has no segments, expected a row for each")
    lines = [line for line, _ in rows]
    columns = zip(*(row for _, row in rows), strict=True)
    found: dict[str, Any] = {field: {} for field in _FIELDS.values()}
    for (kind, title), texts in zip(heads, columns, strict=True):
        if kind == "nominal":
            found[kind][title] = _labels([text.strip() for text in texts])
        elif title:
            found[_FIELDS[kind]][title] = _numbers(texts, lines, name)
        else:
            found[kind] = _numbers(texts, lines, name)
    return {**_about(about, name), **found}


def _parts(file: IO[str]) -> tuple[dict[str, str], list[str], list[tuple[int, list[str]]]]:
    """Return the comments at the beginning, the header, and the rows with their line numbers."""
    about: dict[str, str] = {}
    line, above = "", 0
    for line in file:
        if not line.startswith("#"):
            break
        above += 1
        key, _, value = line[1:].partition(":")
        about[key.strip()] = value.strip()
    else:
        line = ""
    table = csv.reader(itertools.chain([line], file))
    header = next(table, [])
    return about, header, [(above + table.line_num, row) for row in table if row]


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


def _numbers(texts: Sequence[str], lines: list[int], name: str) -> list[float]:
    """Return a column of numbers, or raise naming the first line without one."""
    numbers: list[float] = []
    for line, text in zip(lines, texts, strict=True):
        value = _plain(text.strip())
        if isinstance(value, str):
            raise InvalidInput(f"{name}, line {line}: {text!r}, expected a finite number")
        numbers.append(value)
    return numbers


def _labels(texts: list[str]) -> Sequence[str | int | float]:
    """Return numbers where all are written as Python would, else texts: "007" is not "7"."""
    values = [_plain(text) for text in texts]
    canonical = all(str(value) == text for value, text in zip(values, texts, strict=True))
    alike = len({type(value) for value in values}) == 1
    return values if canonical and alike else texts


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
