"""The results of asv, version 2 of its format: samples of all its processes in one list."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats import fields
from benchrigor.formats.fields import TIME, check, load_object, object_at
from benchrigor.model import Metric
from benchrigor.model.codec import is_there
from benchrigor.model.run import Provenance, Recorded
from benchrigor.model.series import LARGEST, short

TOOL = "asv"
_BENCHMARKS = "benchmarks.json"  # above the folders of machines
_COLUMNS = ("result", "stats_ci_99_a", "stats_ci_99_b", "stats_number", "samples")
_LAST_DATE = 10**14  # milliseconds; the year 5138
_MEMORY = Metric(name="memory", unit="B")
_SHAPE = {"result_columns": [str], "results": {str: list}}
_CELLS = {"params?": [[str]], **{f"{key}?": list for key in _COLUMNS}}
_METRICS = {"time_": TIME, "timeraw_": TIME, "mem_": _MEMORY, "peakmem_": _MEMORY}


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return fields.are_objects([data], "commit_hash", "env_name", "results")


def read_folder(folder: Path) -> Iterator[Recorded]:
    """Read the latest commit per machine and environment, in a folder of all or one machine."""
    pattern = "*/*.json" if (folder / _BENCHMARKS).is_file() else "*.json"
    if pattern == "*.json" and not (folder.parent / _BENCHMARKS).is_file():
        return
    latest: dict[tuple[str, str], tuple[tuple[float, str], Mapping[str, Any]]] = {}
    for path in sorted(folder.glob(pattern)):
        data = load_object(path)
        if is_format(data):
            key, date = (path.parent.name, str(data["env_name"])), data.get("date")
            own = (date if isinstance(date, int) else 0, str(path)), data
            latest[key] = max(latest.get(key, own), own, key=lambda dated: dated[0])
    for key, ((_, place), data) in latest.items():
        suffix = "" if len(latest) == 1 else f" [{', '.join(key)}]"
        for result in read(data, "", place):
            yield replace(result, name=f"{result.name}{suffix}")


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read every benchmark with all combinations of its parameters; the last one varies fastest.

    ``benchmarks.json`` has the units of tracked values.
    """
    if data.get("version", 2) != 2:
        raise InvalidInput(f"{place} has version {short(data['version'])} of asv, expected 2")
    check(data, _SHAPE, place)
    columns, where = data["result_columns"], _provenance(data)
    index_path = Path(place).parent.parent / _BENCHMARKS
    known = load_object(index_path) if is_there(index_path, Path.is_file) else {}
    for name, row in data["results"].items():
        here = f"{place} results[{name!r}]"
        if len(row) > len(columns):
            raise InvalidInput(f"{here} is {short(row)}, expected a list of {len(columns)} at most")
        cells = dict(zip(columns, row, strict=False))
        check(cells, _CELLS, here)
        values, about = cells.get("params") or [], object_at(known, name)
        check(about, {"param_names?": [str], "unit?": str}, f"{index_path} {name}")
        labels = about.get("param_names") or [str(index) for index in range(len(values))]
        metric = _metric(name, about.get("unit"))
        for index, combination in enumerate(itertools.product(*values)):
            own = {key: (cells.get(key) or [])[index : index + 1] for key in _COLUMNS}
            only = {key: one[0] if one else None for key, one in own.items()}
            yield Recorded(
                name=f"{name}({', '.join(combination)})" if combination else name,
                metrics=(metric,),
                tool=TOOL,
                provenance=where,
                parameters=dict(zip(labels, combination, strict=False)),
                **_rounds(only, metric, f"{here}[{index}]"),
            )


def _rounds(own: Mapping[str, Any], metric: Metric, place: str) -> dict[str, Any]:
    """Return a round of the samples; a metric measured once, such as memory, has one reading."""
    result, loops = own["result"], own["stats_number"]
    if result is None or (isinstance(result, float) and math.isnan(result)):
        return fields.no_rounds("asv has no result of it: it failed, or was skipped.")
    samples = own["samples"] or ([result] if metric is not TIME and loops is None else None)
    if samples is None:
        means = {"median": result, "low": own["stats_ci_99_a"], "high": own["stats_ci_99_b"]}
        return fields.only_summary(means, "run asv run with --record-samples")
    facts = {"inner_loop": loops} if isinstance(loops, int) and 0 < loops < LARGEST else {}
    values = fields.scale(samples, 1.0, f"{place} samples")
    return {"rounds": fields.one_series(metric, values, **facts)}


def _metric(name: str, unit: str | None) -> Metric:
    function = name.rpartition(".")[2]
    known = next((metric for start, metric in _METRICS.items() if function.startswith(start)), None)
    return known or Metric(name="value", unit="" if unit in (None, "unit") else str(unit))


def _provenance(data: Mapping[str, Any]) -> Provenance:
    params = object_at(data, "params")
    cores, date = str(params.get("num_cpu", "")), data.get("date")
    at = None
    if isinstance(date, int) and 0 <= date < _LAST_DATE:
        at = datetime.fromtimestamp(date / 1e3, tz=UTC).isoformat()
    return fields.provenance_of(
        {key: data.get(key) for key in ("env_name", "requirements", "env_vars", "params")},
        host=params.get("machine"),
        system=params.get("os"),
        cpu=params.get("cpu"),
        cores=int(cores) if cores.isdecimal() else None,
        python=f"Python {data['python']}" if data.get("python") else None,
        commit=data["commit_hash"],
        started_at=at,
    )
