"""The output of `go test -bench`, also with -json: a process runs `-count` repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import fields
from benchrigor.formats.fields import Parsed, check, in_base_unit, scale
from benchrigor.model import Code, Metric, Notice
from benchrigor.model.run import Recorded

TOOL = "go"
_LIKE_LINE = re.compile(  # a result, or a name with its result after its log
    r"^Benchmark\S*[ \t]+(?:\d+[ \t]+(?:[-+\dNI.]\S*[ \t]+[^\d\s]|.*/op)"
    r"|.*\n(?:[^B].*\n)*?\s*\d+\t.*/op)",
    re.MULTILINE,
)
_START = re.compile(r"(Benchmark\S*)\s(.*)")
_AWAITED = re.compile(r"Benchmark[^a-z\s]")  # Go names nothing Benchmarks or Benchmarking
_RESULT = re.compile(r"(\d{1,18})\s+([-+\dNI.].*|.*/op.*)")
_AFTER_LOG = re.compile(r".*?(\d{1,18})\t\s*(\d.*/.*)")
_KEY = re.compile(r"([a-z][^\s:A-Z]*):\s+(.*)")
_UNIT = re.compile(r"Unit\s+(\S+)\s+(?:.*\s)?better=(higher|lower)\b.*")
_PROCESSORS = re.compile(r"-(\d+)$")
_ENDS = re.compile(r"PASS|FAIL|ok\s|goos:")  # of the output of a process; goos: begins the next

Key = tuple[str, tuple[tuple[str, str], ...]]  # name of a benchmark, and its configuration
Row = tuple[int, dict[str, float], int]  # process, readings by unit, calls


def is_text(text: str) -> bool:
    """Return whether a text has lines of this format."""
    return "\nBenchmark" in f"\n{text}" and _LIKE_LINE.search(text) is not None


def are_format(lines: Sequence[Any]) -> bool:
    """Return whether `go test -json` wrote these objects, one per line."""
    places = {"Package", "ImportPath"}
    return fields.are_objects(lines, "Action") and all(places & line.keys() for line in lines)


def read_lines(found: Parsed, place: str) -> Iterator[Recorded]:
    """Read what each package printed; a line of it may stand in several objects."""
    printed: dict[str, list[str]] = {}
    for number, line in zip(found.lines, found.data, strict=True):
        check(line, {"Package?": str, "Output?": str}, f"{place} line {number}")
        printed.setdefault(line.get("Package") or "", []).append(line.get("Output") or "")
    text = "".join(map("".join, printed.values()))
    if not is_text(text):
        raise InvalidInput(f"{place} is of go test -json, expected results of -bench")
    return read_text(text, f"{place} output")


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks of all packages, configurations and processes; skip other lines."""
    better = {unit[1]: unit[2] for unit in map(_UNIT.fullmatch, text.splitlines()) if unit}
    rows, lost = _rows(text, place)
    known = dict.fromkeys((*rows, *lost))
    packages = {dict(about).get("pkg", "") for _, about in known}
    for key in known:
        name, about = key[0], dict(key[1])
        package = about.pop("pkg", "")
        yield Recorded(
            name=f"{package}.{name}" if len(packages) > 1 else name,
            tool=TOOL,
            provenance=fields.provenance_of(
                about,
                system="/".join(about[key] for key in ("goos", "goarch") if key in about),
                cpu=about.get("cpu"),
                commit=about.get("commit"),
            ),
            parameters={**about, **_parameters(name, package)},
            **_content(name, rows.get(key, []), lost.get(key, []), better, place),
        )


