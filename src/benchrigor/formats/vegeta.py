"""The results of vegeta (`vegeta encode --to json` or csv): a line per request."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from benchrigor.formats.fields import (
    A_TIME,
    TIME,
    Parsed,
    Request,
    are_objects,
    begins_with,
    by_name,
    object_at,
    only_summary,
    rows_in,
)
from benchrigor.model.run import Recorded
from benchrigor.model.text_tables import Kinds, Labels, Numbers

TOOL = "vegeta"
COLUMNS = (
    *("timestamp", "code", "latency", "bytes_out", "bytes_in", "error", "body", "attack", "seq"),
    *("method", "url", "headers"),
)
_FEWEST = 9  # columns of a CSV; older versions wrote no target
_CSV_LINE = re.compile(r"\d{18,19},\d{1,3},\d+,\d+,\d+,")
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


def read_lines(found: Parsed, place: str) -> Iterator[Recorded]:
    """Read requests."""
    return _requests(found, place)


def knows(cells: Sequence[str]) -> bool:
    """Return whether a row is of the CSV of vegeta, which has no header."""
    return _CSV_LINE.match(",".join(cells)) is not None


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of vegeta."""
    return begins_with(text, knows)


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the CSV."""
    return _requests(text, place)


def _requests(source: str | Parsed, place: str) -> Iterator[Recorded]:
    kinds: Kinds = {
        **dict.fromkeys(("latency", "code"), A_TIME),
        "seq": Numbers(may_miss=True),
        **{name: Labels() for name in ("attack", "error", "method", "url")},
    }
    requests = []
    rows = rows_in(source, place, kinds, knows=knows, names=COLUMNS, fewest=_FEWEST)
    for latency, code, sequence, attack, error, *target in rows:
        is_bad = error or not 0 < code < _FIRST_ERROR
        request = attack or TOOL, latency, (error or f"code {code:g}") if is_bad else ""
        number = 0.0 if math.isnan(sequence) else sequence
        requests.append((number, " ".join(target).strip(), request))
    return _as_sent(requests, place)


def _as_sent(requests: Sequence[tuple[float, str, Request]], place: str) -> Iterator[Recorded]:
    """Return the times by attack, and by target if targets come back."""
    targets = {target for _, target, _ in requests}
    is_key = 1 < len(targets) <= len(requests) / 2
    in_order = (
        (f"{name} {target}" if is_key else name, time, error)
        for _, target, (name, time, error) in sorted(requests, key=lambda numbered: numbered[0])
    )
    return by_name(in_order, TOOL, seconds=1e-9, place=f"{place} latency of")
