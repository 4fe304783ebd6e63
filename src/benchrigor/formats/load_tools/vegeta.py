"""The results of vegeta (`vegeta encode --to json` or csv): a line per request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, are_objects, check, object_at, only_summary
from benchrigor.formats.load_tools.tables import Request, by_name
from benchrigor.model.recorded import Recorded
from benchrigor.model.text_tables.rows import number_in, rows_in

TOOL = "vegeta"
_CSV_LINE = re.compile(r"\d{18,19},\d{1,3},\d+,\d+,\d+,.*(?:\n|$)")
_FIRST_ERROR = 400  # HTTP codes from here on are errors
_SUMMED = ("mean", "50th", "95th", "99th", "max", "min")
_CURE = "run vegeta encode --to json on the results of the attack"


def is_format(data: object) -> bool:
    """Return whether JSON is a report of vegeta, which has no requests."""
    return are_objects([data], "latencies", "status_codes")


def read(data: Any, *_: str) -> Iterator[Recorded]:
    """Say that a report holds no readings."""
    latencies = object_at(data, "latencies")
    means = {f"{key} ns": latencies.get(key) for key in _SUMMED}
    yield Recorded(name=TOOL, metrics=(TIME,), tool=TOOL, **only_summary(means, _CURE))


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether vegeta wrote these objects, one per line."""
    return are_objects(lines, "latency", "timestamp", "code")


def read_lines(lines: Sequence[Any], place: str) -> Iterator[Recorded]:
    """Read requests."""
    requests = []
    for index, line in enumerate(lines, 1):
        check(line, {"latency": int, "code": int, "seq?": int}, f"{place} object {index}")
        latency, code, sequence = line["latency"], line["code"], line.get("seq") or 0
        request = _request(line.get("attack"), latency, code, line.get("error"))
        target = f"{line.get('method') or ''} {line.get('url') or ''}".strip()
        requests.append((sequence, target, request))
    return _as_sent(requests, place)


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of vegeta, which has no header."""
    return _CSV_LINE.match(text) is not None


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the CSV: time, code, latency, bytes out and in, error, body, attack, number, ..."""
    requests = []
    for line, row in rows_in(text, place):
        if len(row) < 9:
            raise InvalidInput(f"{place} line {line} has {len(row)} cells, expected 9 or more")
        sequence, latency, code = (number_in(row[at], f"{place} line {line}") for at in (8, 2, 1))
        requests.append((sequence, " ".join(row[9:11]), _request(row[7], latency, code, row[5])))
    return _as_sent(requests, place)


def _request(attack: object, latency: float, code: float, error: object) -> Request:
    is_bad = error or not 0 < code < _FIRST_ERROR
    return str(attack or TOOL), latency, str(error or f"code {code:g}") if is_bad else ""


def _as_sent(requests: Sequence[tuple[float, str, Request]], place: str) -> Iterator[Recorded]:
    """Return the times by attack, and by target if targets come back."""
    targets = {target for _, target, _ in requests}
    is_key = 1 < len(targets) <= len(requests) / 2
    in_order = (
        (f"{name} {target}" if is_key else name, time, error)
        for _, target, (name, time, error) in sorted(requests, key=lambda numbered: numbered[0])
    )
    return by_name(in_order, TOOL, seconds=1e-9, place=f"{place} latency of")
