"""The file format of segment profiles: comments, a header of typed columns, a row per segment."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model.checks import refuse
from benchrigor.model.series import LARGEST
from benchrigor.model.text_tables.rows import is_number, one_line, write_head
from benchrigor.model.text_tables.tables import Labels, Numbers, TextTable

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
_COUNT = Numbers(least=0, most=1e9, counts=True)
_KINDS = dict.fromkeys(("duration_s", "delay"), Numbers(least=0.0, most=LARGEST))
_BOOLS = {"True": True, "False": False}


def write(profile: Mapping[str, Any], file: IO[str]) -> None:
    """Write the fields of a `SegmentProfile` as commented CSV."""
    columns = {
        f"{kind}:{name}": values
        for kind, field in _FIELDS.items()
        for name, values in profile[field].items()
    }
    columns = {"duration_s": profile["duration_s"], **columns}
    about = {name: profile[name] for name in (*_TEXTS, *_COUNTS)}
    facts = {key: value for key, value in profile["facts"].items() if key not in about}
    rows = write_head(file, {_TITLE: _VERSION, **about, **facts}, list(columns))
    cells = [
        map(one_line, values) if values.dtype.kind == "U" else values.tolist()
        for values in columns.values()
    ]
    rows.writerows(zip(*cells, strict=True))


def read(file: IO[str], *, name: str) -> dict[str, Any]:
    """Return the parameters of the `SegmentProfile` that a file holds."""
    table = TextTable(file, name=name, knows=lambda cells: "duration_s" in cells)
    about = table.comments
    if _TITLE not in about:
        raise InvalidInput(f"{name} is not a segment profile, expected '# {_TITLE}: 1' on line 1")
    if (version := about.pop(_TITLE)) != _VERSION:
        raise InvalidInput(f"{name} is a segment profile of version {version}, expected {_VERSION}")
    heads = _heads(table.header, name)
    kinds = [Labels() if kind == "nominal" else _KINDS.get(kind, Numbers()) for kind, _ in heads]
    columns = dict(zip(table.header, kinds, strict=True))
    parts = [part.columns for part in table.parts(columns)]
    if not parts:
        raise InvalidInput(f"{name} has no segments, expected a row for each")
    fields: dict[str, Any] = {field: {} for field in _FIELDS.values()}
    for (kind, title), (head, column) in zip(heads, columns.items(), strict=True):
        values = np.concatenate([part.pop(head) for part in parts])
        if isinstance(column, Labels):
            values = np.array(_labels(column.distinct))[values]
        if title:
            fields[_FIELDS[kind]][title] = values
        else:
            fields[kind] = values
    return {**_about(table), **fields}


def _heads(header: Sequence[str], name: str) -> list[tuple[str, str]]:
    """Return kinds and names of the columns, or raise naming the problem with the header."""
    heads = [(kind.strip(), title.strip()) for kind, _, title in (h.partition(":") for h in header)]
    wanted = ", ".join(("duration_s", *(f"{kind}:NAME" for kind in _FIELDS)))
    problems, times = [], Counter(heads)
    for head, text in zip(heads, header, strict=True):
        if head != ("duration_s", "") and (head[0] not in _FIELDS or not head[1]):
            problems.append(f"{name}: column {text!r}, expected one of {wanted}")
        elif times[head] > 1:
            problems.append(f"{name}: several columns {text!r}, expected one")
    if ("duration_s", "") not in heads:
        problems.append(f"{name} has no column duration_s, expected one")
    refuse(problems)
    return heads


def _labels(texts: list[str]) -> Sequence[str | int | float]:
    """Return numbers if all are written as Python would, else texts: "007" is not "7"."""
    if texts and isinstance(_plain(texts[0]), str):
        return texts
    values = [_plain(text) for text in texts]
    are_alike = len(set(map(type, values))) == 1 and list(map(str, values)) == texts
    return values if are_alike else texts


def _about(table: TextTable) -> dict[str, Any]:
    """Return the fields of the profile in the comment lines; the other lines become facts."""
    known: dict[str, Any] = {
        key: table.comments[key] if key in _TEXTS else int(table.number(key, _COUNT) or 0)
        for key in (*_TEXTS, *_COUNTS)
        if key in table.comments
    }
    others = {key: text for key, text in table.comments.items() if key not in known}
    return {**known, "facts": {key: _BOOLS.get(text, _plain(text)) for key, text in others.items()}}


def _plain(text: str) -> str | int | float:
    """Return a number if the text is a finite one; an int if 64 bits hold it."""
    if not (is_number(text) and math.isfinite(number := float(text))):
        return text
    with suppress(ValueError):
        if -(2**63) <= (whole := int(text)) < 2**63:
            return whole
    return number
