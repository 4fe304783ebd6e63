"""The JSON of hyperfine (`--export-json`): one process per reading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import fields
from benchrigor.formats.fields import begins_with, check, object_at, parts_in, scale
from benchrigor.model import Metric
from benchrigor.model.run import Recorded
from benchrigor.model.series import Floats, short
from benchrigor.model.text_tables import is_number

TOOL = "hyperfine"
_MEANS = ("mean", "stddev", "median", "user", "system", "min", "max")
_CURE = "run hyperfine with --export-json FILE"
_VERSION = 2  # it has values by metric in its measurements; older files name no version
_FIRST = "time_wall_clock"
_NAMES = {_FIRST: "time", "memory_peak_resident": "memory"}
_RUNS = {"times?": list, "memory_usage_byte?": list, "exit_codes?": list, "measurements?": [dict]}
_SHAPE = {"results": [{"command": str, **_RUNS}], "primary_metric?": str}
_CSV = re.compile(r"command,(?:mean,stddev,|(\w+)_unit,\1_mean,)")
_UNITS = {"second": "s", "byte": "B", "count": ""}

Columns = dict[str, tuple[str, Floats]]  # unit and readings by metric


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("results"), list):
        return False
    return fields.are_objects(data["results"], "command")


def _knows(cells: Sequence[str]) -> re.Match[str] | None:
    return _CSV.match(",".join(cells))


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of hyperfine, which has means only."""
    return begins_with(text, _knows)


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Say that a CSV holds no readings."""
    results = list[dict[str, Any]]()
    for columns in (part.table.columns for part in parts_in(text, place, knows=_knows)):
        metric = _knows([*columns])
        first = f"{metric[1]}_" if metric and metric[1] else ""
        names = [key.removeprefix(first) for key in columns]
        for row in zip(*columns.values(), strict=True):
            cells = (float(cell) if is_number(cell) else cell for cell in row)
            results.append(dict(zip(names, cells, strict=True)))
    return read({"results": results}, text, place)


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the commands; the first run, often cold, counts as a reading like the others."""
    if data.get("schema_version", _VERSION) != _VERSION:
        found = short(data["schema_version"])
        raise InvalidInput(f"{place} has schema_version {found} of hyperfine, expected {_VERSION}")
    check(data, _SHAPE, place)
    primary, where = data.get("primary_metric", _FIRST), _provenance(object_at(data, "metadata"))
    for index, result in enumerate(data["results"]):
        here = f"{place} results[{index}]"
        parameters = object_at(result, "parameters")
        columns, codes = _columns(result, primary, here)
        content: dict[str, Any] = {"metrics": (fields.TIME,)}
        if columns:
            content = _metrics_and_rounds(columns, [code for code in codes if code != 0], here)
        else:
            known = object_at(object_at(result, "summary"), primary) or result
            content |= fields.only_summary({key: known.get(key) for key in _MEANS}, _CURE)
        yield Recorded(
            name=result["command"],
            tool=TOOL,
            unit="process",
            parameters={
                key: object_at(parameters, key).get("value", value)
                for key, value in parameters.items()
            },
            provenance=where,
            **content,
        )


def _columns(data: Mapping[str, Any], primary: str, place: str) -> tuple[Columns, list[Any]]:
    """Return the columns, the primary metric first, and the exit codes; both empty without runs."""
    if data.get("measurements") is None:
        if data.get("times") is None:
            return {}, []
        columns = {"time": ("s", scale(data["times"], 1.0, f"{place} times"))}
        if memory := data.get("memory_usage_byte"):
            columns["memory"] = ("B", scale(memory, 1.0, f"{place} memory_usage_byte"))
        return columns, data.get("exit_codes") or []
    runs, columns = data["measurements"], {}
    for name in dict.fromkeys((primary, *runs[0])) if runs else (primary,):
        rows = [object_at(run, name) for run in runs]
        if name == primary or all(isinstance(row.get("value"), int | float) for row in rows):
            here = f"{place} {name}"
            values = scale([row.get("value") for row in rows], 1.0, here)
            columns[_NAMES.get(name, name)] = _unit(rows, here), values
    return columns, [run.get("exit_code") for run in runs]


def _unit(rows: list[Mapping[str, Any]], place: str) -> str:
    units = {str(row.get("unit")) for row in rows}
    if len(units) == 1 and units <= _UNITS.keys():
        return _UNITS[units.pop()]
    raise InvalidInput(f"{place} is in {', '.join(sorted(units))}, expected one of {[*_UNITS]}")


def _metrics_and_rounds(columns: Columns, bad: list[Any], place: str) -> dict[str, Any]:
    first, *_ = columns
    n = columns[first][1].size
    if any(values.size != n for _, values in columns.values()):
        raise InvalidInput(f"{place} has fewer memory_usage_byte than times, or more")
    rows = zip(*(values.tolist() for _, values in columns.values()), strict=True)
    return {
        "metrics": tuple(
            Metric(name=name, unit=unit, must_satisfy=name == first)
            for name, (unit, _) in columns.items()
        ),
        "rounds": fields.rounds_of((dict(zip(columns, row, strict=True)), {}) for row in rows),
        "notices": fields.warn_of_failures(len(bad), n, f"such as with exit code {bad[:1]}"),
    }


def _provenance(metadata: Mapping[str, Any]) -> Any:
    platform, version = object_at(metadata, "platform"), metadata.get("hyperfine_version")
    return fields.provenance_of(
        metadata,
        system=" ".join(map(str, platform.values())),
        packages={TOOL: str(version)} if version else None,
        started_at=metadata.get("start_time"),
    )
