"""The results of asv, version 2 of its format: samples of all its processes in one list."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, one_series, only_summary, provenance_of, scaled, taken
from benchrigor.model import Code, Metric, Notice, Provenance, Round
from benchrigor.model.recorded import Recorded
from benchrigor.model.series import short

TOOL = "asv"
_COLUMNS = ("result", "params", "stats_ci_99_a", "stats_ci_99_b", "stats_number", "samples")
_MEMORY = Metric(name="memory", unit="B")
_METRICS = {"time_": TIME, "timeraw_": TIME, "mem_": _MEMORY, "peakmem_": _MEMORY}


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    return isinstance(data, Mapping) and {"commit_hash", "env_name", "results"} <= data.keys()


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read each benchmark with each combination of its parameters, the last of which runs first.

    Units of what is tracked stand in ``benchmarks.json``, in the folder above that of the machine.
    """
    if data.get("version", 2) != 2:
        raise InvalidInput(f"{place} has version {short(data['version'])} of asv, expected 2")
    columns, where = taken(data, "result_columns", list, place), _provenance(data)
    told = _benchmarks(Path(place))
    for name, row in taken(data, "results", dict, place).items():
        here = f"{place} results[{name!r}]"
        if not isinstance(row, list) or len(row) > len(columns):
            raise InvalidInput(f"{here} is {short(row)}, expected a list of {len(columns)} at most")
        held = dict(zip(columns, row, strict=False))
        lists = {key: held.get(key) or [] for key in _COLUMNS}
        values = lists["params"] or []
        labels = (told.get(name) or {}).get("param_names") or [str(i) for i in range(len(values))]
        metric = _metric(name, (told.get(name) or {}).get("unit"))
        for index, combination in enumerate(itertools.product(*values)):
            own = {key: each[index : index + 1] for key, each in lists.items()}
            own = {key: each[0] if each else None for key, each in own.items()}
            rounds, notices = _readings(own, metric, f"{here}[{index}]")
            yield Recorded(
                name=f"{name}({', '.join(combination)})" if combination else name,
                metrics=(metric,),
                rounds=rounds,
                tool=TOOL,
                provenance=where,
                parameters=dict(zip(labels, combination, strict=False)),
                notices=notices,
            )


def _readings(
    own: Mapping[str, Any], metric: Metric, place: str
) -> tuple[tuple[Round, ...], tuple[Notice, ...]]:
    """Return the samples; what asv measures once, such as memory, is one reading."""
    result = own["result"]
    if own["samples"]:
        facts = {"inner_loop": own["stats_number"]} if own["stats_number"] else {}
        return one_series(metric, scaled(own["samples"], 1.0, f"{place} samples"), **facts), ()
    if result is None or result != result:  # noqa: PLR0124  # NaN, of a benchmark that was skipped
        sentence = "asv has no result of it: it failed, or was skipped."
        return (), (Notice.refusal(Code.NO_RAW_READINGS, sentence),)
    if own["stats_number"] is None and metric is not TIME:
        return one_series(metric, scaled([result], 1.0, f"{place} result")), ()
    means = {"median": result, "low": own["stats_ci_99_a"], "high": own["stats_ci_99_b"]}
    return (), (only_summary("asv run", means, "with --record-samples"),)


def _metric(name: str, unit: str | None) -> Metric:
    function = name.rpartition(".")[2]
    known = next((each for start, each in _METRICS.items() if function.startswith(start)), None)
    return known or Metric(name="value", unit="" if unit in (None, "unit") else str(unit))


def _benchmarks(path: Path) -> Mapping[str, Any]:
    try:
        told = json.loads((path.parent.parent / "benchmarks.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: each for key, each in told.items() if isinstance(each, Mapping)}


def _provenance(data: Mapping[str, Any]) -> Provenance:
    params = data.get("params") or {}
    cores, date = str(params.get("num_cpu", "")), data.get("date")
    at = datetime.fromtimestamp(date / 1e3, tz=UTC).isoformat() if isinstance(date, int) else None
    return provenance_of(
        {key: data.get(key) for key in ("env_name", "requirements", "env_vars", "params")},
        host=params.get("machine"),
        system=params.get("os"),
        cpu=params.get("cpu"),
        cores=int(cores) if cores.isdecimal() else None,
        python=f"Python {data['python']}" if data.get("python") else None,
        commit=data["commit_hash"],
        started_at=at,
    )
