"""What `go test -bench` prints, with `-count` repetitions of each benchmark in one process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import in_base_unit, one_each, provenance_of, scaled
from benchrigor.model import Metric
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import short

TOOL = "go"
_LINE = re.compile(r"(Benchmark\S*)\s+(\d+)((?:\s+\S+\s+\S*[^\s\d.]\S*)+)\s*")
_LIKE_LINE = re.compile(r"^Benchmark\S*\s+\d+\s+[-+\dNI.]\S*\s+\S*/op", re.MULTILINE)
_BROKEN_LINE = re.compile(r"Benchmark\S*\s+\d+\s")
_KEY = re.compile(r"([a-z][^\s:A-Z]*):\s+(.*)")
_UNIT = re.compile(r"Unit\s+(\S+)\s+(.*)")
_PROCESSORS = re.compile(r"-(\d+)$")
_DIRECTIONS = {"higher": "higher", "lower": "lower"}


def is_text(text: str) -> bool:
    """Return whether a text has lines of this format."""
    return _LIKE_LINE.search(text) is not None


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks of each package; lines of other output are left out."""
    about: dict[str, str] = {}
    better: dict[str, str] = {}
    found: dict[tuple[str, str], list[tuple[int, int, dict[str, float]]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if unit := _UNIT.fullmatch(line):
            words = dict(word.partition("=")[::2] for word in unit[2].split())
            better[unit[1]] = _DIRECTIONS.get(words.get("better", ""), "auto")
        elif row := _LINE.fullmatch(line):
            readings = _readings(row[3].split(), f"{place} line {number}")
            key = (about.get("pkg", ""), row[1])
            found.setdefault(key, []).append((number, int(row[2]), readings))
        elif _BROKEN_LINE.match(line):
            expected = "numbers with their units after the name"
            raise InvalidInput(f"{place} line {number} is {short(line)}, expected {expected}")
        elif word := _KEY.fullmatch(line):
            about[word[1]] = word[2].strip()
    packages = {package for package, _ in found}
    where = provenance_of(
        {key: value for key, value in about.items() if key != "pkg"},
        system="/".join(about[key] for key in ("goos", "goarch") if key in about),
        cpu=about.get("cpu"),
        commit=about.get("commit"),
    )
    for (package, name), rows in found.items():
        units = [unit for unit in rows[0][2] if all(unit in each for _, _, each in rows)]
        if not units:
            raise InvalidInput(f"{place} line {rows[1][0]} has no unit of line {rows[0][0]}")
        yield Recorded(
            name=f"{package}.{name}" if len(packages) > 1 else name,
            metrics=tuple(_metric(unit, better, index == 0) for index, unit in enumerate(units)),
            rounds=_rounds(rows, units, place),
            tool=TOOL,
            unit="repetition",
            provenance=where,
            parameters=_parameters(name, package),
        )


def _rounds(rows: Sequence[Any], units: Sequence[str], place: str) -> Any:
    columns = {
        _name(unit): scaled(
            [each[unit] for _, _, each in rows], in_base_unit(unit)[1], f"{place} {unit}"
        ).tolist()
        for unit in units
    }
    return one_each(columns, [{"inner_loop": max(calls, 1)} for _, calls, _ in rows])


def _readings(words: Sequence[str], place: str) -> dict[str, float]:
    try:
        return {unit: float(value) for value, unit in zip(words[::2], words[1::2], strict=True)}
    except ValueError as error:
        raise InvalidInput(f"{place}: {error}, expected a number before each unit") from error


def _name(unit: str) -> str:
    return "time" if in_base_unit(unit)[0] == "s" and unit.endswith("/op") else unit


def _metric(unit: str, better: Mapping[str, str], must_satisfy: bool) -> Metric:
    way: Any = better.get(unit, "auto")
    base = in_base_unit(unit)[0]
    return Metric(name=_name(unit), unit=base, direction=way, must_satisfy=must_satisfy)


def _parameters(name: str, package: str) -> dict[str, Any]:
    """Return the parts of a name such as BenchmarkSort/size=10-8."""
    processors = _PROCESSORS.search(name)
    parts = _PROCESSORS.sub("", name).split("/")[1:]
    named = dict(part.partition("=")[::2] for part in parts if "=" in part)
    procs = {"procs": int(processors[1])} if processors else {}
    return {**named, **procs, **({"pkg": package} if package else {})}
