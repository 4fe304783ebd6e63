"""The output of `go test -bench`: one process runs `-count` repetitions of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import in_base_unit, provenance_of, rounds_of, scale
from benchrigor.model import Metric
from benchrigor.model.recorded import Recorded

TOOL = "go"
_LINE = re.compile(r"(Benchmark\S*)\s+(\d+)\s+(\S.*)")
_LIKE_LINE = re.compile(r"^Benchmark\S*\s+\d+\s+[-+\dNI.]\S*\s+\S*/op", re.MULTILINE)
_KEY = re.compile(r"([a-z][^\s:A-Z]*):\s+(.*)")
_UNIT = re.compile(r"Unit\s+(\S+)\s+(?:.*\s)?better=(higher|lower)\b.*")
_PROCESSORS = re.compile(r"-(\d+)$")


def is_text(text: str) -> bool:
    """Return whether a text has lines of this format."""
    return "/op" in text and _LIKE_LINE.search(text) is not None


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Read the benchmarks of all packages, and skip other lines."""
    about: dict[str, str] = {}
    better: dict[str, str] = {}
    found: dict[tuple[str, str], list[tuple[dict[str, float], dict[str, int]]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if row := _LINE.fullmatch(line.strip()):
            readings = _readings(row[3].split(), f"{place} line {number}")
            several = found.setdefault((about.get("pkg", ""), row[1]), [])
            several.append((readings, {"inner_loop": max(int(row[2]), 1)}))
        elif unit := _UNIT.fullmatch(line):
            better[unit[1]] = unit[2]
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
        units = [unit for unit in rows[0][0] if all(unit in readings for readings, _ in rows)]
        if not units:
            raise InvalidInput(f"{place} has {name} in different units, expected one in all lines")
        rounds = (({_name(unit): row[unit] for unit in units}, facts) for row, facts in rows)
        yield Recorded(
            name=f"{package}.{name}" if len(packages) > 1 else name,
            metrics=tuple(_metric(unit, better, units[0]) for unit in units),
            rounds=rounds_of(rounds),
            tool=TOOL,
            unit="repetition",
            provenance=where,
            parameters=_parameters(name, package),
        )


def _readings(words: Sequence[str], place: str) -> dict[str, float]:
    """Return the numbers of a line by unit, in base units."""
    try:
        pairs = {unit: float(value) for value, unit in zip(words[::2], words[1::2], strict=True)}
    except ValueError as error:
        raise InvalidInput(f"{place}: {error}, expected a number before each unit") from error
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
