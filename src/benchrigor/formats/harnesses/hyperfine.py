"""The JSON of hyperfine (`--export-json`): each time is that of a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import TIME, one_each, only_summary, optional, scaled, taken
from benchrigor.model import Code, Metric, Notice
from benchrigor.model.commented_csv import is_number, rows_of
from benchrigor.model.recorded import Recorded

TOOL = "hyperfine"
_MEMORY = Metric(name="memory", unit="B", must_satisfy=False)
_MEANS = ("mean", "stddev", "median", "user", "system", "min", "max")


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("results"), list):
        return False
    return all(isinstance(each, Mapping) and "command" in each for each in data["results"])


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of hyperfine, which has means only."""
    return text.startswith("command,mean,stddev,median,user,system,min,max")


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Say that a CSV holds no readings."""
    (_, header), *rows = rows_of(text.splitlines(), place)
    means = [dict(zip(header, map(_number, row), strict=False)) for _, row in rows]
    results = [{**each, "command": row[0]} for each, (_, row) in zip(means, rows, strict=True)]
    return read({"results": results}, text, place)


def _number(cell: str) -> float | None:
    return float(cell) if is_number(cell) else None


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the commands; the first run, which is often cold, is a reading as the others are."""
    for index, each in enumerate(data["results"]):
        here = f"{place} results[{index}]"
        name = taken(each, "command", str, here)
        told: dict[str, Any] = {"name": name, "tool": TOOL, "unit": "process"}
        told |= {"parameters": optional(each, "parameters", dict) or {}}
        if each.get("times") is None:
            means = {key: each.get(key) for key in _MEANS}
            notice = only_summary(TOOL, means, "with --export-json FILE")
            yield Recorded(**told, metrics=(TIME,), rounds=(), notices=(notice,))
            continue
        times = scaled(taken(each, "times", list, here), 1.0, f"{here} times")
        readings, metrics = {TIME.name: times.tolist()}, [TIME]
        for key, metric in {"memory_usage_byte": _MEMORY}.items():
            if (values := optional(each, key, list)) is not None:
                readings[metric.name] = scaled(values, 1.0, f"{here} {key}").tolist()
                metrics.append(metric)
        if len({len(values) for values in readings.values()}) > 1:
            raise InvalidInput(f"{here} has fewer memory_usage_byte than times, or more")
        codes = optional(each, "exit_codes", list) or []
        rounds = one_each(readings)
        yield Recorded(
            **told, metrics=tuple(metrics), rounds=rounds, notices=_failed(codes, len(times))
        )


def _failed(codes: list[Any], n: int) -> tuple[Notice, ...]:
    """Warn of runs that failed, whose times may be those of an error message."""
    failed = [code for code in codes if code != 0]
    if not failed:
        return ()
    sentence = f"{len(failed)} of {n} runs ended with an exit code such as {failed[0]}, not with 0."
    return (Notice.warning(Code.FAILED_RUNS, sentence, failed=len(failed)),)
