"""The JSON of hyperfine (`--export-json`): each time is that of a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import (
    TIME,
    are_objects,
    failed,
    object_at,
    only_summary,
    rounds_of,
    scaled,
    taken,
)
from benchrigor.model import Metric
from benchrigor.model.commented_csv import is_number, rows_of
from benchrigor.model.recorded import Recorded

TOOL = "hyperfine"
_MEMORY = Metric(name="memory", unit="B", must_satisfy=False)
_MEANS = ("mean", "stddev", "median", "user", "system", "min", "max")


def is_format(data: object) -> bool:
    """Return whether JSON has the keys of this format."""
    if not isinstance(data, Mapping) or not isinstance(data.get("results"), list):
        return False
    return are_objects(data["results"], "command")


def is_text(text: str) -> bool:
    """Return whether a text is the CSV of hyperfine, which has means only."""
    return text.startswith(",".join(("command", *_MEANS)))


def read_text(text: str, place: str) -> Iterator[Recorded]:
    """Say that a CSV holds no readings."""
    (_, header), *rows = rows_of(text.splitlines(), place)
    cells = [dict(zip(header, row, strict=False)) for _, row in rows]
    numbers = [{key: float(x) for key, x in row.items() if is_number(x)} for row in cells]
    return read({"results": [a | b for a, b in zip(cells, numbers, strict=True)]}, text, place)


def read(data: Any, _: str, place: str) -> Iterator[Recorded]:
    """Read the commands; the first run, which is often cold, is a reading as the others are."""
    for index, each in enumerate(data["results"]):
        here = f"{place} results[{index}]"
        told: dict[str, Any] = {"name": taken(each, "command", str, here), "metrics": (TIME,)}
        told |= {"tool": TOOL, "unit": "process", "parameters": object_at(each, "parameters")}
        if each.get("times") is None:
            means = {key: each.get(key) for key in _MEANS}
            yield Recorded(**told, **only_summary(means, "run hyperfine with --export-json FILE"))
            continue
        columns = {"time": scaled(taken(each, "times", list, here), 1.0, f"{here} times")}
        if memory := each.get("memory_usage_byte"):
            columns["memory"] = scaled(memory, 1.0, f"{here} memory_usage_byte")
            told["metrics"] = (TIME, _MEMORY)
        if len({column.size for column in columns.values()}) > 1:
            raise InvalidInput(f"{here} has fewer memory_usage_byte than times, or more")
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        codes = [code for code in each.get("exit_codes") or () if code != 0]
        yield Recorded(
            **told,
            rounds=rounds_of((dict(zip(columns, row, strict=True)), {}) for row in rows),
            notices=failed(len(codes), columns["time"].size, f"such as with exit code {codes[:1]}"),
        )
