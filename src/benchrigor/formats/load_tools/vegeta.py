"""The results of vegeta (`vegeta encode --to json` or csv): a line for each request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, one_series, only_summary, optional, scaled, taken
from benchrigor.formats.load_tools.tables import failed, number, rows_in
from benchrigor.model.recorded import Recorded

TOOL = "vegeta"
_CSV_LINE = re.compile(r"\d{18,19},\d{1,3},\d+,\d+,\d+,.*(?:\n|$)")
_FIRST_ERROR = 400  # code of HTTP from which an answer is an error
_SUMMED = ("mean", "50th", "95th", "99th", "max", "min")

Request = tuple[str, int, float, int, str]  # attack, sequence number, ns, code, error


def is_format(data: object) -> bool:
    """Return whether JSON is a report of vegeta, which has no requests, or one request."""
    report = {"latencies", "status_codes"}
    return isinstance(data, Mapping) and (report <= data.keys() or are_format([data]))


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Say that a report holds no readings; a single request is one."""
    if are_format([data]):
        yield from read_lines([data], place)
        return
    latencies = taken(data, "latencies", dict, place)
    means = {f"{key} ns": latencies.get(key) for key in _SUMMED}
    notice = only_summary("vegeta encode", means, "--to json on the results of the attack")
    yield Recorded(name=TOOL, metrics=(TIME,), rounds=(), tool=TOOL, notices=(notice,))


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether objects, one per line, are those of vegeta."""
    keys = {"latency", "timestamp", "code"}
    return all(isinstance(each, Mapping) and keys <= each.keys() for each in lines)


def read_lines(lines: Sequence[Any], place: str) -> Iterator[Recorded]:
    """Read requests."""
    return _recorded(
        (
            (
                str(each.get("attack") or TOOL),
                optional(each, "seq", int) or 0,
                taken(each, "latency", int, f"{place} object {index}"),
                taken(each, "code", int, f"{place} object {index}"),
                str(each.get("error") or ""),
            )
            for index, each in enumerate(lines, 1)
        ),
        place,
    )


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of vegeta, which has no header."""
    return _CSV_LINE.match(text) is not None


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the CSV: time, code, latency, bytes out and in, error, body, attack, number, ..."""
    requests = list[Request]()
    for line, row in rows_in(text, place):
        if len(row) < 9:
            raise InvalidInput(f"{place} line {line} has {len(row)} cells, expected 9 or more")
        cells = (number(row[index], "a number", line, place) for index in (8, 2, 1))
        sequence, latency, code = cells
        requests.append((row[7] or TOOL, int(sequence), latency, int(code), row[5]))
    return _recorded(requests, place)


def _recorded(requests: Iterable[Request], place: str) -> Iterator[Recorded]:
    """Return the requests of each attack, in the order in which they were sent."""
    attacks: dict[str, list[Request]] = {}
    for each in requests:
        attacks.setdefault(each[0], []).append(each)
    for name, several in attacks.items():
        several.sort(key=lambda request: request[1])
        bad = [each for each in several if each[4] or not 0 < each[3] < _FIRST_ERROR]
        first = (bad[0][4] or f"code {bad[0][3]}") if bad else ""
        yield Recorded(
            name=name,
            metrics=(TIME,),
            rounds=one_series(
                TIME, scaled([each[2] for each in several], 1e-9, f"{place} latency")
            ),
            tool=TOOL,
            notices=failed(len(bad), len(several), first),
        )