def _rows(text: str, place: str) -> tuple[dict[Key, list[Row]], dict[Key, list[int]]]:
    """Return results by benchmark, and the lines of benchmarks without a result after them.

    The log of a benchmark stands between its name and its result.
    """
    rows, lost = dict[Key, list[Row]](), dict[Key, list[int]]()
    about, process = dict[str, str](), 0
    awaited: tuple[Key, int] | None = None
    for number, line in enumerate((*text.splitlines(), "PASS"), 1):
        start, ends = _START.fullmatch(line), _ENDS.match(line) is not None
        process += ends
        if awaited and (start or ends):
            lost.setdefault(awaited[0], []).append(awaited[1])
            awaited = None
        if start:
            awaited = (start[1], tuple(sorted(about.items()))), number
        rest = start[2] if start else line
        row = awaited and (_RESULT.fullmatch(rest.strip()) or _AFTER_LOG.fullmatch(rest))
        if row and awaited:
            readings = _readings(row[2].split(), f"{place} line {number}")
            rows.setdefault(awaited[0], []).append((process, readings, max(int(row[1]), 1)))
            awaited = None
        elif start and not _AWAITED.match(line):
            awaited = None
        elif (word := _KEY.fullmatch(line)) and not awaited:
            about[word[1]] = word[2].strip()
    return rows, lost


def _content(
    name: str, rows: Sequence[Row], lost: Sequence[int], better: Mapping[str, str], place: str
) -> dict[str, Any]:
    """Return rounds, a process each if there are several, and the losses."""
    if not rows:
        why = f"Line {lost[0]} has no result: it failed, was skipped, or its output is mixed up."
        return {"metrics": (fields.TIME,), **fields.no_rounds(why)}
    every = dict.fromkeys(unit for _, readings, _ in rows for unit in readings)
    units = [unit for unit in every if all(unit in readings for _, readings, _ in rows)]
    if not units:
        raise InvalidInput(f"{place} has {name} in different units, expected one in all lines")
    what = f"such as in line {lost[0]}, which has no result" if lost else ""
    notices = fields.warn_of_failures(len(lost), len(rows) + len(lost), what, counts=False)
    if missing := ", ".join(unit for unit in every if unit not in units):
        notices += (Notice.of(Code.NOT_READ, "units", units=missing),)
    processes: dict[int, list[Row]] = {}
    for row in rows:
        processes.setdefault(row[0], []).append(row)
    several = len(processes) > 1
    rounds = (
        (
            {_name(unit): _series([row[1][unit] for row in one], several) for unit in units},
            {"inner_loop": min(row[2] for row in one)},
        )
        for one in (processes.values() if several else ([row] for row in rows))
    )
    return {
        "metrics": tuple(_metric(unit, better, units[0]) for unit in units),
        "rounds": fields.rounds_of(rounds),
        "unit": "process" if several else "repetition",
        "notices": notices,
    }


def _series(values: list[float], several: bool) -> Any:
    return scale(values, 1.0, "readings") if several else values[0]


def _readings(words: Sequence[str], place: str) -> dict[str, float]:
    """Return the numbers of a line by unit, in base units."""
    try:
        pairs = {unit: float(value) for value, unit in zip(words[::2], words[1::2], strict=True)}
    except ValueError as error:
        raise InvalidInput(f"{place} is {words[:6]}, expected a number before each unit") from error
    factors = {unit: in_base_unit(unit)[1] for unit in pairs}
    return {
        unit: float(scale([value], factors[unit], f"{place} {unit}")[0])
        for unit, value in pairs.items()
    }


def _name(unit: str) -> str:
    return "time" if in_base_unit(unit)[0] == "s" and unit.endswith("/op") else unit


def _metric(unit: str, better: Mapping[str, str], first: str) -> Metric:
    way: Any = better.get(unit, "auto")
    base = in_base_unit(unit)[0]
    return Metric(name=_name(unit), unit=base, direction=way, must_satisfy=unit == first)


def _parameters(name: str, package: str) -> dict[str, str]:
    """Return the parts of a name such as BenchmarkSort/size=10-8."""
    processors = _PROCESSORS.search(name)
    parts = _PROCESSORS.sub("", name).split("/")[1:]
    named = dict(part.partition("=")[::2] for part in parts if "=" in part)
    more = {"procs": processors[1] if processors else "", "pkg": package}
    return {**named, **{key: value for key, value in more.items() if value}}
